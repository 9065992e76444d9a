"""Unrolled GAN: the generator's loss looks through k updates of the discriminator."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from .task import Task

SIZES = {
    "cpu": {"noise": 32, "hidden": 256, "points": 16, "batch": 512, "unroll": 3},
    "gpu": {"noise": 64, "hidden": 1024, "points": 64, "batch": 4096, "unroll": 5},
}


def perceptron(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(inputs, hidden),
        nn.Tanh(),
        nn.Linear(hidden, hidden),
        nn.Tanh(),
        nn.Linear(hidden, outputs),
    )


class UnrolledGANTask(Task):
    """Both players' losses in one scalar; neither reaches the other's parameters."""

    def __init__(
        self, seed: int, noise: int, hidden: int, points: int, batch: int, unroll: int
    ) -> None:
        super().__init__(seed)
        self.generate = perceptron(noise, hidden, points)
        self.judge = perceptron(points, hidden, 1)
        self.noise, self.points, self.batch, self.unroll = noise, points, batch, unroll

    def loss(self, step: int) -> Tensor:
        generator = self.generator(step)
        real = self.randn(self.batch, self.points, generator=generator).sign()
        real = real + 0.1 * self.randn(self.batch, self.points, generator=generator)
        fake = self.generate(self.randn(self.batch, self.noise, generator=generator))
        weights = {name: p.detach().requires_grad_() for name, p in self.judge.named_parameters()}
        for _ in range(self.unroll):
            weights = self._updated(weights, real, fake)
        fooled = F.softplus(-functional_call(self.judge, weights, (fake,))).mean()
        own = dict(self.judge.named_parameters())
        return fooled + self._judgement(own, real, fake.detach())

    def _judgement(self, weights: dict[str, Tensor], real: Tensor, fake: Tensor) -> Tensor:
        on_real = functional_call(self.judge, weights, (real,))
        on_fake = functional_call(self.judge, weights, (fake,))
        return F.softplus(-on_real).mean() + F.softplus(on_fake).mean()

    def _updated(
        self, weights: dict[str, Tensor], real: Tensor, fake: Tensor, rate: float = 0.1
    ) -> dict[str, Tensor]:
        loss = self._judgement(weights, real, fake)
        gradients = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
        return {
            name: weight - rate * gradient
            for (name, weight), gradient in zip(weights.items(), gradients, strict=True)
        }
