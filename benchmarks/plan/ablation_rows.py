"""The rows of the ablation, and how each is had from the options that Headwater has."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import headwater
from benchmarks.train.peers import Scope
from benchmarks.train.timed_training import Length, Trainer, ample_budget
from benchmarks.train.wishes import TAKEN
from benchmarks.train.workloads import Workload, make_workload

ON_DEMAND = Length(warm_up=1, timed=1)  # the second step: there is no plan before the fourth
REPEATS = 3


class MissingError(LookupError):
    """The installed version cannot do a row; says why."""


@dataclass(frozen=True)
class Rows:
    """Measures the rows of one network."""

    network: str
    device: str
    tiny: bool
    length: Length

    @property
    def _trainer(self) -> Trainer:
        return Trainer(self.network, self.device, self.tiny, self.length)

    def plain(self) -> dict[str, Any]:
        """PyTorch alone: it frees a tensor after its last use, as *liveness* does."""
        case = self._trainer.train()
        if "error" not in case and not case["peak_bytes"]:
            case["peak_bytes"] = self._trainer.train(ample_budget("cpu"))["peak_bytes"]
        return case

    def unreleased(self) -> dict[str, Any]:
        """What a step would peak at if nothing were freed before it ends: from its trace."""
        with headwater.budget(ample_budget(self.device), self.device, standby="off"):
            workload = make_workload(self.network, self.device, self.tiny)
            workload.step(0)  # makes the optimizer's state, which outlives the next step
            step = _traced(workload)
            del workload
        return {
            "peak_bytes": step.bytes_without_release,
            "traced_peak_bytes": step.peak_bytes,
            "num_ops": step.num_ops,
        }

    def on_demand(self, budget: int | str) -> dict[str, Any]:
        """Before there is a plan: the median of several trainings' second steps."""
        trainer = replace(self._trainer, length=ON_DEMAND, wishes=_off())
        cases = [trainer.train(budget) for _ in range(REPEATS)]
        failed = [case for case in cases if "error" in case]
        if failed:
            return failed[0]
        middle = statistics.median_low(case["step_ms"]["median_ms"] for case in cases)
        return next(case for case in cases if case["step_ms"]["median_ms"] == middle)

    def planned(self, budget: int, **wishes: str) -> dict[str, Any]:
        """With a plan, and options that this version has to take."""
        for name in wishes:
            if name not in TAKEN:
                raise MissingError(f"headwater.enable takes no {name}")
        return replace(self._trainer, wishes=wishes).train(budget)

    def by_hand(self, budget: int) -> dict[str, Any]:
        """Whatever forward makes is recomputed, as a user asks for it by a region."""
        case = replace(self._trainer, wishes=_off()).train(budget, _recompute_forward)
        if not case.get("replays", 1):
            raise MissingError("no timed step replayed what the region made")
        return case


def _traced(workload: Workload) -> headwater.StepSummary:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "steps.hwt"
        with headwater.trace(path):
            workload.step(1)
        return headwater.read_trace(path).steps[-1]


def _off() -> Mapping[str, str]:
    """Of versions that have no planner of recomputing, there is nothing to turn off."""
    return {"recompute": "off"} if "recompute" in TAKEN else {}


def _recompute_forward(workload: Workload) -> Scope:
    workload.loss = headwater.region("recompute")(workload.loss)
    return nullcontext


ROWS: dict[str, Callable[[Rows, int], dict[str, Any]]] = {
    "none": lambda rows, budget: rows.unreleased(),
    "minimum": lambda rows, budget: rows.on_demand("minimum"),
    "cache": lambda rows, budget: rows.on_demand(budget),
    "offload": lambda rows, budget: rows.planned(budget, **_off()),
    "recompute": lambda rows, budget: rows.by_hand(budget),
    "plan": lambda rows, budget: rows.planned(budget, recompute="auto"),
    "workspace": lambda rows, budget: rows.planned(
        budget, recompute="auto", conv_workspace="dynamic"
    ),
}
