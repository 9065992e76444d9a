"""The largest GPT that trains in a capped device, with plain PyTorch and with Headwater.

Sizes are doubled until one fails, then the gap is halved. Each try is a process of its own with a
time limit, so that running out of memory ends the try and not the search. The largest is then
trained a little longer for its tokens a second. Run on a GPU; ``--device cpu --tiny`` tries the
program out.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from headwater.options import parse_size

from benchmarks.train.one_try import run_try
from benchmarks.train.report import describe_run, write_report
from benchmarks.train.wishes import add_wishes, as_arguments, describe_wishes
from benchmarks.train.workloads import GPTShape

ARMS = ("plain", "headwater")
HEAD = 64  # width of an attention head, and so the step in which models grow in width
TINY = GPTShape(vocabulary=200, width=HEAD, heads=1, layers=2, batch=1, length=16)
FULL = GPTShape(vocabulary=50257, width=1024, heads=16, layers=24, batch=1, length=1024)


@dataclasses.dataclass(frozen=True)
class Growth:
    """How sizes are searched: from where, to what fineness, and no further than."""

    start: int
    resolution: int
    most: int


GROWTHS = {
    ("depth", "plain"): Growth(start=32, resolution=1, most=4096),
    ("depth", "headwater"): Growth(start=256, resolution=16, most=4096),
    ("width", "plain"): Growth(start=16, resolution=1, most=512),
    ("width", "headwater"): Growth(start=40, resolution=1, most=512),
}
TINY_GROWTH = Growth(start=1, resolution=1, most=8)


def shape_of(size: int, grow: str, base: GPTShape) -> GPTShape:
    """``size`` counts layers in depth, and heads of width 64 in width."""
    if grow == "depth":
        return dataclasses.replace(base, layers=size)
    return dataclasses.replace(base, width=size * HEAD, heads=size)


def search(fits: Callable[[int], bool], growth: Growth) -> int | None:
    """The largest size that fits, to within the resolution; None if the first does not.

    >>> search(lambda size: size <= 43, Growth(start=32, resolution=1, most=4096))
    43
    """
    good, bad, size = None, growth.most + 1, growth.start
    while size <= growth.most:
        if not fits(size):
            bad = size
            break
        good, size = size, size * 2
    if good is None:
        return None
    while bad - good > growth.resolution:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return good


class Tries:
    """Runs tries of one arm and remembers all of them; past its time, further tries fail."""

    def __init__(self, arm: str, report: dict[str, Any], options: argparse.Namespace) -> None:
        self._arm, self._report, self._options = arm, report, options
        self._end = time.monotonic() + options.time_limit
        self.results: list[dict[str, Any]] = []
        report["arms"][arm] = {"tries": self.results}

    def fits(self, size: int) -> bool:
        """Tries a size for as many steps as the search takes."""
        return "error" not in self.train(size, self._options.steps)

    def train(self, size: int, steps: int) -> dict[str, Any]:
        """One try, kept on disk with all before it."""
        start = time.monotonic()
        left = min(self._options.try_limit, self._end - start)
        result = self._start_process(size, steps, max(left, 0))
        result |= {"size": size, "steps": steps, "wall_seconds": time.monotonic() - start}
        self.results.append(result)
        write_report(self._options.out, self._report)
        print(f"{self._arm:10s} {self._options.grow} {size:4d}: {in_words(result)}", flush=True)
        return result

    def finish(self, size: int | None) -> None:
        """Trains the largest for longer; what that gives replaces the search's own numbers."""
        found = [r for r in self.results if r["size"] == size and "error" not in r]
        if size is not None and self._options.final_steps > self._options.steps:
            longer = self.train(size, self._options.final_steps)
            found += [longer] if "error" not in longer else []
        self._report["arms"][self._arm]["largest"] = found[-1] if found else None
        write_report(self._options.out, self._report)

    def _start_process(self, size: int, steps: int, limit: float) -> dict[str, Any]:
        options = self._options
        shape = shape_of(size, options.grow, TINY if options.tiny else FULL)
        command = [sys.executable, str(Path(__file__).with_name("largest_try.py"))]
        command += ["--arm", self._arm, "--shape", json.dumps(dataclasses.asdict(shape))]
        command += ["--device", options.device, "--steps", str(steps)]
        command += ["--cap-bytes", str(options.cap), "--budget-bytes", str(options.budget)]
        command += ["--host-budget", options.host_budget] if options.host_budget else []
        return run_try([*command, *as_arguments(options)], limit)


