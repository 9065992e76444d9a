"""The least a step under a budget can take if nothing is recomputed, from plain PyTorch's numbers.

    max(forward, X / D2H) + max(backward + optimizer, X / H2D)       X = plain peak - budget

X bytes have to be away when the plain step has its peak: they leave while the forward pass runs and
come back while the rest does. Where they come from does not change the sum: optimizer state is
away first, since nothing needs it before the end of a step. Reads the JSON of pressure.py, uses
nothing but its plain part, its link rates and its budgets, and imports no code of the project.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any


def bound(plain: dict[str, Any], link: dict[str, float], budget: int) -> dict[str, Any]:
    """Milliseconds of both halves of a step, and which side each waits for."""
    away = max(0, plain["peak_bytes"] - budget)
    forward, rest = plain["forward_ms"]["median_ms"], plain["backward_ms"]["median_ms"]
    leaving = away / link["d2h_bytes_per_second"] * 1e3
    returning = away / link["h2d_bytes_per_second"] * 1e3
    return {
        "budget_bytes": budget,
        "share": budget / plain["peak_bytes"],
        "away_bytes": away,
        "leaving_ms": leaving,
        "returning_ms": returning,
        "bound_ms": max(forward, leaving) + max(rest, returning),
        "forward_waits_for": "link" if leaving > forward else "compute",
        "backward_waits_for": "link" if returning > rest else "compute",
    }


def budgets_of(result: dict[str, Any], shares: list[float] | None) -> list[int]:
    """Every budget that was measured, or the given percentages of the plain peak."""
    if shares is not None:
        return [int(result["plain"]["peak_bytes"] * share / 100) for share in shares]
    measured = [*result["headwater"], *result["at_peer_peaks"].values()]
    return [case["budget_bytes"] for case in measured]


def bounds(report: dict[str, Any], shares: list[float] | None) -> dict[str, list[dict[str, Any]]]:
    """By workload; one whose plain training failed has none."""
    return {
        name: [bound(result["plain"], report["link"], n) for n in budgets_of(result, shares)]
        for name, result in report["workloads"].items()
        if "peak_bytes" in result.get("plain", {})
    }


def print_bounds(found: dict[str, list[dict[str, Any]]]) -> None:
    for name, rows in found.items():
        for row in rows:
            print(
                f"{name:12s} {row['share']:5.1%} {row['budget_bytes'] / 2**30:7.2f} GiB: "
                f"{row['away_bytes'] / 2**30:6.2f} GiB away, {row['bound_ms']:8.2f} ms "
                f"(forward waits for {row['forward_waits_for']}, "
                f"backward for {row['backward_waits_for']})"
            )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("report", type=Path, help="JSON of pressure.py")
    parser.add_argument("--json", action="store_true", help="print JSON instead of lines")
    parser.add_argument(
        "--shares",
        nargs="+",
        type=float,
        metavar="PERCENT",
        help="of the plain peak; else the budgets that the report has measured",
    )
    return parser.parse_args()


def main() -> int:
    options = parse_arguments()
    found = bounds(json.loads(options.report.read_text(encoding="utf-8")), options.shares)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        print_bounds(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
