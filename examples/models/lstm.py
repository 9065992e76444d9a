"""LSTM language models: PyTorch's whole-sequence LSTM, and one written cell by cell."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .task import Task

SIZES = {
    "cpu": {"vocabulary": 600, "hidden": 160, "layers": 8, "batch": 16, "length": 24},
    "gpu": {"vocabulary": 1000, "hidden": 1024, "layers": 6, "batch": 64, "length": 128},
}


class SequenceLSTM(nn.Module):
    """``nn.LSTM``: the framework runs all time steps of a layer in one call."""

    def __init__(self, hidden: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.LSTM(hidden, hidden, batch_first=True) for _ in range(layers)
        )

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x, _ = layer(x)
        return x


class CellLSTM(nn.Module):
    """``nn.LSTMCell`` in a Python loop: many small operators."""

    def __init__(self, hidden: int, layers: int) -> None:
        super().__init__()
        self.cells = nn.ModuleList(nn.LSTMCell(hidden, hidden) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        zeros = x.new_zeros(x.size(0), x.size(2))
        states = [(zeros, zeros) for _ in self.cells]
        outputs = []
        for time in range(x.size(1)):
            y = x[:, time]
            for layer, cell in enumerate(self.cells):
                states[layer] = cell(y, states[layer])
                y = states[layer][0]
            outputs.append(y)
        return torch.stack(outputs, dim=1)


class LSTMTask(Task):
    """Predicts the next token of random text."""

    recurrent: type[nn.Module] = SequenceLSTM

    def __init__(
        self, seed: int, vocabulary: int, hidden: int, layers: int, batch: int, length: int
    ) -> None:
        super().__init__(seed)
        self.embed = nn.Embedding(vocabulary, hidden)
        self.body = self.recurrent(hidden, layers)
        self.head = nn.Linear(hidden, vocabulary)
        self.vocabulary, self.batch, self.length = vocabulary, batch, length

    def loss(self, step: int) -> Tensor:
        generator = self.generator(step)
        tokens = self.randint(self.vocabulary, self.batch, self.length + 1, generator=generator)
        logits = self.head(self.body(self.embed(tokens[:, :-1])))
        return F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


class CellLSTMTask(LSTMTask):
    """The same language model, cell by cell."""

    recurrent = CellLSTM
