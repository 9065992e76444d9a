"""By plan the result of a softmax takes the bytes of its input; the bits are the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from test_replay import deterministic, digest
from torch import Tensor, nn

import headwater
from headwater import _C

ROWS, WIDTH, WORDS, STEPS = 1111, 64, 3001, 10
LOGITS = 4 * ROWS * WORDS  # bytes
LARGE, SMALL = 5 * LOGITS, int(2.7 * LOGITS)
SHRINKS = 5  # in this step
Loss = Callable[[Tensor, Tensor], Tensor]


class Language(nn.Module):
    """Few parameters that its loss needs, and many that it does not: these have to leave for it."""

    def __init__(self) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(WORDS, 4 * WIDTH) for _ in range(4))
        self.squeeze = nn.Linear(4 * WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, words: Tensor) -> Tensor:
        found = sum(table(words).tanh() for table in self.tables)
        return self.head(self.squeeze(found))


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits, targets)


def of_a_cast(logits: Tensor, targets: Tensor) -> Tensor:
    narrow = logits.bfloat16()
    return F.cross_entropy(narrow.float(), targets)


def softmax(logits: Tensor, targets: Tensor) -> Tensor:
    with torch.no_grad():
        surest = (2 * logits).softmax(-1).max()
    return F.cross_entropy(logits, targets) * surest


def train(
    device: str,
    loss: Loss,
    after_loss: Callable[[int, Tensor], object] = lambda step, logits: None,
    before_update: Callable[[int], object] = lambda step: None,
) -> tuple[object, ...]:
    torch.manual_seed(0)
    net = Language().to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    losses = []
    for step in range(STEPS):
        words = torch.randint(WORDS, (ROWS + 1,)).to(device)
        logits = net(words[:-1])
        value = loss(logits, words[1:])
        after_loss(step, logits)
        del logits  # else it is there when parameters change that it was made of
        value.backward()
        losses.append(value.item().hex())
        before_update(step)
        optimizer.step()
        optimizer.zero_grad()
        _C.finish_planning()
    return digest(net, losses, device)


def shrink(step: int) -> None:
    """Once there is a plan, no room is left for three tensors as large as the logits."""
    if step == SHRINKS:
        headwater.set_budget(SMALL)


@pytest.mark.parametrize("loss", [cross_entropy, of_a_cast, softmax])
def test_a_loss_takes_the_bytes_of_what_it_reads(loss: Loss, device: str) -> None:
    with deterministic(device):
        expected = train(device, loss)
        headwater.enable(LARGE, device=device)
        assert train(device, loss, before_update=shrink) == expected
    stats = headwater.stats()
    assert stats.num_inherited >= 2 * (STEPS - 1 - SHRINKS)
    assert stats.num_replays_refused == 0


def test_what_is_read_after_all_is_made_again(device: str) -> None:
    sums: list[str] = []

    def read_in_the_last_step(step: int, logits: Tensor) -> None:
        if step == STEPS - 1:
            sums.append(logits.detach().sum().item().hex())

    with deterministic(device):
        expected = train(device, cross_entropy, read_in_the_last_step)
        headwater.enable(LARGE, device=device)
        assert train(device, cross_entropy, read_in_the_last_step, shrink) == expected
    assert sums[0] == sums[1]
    assert headwater.stats().num_inherited >= 2 * (STEPS - 1 - SHRINKS)
    assert headwater.stats().num_replays > 0


def test_without_recomputing_nothing_is_inherited(device: str) -> None:
    headwater.enable(LARGE, device=device, recompute="off")
    with pytest.raises(headwater.OutOfMemory):
        train(device, cross_entropy, before_update=shrink)
    assert headwater.stats().num_inherited == 0