def in_words(result: dict[str, Any]) -> str:
    if "error" in result:
        return f"no ({result['wall_seconds']:.0f} s): {result['error'].splitlines()[0][:200]}"
    return (
        f"yes ({result['wall_seconds']:.0f} s): {result['parameters'] / 1e9:.3f} B parameters, "
        f"{result['tokens_per_second']:.0f} tokens/s, "
        f"allocated {result['peak_bytes'] / 2**30:.2f} GiB, "
        f"reserved {result['peak_reserved_bytes'] / 2**30:.2f} GiB, "
        f"host {result['host_bytes'] / 2**30:.1f} GiB"
    )


def search_arm(arm: str, report: dict[str, Any], options: argparse.Namespace) -> None:
    tries = Tries(arm, report, options)
    if options.sizes:
        good = [size for size in sorted(options.sizes) if tries.fits(size)]
        tries.finish(max(good, default=None))
        return
    growth = TINY_GROWTH if options.tiny else GROWTHS[options.grow, arm]
    given = {"start": options.start, "resolution": options.resolution, "most": options.most}
    growth = dataclasses.replace(growth, **{k: v for k, v in given.items() if v is not None})
    tries.finish(search(tries.fits, growth))


def table_lines(report: dict[str, Any]) -> Iterator[str]:
    """The largest of each arm in Markdown."""
    options = report["options"]
    cap = int(options["cap"]) / 2**30
    yield f"Grown in {options['grow']}, cap {cap:.2f} GiB, {report['device']}."
    yield ""
    yield "| | parameters | layers x width | tokens/s | allocated | reserved | host | tries |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, arm in report["arms"].items():
        row, tries = arm.get("largest"), len(arm["tries"])
        late = sum(result.get("out_of_time", False) for result in arm["tries"])
        told = f"{tries}, of which {late} ran out of time" if late else f"{tries}"
        if row is None:
            yield f"| {name} | none found | | | | | | {told} |"
            continue
        yield (
            f"| {name} | {row['parameters'] / 1e9:.3f} B "
            f"| {row['shape']['layers']} x {row['shape']['width']} "
            f"| {row['tokens_per_second']:.0f} | {row['peak_bytes'] / 2**30:.2f} GiB "
            f"| {row['peak_reserved_bytes'] / 2**30:.2f} GiB "
            f"| {row['host_bytes'] / 2**30:.1f} GiB | {told} |"
        )
    if "ratio" in report:
        yield f"\nHeadwater trains {report['ratio']:.2f} times the parameters of plain PyTorch."


def add_ratio(report: dict[str, Any]) -> None:
    largest = [report["arms"].get(arm, {}).get("largest") for arm in ARMS]
    if all(largest):
        report["ratio"] = largest[1]["parameters"] / largest[0]["parameters"]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--tiny", action="store_true", help="sizes for a CPU")
    parser.add_argument(
        "--grow",
        choices=["depth", "width"],
        default="depth",
        help="depth: size is layers at hidden 1024; width: size is hidden / 64 at 24 layers",
    )
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--cap", help="default 12GiB; tiny: 4MiB")
    parser.add_argument("--budget", help="Headwater's, default 92 %% of the cap")
    parser.add_argument("--host-budget", help="most host memory for offloaded tensors")
    parser.add_argument("--sizes", nargs="+", type=int, help="try these alone, all of them")
    parser.add_argument("--start", type=int, help="first size of the search")
    parser.add_argument("--resolution", type=int, help="stop when the gap is this small")
    parser.add_argument("--most", type=int, help="largest size to try")
    parser.add_argument("--steps", type=int, default=2, help="steps of a try")
    parser.add_argument("--final-steps", type=int, default=6, help="steps of the largest; 0: none")
    parser.add_argument("--try-limit", type=float, default=240, help="seconds a try")
    parser.add_argument("--time-limit", type=float, default=3600, help="seconds an arm")
    add_wishes(parser)
    parser.add_argument("--out", type=Path, default=Path("largest.json"))
    arguments = parser.parse_args()
    arguments.cap = parse_size(arguments.cap or ("4MiB" if arguments.tiny else "12GiB"), "--cap")
    share = int(arguments.cap * 0.92)
    arguments.budget = parse_size(arguments.budget or share, "--budget")
    return arguments


def main() -> int:
    options = parse_arguments()
    report: dict[str, Any] = {
        **describe_run(options),
        "wishes": describe_wishes(options),
        "arms": {},
    }
    for arm in options.arms:
        search_arm(arm, report, options)
    add_ratio(report)
    write_report(options.out, report)
    table = "\n".join(table_lines(report))
    options.out.with_suffix(".md").write_text(table + "\n", encoding="utf-8")
    print(table)
    return 0 if all(arm["largest"] for arm in report["arms"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
