"""Trains three small networks at 100, 50 and 25 % of their plain peak and compares every bit.

Ends in a table and writes a report with pictures. The exit status is 1 if any bits differ.
"""

from __future__ import annotations

import os

# Read at first use: makes matrix products on a GPU repeatable, so that bits can be compared.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import argparse
import gc
import hashlib
import statistics
import sys
import threading
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import headwater

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from demo_report import Curve, Row, as_mib, write_report

from examples.models import Task, build

MODELS = {"resnet18": "Conv net", "gpt": "Small GPT", "tree_lstm": "TreeLSTM"}
SHARES = (1.0, 0.5, 0.25)


@dataclass(frozen=True)
class Outcome:
    """What one training gave: its bits, its cost, and its memory over one more step."""

    bits: str
    peak_bytes: int
    step_seconds: float
    moved_bytes: int
    curve: Curve


class Sampler(threading.Thread):
    """Reads the resident bytes about every millisecond while one step runs."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._stop_asked = threading.Event()
        self.curve: Curve = []

    def run(self) -> None:
        while not self._stop_asked.wait(0.001):
            now = headwater.stats()
            self.curve.append((int(now.num_ops), int(now.resident_bytes)))

    def stop(self) -> Curve:
        self._stop_asked.set()
        self.join()
        first = self.curve[0][0] if self.curve else 0
        return [(op - first, resident) for op, resident in self.curve]


class Trainer:
    """Trains a network from scratch, with or without a budget."""

    def __init__(self, device: str, steps: int, progress: Progress) -> None:
        self.device, self.steps, self.progress = device, steps, progress

    def train(self, model: str, budget: int | str | None, label: str) -> Outcome:
        """Raises ``headwater.OutOfMemory`` if one operator needs more than the budget."""
        gc.collect()
        bar = self.progress.add_task(label, total=self.steps)
        self._reset_peak()
        scope = (
            headwater.budget(budget, device=self.device) if budget is not None else nullcontext()
        )
        try:
            with scope:
                outcome, task = self._steps(model, budget is not None, bar)
        except headwater.OutOfMemory:
            self.progress.update(bar, description=f"{label}: too small for one operator")
            raise
        # After the budget ends everything is back in place and can be read plainly.
        return replace(outcome, bits=digest(task, outcome.bits))

    def _steps(self, model: str, managed: bool, bar: int) -> tuple[Outcome, Task]:
        task = build(model, self.device, seed=0, scale="gpu" if self._cuda else "cpu")
        optimizer = torch.optim.AdamW(task.parameters(), lr=1e-3)
        losses, seconds = [], []
        for step in range(self.steps):
            start = time.perf_counter()
            losses.append(train_step(task, optimizer, step).hex())
            seconds.append(time.perf_counter() - start)
            self.progress.advance(bar)
        peak, moved, curve = self._peak(), 0, []
        if managed:
            stats = headwater.stats()
            peak = peak or stats.peak_bytes
            moved = stats.bytes_offloaded + stats.bytes_fetched
            sampler = Sampler()
            sampler.start()
            losses.append(train_step(task, optimizer, self.steps).hex())
            curve = sampler.stop()
        else:
            losses.append(train_step(task, optimizer, self.steps).hex())
        timed = statistics.median(seconds[1:] or seconds)
        return Outcome(" ".join(losses), peak, timed, moved, curve), task

    @property
    def _cuda(self) -> bool:
        return self.device.startswith("cuda")

    def _reset_peak(self) -> None:
        if self._cuda:
            # cuBLAS keeps workspaces of its own from its first use on; they are no tensor of ours.
            layer = torch.nn.Linear(64, 64, device=self.device)
            layer(torch.ones(64, 64, device=self.device)).sum().backward()
            del layer
            torch.cuda.reset_peak_memory_stats()
            self._base = torch.cuda.memory_allocated()

    def _peak(self) -> int:
        """PyTorch's own count on a GPU; on a CPU PyTorch keeps none."""
        return torch.cuda.max_memory_allocated() - self._base if self._cuda else 0


def train_step(task: Task, optimizer: torch.optim.Optimizer, step: int) -> float:
    optimizer.zero_grad()
    loss = task.loss(step)
    loss.backward()
    optimizer.step()
    return loss.item()


