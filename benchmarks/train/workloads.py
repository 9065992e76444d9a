"""The trainings that are timed: two that keep a GPU busy, two that keep its launch queue busy."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from examples.models import build
from examples.models.gpt import GPT
from examples.models.resnet import ResNet18

NAMES = ("resnet50", "gpt2_medium", "lstm_cells", "tree_lstm")

Loss = Callable[[int], Tensor]


class Workload:
    """A network, its AdamW and its data; ``step`` trains once and returns the loss tensor."""

    def __init__(self, net: nn.Module, loss: Loss, device: str, autocast: bool) -> None:
        self.loss, self.device, self.autocast = loss, device, autocast
        self.optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)

    def step(self, step: int) -> Tensor:
        """Trains on the data of this step number; does not wait for the device."""
        self.optimizer.zero_grad()
        with torch.autocast(self.device, torch.bfloat16, enabled=self.autocast):
            loss = self.loss(step)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def make_workload(name: str, device: str, tiny: bool) -> Workload:
    """Builds a workload from scratch; two of the same name start alike."""
    torch.manual_seed(0)
    return _MAKERS[name](device, tiny)


def _generator(device: str, step: int) -> torch.Generator:
    return torch.Generator(device=device).manual_seed(step)


def _resnet50(device: str, tiny: bool) -> Workload:
    if tiny:
        net, batch, image = ResNet18(width=8, classes=10), 4, 32
    else:
        from torchvision.models import resnet50

        net, batch, image = resnet50(), 256, 224
    net = net.to(device)

    def loss(step: int) -> Tensor:
        generator = _generator(device, step)
        images = torch.randn(batch, 3, image, image, generator=generator, device=device)
        labels = torch.randint(10, (batch,), generator=generator, device=device)
        return F.cross_entropy(net(images), labels)

    return Workload(net, loss, device, autocast=not tiny)


def _gpt2_medium(device: str, tiny: bool) -> Workload:
    vocabulary, width, heads, layers = (200, 32, 2, 2) if tiny else (50257, 1024, 16, 24)
    batch, length = (2, 32) if tiny else (8, 1024)
    net = GPT(vocabulary, width, heads, layers, length).to(device)

    def loss(step: int) -> Tensor:
        generator = _generator(device, step)
        shape = (batch, length + 1)
        tokens = torch.randint(vocabulary, shape, generator=generator, device=device)
        return F.cross_entropy(net(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    return Workload(net, loss, device, autocast=not tiny)


def _lstm_cells(device: str, tiny: bool) -> Workload:
    sizes = {"hidden": 256, "layers": 2, "batch": 64, "length": 128, "vocabulary": 1000}
    task = build("lstm_cells", device, seed=0, **({} if tiny else sizes))
    return Workload(task, task.loss, device, autocast=False)


def _tree_lstm(device: str, tiny: bool) -> Workload:
    sizes = {"hidden": 256, "batch": 64, "leaves": (40, 80)}
    task = build("tree_lstm", device, seed=0, **({} if tiny else sizes))
    return Workload(task, task.loss, device, autocast=False)


_MAKERS = {
    "resnet50": _resnet50,
    "gpt2_medium": _gpt2_medium,
    "lstm_cells": _lstm_cells,
    "tree_lstm": _tree_lstm,
}
