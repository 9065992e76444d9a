"""The report of pressure.py as tables in Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.train.report import error_of, gib, median_ms, quotient, table

Row = list[str]

OURS = (
    "budget",
    "GiB",
    "peak ÷ budget",
    "reserved ÷ budget",
    "step ms",
    "lowest to highest",
    "bound ms",
    "step ÷ bound",
    "longer side",
    "transfer time hidden",
    "out + in GiB",
    "stall ms",
    "fetches ahead + on demand",
)
LINES = {  # step ÷ plain step, by percent of the plain peak
    "resnet50": {80: 1.02, 60: 1.05, 40: 1.10, 30: 1.18},
    "gpt2_medium": {80: 1.03, 60: 1.08, 40: 1.15, 30: 1.25},
    "gpt2_transformers": {80: 1.03, 60: 1.08, 40: 1.15, 30: 1.25},
}
CHECKPOINT_LINE = 0.5  # Headwater's overhead ÷ that of a checkpoint a block, at the latter's peak
OVERHEADS = (
    "budget",
    "step ÷ plain",
    "line",
    "met",
    "replays a step",
    "GiB replayed",
    "GiB offloaded",
    "predicted step ÷ step",
    "predicted peak ÷ peak",
)
PEERS = ("", "step ms", "peak GiB", "Headwater at that peak: step ms", "peak ÷ budget", "faster by")


def write_table(path: Path, report: dict[str, Any]) -> None:
    """Replaces the file by tables of all workloads measured so far."""
    parts = [_heading(report)]
    for name, result in report["workloads"].items():
        if "error" in result["plain"]:
            parts.append(f"## {name}\n\nPlain training failed: {result['plain']['error']}\n")
            continue
        parts += [_plain(name, result), _ours(result), _peers(result, report["skipped"])]
        parts += [overheads(name, result), against_checkpoint(result)]
    path.write_text("\n".join(part for part in parts if part), encoding="utf-8")


def _heading(report: dict[str, Any]) -> str:
    link = report["link"]
    return (
        f"# Step time under a budget\n\n{report['device']}, torch {report['torch']}, "
        f"commit {report['commit']}. Link {link['d2h_bytes_per_second'] / 1e9:.1f} GB/s out, "
        f"{link['h2d_bytes_per_second'] / 1e9:.1f} GB/s in, "
        f"{link['both_bytes_per_second'] / 1e9:.1f} GB/s both at once.\n"
    )


def _plain(name: str, result: dict[str, Any]) -> str:
    plain, again = result["plain"], result.get("plain_again", {})
    text = (
        f"## {name}\n\nPlain: {median_ms(plain)} ms a step ({_spread(plain)}), "
        f"forward {plain['forward_ms']['median_ms']:.1f} ms, backward and optimizer "
        f"{plain['backward_ms']['median_ms']:.1f} ms, peak {gib(plain['peak_bytes'])} GiB."
    )
    if "step_ms" in again:
        text += f" Again at the end: {median_ms(again)} ms ({_spread(again)})."
    return f"{text}\n{_bits(result)}"


def _bits(result: dict[str, Any]) -> str:
    if "bits" not in result:
        return ""
    bits = result["bits"]
    same = sum(bits["same_losses"].values())
    plain = "repeats itself" if bits["plain_repeats_itself"] else "does not repeat itself"
    return (
        f"Losses of {bits['steps']} steps under deterministic algorithms equal the plain ones at "
        f"{same} of {len(bits['same_losses'])} budgets; plain PyTorch {plain}.\n"
    )


def _ours(result: dict[str, Any]) -> str:
    bounds = {row["budget_bytes"]: row for row in result.get("bounds", [])}
    rows = [_our_row(case, bounds[case["budget_bytes"]]) for case in result["headwater"]]
    return table(OURS, rows)


def _our_row(case: dict[str, Any], bound: dict[str, Any]) -> Row:
    start = [f"{case['share']:.0%}", gib(case["budget_bytes"])]
    if "error" in case:
        return [*start, error_of(case), *[""] * (len(OURS) - 3)]
    return [
        *start,
        f"{case['peak_over_budget']:.3f}",
        f"{case['peak_reserved_bytes'] / case['budget_bytes']:.3f}",
        median_ms(case),
        _spread(case),
        f"{bound['bound_ms']:.1f}",
        f"{case['step_ms']['median_ms'] / bound['bound_ms']:.2f}",
        f"{bound['forward_waits_for']}, {bound['backward_waits_for']}",
        f"{case['hidden_share']:.0%}",
        f"{gib(case['bytes_offloaded'])} + {gib(case['bytes_fetched'])}",
        f"{case['stall_ms']:.1f}",
        f"{case['fetches_ahead']:.0f} + {case['fetches_on_demand']:.0f}",
    ]


def overheads(name: str, result: dict[str, Any]) -> str:
    """Step times beside the plain one, the lines drawn for them, and what was predicted."""
    well = [case for case in result["headwater"] if "error" not in case]
    return table(OVERHEADS, [_overhead_row(name, case) for case in well])


def _overhead_row(name: str, case: dict[str, Any]) -> Row:
    ratio = case["overhead"] + 1
    line = LINES.get(name, {}).get(round(case["share"] * 100))
    step, peak = case["step_ms"]["median_ms"], case["peak_bytes"]
    return [
        f"{case['share']:.0%}",
        f"{ratio:.3f}",
        "" if line is None else f"{line:.2f}",
        "" if line is None else "yes" if ratio <= line else "NO",
        f"{case['replays']:.0f}",
        gib(case["bytes_replayed"]),
        gib(case["bytes_offloaded"]),
        quotient(case["predicted_step_ms"], step),
        quotient(case["predicted_peak_bytes"], peak),
    ]


def against_checkpoint(result: dict[str, Any]) -> str:
    """A sentence, where both were measured at the same peak."""
    peer = result["peers"].get("checkpoint", {})
    ours = result["at_peer_peaks"].get("checkpoint", {})
    if "step_ms" not in peer or "step_ms" not in ours:
        return ""
    theirs, mine = (overhead(case, result["plain"]) for case in (peer, ours))
    met = "met" if mine <= theirs * CHECKPOINT_LINE else "NOT met"
    return (
        f"At the peak of a checkpoint a block, {gib(peer['peak_bytes'])} GiB, that takes "
        f"{theirs:+.1%} and Headwater {mine:+.1%}; the line, {CHECKPOINT_LINE:.0%} of its "
        f"overhead, is {met}.\n"
    )


def overhead(case: dict[str, Any], plain: dict[str, Any]) -> float:
    """By how much a step takes longer than a plain one: 0.1 is a tenth."""
    return float(case["step_ms"]["median_ms"] / plain["step_ms"]["median_ms"] - 1)


def _peers(result: dict[str, Any], skipped: dict[str, str]) -> str:
    rows = [
        _peer_row(name, case, result["at_peer_peaks"].get(name))
        for name, case in result["peers"].items()
    ]
    rows += [[name, f"skipped: {why}", "", "", "", ""] for name, why in skipped.items()]
    return table(PEERS, rows) if rows else ""


def _peer_row(name: str, case: dict[str, Any], ours: dict[str, Any] | None) -> Row:
    if "error" in case:
        return [name, error_of(case), "", "", "", ""]
    start = [name, f"{median_ms(case)} ({_spread(case)})", gib(case["peak_bytes"])]
    if ours is None:
        return [*start, "", "", ""]
    if "error" in ours:
        return [*start, error_of(ours), "", ""]
    faster = case["step_ms"]["median_ms"] / ours["step_ms"]["median_ms"]
    ratio = f"{ours['peak_over_budget']:.3f}"
    return [*start, f"{median_ms(ours)} ({_spread(ours)})", ratio, f"{faster:.2f} x"]


def _spread(case: dict[str, Any]) -> str:
    return f"{case['step_ms']['lowest_ms']:.1f} to {case['step_ms']['highest_ms']:.1f}"
