"""Command line: `python -m tests.conformance.op_db --fraction 0.2 --seed 0`."""

import argparse
import json
import os
import sys
import time
from pathlib import Path

import torch

from . import expected, report
from .managers import HEADWATER
from .runner import HarnessError, Options, Runner
from .samples import groups


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Reads the options.

    >>> parse(["--fraction", "0.2"]).seed
    0
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.conformance.op_db",
        description="Runs PyTorch's operator samples plain and under Headwater; compares bits.",
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--fraction", type=float, default=1.0, help="share of the samples to run")
    parser.add_argument("--seed", type=int, default=0, help="chooses which samples")
    parser.add_argument("--ops", default="", help="regular expression on operator names")
    parser.add_argument("--workers", type=int, default=None, help="processes (default: cores)")
    parser.add_argument("--sample-seconds", type=float, default=60.0, help="limit of one sample")
    parser.add_argument("--manager", default=HEADWATER, help="what to run under (module:Class)")
    parser.add_argument("--json", type=Path, default=None, help="write all details to this file")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Runs the samples; returns the exit code."""
    given = parse(arguments)
    # On a GPU one process keeps plain PyTorch reproducible and the memory figures its own.
    workers = given.workers or (1 if given.device == "cuda" else os.cpu_count() or 1)
    options = Options(
        given.device, given.fraction, given.seed, workers, given.manager, given.sample_seconds
    )
    entries = [
        entry
        for entry in expected.load()
        # They differ because bytes move, which they do under the standard manager only.
        if given.manager == HEADWATER
        and entry.applies_to(given.device, torch.__version__.partition("+")[0])
    ]
    begin = time.monotonic()
    try:
        results = Runner(options).run(groups(given.device, given.ops))
    except HarnessError as error:
        print(f"error: a worker cannot run: {error}", file=sys.stderr)
        return 2
    is_full_run = given.fraction >= 1.0 and not given.ops
    verdict = expected.judge(results, entries, is_full_run=is_full_run)
    data = report.as_data(results, verdict, options, time.monotonic() - begin)
    if given.json is not None:
        given.json.write_text(json.dumps(data, indent=1))
    report.print_text(data)
    return 1 if data["complaints"] else 0


if __name__ == "__main__":
    sys.exit(main())
