"""The ablation as tables in Markdown."""

from __future__ import annotations

from typing import Any

from benchmarks.train.report import error_of, gib, median_ms, table

MEANINGS = {
    "none": "none: nothing is freed before the step ends (from a trace)",
    "plain": "liveness: PyTorch's own freeing",
    "minimum": "cache, on demand, what the running operator needs alone",
    "cache": "+ cache: on demand, before there is a plan",
    "offload": "+ offload ahead of need",
    "recompute": "+ recompute, by hand: a region around forward",
    "plan": "+ plan: keep, offload or recompute",
    "workspace": "+ workspace of convolutions",
}
TITLES = (
    "",
    "peak GiB",
    "÷ plain",
    "step ms",
    "÷ plain",
    "offloaded GiB",
    "replayed GiB",
    "fetches ahead + on demand",
    "losses",
)


def ablation_table(report: dict[str, Any]) -> str:
    """All networks, the rows in the order in which they build on each other."""
    share = float(report["options"]["share"])
    head = f"Budget: {share:g} % of the plain peak, where a row has one.\n"
    return "\n".join([head, *(_network(n, case) for n, case in report["networks"].items())])


def _network(name: str, result: dict[str, Any]) -> str:
    if "error" in result["plain"]:
        return f"## {name}\n\nPlain training failed: {error_of(result['plain'])}\n"
    rows = [_row(row, result[row], result["plain"]) for row in MEANINGS if row in result]
    return f"## {name}\n\n{table(TITLES, rows)}"


def _row(row: str, case: dict[str, Any], plain: dict[str, Any]) -> list[str]:
    if "missing" in case or "error" in case:
        why = f"missing: {case['missing']}" if "missing" in case else error_of(case)
        return [MEANINGS[row], why, *[""] * (len(TITLES) - 2)]
    peak = case["peak_bytes"]
    start = [MEANINGS[row], gib(peak), f"{peak / plain['peak_bytes']:.3f}"]
    if "step_ms" not in case:
        return [*start, "not run", *[""] * (len(TITLES) - 4)]
    step = case["step_ms"]["median_ms"] / plain["step_ms"]["median_ms"]
    return [*start, median_ms(case), f"{step:.3f}", *_moves(case), _same(case)]


def _moves(case: dict[str, Any]) -> list[str]:
    if "bytes_offloaded" not in case:
        return ["", "", ""]
    fetches = f"{case['fetches_ahead']:.0f} + {case['fetches_on_demand']:.0f}"
    return [gib(case["bytes_offloaded"]), gib(case["bytes_replayed"]), fetches]


def _same(case: dict[str, Any]) -> str:
    """Under deterministic algorithms, where that was asked for."""
    if "same_losses" not in case:
        return ""
    return "same" if case["same_losses"] else "DIFFER"
