"""One try of capacity.py: a network of some size, a few steps, in a capped device. Prints JSON.

A process of its own, since a failed try may end it.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from benchmarks.plan.capacity_networks import NETWORKS
from benchmarks.train.bits import repeatable
from benchmarks.train.largest_try import add_limits, cap_device, check, manage, memory
from benchmarks.train.one_try import answer_and_leave, steady, time_steps
from benchmarks.train.peers import checkpoint_blocks

ARMS = ("plain", "checkpoint", "headwater")


def run(options: argparse.Namespace) -> dict[str, Any]:
    """What the training was and cost; raises where it does not fit."""
    cap_device(options)
    manage(options)
    network, scale = NETWORKS[options.network], "tiny" if options.tiny else "full"
    with torch.device(options.device):  # built in place: the host never holds a second copy
        grown = network.build(options.size, options.device, scale)
    if options.arm == "checkpoint":
        checkpoint_blocks(grown.workload.blocks())
    with bits(options):
        losses, seconds = time_steps(grown.workload.step, options.steps, options.device)
    result = {
        "parameters": sum(parameter.numel() for parameter in grown.workload.net.parameters()),
        "losses": [loss.hex() for loss in losses],
        "step_seconds": seconds,
        "rate": grown.samples / steady(seconds, options.warm_up),
        **memory(options),
    }
    check(result, options)
    return result


def bits(options: argparse.Namespace) -> AbstractContextManager[None]:
    return repeatable() if options.repeatable else nullcontext()


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", choices=list(NETWORKS), required=True)
    parser.add_argument("--size", type=int, required=True, help="batch, or blocks that repeat")
    parser.add_argument("--arm", choices=ARMS, required=True)
    parser.add_argument("--tiny", action="store_true", help="networks for a CPU")
    parser.add_argument("--repeatable", action="store_true", help="deterministic algorithms")
    add_limits(parser)
    return parser.parse_args()


def main() -> None:
    options = parse_arguments()
    torch.manual_seed(0)
    answer_and_leave(lambda: run(options))


if __name__ == "__main__":
    main()
