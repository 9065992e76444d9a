#!/usr/bin/env python3
"""Runs the Python tests that need a GPU, several processes at a time, and closes with one line.

Usage: gpu_tests.py [--processes N] [--limit SECONDS] [--only REGEX]

A job is one test file, or one network of the file that trains them all. A GPU serves the processes
in turn; under NVIDIA's MPS they share it and take less time. What does not end in time has failed.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TRAININGS = "test_training.py"
NO_TESTS = 5  # pytest's exit status


def networks() -> list[str]:
    """Expressions of pytest that pick one network each; a name may be part of another's."""
    sys.path.insert(0, str(ROOT))
    from examples.models import NAMES

    def only(name: str) -> str:
        longer = [other for other in NAMES if name in other and name != other]
        return " and not ".join([name, *longer])

    return [only(name) for name in NAMES]


def jobs(pattern: str) -> list[list[str]]:
    """Arguments of pytest for each job."""
    found = []
    for path in sorted((ROOT / "tests/python").glob("test_*.py")):
        if path.name == TRAININGS:
            found += [[str(path), "-k", network] for network in networks()]
        elif "gpu" in path.read_text() or "device" in path.read_text():
            found.append([str(path)])
    return [job for job in found if re.search(pattern, " ".join(job))]


def run(job: list[str], deadline: float) -> bool:
    """Runs one job and tells how it went."""
    name = " ".join([Path(job[0]).name, *job[2:]])
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", *job]
    start = time.monotonic()
    try:
        left = max(deadline - start, 1)
        result = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=left, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"{name}: did not end in time", flush=True)
        return False
    well = result.returncode in (0, NO_TESTS)
    closing = result.stdout.strip().splitlines()[-1:] or [result.stderr.strip()[-200:]]
    print(f"{name}: {closing[0]} ({time.monotonic() - start:.0f} s)", flush=True)
    if not well:
        print(result.stdout, flush=True)
    return well


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="at a time")
    parser.add_argument("--limit", type=float, default=1200, help="seconds for all of them")
    parser.add_argument("--only", default="", metavar="REGEX", help="jobs whose names match")
    options = parser.parse_args()
    deadline = time.monotonic() + options.limit
    chosen = jobs(options.only)
    with ThreadPoolExecutor(options.processes) as pool:
        results = list(pool.map(lambda job: run(job, deadline), chosen))
    print(f"{sum(results)} jobs passed, {len(results) - sum(results)} failed")
    return 0 if results and all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
