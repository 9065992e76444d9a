"""Trains a task with a recipe, plainly or under a budget, and keeps every bit that came out.

Peaks are measured from outside Headwater: on a CPU by a counting allocator under PyTorch, on a GPU
by ``torch.cuda.max_memory_allocated``. The former starts from what was allocated before the run;
the latter is everything, since on a GPU the budget covers workspaces and strangers too.
"""

from __future__ import annotations

import os

# Both are read at first use: bfloat16 on some CPUs, repeatable matrix products on a GPU.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import contextlib
import functools
import gc
import hashlib
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path

import headwater_counting_allocator as counting_allocator
import torch
from torch import Tensor

import headwater
from headwater import _C

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from recipes import RECIPES, Training

# Installed once, before any tensor: Headwater knows a tensor's memory by its allocator's deleter.
counting_allocator.install()

# Operators this small gain nothing from a second thread, and lose much on a busy machine.
torch.set_num_threads(1)

STEPS = 5
BUILDING = -1
WHOLE_RUN = range(BUILDING, STEPS)


@dataclass(frozen=True)
class Bits:
    """Everything that must be equal with and without a budget."""

    losses: tuple[str, ...]
    parameters: str
    buffers: str
    optimizer: str
    average: str

    def differences(self, other: Bits) -> list[str]:
        """Names of the fields that differ."""
        names = [field.name for field in fields(self)]
        return [name for name in names if getattr(self, name) != getattr(other, name)]


@dataclass(frozen=True)
class Result:
    """One run. ``stats`` is empty without a budget; ``small_peak_bytes`` is zero on a GPU."""

    bits: Bits
    peak_bytes: int
    small_peak_bytes: int
    step_seconds: tuple[float, ...]
    stats: dict[str, int | float]


class Meter:
    """Measures the peak of a device's tensors from here on, whoever allocates them."""

    def __init__(self, device: str) -> None:
        gc.collect()
        self._cuda = device.startswith("cuda")
        if self._cuda:
            warm_up_workspaces(device)
            torch.cuda.reset_peak_memory_stats()
            self._base = torch.cuda.memory_allocated()
        else:
            counting_allocator.reset_peak()
            self._base = counting_allocator.live_bytes()
            self._small_base = counting_allocator.small_live_bytes()

    def peak_bytes(self) -> int:
        if self._cuda:
            return torch.cuda.max_memory_allocated()
        return counting_allocator.peak_bytes() - self._base

    def small_peak_bytes(self) -> int:
        """Peak of the tensors below Headwater's size floor, which it leaves alone."""
        return 0 if self._cuda else counting_allocator.small_peak_bytes() - self._small_base


@functools.cache
def warm_up_workspaces(device: str) -> None:
    """Lets cuBLAS take its lasting workspaces, forward and backward, before measuring starts."""
    layer = torch.nn.Linear(64, 64, device=device)
    layer(torch.ones(64, 64, device=device)).sum().backward()
    torch.cuda.synchronize()


def run(
    task: str,
    recipe: str,
    budget: int | str | None = None,
    device: str = "cpu",
    managed_steps: range = WHOLE_RUN,
    region: str = "",
) -> Result:
    """Trains ``STEPS`` steps; without a budget Headwater stays off.

    ``managed_steps`` limits the budget to some steps: enabled before the first of them, with
    whatever exists by then, and disabled after the last. By default it covers everything,
    the building of the network included. ``region`` says what becomes of what the steps make;
    plans are then waited for, so that the last steps are planned.
    """
    if device.startswith("cuda"):
        torch.use_deterministic_algorithms(True)
    meter = Meter(device)
    with Session(budget, device, managed_steps) as session:
        session.before(BUILDING)
        training = Training(task, RECIPES[recipe], device, scale_of(device))
        losses, seconds = [], []
        for step in range(STEPS):
            session.before(step)
            start = time.perf_counter()
            with headwater.region(region) if region else contextlib.nullcontext():
                losses.append(training.step(step).hex())
            if region:
                _C.finish_planning()
            seconds.append(time.perf_counter() - start)
            if step in managed_steps:
                peaks = meter.peak_bytes(), meter.small_peak_bytes()
            session.after(step)
    return Result(bits_of(training, losses), *peaks, tuple(seconds), session.stats)


class Session:
    """Switches Headwater on and off at the asked steps; does nothing without a budget."""

    def __init__(self, budget: int | str | None, device: str, steps: range) -> None:
        self._budget, self._device, self._steps = budget, device, steps
        self._stack = contextlib.ExitStack()
        self.stats: dict[str, int | float] = {}

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def before(self, step: int) -> None:
        if self._budget is not None and step == self._steps[0]:
            self._stack.enter_context(headwater.budget(self._budget, device=self._device))

    def after(self, step: int) -> None:
        if self._budget is not None and step == self._steps[-1]:
            self.stats = headwater.stats().as_dict()
            self._stack.close()


def scale_of(device: str) -> str:
    return "gpu" if device.startswith("cuda") else "cpu"


def bits_of(training: Training, losses: Iterable[str]) -> Bits:
    state = training.optimizer.state_dict()["state"]
    average = training.average.state_dict().values() if training.average else ()
    return Bits(
        losses=tuple(losses),
        parameters=digest(training.task.parameters()),
        buffers=digest(training.task.buffers()),
        optimizer=digest(value for entry in state.values() for value in entry.values()),
        average=digest(average),
    )


def digest(values: Iterable[object]) -> str:
    """A hash over shapes, types and bytes; anything not a tensor is hashed as text."""
    total = hashlib.sha256()
    for value in values:
        if isinstance(value, Tensor):
            total.update(f"{tuple(value.shape)}{value.dtype}".encode())
            flat = value.detach().cpu().contiguous().reshape(-1)
            total.update(flat.view(torch.uint8).numpy().tobytes())
        else:
            total.update(repr(value).encode())
    return total.hexdigest()


@functools.cache
def plain(task: str, recipe: str, device: str) -> Result:
    """The run everything is compared with."""
    return run(task, recipe, None, device)


@functools.cache
def minimum(task: str, recipe: str, device: str) -> Result:
    """The run that keeps only the running op's tensors: its peak is the largest working set."""
    return run(task, recipe, "minimum", device)
