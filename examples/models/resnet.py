"""ResNet-18 for small images: batch norm, residual adds and in-place ReLU."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from .task import Task

SIZES = {
    "cpu": {"width": 16, "image": 32, "batch": 16, "classes": 10},
    "gpu": {"width": 64, "image": 64, "batch": 128, "classes": 1000},
}


class BasicBlock(nn.Module):
    """Two 3 x 3 convolutions beside a shortcut."""

    def __init__(self, channels_in: int, channels_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(channels_out)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels_in != channels_out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels_in, channels_out, 1, stride, bias=False),
                nn.BatchNorm2d(channels_out),
            )

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        y = self.norm2(self.conv2(y))
        y += self.shortcut(x)
        return F.relu(y, inplace=True)


class ResNet18(nn.Module):
    """Four groups of two blocks; ``width`` is the number of channels of the first group."""

    def __init__(self, width: int = 64, classes: int = 1000) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        blocks: list[nn.Module] = []
        channels = width
        for group in range(4):
            for index in range(2):
                stride = 2 if group > 0 and index == 0 else 1
                blocks.append(BasicBlock(channels, width << group, stride))
                channels = width << group
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(channels, classes)

    def forward(self, images: Tensor) -> Tensor:
        x = F.relu(self.norm(self.stem(images)), inplace=True)
        return self.head(self.blocks(x).mean(dim=(2, 3)))


class ResNetTask(Task):
    """Classifies random images."""

    def __init__(self, seed: int, width: int, image: int, batch: int, classes: int) -> None:
        super().__init__(seed)
        self.net = ResNet18(width, classes)
        self.image, self.batch, self.classes = image, batch, classes

    def loss(self, step: int) -> Tensor:
        generator = self.generator(step)
        images = self.randn(self.batch, 3, self.image, self.image, generator=generator)
        labels = self.randint(self.classes, self.batch, generator=generator)
        return F.cross_entropy(self.net(images), labels)

    def blocks(self) -> list[nn.Module]:
        return list(self.net.blocks)
