"""Networks that grow by one number, in batch or in depth, and where a search for it begins."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import nn

from benchmarks.train.workloads import (
    GPT2_MEDIUM,
    TINY_GPT,
    GPTShape,
    Images,
    MakeOptimizer,
    Workload,
    make_classifier,
    make_gpt,
    make_library_gpt,
)
from examples.models.resnet import BasicBlock, ResNet18

STAGES = (6, 32, 6)  # of SuperNeurons' ResNets; the third of four stages grows
SGD: MakeOptimizer = functools.partial(torch.optim.SGD, lr=1e-4, momentum=0.9)
DEEP_BATCH = 16
MakeGPT = Callable[[GPTShape, str, bool], Workload]


@dataclass(frozen=True)
class Grown:
    """A workload of some size, and what a step of it trains on."""

    workload: Workload
    samples: int


@dataclass(frozen=True)
class Guess:
    """Where a search begins, and how finely it ends."""

    start: int
    resolution: int


@dataclass(frozen=True)
class Network:
    """What grows in it, and the line: how much larger than plain's Headwater's should be."""

    grows: str
    unit: str  # of samples
    build: Callable[[int, str, str], Grown]  # of a size, a device and "full" or "tiny"
    guesses: dict[str, Guess]  # by way to train
    times_plain: float
    least_rate: float = 0.0  # samples a second that a size has to reach for the line

    def extent(self, size: int) -> int:
        """What is compared: the batch, or the layers."""
        return num_layers(size) if self.grows == "layers" else size


def num_layers(size: int) -> int:
    """Of a bottleneck ResNet of the family, as ResNet-50 counts 50.

    >>> num_layers(788)
    2498
    """
    return 3 * (sum(STAGES) + size) + 2


def _resnet50(size: int, device: str, scale: str) -> Grown:
    if scale == "tiny":
        net: nn.Module = ResNet18(width=8, classes=10)
        return Grown(make_classifier(net, Images(size, 32), device, autocast=False), size)
    from torchvision.models import resnet50

    return Grown(make_classifier(resnet50(), Images(size, 224), device, autocast=True), size)


def _gpt2_medium(size: int, device: str, scale: str, *, make: MakeGPT) -> Grown:
    shape = replace(TINY_GPT if scale == "tiny" else GPT2_MEDIUM, batch=size)
    return Grown(make(shape, device, scale != "tiny"), size * shape.length)


def _deep_resnet(size: int, device: str, scale: str, *, precision: str) -> Grown:
    if scale == "tiny":
        blocks = [BasicBlock(8, 8, 1) for _ in range(size)]
        pool = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10)]
        net: nn.Module = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), *blocks, *pool)
        images = Images(2, 32)
    else:
        from torchvision.models.resnet import Bottleneck, ResNet

        first, second, last = STAGES
        net, images = ResNet(Bottleneck, [first, second, size, last]), Images(DEEP_BATCH, 224)
    autocast = precision == "bfloat16"
    workload = make_classifier(net, images, device, autocast, SGD)
    return Grown(workload, images.batch)


NETWORKS = {
    "resnet50": Network(
        grows="batch",
        unit="images",
        build=_resnet50,
        guesses={
            "plain": Guess(256, 32),
            "checkpoint": Guess(576, 32),
            "headwater": Guess(960, 64),
        },
        times_plain=3.6,
        least_rate=1728,
    ),
    "gpt2_medium": Network(
        grows="batch",
        unit="tokens",
        build=functools.partial(_gpt2_medium, make=make_gpt),
        guesses={"plain": Guess(5, 1), "checkpoint": Guess(9, 1), "headwater": Guess(16, 2)},
        times_plain=3.2,
    ),
    "gpt2_transformers": Network(
        grows="batch",
        unit="tokens",
        build=functools.partial(_gpt2_medium, make=make_library_gpt),
        guesses={"plain": Guess(2, 1), "checkpoint": Guess(9, 1), "headwater": Guess(16, 2)},
        times_plain=8,
    ),
    "deep_resnet": Network(
        grows="layers",
        unit="images",
        build=functools.partial(_deep_resnet, precision="float32"),
        guesses={"plain": Guess(156, 4), "headwater": Guess(788, 64)},
        times_plain=3.24,
    ),
    "deep_resnet_bf16": Network(
        grows="layers",
        unit="images",
        build=functools.partial(_deep_resnet, precision="bfloat16"),
        guesses={"plain": Guess(331, 4), "headwater": Guess(1408, 64)},
        times_plain=3.24,
    ),
}
TINY_GUESS = Guess(2, 1)
