"""What a loop holds on to and no operator uses any more gives its room; it can still be read."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from test_replay import deterministic, digest
from torch import Tensor, nn

import headwater
from headwater import _C

ROWS, WIDTH, WORDS, STEPS = 1024, 64, 2048, 10
LOGITS = 4 * ROWS * WORDS  # bytes
# Enough for what every operator of backward uses, but not for the logits beside it.
BUDGET = int(3.7 * LOGITS)
PLANNED = 5  # steps that a plan is followed in, at least
Loss = Callable[[Tensor, Tensor], Tensor]
Read = Callable[[int, Tensor], object]


def squares(logits: Tensor, words: Tensor) -> Tensor:
    return (logits.sigmoid() - words.unsqueeze(1) / WORDS).square().mean()


def cross_entropy(logits: Tensor, words: Tensor) -> Tensor:
    return F.cross_entropy(logits, words)


def read_nothing(step: int, logits: Tensor) -> None:
    pass


def train(device: str, loss: Loss = squares, after_backward: Read = read_nothing) -> object:
    """Holds the logits in a variable while backward runs."""
    torch.manual_seed(0)
    head = nn.Linear(WIDTH, WORDS).to(device)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for step in range(STEPS):
        hidden = torch.randn(ROWS, WIDTH).to(device)
        words = torch.randint(WORDS, (ROWS,)).to(device)
        logits = head(hidden)
        value = loss(logits, words)
        value.backward()
        after_backward(step, logits)
        losses.append(value.item().hex())
        del logits  # else it is there when parameters change that it was made of
        optimizer.step()
        optimizer.zero_grad()
        _C.finish_planning()
    return digest(head, losses, device)


def num_never_missed() -> int:
    """Tensors that were given up, and not made again."""
    return headwater.stats().num_given_up - headwater.stats().num_replays


def test_what_is_held_after_its_last_use_gives_its_room(device: str) -> None:
    with deterministic(device):
        expected = train(device)
        headwater.enable(BUDGET, device=device)
        assert train(device) == expected
    stats = headwater.stats()
    assert stats.num_plans > 0
    assert stats.num_replays_refused == 0
    assert num_never_missed() >= PLANNED


@pytest.mark.parametrize("loss", [squares, cross_entropy])
def test_what_was_left_over_can_be_read_after_all(loss: Loss, device: str) -> None:
    sums: list[str] = []
    never_missed: list[int] = []

    def read_in_the_last_step(step: int, logits: Tensor) -> None:
        if step == STEPS - 1:
            never_missed.append(num_never_missed())
            sums.append(logits.detach().double().sum().item().hex())
            never_missed.append(num_never_missed())

    with deterministic(device):
        expected = train(device, loss, read_in_the_last_step)
        headwater.enable(BUDGET, device=device)
        assert train(device, loss, read_in_the_last_step) == expected
    assert sums[0] == sums[1]
    if loss is squares:
        assert never_missed[-1] == never_missed[-2] - 1  # the logits were gone, and made again


@pytest.mark.parametrize("loss", [squares, cross_entropy])
def test_what_is_read_after_backward_in_every_step_is_right(loss: Loss, device: str) -> None:
    seen: list[list[float]] = []

    def read(step: int, logits: Tensor) -> None:
        seen.append(logits.detach().flatten()[::997].cpu().tolist())

    with deterministic(device):
        expected = train(device, loss, read)
        headwater.enable(BUDGET, device=device)
        assert train(device, loss, read) == expected
    assert seen[:STEPS] == seen[STEPS:]


def test_without_recomputing_what_is_left_over_is_copied(device: str) -> None:
    with deterministic(device):
        expected = train(device)
        headwater.enable(BUDGET, device=device, recompute="off")
        assert train(device) == expected
    stats = headwater.stats()
    assert stats.num_given_up == 0
    assert stats.num_offloads > 0
