"""Budgets from the plain peak down to the largest operator's working set: peaks and step times.

What should hold is checked: a peak is within its budget, and with less memory neither does a peak
rise nor does a step get faster. What ``budget="minimum"`` peaks at is the working set. Every
training starts from scratch in the same process; ``--shares`` measures some budgets alone. Run on a
GPU; ``--device cpu --tiny`` tries the program out.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.plan.sweep_table import NOISE, faults, sweep_table
from benchmarks.train.bits import all_same, compare_bits, largest_difference
from benchmarks.train.pressure_table import overhead
from benchmarks.train.report import describe_run, write_report
from benchmarks.train.timed_training import Length, Trainer, ample_budget
from benchmarks.train.wishes import add_wishes, describe_wishes, wishes_of
from benchmarks.train.workloads import BUSY

DEFAULT = ("resnet50", "gpt2_transformers")
STEP = 5  # percent of the plain peak
LEAST_WARM_UP = 4  # a plan begins at the 4th step
SHORT = Length(warm_up=2, timed=1)  # "minimum" makes no plan


class Sweep:
    """All budgets of one workload; every result is on disk before the next one begins."""

    def __init__(self, name: str, report: dict[str, Any], options: argparse.Namespace) -> None:
        self._name, self._report, self._options = name, report, options
        self._cases: list[dict[str, Any]] = []
        self._result: dict[str, Any] = {"cases": self._cases}
        report["workloads"][name] = self._result
        length = Length(options.warm_up, options.steps)
        self._trainer = Trainer(name, options.device, options.tiny, length, wishes_of(options))

    def run(self) -> bool:
        """Tells whether every budget down to the working set was kept, with the same bits."""
        plain = self._result["plain"] = self._plain()
        least = self._result["minimum"] = replace(self._trainer, length=SHORT).train("minimum")
        self._keep("plain", plain)
        self._keep("minimum", least)
        if "error" in plain or "error" in least:
            return False
        for budget in self._budgets(plain["peak_bytes"], least["peak_bytes"]):
            case = self._ours(budget)
            self._cases.append(case)
            self._keep(f"{case['share']:.1%}", case)
        self._result["faults"] = faults(self._cases, self._options.noise / 100)
        return not any("error" in case for case in self._cases) and self._same_bits()

    def _budgets(self, peak: int, least: int) -> list[int]:
        shares = self._options.shares or range(100, 0, -self._options.step)
        budgets = [int(peak * share / 100) for share in shares]
        floor = [] if self._options.shares else [least]
        return [budget for budget in budgets if budget > least or self._options.shares] + floor

    def _plain(self) -> dict[str, Any]:
        case = self._trainer.train()
        if "error" not in case and not case["peak_bytes"]:
            case["peak_bytes"] = self._trainer.train(ample_budget("cpu"))["peak_bytes"]
        return case

    def _ours(self, budget: int) -> dict[str, Any]:
        plain, case = self._result["plain"], self._trainer.train(budget)
        case["share"] = budget / plain["peak_bytes"]
        if "error" not in case:
            case["overhead"] = overhead(case, plain)
            case["loss_difference"] = largest_difference(case["losses"], plain["losses"])
        return case

    def _same_bits(self) -> bool:
        if not self._options.check_bits:
            return True
        bits = compare_bits(self._trainer, [case["budget_bytes"] for case in self._cases])
        self._result["bits"] = bits
        write_report(self._options.out, self._report)
        return all_same(bits)

    def _keep(self, label: str, case: dict[str, Any]) -> None:
        write_report(self._options.out, self._report)
        text = case.get("error") or (
            f"{case['step_ms']['median_ms']:8.2f} ms, peak {case['peak_bytes'] / 2**20:.1f} MiB"
        )
        print(f"{self._name:12s} {label:8s} {text}", flush=True)


def parse_arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--tiny", action="store_true", help="sizes for a CPU")
    parser.add_argument("--workloads", nargs="+", choices=BUSY, default=list(DEFAULT))
    parser.add_argument("--step", type=int, default=STEP, help="percent between budgets")
    parser.add_argument("--shares", nargs="+", type=float, metavar="PERCENT", help="these alone")
    parser.add_argument("--warm-up", type=int, default=12, help="steps before timing; at least 4")
    parser.add_argument("--steps", type=int, default=5, help="timed steps")
    parser.add_argument("--noise", type=float, default=NOISE * 100, help="percent of a step")
    parser.add_argument("--check-bits", action="store_true", help="at every budget, repeatably")
    add_wishes(parser)
    parser.add_argument("--out", type=Path, default=Path("sweep.json"))
    arguments = parser.parse_args(words)
    if arguments.warm_up < LEAST_WARM_UP or arguments.steps < 1 or arguments.step < 1:
        parser.error(f"--warm-up must be at least {LEAST_WARM_UP}, --steps and --step at least 1")
    return arguments


def main() -> int:
    options = parse_arguments()
    report: dict[str, Any] = {
        **describe_run(options),
        "wishes": describe_wishes(options),
        "workloads": {},
    }
    well = True
    for name in options.workloads:
        well = Sweep(name, report, options).run() and well
        write_report(options.out, report)
    table = "\n".join(sweep_table(name, case) for name, case in report["workloads"].items())
    options.out.with_suffix(".md").write_text(table, encoding="utf-8")
    print(table)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
