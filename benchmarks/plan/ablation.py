"""What each part of Headwater brings: peak and step time of five networks, part by part.

The rows build on each other. Those that the installed version cannot do are told as missing, with
the reason; ``--rows`` and ``--networks`` measure some alone. Run on a GPU; ``--device cpu --tiny``
tries the program out.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.plan.ablation_rows import ROWS, MissingError, Rows
from benchmarks.plan.ablation_table import ablation_table
from benchmarks.train.bits import LENGTH, repeatable
from benchmarks.train.report import describe_run, error_of, write_report
from benchmarks.train.timed_training import Length
from benchmarks.train.workloads import BUSY

LEAST_WARM_UP = 4  # a plan begins at the 4th step


class Ablation:
    """All rows of one network; every result is on disk before the next one begins."""

    def __init__(self, name: str, report: dict[str, Any], options: argparse.Namespace) -> None:
        self._name, self._report, self._options = name, report, options
        self._result: dict[str, Any] = {}
        report["networks"][name] = self._result
        length = Length(options.warm_up, options.steps)
        self._rows = Rows(name, options.device, options.tiny, length)

    def run(self) -> bool:
        """Tells whether no row failed that this version can do."""
        plain = self._rows.plain()
        self._keep("plain", plain)
        if "error" in plain:
            return False
        for row in self._options.rows:
            self._keep(row, self._measure(row, self._rows))
        same = self._same_bits()
        return same and not any("error" in case for case in self._result.values())

    def _measure(self, row: str, rows: Rows) -> dict[str, Any]:
        try:
            budget = int(self._result["plain"]["peak_bytes"] * self._options.share / 100)
            return ROWS[row](rows, budget)
        except MissingError as missing:
            return {"missing": str(missing)}
        except RuntimeError as error:
            return {"error": f"{type(error).__name__}: {error}"}

    def _same_bits(self) -> bool:
        """Of each row in another training, whose time is not taken; true where not asked for."""
        if not self._options.check_bits:
            return True
        rows = replace(self._rows, length=LENGTH)
        with repeatable():
            plain = rows.plain()
            cases = {row: self._measure(row, rows) for row in self._options.rows if row != "none"}
        for row, case in cases.items():
            if "missing" not in case:
                losses = case.get("losses", [case.get("error")])
                same = losses == plain.get("losses", [])[: len(losses)]
                self._result[row]["same_losses"] = same
        write_report(self._options.out, self._report)
        return all(case.get("same_losses", True) for case in self._result.values())

    def _keep(self, row: str, case: dict[str, Any]) -> None:
        self._result[row] = case
        write_report(self._options.out, self._report)
        print(f"{self._name:12s} {row:12s} {in_words(case)}", flush=True)


def in_words(case: dict[str, Any]) -> str:
    if "missing" in case:
        return f"missing: {case['missing']}"
    if "error" in case:
        return error_of(case)
    step = f"{case['step_ms']['median_ms']:8.2f} ms, " if "step_ms" in case else ""
    return f"{step}peak {case['peak_bytes'] / 2**20:.1f} MiB"


def parse_arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--tiny", action="store_true", help="sizes for a CPU")
    parser.add_argument("--networks", nargs="+", choices=BUSY, default=list(BUSY))
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--share", type=float, default=40, help="budget: percent of plain's peak")
    parser.add_argument("--warm-up", type=int, default=12, help="steps before timing; at least 4")
    parser.add_argument("--steps", type=int, default=5, help="timed steps")
    parser.add_argument("--check-bits", action="store_true", help="of every row, repeatably")
    parser.add_argument("--out", type=Path, default=Path("ablation.json"))
    arguments = parser.parse_args(words)
    if arguments.warm_up < LEAST_WARM_UP or arguments.steps < 1:
        parser.error(f"--warm-up must be at least {LEAST_WARM_UP} and --steps at least 1")
    return arguments


def main() -> int:
    options = parse_arguments()
    report: dict[str, Any] = {**describe_run(options), "networks": {}}
    well = True
    for name in options.networks:
        well = Ablation(name, report, options).run() and well
    table = ablation_table(report)
    options.out.with_suffix(".md").write_text(table, encoding="utf-8")
    print(table)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
