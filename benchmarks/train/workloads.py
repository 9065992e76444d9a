"""The trainings that are timed: two that keep a GPU busy, two that keep its launch queue busy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from examples.models import build
from examples.models.gpt import GPT
from examples.models.resnet import ResNet18

NAMES = ("resnet50", "gpt2_medium", "lstm_cells", "tree_lstm")

Loss = Callable[[int], Tensor]


@dataclass(frozen=True)
class GPTShape:
    """A GPT and its batch."""

    vocabulary: int
    width: int
    heads: int
    layers: int
    batch: int
    length: int


class Workload:
    """A network, its AdamW and its data; ``step`` trains once and returns the loss tensor.

    ``forward``, ``loss.backward()`` and ``update`` are the parts of a step, for who times them.
    """

    def __init__(self, net: nn.Module, loss: Loss, device: str, autocast: bool) -> None:
        self.net, self.loss, self.device, self.autocast = net, loss, device, autocast
        self.optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)

    def step(self, step: int) -> Tensor:
        """Trains on the data of this step number; does not wait for the device."""
        loss = self.forward(step)
        loss.backward()
        self.update()
        return loss.detach()

    def forward(self, step: int) -> Tensor:
        """Forgets the last gradients and computes the loss."""
        self.optimizer.zero_grad()
        with torch.autocast(self.device, torch.bfloat16, enabled=self.autocast):
            return self.loss(step)

    def update(self) -> None:
        """Lets the optimizer step."""
        self.optimizer.step()

    def blocks(self) -> list[nn.Module]:
        """Parts that a user would wrap in a checkpoint; none where the network has no such."""
        children = dict(self.net.named_children())
        groups = [children.get(name) for name in ("blocks", "layer1", "layer2", "layer3", "layer4")]
        return [block for group in groups if group is not None for block in group.children()]


def make_workload(name: str, device: str, tiny: bool) -> Workload:
    """Builds a workload from scratch; two of the same name start alike."""
    torch.manual_seed(0)
    return _MAKERS[name](device, tiny)


def make_gpt(shape: GPTShape, device: str, autocast: bool) -> Workload:
    """A GPT on random text. Built where ``torch.device`` says, on the host by default."""
    net = GPT(shape.vocabulary, shape.width, shape.heads, shape.layers, shape.length).to(device)

    def loss(step: int) -> Tensor:
        return gpt_loss(net, shape, device, step)

    return Workload(net, loss, device, autocast)


def gpt_loss(net: Callable[[Tensor], Tensor], shape: GPTShape, device: str, step: int) -> Tensor:
    """Of what the net says about this step's random text."""
    tokens = torch.randint(
        shape.vocabulary,
        (shape.batch, shape.length + 1),
        generator=_generator(device, step),
        device=device,
    )
    return F.cross_entropy(net(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


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
    small = GPTShape(vocabulary=200, width=32, heads=2, layers=2, batch=2, length=32)
    medium = GPTShape(vocabulary=50257, width=1024, heads=16, layers=24, batch=8, length=1024)
    return make_gpt(small if tiny else medium, device, autocast=not tiny)


def _lstm_cells(device: str, tiny: bool) -> Workload:
    sizes = {"hidden": 256, "layers": 2, "batch": 64, "length": 128, "vocabulary": 1000}
    task = build("lstm_cells", device, seed=0, **({} if tiny else sizes))
    return Workload(task, task.loss, device, autocast=False)


def _tree_lstm(device: str, tiny: bool) -> Workload:
    # Activations outweigh the workspaces that the libraries keep (64 MiB) and the update of the
    # largest parameter, so that a share of the peak is a budget that can be kept.
    sizes = {"vocabulary": 5000, "hidden": 256, "batch": 256, "leaves": (40, 80)}
    task = build("tree_lstm", device, seed=0, **({} if tiny else sizes))
    return Workload(task, task.loss, device, autocast=False)


_MAKERS = {
    "resnet50": _resnet50,
    "gpt2_medium": _gpt2_medium,
    "lstm_cells": _lstm_cells,
    "tree_lstm": _tree_lstm,
}
