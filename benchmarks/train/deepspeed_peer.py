"""One training of against_deepspeed.py with DeepSpeed, its optimizer on the host. Prints JSON.

``--build`` trains nothing: DeepSpeed compiles its Adam for the host at first use, which is not to
be counted as part of a training.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import resource
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.train.one_try import answer_and_leave, available_host_bytes, steady, time_steps
from benchmarks.train.peers import checkpoint_blocks
from benchmarks.train.workloads import GPTShape, gpt_loss
from examples.models.gpt import GPT

MODES = ("zero2", "zero3")
LOSSES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
ADAM = {"lr": 1e-4, "weight_decay": 0.01}  # as Workload's AdamW has them


def configuration(mode: str, batch: int) -> dict[str, Any]:
    """As DeepSpeed's documents advise for speed; sizes of buckets are its defaults."""
    to_host = {"device": "cpu", "pin_memory": True}
    zero: dict[str, Any] = {
        "stage": 2,
        "offload_optimizer": to_host,
        "overlap_comm": True,
        "contiguous_gradients": True,
    }
    if mode == "zero3":
        zero |= {"stage": 3, "offload_param": to_host}
    return {
        "train_micro_batch_size_per_gpu": batch,
        "gradient_accumulation_steps": 1,
        "bf16": {"enabled": True},
        "zero_optimization": zero,
    }


def run(options: argparse.Namespace) -> dict[str, Any]:
    """What the training was and cost."""
    available, start = available_host_bytes(), time.perf_counter()
    deepspeed = load_deepspeed(options.device)
    if options.build:
        build_adam(deepspeed)
        seconds = time.perf_counter() - start
        return {"version": deepspeed.__version__.strip(), "build_seconds": seconds}
    shape = GPTShape(**json.loads(options.shape))
    engine = make_engine(deepspeed, shape, options)
    before = reserved_by_training(options.device)
    started = time.perf_counter() - start
    print(f"made the network and its optimizer in {started:.1f} s", file=sys.stderr)
    step = training_step(engine, shape, options)
    losses, seconds_each = time_steps(step, options.steps, options.device)
    return {
        "shape": dataclasses.asdict(shape),
        "parameters": count(engine.module),
        "losses": losses,
        "step_seconds": seconds_each,
        "tokens_per_second": shape.batch * shape.length / steady(seconds_each, options.warm_up),
        "start_seconds": started,
        "start_peak_reserved_bytes": before,
        "host_used_bytes": available - available_host_bytes(),
        **memory(options.device),
        "configuration": configuration(options.mode, shape.batch),
        "threads": torch.get_num_threads(),
    }


def load_deepspeed(device: str) -> Any:
    """Imports it as the only process of a group: no launcher is needed for one GPU."""
    os.environ |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    os.environ["DS_ACCELERATOR"] = device
    import deepspeed

    return deepspeed


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def build_adam(deepspeed: Any) -> None:
    deepspeed.ops.adam.DeepSpeedCPUAdam([nn.Parameter(torch.zeros(8))], **ADAM)


def make_engine(deepspeed: Any, shape: GPTShape, options: argparse.Namespace) -> Any:
    deepspeed.init_distributed("nccl" if options.device == "cuda" else "gloo")
    settings = configuration(options.mode, shape.batch)
    net = make_net(deepspeed, shape, settings, options)
    checkpoint_blocks(net.blocks)
    adam = deepspeed.ops.adam.DeepSpeedCPUAdam(net.parameters(), **ADAM)
    engine, *_ = deepspeed.initialize(model=net, optimizer=adam, config=settings)
    return engine


def make_net(
    deepspeed: Any, shape: GPTShape, settings: dict[str, Any], options: argparse.Namespace
) -> GPT:
    """Built where and as it will be kept, so that no copy of full precision is ever on the GPU."""
    sizes = (shape.vocabulary, shape.width, shape.heads, shape.layers, shape.length)
    if options.mode == "zero2":
        with in_bfloat16(), torch.device(options.device):
            return GPT(*sizes)
    with deepspeed.zero.Init(config_dict_or_path=settings):
        net = GPT(*sizes)
    # GPT sets these once its parts exist, which is after DeepSpeed has taken them away.
    embeddings = [net.tokens.weight, net.positions.weight]
    with deepspeed.zero.GatheredParameters(embeddings, modifier_rank=0):
        for weight in embeddings:
            nn.init.normal_(weight, std=0.02)
    return net


@contextmanager
def in_bfloat16() -> Iterator[None]:
    kept = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        yield
    finally:
        torch.set_default_dtype(kept)


def training_step(
    engine: Any, shape: GPTShape, options: argparse.Namespace
) -> Callable[[int], Tensor]:
    dtype = LOSSES[options.loss]

    def step(number: int) -> Tensor:
        loss = gpt_loss(lambda text: engine(text).to(dtype), shape, options.device, number)
        engine.backward(loss)
        engine.step()
        return loss.detach()

    return step


def count(net: nn.Module) -> int:
    """All of them, also while DeepSpeed has them elsewhere."""
    return sum(getattr(each, "ds_numel", each.numel()) for each in net.parameters())


def reserved_by_training(device: str) -> int:
    """Counts peaks from here on; returns what the start had reserved at most."""
    if device != "cuda":
        return 0
    before = torch.cuda.max_memory_reserved()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return before


def memory(device: str) -> dict[str, int]:
    found = {"peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
    if device != "cuda":
        return {**found, "peak_bytes": 0, "peak_reserved_bytes": 0}
    free, total = torch.cuda.mem_get_info()
    return {
        **found,
        "peak_bytes": torch.cuda.max_memory_allocated(),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
        "device_used_bytes": total - free,
    }


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cuda", "cpu"], required=True)
    parser.add_argument("--build", action="store_true", help="only DeepSpeed's Adam")
    parser.add_argument("--mode", choices=MODES, default=MODES[0])
    parser.add_argument("--shape", help="fields of GPTShape as JSON")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=2, help="of the steps, not timed")
    parser.add_argument("--loss", choices=list(LOSSES), default="float32", help="type of logits")
    arguments = parser.parse_args()
    if not arguments.build and arguments.shape is None:
        parser.error("--shape is needed unless --build is given")
    return arguments


def main() -> None:
    options = parse_arguments()
    torch.manual_seed(0)
    answer_and_leave(lambda: run(options))


if __name__ == "__main__":
    main()
