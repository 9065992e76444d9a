"""One try of largest.py: a GPT of a given shape, a few steps, in a capped device. Prints JSON.

A process of its own, since a failed try may end it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import torch

import headwater

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.train.workloads import GPTShape, Workload, make_gpt

WARM_UP = 4  # steps before a plan is at work


def run(options: argparse.Namespace) -> dict[str, Any]:
    """What the training was and cost; raises where it does not fit."""
    shape = GPTShape(**json.loads(options.shape))
    cap_device(options)
    manage(options)
    with torch.device(options.device):  # built in place: the host never holds a second copy
        workload = make_gpt(shape, options.device, autocast=options.device == "cuda")
    losses, seconds = train(workload, options)
    result = {
        "shape": dataclasses.asdict(shape),
        "parameters": sum(parameter.numel() for parameter in workload.net.parameters()),
        "losses": losses,
        "step_seconds": seconds,
        "tokens_per_second": shape.batch * shape.length / steady(seconds),
        **memory(options),
    }
    check(result, options)
    return result


def cap_device(options: argparse.Namespace) -> None:
    if options.device == "cuda":
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(options.cap_bytes / total)


def manage(options: argparse.Namespace) -> None:
    """A CPU knows no cap and keeps no peak: there, Headwater counts the plain arm's as well."""
    if options.arm == "headwater":
        headwater.enable(options.budget_bytes, options.device, options.host_budget)
    elif options.device == "cpu":
        headwater.enable(device="cpu")


def train(workload: Workload, options: argparse.Namespace) -> tuple[list[float], list[float]]:
    """The loss and the seconds of every step; reading the loss waits for the device."""
    losses, seconds = [], []
    for step in range(options.steps):
        start = time.perf_counter()
        loss = workload.step(step)
        losses.append(loss.item())
        if options.device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
        print(f"step {step}: {seconds[-1]:.2f} s, loss {losses[-1]:.4f}", file=sys.stderr)
    return losses, seconds


def steady(seconds: list[float]) -> float:
    """A step once a plan is at work; of a shorter training, the last one."""
    return statistics.median(seconds[WARM_UP:] or seconds[-1:])


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
    if not all(math.isfinite(loss) for loss in result["losses"]):
        raise RuntimeError(f"Losses are not finite: {result['losses']}")
    if result["peak_reserved_bytes"] > options.cap_bytes:
        raise torch.OutOfMemoryError(
            f"Peak is above the cap: {result['peak_reserved_bytes']} of {options.cap_bytes} bytes"
        )


def die_first() -> None:
    """If the host runs out of memory, this process goes, not the one that searches."""
    try:
        Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError as error:
        print(f"cannot offer itself to the system's memory killer: {error}", file=sys.stderr)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arm", choices=["plain", "headwater"], required=True)
    parser.add_argument("--shape", required=True, help="fields of GPTShape as JSON")
    parser.add_argument("--device", choices=["cuda", "cpu"], required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--cap-bytes", type=int, required=True)
    parser.add_argument("--budget-bytes", type=int, required=True)
    parser.add_argument("--host-budget", help="such as 110GiB; Headwater's default if not given")
    return parser.parse_args()


def main() -> None:
    """Leaves without tidying up: what was trained fits no device that is not managed."""
    options = parse_arguments()
    die_first()
    torch.manual_seed(0)
    try:
        answer = run(options)
    except (RuntimeError, ValueError, MemoryError) as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
    sys.stderr.flush()
    os._exit(1 if "error" in answer else 0)


if __name__ == "__main__":
    main()
