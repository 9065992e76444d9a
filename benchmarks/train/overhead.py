"""What Headwater costs: step time with an ample budget, and step time, peak and bits at 40 %.

Plain and managed blocks of steps take turns in one process, on one training, so that both see the
same clocks and the same data. Run on a GPU; ``--device cpu --tiny`` tries the program out.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import headwater

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.train.bits import repeatable
from benchmarks.train.report import describe_run, write_report
from benchmarks.train.timed_training import Marks, ample_budget
from benchmarks.train.workloads import NAMES, Workload, make_workload

SHARE = 0.4
WARM_UP = 2  # steps of a block that are not timed: the first meets every tensor


@dataclass
class Times:
    """Seconds of every step of one mode, by the number of the step, which decides its data."""

    whole: list[list[float]]
    launch: list[list[float]]  # what the host took to launch it
    cpu: list[list[float]]  # what its threads computed meanwhile, whoever else had the cores

    @classmethod
    def of(cls, steps: int) -> Times:
        """Room for the times of so many step numbers."""
        return cls(*([[] for _ in range(steps)] for _ in range(3)))

    def measure(self, workload: Workload) -> None:
        """Times a run of steps by the device's clock; nobody waits between them."""
        marks = Marks(workload.device)
        for number, (launch, cpu) in enumerate(zip(self.launch, self.cpu, strict=True)):
            marks.mark()
            start, start_cpu = time.perf_counter(), time.process_time()
            workload.step(number)
            launch.append(time.perf_counter() - start)
            cpu.append(time.process_time() - start_cpu)
        marks.mark()
        for whole, ms in zip(self.whole, marks.intervals_ms(), strict=True):
            whole.append(ms / 1e3)


def at_quartile(seconds: list[list[float]], quartile: int) -> float:
    """Milliseconds of a step, averaged over the numbers, at a quartile of the repetitions."""
    return statistics.mean(statistics.quantiles(n, n=4)[quartile - 1] for n in seconds) * 1e3


def at_least(seconds: list[list[float]]) -> float:
    """Milliseconds of a step, averaged over the numbers, at the fastest of the repetitions."""
    return statistics.mean(min(n) for n in seconds) * 1e3


def overheads(ours: list[list[float]], plain: list[list[float]]) -> dict[str, float]:
    """In percent: of the fastest repetitions, and the quartiles of blocks run one after the other.

    Whatever else a shared host does only ever adds time, so the fastest tell most. Neighbouring
    blocks see the host in about the same state: their ratios say how far it can be believed.
    """
    totals = (list(map(sum, zip(*times, strict=True))) for times in (ours, plain))
    ratios = [(mine / theirs - 1) * 100 for mine, theirs in zip(*totals, strict=True)]
    low, median, high = statistics.quantiles(ratios, n=4)
    return {
        "overhead_percent": (at_least(ours) / at_least(plain) - 1) * 100,
        "neighbours_lower_quartile_percent": low,
        "neighbours_median_percent": median,
        "neighbours_upper_quartile_percent": high,
    }


def managed(budget: int, device: str) -> AbstractContextManager[Any]:
    return headwater.budget(budget, device=device)


