"""One training from scratch, plain, under a budget or with a peer: its time, peaks and losses."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch

import headwater
from benchmarks.train.peers import Peer, Scope
from benchmarks.train.workloads import Workload, make_workload


@dataclass(frozen=True)
class Length:
    """Steps before timing starts (a plan begins at the 4th), and those that are timed."""

    warm_up: int
    timed: int


class Marks:
    """Points in time on the device's own clock; on a CPU on the host's."""

    def __init__(self, device: str) -> None:
        self._cuda = device == "cuda"
        self._marks: list[Any] = []

    def mark(self) -> None:
        """Waits for nothing: on a GPU the point is where the queue stands."""
        if not self._cuda:
            self._marks.append(time.perf_counter())
            return
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        self._marks.append(event)

    def intervals_ms(self) -> list[float]:
        """Milliseconds between neighbours; waits for the last of them."""
        pairs = list(zip(self._marks, self._marks[1:], strict=False))
        if not self._cuda:
            return [(end - start) * 1e3 for start, end in pairs]
        torch.cuda.synchronize()
        return [start.elapsed_time(end) for start, end in pairs]


class Peaks:
    """The most bytes since the start: PyTorch's count on a GPU.

    On a CPU, where PyTorch keeps none, it is Headwater's, and 0 for a training without it.
    """

    def __init__(self, device: str, managed: bool) -> None:
        self._cuda, self._managed = device == "cuda", managed
        self._before = self._reserved_before = 0
        self._reset()

    def begin_steady(self) -> None:
        """Steps from here on are counted apart as well."""
        self._before, self._reserved_before = self._allocated(), self._reserved()
        self._reset()

    def as_dict(self) -> dict[str, int]:
        """Peaks over everything and over the steady steps, and what the whole device has in use."""
        steady = self._allocated()
        found = {"peak_bytes": max(self._before, steady), "steady_peak_bytes": steady}
        found["peak_reserved_bytes"] = max(self._reserved_before, self._reserved())
        if self._cuda:
            free, total = torch.cuda.mem_get_info()
            found["device_used_bytes"] = total - free
        return found

    def _reset(self) -> None:
        if self._cuda:
            torch.cuda.reset_peak_memory_stats()
        headwater.reset_peak_stats()

    def _allocated(self) -> int:
        if self._cuda:
            return torch.cuda.max_memory_allocated()
        return headwater.stats().peak_bytes if self._managed else 0

    def _reserved(self) -> int:
        return torch.cuda.max_memory_reserved() if self._cuda else 0


@dataclass(frozen=True)
class Trainer:
    """Trains a workload as often as asked, each time in a fresh state of the same process."""

    workload: str
    device: str
    tiny: bool
    length: Length
    wishes: Mapping[str, str] = field(default_factory=dict)  # for Headwater's ``enable``

    def train(self, budget: int | str | None = None, peer: Peer | None = None) -> dict[str, Any]:
        """A failure, such as too little memory, is a result too: ``error`` says what it was."""
        result: dict[str, Any] = {} if budget is None else {"budget_bytes": budget}
        try:
            self._start_fresh()
            with self._managed(budget):
                result |= self._run(budget is not None, peer)
                gc.collect()  # nothing is left to bring back when the budget ends
        except (RuntimeError, ValueError) as error:
            result["error"] = f"{type(error).__name__}: {error}"
            if isinstance(error, headwater.OutOfMemory):
                result["smallest_budget"] = error.smallest_budget
        if isinstance(budget, int) and "peak_bytes" in result:
            result["peak_over_budget"] = result["peak_bytes"] / budget
        return result

    def _start_fresh(self) -> None:
        headwater.disable()
        gc.collect()
        if self.device == "cuda":
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            _empty_host_cache()

    def _managed(self, budget: int | str | None) -> AbstractContextManager[None]:
        if budget is None:
            return nullcontext()
        return headwater.budget(budget, device=self.device, **self.wishes)

    def _run(self, managed: bool, peer: Peer | None) -> dict[str, Any]:
        peaks, marks = Peaks(self.device, managed), Marks(self.device)
        with torch.device(self.device):  # built in place: a host takes seconds to draw parameters
            workload = make_workload(self.workload, self.device, self.tiny)
        scope = nullcontext if peer is None else peer(workload)
        losses = [_step(workload, scope, n, Marks("cpu")) for n in range(self.length.warm_up)]
        self._drain()
        peaks.begin_steady()
        before = headwater.stats()
        launch_ms = []
        for n in range(self.length.warm_up, self.length.warm_up + self.length.timed):
            start = time.perf_counter()
            losses.append(_step(workload, scope, n, marks))
            launch_ms.append((time.perf_counter() - start) * 1e3)
        marks.mark()
        self._drain()
        moved = _moved(before, headwater.stats(), self.length.timed) if managed else {}
        return {
            **_times(marks.intervals_ms()),
            "launch_ms": _summary(launch_ms),  # what the host takes to launch a step
            **peaks.as_dict(),
            **moved,
            "losses": [float(loss.item()).hex() for loss in losses],
        }

    def _drain(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()


def ample_budget(device: str) -> int:
    """More than a training takes; what it then counts as its peak is the plain one."""
    if device == "cuda":
        return int(torch.cuda.mem_get_info()[1] * 0.9)
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _empty_host_cache() -> None:
    """Returns the pinned memory that PyTorch keeps after a peer has used it."""
    if hasattr(torch.accelerator, "empty_host_cache"):
        torch.accelerator.empty_host_cache()
    else:  # torch 2.11
        torch._C._host_emptyCache()


def _step(workload: Workload, scope: Scope, number: int, marks: Marks) -> torch.Tensor:
    marks.mark()
    with scope():
        loss = workload.forward(number)
        marks.mark()
        loss.backward()
    workload.update()
    return loss.detach()


def _times(intervals: list[float]) -> dict[str, dict[str, float]]:
    """Intervals take turns: forward, then backward and optimizer."""
    forward, backward = intervals[::2], intervals[1::2]
    steps = [sum(pair) for pair in zip(forward, backward, strict=True)]
    parts = {"step_ms": steps, "forward_ms": forward, "backward_ms": backward}
    return {name: _summary(values) for name, values in parts.items()}


def _summary(values: list[float]) -> dict[str, float]:
    return {
        "median_ms": statistics.median(values),
        "lowest_ms": min(values),
        "highest_ms": max(values),
        "mean_ms": statistics.fmean(values),
    }


def _moved(before: headwater.Stats, after: headwater.Stats, steps: int) -> dict[str, Any]:
    """What a timed step moved and waited, on average."""

    def each(name: str) -> float:
        return float(getattr(after, name) - getattr(before, name)) / steps

    return {
        "bytes_offloaded": each("bytes_offloaded"),
        "bytes_fetched": each("bytes_fetched"),
        "stall_ms": each("stall_seconds") * 1e3,
        "fetches_ahead": each("num_fetches_ahead"),
        "fetches_on_demand": each("num_fetches") - each("num_fetches_ahead"),
        "fetches_abandoned": each("num_fetches_abandoned"),
        "offloads_ahead": each("num_offloads_ahead"),
        "clean_drops": each("num_clean_drops"),
        "given_up": each("num_given_up"),
        "replays": each("num_replays"),
        "bytes_replayed": each("bytes_replayed"),
        "host_bytes": after.host_bytes,
        **_predicted(after),
        "stats": after.as_dict(),
    }


def _predicted(stats: headwater.Stats) -> dict[str, float | None]:
    """What the plan at work says of a step; None where there is none, or it does not say."""
    seconds = _first_of(stats, "expected_step_seconds", "planned_step_seconds")
    return {
        "predicted_step_ms": seconds * 1e3 if seconds else None,
        "predicted_peak_bytes": _first_of(stats, "expected_peak_bytes", "planned_peak_bytes"),
    }


def _first_of(stats: headwater.Stats, *names: str) -> float | None:
    """Versions differ in what they tell."""
    return next((value for name in names if (value := getattr(stats, name, None))), None)
