"""Transformer blocks with a top-1 mixture of experts: the data chooses which experts run."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .task import Task

SIZES = {
    "cpu": {"width": 128, "heads": 4, "layers": 3, "experts": 4, "batch": 8, "length": 48},
    "gpu": {"width": 512, "heads": 8, "layers": 6, "experts": 8, "batch": 16, "length": 256},
}


class Attention(nn.Module):
    """Self-attention written out: scores, softmax, weighted sum."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        shape = (batch, length, 3, self.heads, width // self.heads)
        query, key, value = self.project(x).view(shape).permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) / (width // self.heads) ** 0.5
        mixed = torch.softmax(scores, dim=-1) @ value
        return self.output(mixed.transpose(1, 2).reshape(batch, length, width))


class Top1Experts(nn.Module):
    """Sends every token to the one expert its gate likes best."""

    def __init__(self, width: int, experts: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(experts)
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the mixed tokens and the loss that evens out the experts' load."""
        tokens = x.flatten(0, 1)
        odds = torch.softmax(self.gate(tokens), dim=-1)
        weight, choice = odds.max(dim=-1)
        output = torch.zeros_like(tokens)
        for index, expert in enumerate(self.experts):
            rows = (choice == index).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            mixed = expert(tokens[rows]) * weight[rows].unsqueeze(1)
            output = output.index_add(0, rows, mixed.to(output.dtype))
        return output.view_as(x), odds.mean(dim=0).square().sum() * len(self.experts)


class MoEBlock(nn.Module):
    """Attention, then the mixture, each added to its input; also returns the balance loss."""

    def __init__(self, width: int, heads: int, experts: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mixture = Top1Experts(width, experts)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = x + self.attention(self.norm1(x))
        mixed, balance = self.mixture(self.norm2(x))
        return x + mixed, balance


class MoETask(Task):
    """Learns to repeat a sequence one place later."""

    def __init__(
        self, seed: int, width: int, heads: int, layers: int, experts: int, batch: int, length: int
    ) -> None:
        super().__init__(seed)
        self.layers = nn.ModuleList(MoEBlock(width, heads, experts) for _ in range(layers))
        self.width, self.batch, self.length = width, batch, length

    def loss(self, step: int) -> Tensor:
        generator = self.generator(step)
        x = self.randn(self.batch, self.length, self.width, generator=generator)
        target = x.roll(1, dims=1)
        balance = x.new_zeros(())
        for layer in self.layers:
            x, extra = layer(x)
            balance = balance + extra
        return F.mse_loss(x, target) + 0.01 * balance