def digest(task: Task, losses: str) -> str:
    """A hash of the losses, the parameters and the buffers."""
    total = hashlib.sha256(losses.encode())
    for value in task.state_dict().values():
        flat = value.detach().cpu().contiguous().reshape(-1)
        total.update(flat.view(torch.uint8).numpy().tobytes())
    return total.hexdigest()


def ample_budget(device: str) -> int:
    """More than any of these networks needs: nothing has to move."""
    if device.startswith("cuda"):
        return torch.cuda.get_device_properties(device).total_memory // 2
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def run_model(model: str, trainer: Trainer) -> list[Row]:
    """Trains one network plainly, then at every share of its plain peak."""
    title = MODELS[model]
    plain = trainer.train(model, None, f"{title}, plain")
    roomy = trainer.train(model, ample_budget(trainer.device), f"{title}, finding its peak")
    plain_peak = plain.peak_bytes or roomy.peak_bytes
    rows = []
    for share in SHARES:
        label = f"{title}, {share:.0%} of {as_mib(plain_peak)}"
        budget, note = int(plain_peak * share), ""
        try:
            outcome = trainer.train(model, budget, label)
        except headwater.OutOfMemory:
            smallest = trainer.train(model, "minimum", f"{title}, finding its smallest budget")
            budget = max(smallest.peak_bytes, 1)
            note = f"{share:.0%} is less than its largest operator needs: smallest budget used"
            outcome = trainer.train(model, budget, f"{title}, smallest: {as_mib(budget)}")
        rows.append(
            Row(
                model=title,
                share=share,
                budget_bytes=budget,
                peak_bytes=outcome.peak_bytes,
                plain_peak_bytes=plain_peak,
                step_seconds=outcome.step_seconds,
                plain_step_seconds=plain.step_seconds,
                moved_bytes=outcome.moved_bytes // trainer.steps,
                same_bits=outcome.bits == plain.bits == roomy.bits,
                note=note,
                curve=outcome.curve,
                plain_curve=roomy.curve,
            )
        )
    return rows


def print_table(console: Console, rows: list[Row]) -> None:
    table = Table(
        title="Headwater: memory and time of one step, bits against plain",
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for name in ("model", "", "budget", "peak", "step", "vs plain", "moved", "bits"):
        table.add_column(name, justify="left" if name == "model" else "right", no_wrap=True)
    for row in rows:
        table.add_row(
            row.model,
            f"{row.share:.0%}{' *' if row.note else ''}",
            as_mib(row.budget_bytes),
            as_mib(row.peak_bytes),
            f"{row.step_seconds * 1e3:.1f} ms",
            f"{row.slowdown:.2f} x",
            as_mib(row.moved_bytes),
            "[green]same[/]" if row.same_bits else "[bold red]DIFFER[/]",
            end_section=row.share == SHARES[-1],
        )
    console.print(table)
    for row in rows:
        if row.note:
            console.print(f"* {row.model}: {row.note} ({as_mib(row.budget_bytes)})")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--steps", type=int, default=8, help="timed steps a run (default 8)")
    parser.add_argument("--out", type=Path, default=Path("demo_report.html"), help="the report")
    arguments = parser.parse_args()
    if arguments.steps < 2:
        parser.error("--steps must be 2 or more: the first one warms up")
    if arguments.device == "auto":
        arguments.device = "cuda" if torch.cuda.is_available() else "cpu"
    return arguments


def main() -> int:
    arguments = parse_arguments()
    console = Console()
    torch.use_deterministic_algorithms(arguments.device == "cuda")
    columns = (TextColumn("{task.description:<52}"), BarColumn(), TimeElapsedColumn())
    rows: list[Row] = []
    with Progress(*columns, console=console) as progress:
        trainer = Trainer(arguments.device, arguments.steps, progress)
        for model in MODELS:
            rows += run_model(model, trainer)
    print_table(console, rows)
    name = torch.cuda.get_device_name() if arguments.device == "cuda" else "CPU"
    write_report(arguments.out, rows, f"{name}, PyTorch {torch.__version__}")
    console.print(f"Report: {arguments.out}")
    return 0 if all(row.same_bits for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
