"""What steps did, operator by operator, in a file that can be read elsewhere."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from headwater.options import disabled_by_environment


@dataclass(frozen=True)
class OpShare:
    """What the operators of one name did in a step. Only some of them are timed."""

    num_ops: int
    num_timed: int
    timed_seconds: float
    made_bytes: int  # of their results


@dataclass(frozen=True)
class StepSummary:
    """One step of a trace."""

    number: int
    num_ops: int
    num_tensors: int
    peak_bytes: int  # of the tensors in use at once, each until it is freed
    bytes_without_release: int  # the same if none of them were freed before the step ends
    ops: dict[str, OpShare]


@dataclass(frozen=True)
class TraceSummary:
    """What a trace file holds."""

    device: str
    bytes_per_second: dict[str, float]  # of the link, where it was measured
    steps: tuple[StepSummary, ...]


@contextmanager
def trace(path: str | os.PathLike[str]) -> Iterator[None]:
    """Writes down all steps that end in the block, with every operator managed meanwhile.

    Sizes, order and times only: no values, no code. The file is there when the block ends, also
    if it raises. Raises RuntimeError unless Headwater is enabled or while another trace is kept.

    >>> with headwater.trace("steps.hwt"):
    ...     train(num_steps=5)
    """
    if disabled_by_environment():
        yield
        return
    tracing = _extension().Tracing()
    try:
        yield
    finally:
        tracing.save(os.fspath(path))


def read_trace(path: str | os.PathLike[str]) -> TraceSummary:
    """Sums up a trace file. Raises ValueError if it is damaged, foreign or from a newer version.

    >>> headwater.read_trace("steps.hwt").steps[-1].peak_bytes
    """
    found: dict[str, Any] = _extension().read_trace(os.fspath(path))
    steps = tuple(_summary(step) for step in found["steps"])
    return TraceSummary(" ".join(found["device"]), found["bytes_per_second"], steps)


def _summary(step: dict[str, Any]) -> StepSummary:
    ops = {
        name: OpShare(num_ops, num_timed, time_ns / 1e9, made)
        for name, (num_ops, num_timed, time_ns, made) in step.pop("ops").items()
    }
    return StepSummary(**step, ops=ops)


def _extension() -> ModuleType:
    return importlib.import_module("headwater._C")
