"""What every result says about the run it came from, how it is kept, and how tables are written."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

import headwater


def describe_run(options: argparse.Namespace) -> dict[str, Any]:
    """Commit, machine and options; results are added to it."""
    cuda = options.device == "cuda"
    return {
        "program": Path(sys.argv[0]).name,
        "commit": _commit(),
        "headwater": headwater.__version__,
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if cuda else platform.processor() or "CPU",
        "allocator": os.environ.get("PYTORCH_ALLOC_CONF", ""),
        "options": {key: _in_words(value) for key, value in vars(options).items()},
    }


def write_report(path: Path, report: dict[str, Any]) -> None:
    """Replaces the file: called after every result, so that a run cut short leaves what it had."""
    path.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """In Markdown.

    >>> print(table(["a", "b"], [["1", "2"]]), end="")
    | a | b |
    | --- | --- |
    | 1 | 2 |
    """
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def error_of(case: dict[str, Any]) -> str:
    """The start of its first line, fit for a table."""
    return (str(case["error"]).splitlines() or [""])[0].replace("|", "/")[:300]


def median_ms(case: dict[str, Any]) -> str:
    return f"{case['step_ms']['median_ms']:.1f}"


def quotient(predicted: float | None, measured: float) -> str:
    """How a prediction compares; a dash where there is none."""
    return f"{predicted / measured:.3f}" if predicted and measured else "-"


def gib(size: float) -> str:
    return f"{size / 2**30:.2f}"


def _in_words(value: object) -> str:
    # Where somebody keeps files is nobody else's concern.
    return value.name if isinstance(value, Path) else str(value)


def _commit() -> str | None:
    command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
