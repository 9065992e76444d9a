"""The tries of capacity.py as tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks.plan.capacity_networks import NETWORKS
from benchmarks.train.report import gib, table

ARMS = ("plain", "checkpoint", "headwater")


def largest_fit(
    cases: Iterable[dict[str, Any]], network: str, arm: str, least_rate: float = 0.0
) -> dict[str, Any] | None:
    """Of the largest size that fits at such a rate, the longest try."""
    fits = [case for case in timed(cases, network, arm) if case["rate"] >= least_rate]
    return max(fits, key=lambda case: (case["size"], case["asked"]["steps"]), default=None)


def timed(cases: Iterable[dict[str, Any]], network: str, arm: str) -> list[dict[str, Any]]:
    """Those that went well, without those for bits alone."""
    return [
        case
        for case in cases
        if (case["network"], case["arm"]) == (network, arm)
        and "error" not in case
        and not case["asked"].get("repeatable")
    ]


def capacity_table(report: dict[str, Any]) -> str:
    """All networks that were tried."""
    names = [name for name in NETWORKS if any(case["network"] == name for case in report["tries"])]
    parts = [_network_table(name, report) for name in names]
    if "cut" in report:
        parts.append(f"{report['cut']}: sizes may be too small.\n")
    return "\n".join(parts)


def _network_table(name: str, report: dict[str, Any]) -> str:
    network, cases = NETWORKS[name], report["tries"]
    titles = ["", network.grows, "÷ plain", f"{network.unit}/s", "parameters"]
    titles += ["allocated", "reserved", "host", "tries"]
    rows = [_row(name, arm, cases) for arm in ARMS if any(_is_of(n, name, arm) for n in cases)]
    return (
        f"## {name}\n\nThe most {network.grows} in {gib(report['cap_bytes'])} GiB; bytes in GiB. "
        f"{_bits(report['bits'].get(name))}\n\n{table(titles, rows)}\n{_line(name, cases)}"
    )


def _is_of(case: dict[str, Any], network: str, arm: str) -> bool:
    return bool(case["network"] == network and case["arm"] == arm)


def _row(name: str, arm: str, cases: list[dict[str, Any]]) -> list[str]:
    tries = str(sum(_is_of(case, name, arm) for case in cases))
    best = largest_fit(cases, name, arm)
    if best is None:
        return [arm, "none found", *[""] * 6, tries]
    return [
        arm,
        str(NETWORKS[name].extent(best["size"])),
        _times_plain(name, best, cases),
        f"{best['rate']:.1f}",
        f"{best['parameters'] / 1e6:.0f} M",
        gib(best["peak_bytes"]),
        gib(best["peak_reserved_bytes"]),
        gib(best["host_bytes"]),
        tries,
    ]


def _times_plain(name: str, case: dict[str, Any], cases: list[dict[str, Any]]) -> str:
    plain, extent = largest_fit(cases, name, "plain"), NETWORKS[name].extent
    return f"{extent(case['size']) / extent(plain['size']):.2f}" if plain else "-"


def _line(name: str, cases: list[dict[str, Any]]) -> str:
    """What the line asks for, and the largest that is fast enough for it."""
    network = NETWORKS[name]
    line = f"Line: {network.times_plain:g} times plain's {network.grows}"
    if network.least_rate:
        line += f" at {network.least_rate:g} {network.unit}/s or more"
    plain = largest_fit(cases, name, "plain")
    ours = largest_fit(cases, name, "headwater", network.least_rate)
    if plain is None or ours is None:
        return f"{line}: nothing to compare.\n"
    ratio = network.extent(ours["size"]) / network.extent(plain["size"])
    met = "met" if ratio >= network.times_plain else "NOT met"
    return (
        f"{line}: {met}, {network.extent(ours['size'])} are {ratio:.2f} times, "
        f"at {ours['rate']:.1f} {network.unit}/s.\n"
    )


def _bits(bits: dict[str, Any] | None) -> str:
    if bits is None:
        return ""
    if "size" not in bits:
        return f"Losses were not compared: {bits['error']}."
    same = "are" if bits["same_losses"] else "are NOT"
    return f"At size {bits['size']} losses {same} plain PyTorch's, deterministically."
