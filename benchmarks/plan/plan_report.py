"""Joins the JSON of pressure.py, sweep.py, capacity.py and ablation.py into one Markdown document.

Runs that were split by workload, budget, arm or row go together again: of what was measured
twice, the later file counts. Measures nothing and needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.plan.ablation_table import ablation_table
from benchmarks.plan.capacity_table import capacity_table
from benchmarks.plan.sweep_table import faults, sweep_table
from benchmarks.train.pressure_table import against_checkpoint, overheads
from benchmarks.train.report import error_of, gib, median_ms

Report = dict[str, Any]


def pressure_text(reports: list[Report]) -> Iterator[str]:
    """Overheads against the lines, and beside checkpoints."""
    for name, results in _by_name(reports, "workloads").items():
        plain = results[-1].get("plain", {"error": "not measured"})
        if "error" in plain:
            yield f"## {name}\n\nPlain training failed: {error_of(plain)}\n"
            continue
        cases = _latest([case for n in results for case in n["headwater"]], "share")
        yield f"## {name}\n\nPlain {median_ms(plain)} ms, {gib(plain['peak_bytes'])} GiB.\n"
        yield overheads(name, {"headwater": cases, "plain": plain})
        yield from filter(None, map(against_checkpoint, results))
        yield from (f"- {share(n)}: {error_of(n)}\n" for n in cases if "error" in n)
        yield _bits(results)


def sweep_text(reports: list[Report]) -> Iterator[str]:
    """All budgets of a workload in one table, checked anew."""
    for name, results in _by_name(reports, "workloads").items():
        cases = _latest([case for result in results for case in result["cases"]], "share")
        noise = float(reports[-1]["options"]["noise"]) / 100
        yield sweep_table(name, {**results[-1], "cases": cases, "faults": faults(cases, noise)})


def capacity_text(reports: list[Report]) -> Iterator[str]:
    """All tries together; a size is not plain's largest only because one run did not search it."""
    joined = {"cap_bytes": reports[-1]["cap_bytes"], "tries": [], "bits": {}}
    for report in reports:
        joined["tries"] += [n for n in report["tries"] if n not in joined["tries"]]
        joined["bits"] |= report["bits"]
        joined |= {"cut": report["cut"]} if "cut" in report else {}
    caps = {report["cap_bytes"] for report in reports}
    if len(caps) > 1:
        raise SystemExit(f"Runs under different caps cannot be joined: {sorted(caps)} bytes")
    yield capacity_table(joined)


def ablation_text(reports: list[Report]) -> Iterator[str]:
    """All rows of a network in one table."""
    names = _by_name(reports, "networks")
    joined = {name: _joined_rows(results) for name, results in names.items()}
    yield ablation_table({**reports[-1], "networks": joined})


def _joined_rows(results: list[Report]) -> Report:
    return {row: case for result in results for row, case in result.items()}


SECTIONS: dict[str, tuple[str, Callable[[list[Report]], Iterator[str]]]] = {
    "pressure.py": ("Step time", pressure_text),
    "sweep.py": ("From the plain peak down", sweep_text),
    "capacity.py": ("The most that fits", capacity_text),
    "ablation.py": ("Part by part", ablation_text),
}


def document(reports: list[Report]) -> str:
    """What was measured, section by section."""
    unknown = {str(report.get("program")) for report in reports} - set(SECTIONS)
    if unknown:
        raise SystemExit(f"Reports are of {', '.join(SECTIONS)}: got {', '.join(sorted(unknown))}")
    parts = ["# Keep, offload or recompute\n", _origin(reports)]
    for program, (title, text) in SECTIONS.items():
        own = [report for report in reports if report["program"] == program]
        if own:
            parts += [f"# {title}\n", *text(own)]
    return "\n".join(part for part in parts if part)


def share(case: Report) -> str:
    return f"{case['share']:.1%}"


def _origin(reports: list[Report]) -> str:
    """Machines, versions and commits; more than one of each are not comparable."""

    def all_of(field: str) -> str:
        return " and ".join(sorted({str(report[field]) for report in reports}))

    names = ("device", "torch", "commit")
    device, torch, commit = (all_of(name) for name in names)
    mixed = [name for name in names if len({report[name] for report in reports}) > 1]
    warning = f" These runs differ in {', '.join(mixed)}." if mixed else ""
    return f"{device}, torch {torch}, commit {commit}.{warning}\n"


def _by_name(reports: list[Report], field: str) -> dict[str, list[Report]]:
    """What each report says of a workload, for those that say something."""
    found: dict[str, list[Report]] = {}
    for report in reports:
        for name, result in report[field].items():
            if "plain" in result:
                found.setdefault(name, []).append(result)
    return found


def _latest(cases: list[Report], field: str) -> list[Report]:
    """One for each, to a tenth of a percent, from large to small."""
    found = {round(case[field], 3): case for case in cases}
    return [found[key] for key in sorted(found, reverse=True)]


def _bits(results: list[Report]) -> str:
    same = [same for n in results for same in n.get("bits", {}).get("same_losses", {}).values()]
    if not same:
        return ""
    return (
        f"Losses are plain PyTorch's, deterministically, at {sum(same)} of {len(same)} budgets.\n"
    )


def parse_arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reports", nargs="+", type=Path, help="JSON files, in any order")
    parser.add_argument("--out", type=Path, help="Markdown; by default the terminal alone")
    return parser.parse_args(words)


def main() -> int:
    options = parse_arguments()
    text = document([json.loads(path.read_text(encoding="utf-8")) for path in options.reports])
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
