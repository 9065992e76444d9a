"""A small GPT: pre-norm blocks, learned positions, tied embeddings, dropout."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .task import Task

SIZES = {
    "cpu": {
        "vocabulary": 1000,
        "width": 128,
        "heads": 4,
        "layers": 4,
        "batch": 8,
        "length": 48,
        "dropout": 0.1,
        "attention": "fused",
    },
    "gpu": {
        "vocabulary": 8000,
        "width": 512,
        "heads": 8,
        "layers": 8,
        "batch": 16,
        "length": 256,
        "dropout": 0.1,
        "attention": "explicit",
    },
}


class CausalAttention(nn.Module):
    """``fused``: PyTorch's one-operator attention. ``explicit``: written out, always repeatable."""

    def __init__(self, width: int, heads: int, attention: str) -> None:
        super().__init__()
        self.heads, self.attention = heads, attention
        self.project = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        shape = (batch, length, 3, self.heads, width // self.heads)
        query, key, value = self.project(x).view(shape).permute(2, 0, 3, 1, 4)
        if self.attention == "fused":
            mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            mask = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
            scores = query @ key.transpose(-2, -1) / (width // self.heads) ** 0.5
            mixed = scores.masked_fill(mask, float("-inf")).softmax(dim=-1) @ value
        return self.output(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    """Attention, then a four times wider perceptron, each added to its input."""

    def __init__(self, width: int, heads: int, dropout: float, attention: str) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = CausalAttention(width, heads, attention)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.dropout(self.attention(self.norm1(x)))
        return x + self.dropout(self.mlp(self.norm2(x)))


class GPT(nn.Module):
    """Tokens in, logits of the next token out."""

    def __init__(
        self,
        vocabulary: int,
        width: int,
        heads: int,
        layers: int,
        length: int,
        dropout: float = 0.0,
        attention: str = "fused",
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout, attention) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        for weight in (self.tokens.weight, self.positions.weight):
            nn.init.normal_(weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.positions.weight[: tokens.size(1)]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class GPTTask(Task):
    """Predicts the next token of random text."""

    def __init__(self, seed: int, batch: int, length: int, vocabulary: int, **shape) -> None:
        super().__init__(seed)
        self.net = GPT(vocabulary=vocabulary, length=length, **shape)
        self.vocabulary, self.batch, self.length = vocabulary, batch, length

    def loss(self, step: int) -> Tensor:
        generator = self.generator(step)
        tokens = self.randint(self.vocabulary, self.batch, self.length + 1, generator=generator)
        logits = self.net(tokens[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    def blocks(self) -> list[nn.Module]:
        return list(self.net.blocks)
