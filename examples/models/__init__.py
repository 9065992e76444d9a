"""Small networks of our own, in plain PyTorch, behind one door.

Example:
    >>> from examples.models import NAMES, build
    >>> task = build("resnet18", "cpu", seed=0)
    >>> optimizer = torch.optim.SGD(task.parameters(), lr=0.1)
    >>> for step in range(5):
    ...     optimizer.zero_grad()
    ...     task.loss(step).backward()
    ...     optimizer.step()

"""

from __future__ import annotations

import importlib

import torch

from .task import Task

_PLACES = {
    "resnet18": ("resnet", "ResNetTask"),
    "unet": ("unet", "UNetTask"),
    "gpt": ("gpt", "GPTTask"),
    "gpt2": ("gpt2", "GPT2Task"),
    "lstm": ("lstm", "LSTMTask"),
    "lstm_cells": ("lstm", "CellLSTMTask"),
    "tree_lstm": ("tree_lstm", "TreeLSTMTask"),
    "moe": ("moe", "MoETask"),
    "unrolled_gan": ("unrolled_gan", "UnrolledGANTask"),
    "early_exit": ("early_exit", "EarlyExitTask"),
}

NAMES = tuple(_PLACES)

__all__ = ["NAMES", "Task", "build"]


def build(
    name: str, device: torch.device | str, seed: int, scale: str = "cpu", **sizes: object
) -> Task:
    """Builds the named network on a device, its parameters drawn from ``seed``.

    ``scale`` picks the sizes: "cpu" peaks at tens of megabytes, "gpu" at a few gigabytes; single
    sizes can be set by name. The global random state is left seeded with ``seed``.
    """
    if name not in _PLACES:
        raise ValueError(f"No such network: {name!r}; choose one of {', '.join(NAMES)}")
    file, kind = _PLACES[name]
    module = importlib.import_module(f"examples.models.{file}")
    torch.manual_seed(seed)
    return getattr(module, kind)(seed=seed, **{**module.SIZES[scale], **sizes}).to(device)
