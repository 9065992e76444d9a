"""Early-exit CNN: confident samples leave after any stage, so shapes depend on the data."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .task import Task

SIZES = {
    "cpu": {"width": 16, "stages": 6, "image": 32, "batch": 24, "classes": 10},
    "gpu": {"width": 64, "stages": 6, "image": 96, "batch": 128, "classes": 100},
}


class Stage(nn.Module):
    """Features for the stages to come, and a head of its own."""

    def __init__(self, channels_in: int, channels_out: int, classes: int, stride: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(channels_in, channels_out, 3, stride, padding=1),
            nn.GroupNorm(4, channels_out),
            nn.ReLU(),
            nn.Conv2d(channels_out, channels_out, 3, padding=1),
            nn.GroupNorm(4, channels_out),
            nn.ReLU(),
        )
        self.head = nn.Linear(channels_out, classes)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = self.features(x)
        return x, self.head(x.mean(dim=(2, 3)))


class EarlyExitTask(Task):
    """Classifies random images of changing contrast."""

    def __init__(
        self, seed: int, width: int, stages: int, image: int, batch: int, classes: int
    ) -> None:
        super().__init__(seed)
        self.stages = nn.ModuleList()
        channels_in = 3
        for stage in range(stages):
            channels, stride = width << (stage // 3), 2 if stage % 3 == 2 else 1
            self.stages.append(Stage(channels_in, channels, classes, stride))
            channels_in = channels
        self.image, self.batch, self.classes = image, batch, classes

    def loss(self, step: int) -> Tensor:
        generator = self.generator(step)
        x = self.randn(self.batch, 3, self.image, self.image, generator=generator)
        x = x * torch.rand(self.batch, 1, 1, 1, generator=generator, device=self.device)
        labels = self.randint(self.classes, self.batch, generator=generator)
        total = x.new_zeros(())
        for stage in self.stages:
            x, logits = stage(x)
            total = total + F.cross_entropy(logits, labels)
            confidence = logits.detach().float().softmax(dim=1).amax(dim=1)
            stays = confidence <= confidence.mean() * 1.05
            if not stays.any():
                break
            x, labels = x[stays], labels[stays]
        return total
