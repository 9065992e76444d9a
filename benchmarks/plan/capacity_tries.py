"""The tries of capacity.py: started, remembered, and taken from an earlier report."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.plan.capacity_networks import NETWORKS
from benchmarks.train.one_try import run_try
from benchmarks.train.report import error_of, write_report
from benchmarks.train.wishes import as_arguments

PROGRAM = Path(__file__).with_name("capacity_try.py")


class OutOfTimeError(Exception):
    """A try could not be started, or not be given its time."""


class Tries:
    """Runs tries, each on disk before the next one begins; the same one is never run twice."""

    def __init__(self, report: dict[str, Any], options: argparse.Namespace) -> None:
        self._report, self._options = report, options
        self._end = time.monotonic() + options.time_limit
        self.cases: list[dict[str, Any]] = report["tries"]
        if options.resume is not None and options.resume.exists():
            self.cases += _earlier(options.resume, report)

    def train(self, network: str, arm: str, size: int, **changes: Any) -> dict[str, Any]:
        """One try; its answer, or why it failed."""
        asked = self._asked(network, arm, size) | changes
        known = [case for case in self.cases if case["asked"] == asked]
        if known:
            return known[0]
        start = time.monotonic()
        left = self._end - start
        limit = min(self._options.try_limit, left)
        case: dict[str, Any] = {"out_of_time": True}
        if left > 0:
            case = run_try(self._command(asked), limit)
        if case.get("out_of_time") and limit < self._options.try_limit:
            raise OutOfTimeError(f"Out of time before {network} {arm} {size} was through")
        case |= {"asked": asked, "network": network, "arm": arm, "size": size}
        case["wall_seconds"] = time.monotonic() - start
        self._keep(case)
        return case

    def _asked(self, network: str, arm: str, size: int) -> dict[str, Any]:
        options = self._options
        return {
            "network": network,
            "arm": arm,
            "size": size,
            "steps": options.steps,
            "cap_bytes": options.cap,
            "budget_bytes": options.budget,
            "host_budget": options.host_budget,
            "tiny": options.tiny,
            "device": options.device,
            "wishes": as_arguments(options),
        }

    def _command(self, asked: dict[str, Any]) -> list[str]:
        flags = {name: value for name, value in asked.items() if value and name != "wishes"}
        command = [sys.executable, str(PROGRAM), *asked["wishes"]]
        for name, value in flags.items():
            command.append(f"--{name.replace('_', '-')}")
            command += [] if value is True else [str(value)]
        # Of a longer try the last steps alone are timed.
        return [*command, "--warm-up", str(max(asked["steps"] - 4, asked["steps"] * 2 // 3))]

    def _keep(self, case: dict[str, Any]) -> None:
        self.cases.append(case)
        write_report(self._options.out, self._report)
        label = f"{case['network']} {case['arm']} {case['size']}"
        print(f"{label:36s} {in_words(case)}", flush=True)


def in_words(case: dict[str, Any]) -> str:
    """One line for the terminal."""
    wall = f"({case['wall_seconds']:.0f} s)"
    if "error" in case:
        return f"no {wall}: {error_of(case)[:200]}"
    unit = NETWORKS[case["network"]].unit
    return (
        f"yes {wall}: {case['rate']:.1f} {unit}/s, allocated {case['peak_bytes'] / 2**30:.2f} GiB, "
        f"reserved {case['peak_reserved_bytes'] / 2**30:.2f} GiB, "
        f"host {case['host_bytes'] / 2**30:.1f} GiB"
    )


def _earlier(path: Path, report: dict[str, Any]) -> list[dict[str, Any]]:
    """Tries of the same code on the same machine."""
    before: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    same = all(before[name] == report[name] for name in ("commit", "torch", "device", "allocator"))
    return list(before["tries"]) if same else []
