"""Child-sum TreeLSTM over random binary trees: another graph at every step."""

from __future__ import annotations

import random

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .task import Task

SIZES = {
    "cpu": {"vocabulary": 500, "hidden": 160, "batch": 96, "leaves": (12, 26), "classes": 5},
    "gpu": {"vocabulary": 5000, "hidden": 512, "batch": 512, "leaves": (20, 60), "classes": 5},
}

State = tuple[Tensor, Tensor]


class ChildSumCell(nn.Module):
    """One node: gates from its input and the sum of its children, a forget gate per child."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.gates_input = nn.Linear(hidden, 3 * hidden)
        self.gates_hidden = nn.Linear(hidden, 3 * hidden, bias=False)
        self.forget_input = nn.Linear(hidden, hidden)
        self.forget_hidden = nn.Linear(hidden, hidden, bias=False)

    def forward(self, x: Tensor, children: list[State]) -> State:
        gates = self.gates_input(x)
        if children:
            gates = gates + self.gates_hidden(sum(h for h, _ in children))
        i, o, u = gates.chunk(3, dim=1)
        memory = torch.sigmoid(i) * torch.tanh(u)
        for h, c in children:
            memory = memory + torch.sigmoid(self.forget_input(x) + self.forget_hidden(h)) * c
        return torch.sigmoid(o) * torch.tanh(memory), memory


class TreeLSTMTask(Task):
    """Labels every inner node; a batch of samples shares the tree drawn for the step."""

    def __init__(
        self,
        seed: int,
        vocabulary: int,
        hidden: int,
        batch: int,
        leaves: tuple[int, int],
        classes: int,
    ) -> None:
        super().__init__(seed)
        self.embed = nn.Embedding(vocabulary, hidden)
        self.cell = ChildSumCell(hidden)
        self.head = nn.Linear(hidden, classes)
        self.vocabulary, self.batch, self.leaves, self.classes = vocabulary, batch, leaves, classes

    def loss(self, step: int) -> Tensor:
        generator = self.generator(step)
        shape = random.Random(self.seed * 1_000_003 + step)
        count = shape.randint(*self.leaves)
        tokens = self.randint(self.vocabulary, count, self.batch, generator=generator)
        labels = self.randint(self.classes, count, self.batch, generator=generator)
        nodes = [self.cell(self.embed(token), []) for token in tokens]
        losses = []
        while len(nodes) > 1:
            left = shape.randrange(len(nodes) - 1)
            word = self.embed(tokens[left])
            nodes[left : left + 2] = [self.cell(word, nodes[left : left + 2])]
            losses.append(F.cross_entropy(self.head(nodes[left][0]), labels[left]))
        return torch.stack(losses).mean()
