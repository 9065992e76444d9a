"""The trainings that are timed: some keep a GPU busy, some its launch queue."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from examples.models import build
from examples.models.gpt import GPT
from examples.models.resnet import ResNet18

NAMES = ("resnet50", "gpt2_medium", "lstm_cells", "tree_lstm")
# Those that keep the GPU busy.
BUSY = ("resnet50", "gpt2_medium", "gpt2_transformers", "vgg16", "unet", "moe")

Loss = Callable[[int], Tensor]
MakeOptimizer = Callable[[Iterable[Tensor]], torch.optim.Optimizer]


@dataclass(frozen=True)
class GPTShape:
    """A GPT and its batch."""

    vocabulary: int
    width: int
    heads: int
    layers: int
    batch: int
    length: int


@dataclass(frozen=True)
class Images:
    """A batch of square images."""

    batch: int
    size: int


GPT2_MEDIUM = GPTShape(vocabulary=50257, width=1024, heads=16, layers=24, batch=8, length=1024)
TINY_GPT = GPTShape(vocabulary=200, width=32, heads=2, layers=2, batch=2, length=32)


class Workload:
    """A network, its optimizer (AdamW) and data; ``step`` trains once and returns the loss.

    ``forward``, ``loss.backward()`` and ``update`` are the parts of a step, for who times them.
    """

    def __init__(
        self,
        net: nn.Module,
        loss: Loss,
        device: str,
        autocast: bool,
        optimizer: MakeOptimizer | None = None,
    ) -> None:
        self.net, self.loss, self.device, self.autocast = net, loss, device, autocast
        make = optimizer or functools.partial(torch.optim.AdamW, lr=1e-4)
        self.optimizer = make(net.parameters())

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
        modules = dict(self.net.named_modules())
        names = ("blocks", "transformer.h", "layer1", "layer2", "layer3", "layer4")
        groups = [modules.get(name) for name in names]
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


def make_library_gpt(shape: GPTShape, device: str, autocast: bool) -> Workload:
    """The same as the transformers library builds it: seven operators for what is one in ours."""
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=shape.vocabulary,
        n_embd=shape.width,
        n_head=shape.heads,
        n_layer=shape.layers,
        n_positions=shape.length,
        bos_token_id=0,
        eos_token_id=0,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        use_cache=False,
    )
    net = GPT2LMHeadModel(config).to(device)

    def loss(step: int) -> Tensor:
        return gpt_loss(lambda tokens: net(tokens).logits, shape, device, step)

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


def make_classifier(
    net: nn.Module,
    images: Images,
    device: str,
    autocast: bool,
    optimizer: MakeOptimizer | None = None,
) -> Workload:
    """A network that tells ten classes of random images apart."""
    net = net.to(device)
    shape = (images.batch, 3, images.size, images.size)

    def loss(step: int) -> Tensor:
        generator = _generator(device, step)
        pictures = torch.randn(shape, generator=generator, device=device)
        labels = torch.randint(10, (images.batch,), generator=generator, device=device)
        return F.cross_entropy(net(pictures), labels)

    return Workload(net, loss, device, autocast, optimizer)


def _resnet50(device: str, tiny: bool) -> Workload:
    if tiny:
        return make_classifier(ResNet18(width=8, classes=10), Images(4, 32), device, False)
    from torchvision.models import resnet50

    return make_classifier(resnet50(), Images(256, 224), device, True)


def _vgg16(device: str, tiny: bool) -> Workload:
    if tiny:
        return make_classifier(_small_vgg(), Images(4, 32), device, False)
    from torchvision.models import vgg16

    net = vgg16()
    net.avgpool = nn.Identity()  # 7 x 7 already; its own has no repeatable backward
    return make_classifier(net, Images(128, 224), device, True)


def _small_vgg() -> nn.Module:
    """Convolutions, pooling, dropout and hidden layers, as VGG has them."""
    layers: list[nn.Module] = []
    for inside, outside in ((3, 8), (8, 16)):
        conv = nn.Conv2d(inside, outside, 3, padding=1)
        layers += [conv, nn.ReLU(inplace=True), nn.MaxPool2d(2)]
    head = [nn.Linear(16 * 8 * 8, 16), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(16, 10)]
    return nn.Sequential(*layers, nn.Flatten(), *head)


def _unet(device: str, tiny: bool) -> Workload:
    sizes = {"width": 64, "levels": 4, "image": 256, "batch": 32}
    task = build("unet", device, seed=0, **({} if tiny else sizes))
    return Workload(task, task.loss, device, autocast=not tiny)


def _moe(device: str, tiny: bool) -> Workload:
    sizes = {"width": 768, "heads": 12, "layers": 8, "experts": 4, "batch": 16, "length": 512}
    task = build("moe", device, seed=0, **({} if tiny else sizes))
    return Workload(task, task.loss, device, autocast=not tiny)


def _gpt2_medium(device: str, tiny: bool) -> Workload:
    return make_gpt(TINY_GPT if tiny else GPT2_MEDIUM, device, autocast=not tiny)


def _gpt2_transformers(device: str, tiny: bool) -> Workload:
    return make_library_gpt(TINY_GPT if tiny else GPT2_MEDIUM, device, autocast=not tiny)


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
    "vgg16": _vgg16,
    "unet": _unet,
    "moe": _moe,
    "gpt2_medium": _gpt2_medium,
    "gpt2_transformers": _gpt2_transformers,
    "lstm_cells": _lstm_cells,
    "tree_lstm": _tree_lstm,
}
