"""The largest batch and the deepest ResNet in a capped device: plain, with checkpoints, Headwater.

Each network grows by one number. A search begins at a guess, strides until the answer changes and
halves the rest. Each try is a process of its own with a time limit, on disk when it ends; and
``--resume`` takes over those of an earlier run. Run on a GPU; ``--device cpu --tiny`` tries
the program out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from headwater.options import parse_size

from benchmarks.plan.capacity_networks import NETWORKS, TINY_GUESS, Guess
from benchmarks.plan.capacity_table import capacity_table, largest_fit
from benchmarks.plan.capacity_tries import OutOfTimeError, Tries
from benchmarks.plan.capacity_try import ARMS
from benchmarks.train.report import describe_run, write_report
from benchmarks.train.wishes import add_wishes, describe_wishes

BUDGET_SHARE = 0.92  # of the cap: the allocator takes more than it hands out
BITS_SHARE = 0.6  # of the cap, where bits are compared: less than plain needs


def search(fits: Callable[[int], bool], guess: Guess, most: int) -> int | None:
    """The largest size that fits, to within the resolution; None if none does.

    >>> search(lambda size: size <= 43, Guess(start=32, resolution=1), most=100)
    43
    """
    step = guess.resolution
    good, bad, size, stride = 0, most + 1, guess.start, max(guess.start // 4, step)
    while good < size < bad:
        if fits(size):
            good, size = size, min(size + stride, most)
        else:
            bad, size = size, max(size - stride, step)
        if good and bad <= most:
            break
        stride *= 2
    while bad - good > step and good:
        middle = good + max((bad - good) // 2 // step, 1) * step
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return good or None


def search_arm(network: str, arm: str, tries: Tries, options: argparse.Namespace) -> None:
    """Leaves its tries in the report; a time that runs out ends the program later, not here."""
    guess = TINY_GUESS if options.tiny else NETWORKS[network].guesses[arm]
    given = {"start": options.start, "resolution": options.resolution}
    guess = replace(guess, **{name: value for name, value in given.items() if value})
    least = options.least_rate if arm == "headwater" else 0.0

    def fits(size: int) -> bool:
        case = tries.train(network, arm, size)
        return "error" not in case and case["rate"] >= least

    if options.sizes:
        for size in options.sizes:
            fits(size)
    else:
        search(fits, guess, options.most)
    best = largest_fit(tries.cases, network, arm)
    if best is not None and options.final_steps > options.steps:
        tries.train(network, arm, best["size"], steps=options.final_steps)


def compare_bits(network: str, tries: Tries, options: argparse.Namespace) -> dict[str, Any]:
    """Losses at plain's largest size, plain and with less than it needs, deterministically."""
    best = largest_fit(tries.cases, network, "plain")
    if best is None:
        return {"error": "plain PyTorch trains no size"}
    small = {"repeatable": True, "budget_bytes": int(options.cap * BITS_SHARE)}
    plain, ours = (tries.train(network, arm, best["size"], **small) for arm in ("plain", ARMS[-1]))
    errors = [case["error"] for case in (plain, ours) if "error" in case]
    same = not errors and plain["losses"] == ours["losses"]
    return {"size": best["size"], "same_losses": same, "errors": errors}


def run(report: dict[str, Any], options: argparse.Namespace) -> bool:
    """Tells whether nothing was left out for want of time, and no bits differ."""
    tries = Tries(report, options)
    try:
        for network in options.networks:
            for arm in options.arms:
                if arm in NETWORKS[network].guesses:
                    search_arm(network, arm, tries, options)
            if options.check_bits:
                report["bits"][network] = compare_bits(network, tries, options)
    except OutOfTimeError as late:
        report["cut"] = str(late)
        print(late, flush=True)
        return False
    return all(bits.get("same_losses", False) for bits in report["bits"].values())


def parse_arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--tiny", action="store_true", help="networks for a CPU")
    parser.add_argument("--networks", nargs="+", choices=list(NETWORKS), default=list(NETWORKS))
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--cap", help="default 12GiB; tiny: 4MiB")
    parser.add_argument("--budget", help="Headwater's, default 92 %% of the cap")
    parser.add_argument("--host-budget", help="most host memory for offloaded tensors")
    parser.add_argument("--sizes", nargs="+", type=int, help="try these alone, all of them")
    parser.add_argument("--start", type=int, help="first size of the search")
    parser.add_argument("--resolution", type=int, help="stop when the gap is this small")
    parser.add_argument("--most", type=int, default=4096, help="largest size to try")
    parser.add_argument("--least-rate", type=float, default=0, help="slower does not count as fit")
    parser.add_argument("--steps", type=int, default=6, help="of a try; four warm up")
    parser.add_argument("--final-steps", type=int, default=0, help="of the largest, once more")
    parser.add_argument("--check-bits", action="store_true", help="at plain's largest size")
    parser.add_argument("--try-limit", type=float, default=150, help="seconds a try")
    parser.add_argument("--time-limit", type=float, default=560, help="seconds of the program")
    parser.add_argument("--resume", type=Path, help="an earlier --out, whose tries are taken over")
    add_wishes(parser)
    parser.add_argument("--out", type=Path, default=Path("capacity.json"))
    arguments = parser.parse_args(words)
    arguments.cap = parse_size(arguments.cap or ("4MiB" if arguments.tiny else "12GiB"), "--cap")
    share = int(arguments.cap * BUDGET_SHARE)
    arguments.budget = parse_size(arguments.budget or share, "--budget")
    return arguments


def main() -> int:
    options = parse_arguments()
    report: dict[str, Any] = {
        **describe_run(options),
        "wishes": describe_wishes(options),
        "cap_bytes": options.cap,
        "tries": [],
        "bits": {},
    }
    well = run(report, options)
    write_report(options.out, report)
    table = capacity_table(report)
    options.out.with_suffix(".md").write_text(table, encoding="utf-8")
    print(table)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
