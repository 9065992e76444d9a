"""Whether trainings have the same bits, in runs of their own: repeatable ones are slow."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from benchmarks.train.timed_training import Length, Trainer

LENGTH = Length(warm_up=4, timed=3)  # a plan begins at the 4th step


@contextmanager
def repeatable() -> Iterator[None]:
    """Deterministic algorithms, so that bits can be compared.

    Not while time is taken: PyTorch parses the setting at every matrix product, which is a tenth
    of what the host does in a step of GPT-2-medium.
    """
    setting, before = "CUBLAS_WORKSPACE_CONFIG", os.environ.get("CUBLAS_WORKSPACE_CONFIG")
    os.environ[setting] = ":4096:8"
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)
        if before is None:
            del os.environ[setting]
        else:
            os.environ[setting] = before


def compare_bits(trainer: Trainer, budgets: Iterable[int]) -> dict[str, Any]:
    """Losses at every budget against those of plain PyTorch, under deterministic algorithms."""
    trainer = replace(trainer, length=LENGTH)
    with repeatable():
        plain, again = (trainer.train() for _ in range(2))
        ours = {n: trainer.train(n) for n in budgets} if "error" not in plain else {}
    return {
        "steps": LENGTH.warm_up + LENGTH.timed,
        "plain_repeats_itself": plain.get("losses") == again.get("losses"),
        "same_losses": {str(n): case.get("losses") == plain["losses"] for n, case in ours.items()},
        "errors": [case["error"] for case in (plain, *ours.values()) if "error" in case],
    }


def all_same(bits: dict[str, Any]) -> bool:
    """Whether there is something to compare and none of it differs."""
    return bool(bits["same_losses"]) and all(bits["same_losses"].values())


def largest_difference(losses: Sequence[str], others: Sequence[str]) -> float:
    """Of two trainings' losses, relative; 0 where all bits agree."""
    pairs = zip(map(float.fromhex, losses), map(float.fromhex, others), strict=True)
    return max((abs(a - b) / max(abs(b), math.ulp(1.0)) for a, b in pairs), default=0.0)
