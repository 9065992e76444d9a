"""One training in a process of its own, since a failed one may end it: starting it, timing it.

The process prints JSON as its last line. Nothing here needs Headwater, so that a peer's process can
do without it.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor

WARM_UP = 4  # steps before a plan of Headwater's is at work
ROOT = Path(__file__).resolve().parents[2]
TAIL = 2000  # characters of what a failed try said last


def run_try(
    command: Sequence[str], limit: float, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The answer of the process, or an ``error``: what it said, or that its time ran out."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=limit, check=False, env=environment
        )
    except subprocess.TimeoutExpired as late:
        said = _end_of((late.stderr or b"").decode(errors="replace"))
        error = f"not done after {limit:.0f} s{_last_line(said)}"
        return {"error": error, "out_of_time": True, "said": said}
    answer = read_answer(done)
    return {**answer, "said": _end_of(done.stderr)} if "error" in answer else answer


def read_answer(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The JSON in a try's last line; a try that ended without one failed."""
    lines = done.stdout.splitlines()
    try:
        answer: dict[str, Any] = json.loads(lines[-1])
    except (IndexError, json.JSONDecodeError):
        return {"error": f"ended with {done.returncode}: {done.stderr[-500:]}"}
    return answer


def answer_and_leave(run: Callable[[], dict[str, Any]]) -> NoReturn:
    """Leaves without tidying up: what was trained may fit no device that is not managed."""
    _die_first()
    try:
        answer = run()
    except Exception as error:
        traceback.print_exc()
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
    sys.stderr.flush()
    os._exit(1 if "error" in answer else 0)


def time_steps(
    step: Callable[[int], Tensor], steps: int, device: str
) -> tuple[list[float], list[float]]:
    """The loss and the seconds of every step; reading the loss waits for the device."""
    losses, seconds = [], []
    for number in range(steps):
        start = time.perf_counter()
        losses.append(step(number).item())
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
        print(f"step {number}: {seconds[-1]:.2f} s, loss {losses[-1]:.4f}", file=sys.stderr)
    if not all(math.isfinite(loss) for loss in losses):
        raise RuntimeError(f"Losses are not finite: {losses}")
    return losses, seconds


def steady(seconds: list[float], warm_up: int = WARM_UP) -> float:
    """A step after the warm-up; of a shorter training, the last one.

    >>> steady([9.0, 8.0, 1.0, 2.0, 3.0], warm_up=2)
    2.0
    """
    return statistics.median(seconds[warm_up:] or seconds[-1:])


def available_host_bytes() -> int:
    """What the system could still give: falls by pinned memory too, which no process is charged."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("The system does not say how much host memory is available")


def _end_of(said: str) -> str:
    """What was said last, with the files of this checkout by their paths within it."""
    return said.replace(f"{ROOT}/", "")[-TAIL:]


def _last_line(said: str) -> str:
    lines = said.strip().splitlines()
    return f"; said last: {lines[-1][:200]}" if lines else ""


def _die_first() -> None:
    """If the host runs out of memory, this process goes, not the one that started it."""
    try:
        Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError as error:
        print(f"cannot offer itself to the system's memory killer: {error}", file=sys.stderr)
