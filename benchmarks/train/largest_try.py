"""One try of largest.py: a GPT of a given shape, a few steps, in a capped device. Prints JSON.

A process of its own, since a failed try may end it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import resource
import sys
from pathlib import Path
from typing import Any

import torch

import headwater

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.train.one_try import (
    WARM_UP,
    answer_and_leave,
    available_host_bytes,
    steady,
    time_steps,
)
from benchmarks.train.peers import checkpoint_blocks
from benchmarks.train.wishes import add_wishes, wishes_of
from benchmarks.train.workloads import GPTShape, make_gpt

SMALL_SEGMENT_BYTES = 2 << 20


def run(options: argparse.Namespace) -> dict[str, Any]:
    """What the training was and cost; raises where it does not fit."""
    shape = GPTShape(**json.loads(options.shape))
    available = available_host_bytes()
    cap_device(options)
    manage(options)
    with torch.device(options.device):  # built in place: the host never holds a second copy
        workload = make_gpt(shape, options.device, autocast=options.device == "cuda")
    if options.checkpoint:
        checkpoint_blocks(workload.blocks())
    losses, seconds = time_steps(workload.step, options.steps, options.device)
    result = {
        "shape": dataclasses.asdict(shape),
        "parameters": sum(parameter.numel() for parameter in workload.net.parameters()),
        "losses": losses,
        "step_seconds": seconds,
        "tokens_per_second": shape.batch * shape.length / steady(seconds, options.warm_up),
        "host_used_bytes": available - available_host_bytes(),
        **memory(options),
    }
    check(result, options)
    return result


def cap_device(options: argparse.Namespace) -> None:
    if options.device == "cuda":
        total = torch.cuda.get_device_properties(0).total_memory
        # PyTorch's allocator was seen to pass its own cap by one small segment.
        cap = options.cap_bytes - SMALL_SEGMENT_BYTES
        torch.cuda.set_per_process_memory_fraction(cap / total)


def manage(options: argparse.Namespace) -> None:
    """A CPU knows no cap and keeps no peak: there, Headwater counts the plain arm's as well."""
    if options.arm == "headwater":
        wishes = wishes_of(options)
        headwater.enable(options.budget_bytes, options.device, options.host_budget, **wishes)
    elif options.device == "cpu":
        headwater.enable(device="cpu")


def memory(options: argparse.Namespace) -> dict[str, Any]:
    stats = headwater.stats()
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    found: dict[str, Any] = {"host_bytes": stats.host_bytes, "peak_rss_bytes": resident}
    if options.arm == "headwater":
        found["stats"] = stats.as_dict()
    if options.device == "cpu":
        return {**found, "peak_bytes": stats.peak_bytes, "peak_reserved_bytes": stats.peak_bytes}
    free, total = torch.cuda.mem_get_info()
    return {
        **found,
        "peak_bytes": torch.cuda.max_memory_allocated(),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
        "device_used_bytes": total - free,
    }


def check(result: dict[str, Any], options: argparse.Namespace) -> None:
    if result["peak_reserved_bytes"] > options.cap_bytes:
        raise torch.OutOfMemoryError(
            f"Peak is above the cap: {result['peak_reserved_bytes']} of {options.cap_bytes} bytes"
        )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arm", choices=["plain", "headwater"], required=True)
    parser.add_argument("--shape", required=True, help="fields of GPTShape as JSON")
    parser.add_argument("--checkpoint", action="store_true", help="every block, recomputed")
    add_limits(parser)
    return parser.parse_args()


def add_limits(parser: argparse.ArgumentParser) -> None:
    """What every try in a capped device is told: for how long, and within what."""
    parser.add_argument("--device", choices=["cuda", "cpu"], required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--warm-up", type=int, default=WARM_UP, help="of the steps, not timed")
    parser.add_argument("--cap-bytes", type=int, required=True)
    parser.add_argument("--budget-bytes", type=int, required=True)
    parser.add_argument("--host-budget", help="such as 110GiB; Headwater's default if not given")
    add_wishes(parser)


def main() -> None:
    options = parse_arguments()
    torch.manual_seed(0)
    answer_and_leave(lambda: run(options))


if __name__ == "__main__":
    main()
