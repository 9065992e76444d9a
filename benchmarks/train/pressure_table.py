"""The report of pressure.py as tables in Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
PEERS = ("", "step ms", "peak GiB", "Headwater at that peak: step ms", "peak ÷ budget", "faster by")


def write_table(path: Path, report: dict[str, Any]) -> None:
    """Replaces the file by tables of all workloads measured so far."""
    parts = [_heading(report)]
    for name, result in report["workloads"].items():
        if "error" in result["plain"]:
            parts.append(f"## {name}\n\nPlain training failed: {result['plain']['error']}\n")
            continue
        parts += [_plain(name, result), _ours(result), _peers(result, report["skipped"])]
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
        f"## {name}\n\nPlain: {_ms(plain)} ms a step ({_spread(plain)}), "
        f"forward {plain['forward_ms']['median_ms']:.1f} ms, backward and optimizer "
        f"{plain['backward_ms']['median_ms']:.1f} ms, peak {_gib(plain['peak_bytes'])} GiB."
    )
    if "step_ms" in again:
        text += f" Again at the end: {_ms(again)} ms ({_spread(again)})."
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
    return _table(OURS, rows)


def _our_row(case: dict[str, Any], bound: dict[str, Any]) -> Row:
    start = [f"{case['share']:.0%}", _gib(case["budget_bytes"])]
    if "error" in case:
        return [*start, _error(case), *[""] * (len(OURS) - 3)]
    return [
        *start,
        f"{case['peak_over_budget']:.3f}",
        f"{case['peak_reserved_bytes'] / case['budget_bytes']:.3f}",
        _ms(case),
        _spread(case),
        f"{bound['bound_ms']:.1f}",
        f"{case['step_ms']['median_ms'] / bound['bound_ms']:.2f}",
        f"{bound['forward_waits_for']}, {bound['backward_waits_for']}",
        f"{case['hidden_share']:.0%}",
        f"{_gib(case['bytes_offloaded'])} + {_gib(case['bytes_fetched'])}",
        f"{case['stall_ms']:.1f}",
        f"{case['fetches_ahead']:.0f} + {case['fetches_on_demand']:.0f}",
    ]


def _peers(result: dict[str, Any], skipped: dict[str, str]) -> str:
    rows = [
        _peer_row(name, case, result["at_peer_peaks"].get(name))
        for name, case in result["peers"].items()
    ]
    rows += [[name, f"skipped: {why}", "", "", "", ""] for name, why in skipped.items()]
    return _table(PEERS, rows) if rows else ""


def _peer_row(name: str, case: dict[str, Any], ours: dict[str, Any] | None) -> Row:
    if "error" in case:
        return [name, _error(case), "", "", "", ""]
    start = [name, f"{_ms(case)} ({_spread(case)})", _gib(case["peak_bytes"])]
    if ours is None:
        return [*start, "", "", ""]
    if "error" in ours:
        return [*start, _error(ours), "", ""]
    faster = case["step_ms"]["median_ms"] / ours["step_ms"]["median_ms"]
    ratio = f"{ours['peak_over_budget']:.3f}"
    return [*start, f"{_ms(ours)} ({_spread(ours)})", ratio, f"{faster:.2f} x"]


def _table(titles: tuple[str, ...], rows: list[Row]) -> str:
    lines = [titles, ("---",) * len(titles), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _error(case: dict[str, Any]) -> str:
    return str(case["error"]).splitlines()[0].replace("|", "/")


def _ms(case: dict[str, Any]) -> str:
    return f"{case['step_ms']['median_ms']:.1f}"


def _spread(case: dict[str, Any]) -> str:
    return f"{case['step_ms']['lowest_ms']:.1f} to {case['step_ms']['highest_ms']:.1f}"


def _gib(size: float) -> str:
    return f"{size / 2**30:.2f}"