def summary(times: Times) -> dict[str, float]:
    return {
        "fastest_ms": at_least(times.whole),
        "lower_quartile_ms": at_quartile(times.whole, 1),
        "median_ms": at_quartile(times.whole, 2),
        "upper_quartile_ms": at_quartile(times.whole, 3),
        "launch_ms": at_quartile(times.launch, 1),
        "cpu_ms": at_quartile(times.cpu, 1),
    }


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Python's collector would run in some steps and not in others, as it likes."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def measure_overhead(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Step time plain and with a budget that never binds, short blocks in turn.

    Which of the two modes goes first alternates, so that drift favours neither. Each step number
    has its own times: its data may take longer than another's.
    """
    workload = make_workload(name, options.device, options.tiny)
    modes: dict[str, Callable[[], AbstractContextManager[Any]]] = {
        "plain": nullcontext,
        "headwater": lambda: managed(ample_budget(options.device), options.device),
    }
    times = {mode: Times.of(options.block_steps) for mode in modes}
    moved, standing_by = 0, 0
    for pair in range(options.blocks):
        for mode in list(modes)[:: 1 if pair % 2 == 0 else -1]:
            with modes[mode]():
                for step in range(WARM_UP):
                    workload.step(step)
                with no_garbage_collection():
                    times[mode].measure(workload)
                if mode == "headwater":
                    moved += headwater.stats().bytes_offloaded
                    standing_by += headwater.stats().standing_by
    result: dict[str, Any] = {mode: summary(times[mode]) for mode in modes}
    result |= overheads(times["headwater"].whole, times["plain"].whole)
    result["cpu_overhead_percent"] = (
        result["headwater"]["cpu_ms"] / result["plain"]["cpu_ms"] - 1
    ) * 100
    result["blocks"], result["blocks_standing_by"] = options.blocks, standing_by
    result["bytes_offloaded"] = moved
    return result


def measure_run(name: str, budget: int | None, options: argparse.Namespace) -> dict[str, Any]:
    """A training from scratch: losses as hexadecimal, peak, seconds a step."""
    gc.collect()
    cuda = options.device == "cuda"
    if cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    with nullcontext() if budget is None else managed(budget, options.device):
        workload = make_workload(name, options.device, options.tiny)
        losses = [workload.step(step).item().hex() for step in range(2)]
        start = time.perf_counter()
        losses += [workload.step(step).item().hex() for step in range(2, options.steps)]
        seconds = (time.perf_counter() - start) / (options.steps - 2)
        stats = {} if budget is None else headwater.stats().as_dict()
        peak = torch.cuda.max_memory_allocated() if cuda else stats.get("peak_bytes", 0)
    return {"losses": losses, "peak_bytes": peak, "step_ms": seconds * 1e3, "stats": stats}


def measure_pressure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """At 40 % of the plain peak: bits under deterministic algorithms, then time without them."""
    try:
        with repeatable():
            plain = measure_run(name, None, options)
            again = measure_run(name, None, options)
            roomy = measure_run(name, ample_budget(options.device), options)
            budget = int((plain["peak_bytes"] or roomy["peak_bytes"]) * SHARE)
            tight = measure_run(name, budget, options)
    except headwater.OutOfMemory as error:
        return {"error": str(error)}
    fast_plain = measure_run(name, None, options)
    fast_tight = measure_run(name, budget, options)
    return {
        "budget_bytes": budget,
        "plain_peak_bytes": plain["peak_bytes"] or roomy["peak_bytes"],
        "peak_bytes": tight["peak_bytes"],
        "peak_over_budget": tight["peak_bytes"] / budget,
        "plain_repeats_itself": plain["losses"] == again["losses"],
        "same_losses": plain["losses"] == tight["losses"] == roomy["losses"],
        "losses": tight["losses"],
        "plain_step_ms": fast_plain["step_ms"],
        "step_ms": fast_tight["step_ms"],
        "stats": fast_tight["stats"],
    }


def print_overhead(name: str, result: dict[str, Any]) -> None:
    def words(mode: str) -> str:
        case = result[mode]
        return (
            f"{mode} {case['fastest_ms']:.2f} ms (median {case['median_ms']:.2f}, "
            f"launched in {case['launch_ms']:.2f}, CPU {case['cpu_ms']:.2f})"
        )

    print(
        f"{name:12s} ample: {words('plain')}, {words('headwater')}, "
        f"{result['overhead_percent']:+.2f} % (neighbouring blocks "
        f"{result['neighbours_median_percent']:+.2f} %, half of them "
        f"{result['neighbours_lower_quartile_percent']:+.2f} to "
        f"{result['neighbours_upper_quartile_percent']:+.2f}; CPU time "
        f"{result['cpu_overhead_percent']:+.2f} %)",
        flush=True,
    )


def print_pressure(name: str, result: dict[str, Any]) -> None:
    if "error" in result:
        print(f"{name:12s} {SHARE:.0%}: {result['error']}", flush=True)
        return
    print(
        f"{name:12s} {SHARE:.0%}: budget {result['budget_bytes'] / 2**20:.0f} MiB, "
        f"peak {result['peak_bytes'] / 2**20:.0f} MiB ({result['peak_over_budget']:.3f} x), "
        f"step {result['step_ms']:.1f} ms (plain {result['plain_step_ms']:.1f}), "
        f"same losses: {'yes' if result['same_losses'] else 'NO'}"
        f"{'' if result['plain_repeats_itself'] else ' (plain differs from itself)'}",
        flush=True,
    )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--tiny", action="store_true", help="sizes for a CPU")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter blocks")
    parser.add_argument("--workloads", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--blocks", type=int, help="blocks of each mode, 30 unless quick")
    parser.add_argument("--skip-pressure", action="store_true", help="ample budget only")
    parser.add_argument("--out", type=Path, default=Path("overhead.json"))
    arguments = parser.parse_args()
    arguments.blocks = arguments.blocks or (5 if arguments.quick else 30)
    arguments.block_steps = 4
    arguments.steps = 4 if arguments.quick else 6
    return arguments


def main() -> int:
    options = parse_arguments()
    report: dict[str, Any] = {**describe_run(options), "results": {}}
    same = True
    for name in options.workloads:
        result = report["results"][name] = {"ample": measure_overhead(name, options)}
        print_overhead(name, result["ample"])
        if not options.skip_pressure:
            result["pressure"] = measure_pressure(name, options)
            print_pressure(name, result["pressure"])
            same = same and result["pressure"].get("same_losses", False)
        write_report(options.out, report)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
