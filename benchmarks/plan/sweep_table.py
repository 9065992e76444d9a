"""What a sweep over budgets should have shown and did not, and its table in Markdown."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from benchmarks.train.report import error_of, gib, median_ms, quotient, table

NOISE = 0.02  # of a step's time
TITLES = (
    "budget",
    "GiB",
    "peak ÷ budget",
    "step ms",
    "step ÷ plain",
    "offloaded GiB",
    "replayed GiB",
    "predicted step ÷ step",
    "predicted peak ÷ peak",
)


def faults(cases: list[dict[str, Any]], noise: float = NOISE) -> list[str]:
    """Peaks above their budgets or those of more memory, and steps slower than with less.

    Each case is compared with those of smaller budgets, which should have less and take longer.
    """
    well = sorted((n for n in cases if "error" not in n), key=lambda n: -n["budget_bytes"])
    found = [
        f"{case['share']:.1%}: peak is {case['peak_bytes'] / case['budget_bytes']:.3f} times "
        "the budget"
        for case in well
        if case["peak_bytes"] > case["budget_bytes"]
    ]
    for more, less in pairwise(well):
        if less["peak_bytes"] > more["peak_bytes"]:
            found.append(f"{less['share']:.1%}: peak is above that at {more['share']:.1%}")
    for place, case in enumerate(well[:-1]):
        found += _slower(case, well[place + 1 :], noise)
    return found


def _slower(case: dict[str, Any], smaller: list[dict[str, Any]], noise: float) -> list[str]:
    """Than the fastest of those with smaller budgets."""
    fastest = min(smaller, key=lambda other: other["step_ms"]["median_ms"])
    excess = case["step_ms"]["median_ms"] / fastest["step_ms"]["median_ms"] - 1
    if excess <= noise:
        return []
    return [f"{case['share']:.1%}: step is {excess:.1%} slower than at {fastest['share']:.1%}"]


def sweep_table(name: str, result: dict[str, Any]) -> str:
    """One workload: its budgets, then what is wrong with them."""
    plain, least = result["plain"], result.get("minimum", {})
    if "error" in plain or "error" in least:
        return f"## {name}\n\nFailed: {error_of(plain if 'error' in plain else least)}\n"
    rows = [_row(case) for case in result["cases"]]
    wrong = "".join(f"- {fault}\n" for fault in result.get("faults", ["not all was measured"]))
    return (
        f"## {name}\n\nPlain {median_ms(plain)} ms, {gib(plain['peak_bytes'])} GiB; the largest "
        f"operator's working set {gib(least['peak_bytes'])} GiB.{_bits(result)}\n\n"
        f"{table(TITLES, rows)}\n{wrong or 'Peaks and times rise and fall as they should.'}\n"
    )


def _bits(result: dict[str, Any]) -> str:
    if "bits" not in result:
        return ""
    same = result["bits"]["same_losses"].values()
    return f" Losses are plain PyTorch's, deterministically, at {sum(same)} of {len(same)} budgets."


def _row(case: dict[str, Any]) -> list[str]:
    start = [f"{case['share']:.1%}", gib(case["budget_bytes"])]
    if "error" in case:
        return [*start, error_of(case), *[""] * (len(TITLES) - 3)]
    return [
        *start,
        f"{case['peak_over_budget']:.3f}",
        median_ms(case),
        f"{case['overhead'] + 1:.3f}",
        gib(case["bytes_offloaded"]),
        gib(case["bytes_replayed"]),
        quotient(case["predicted_step_ms"], case["step_ms"]["median_ms"]),
        quotient(case["predicted_peak_bytes"], case["peak_bytes"]),
    ]
