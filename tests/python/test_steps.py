"""Optimizers that take turns end a step together, so that it repeats and can be planned."""

from __future__ import annotations

import torch
from bits import as_bytes
from headwater.steps import Rounds
from torch import Tensor, nn

import headwater


def ends(order: str) -> str:
    """The optimizers that ended a round, in capitals."""
    rounds = Rounds()
    return "".join(name.upper() if rounds.ends_with(name) else name for name in order)


def test_one_optimizer_ends_every_step() -> None:
    assert ends("aaaaaa") == "AAAAAA"


def test_two_in_turn_end_every_second() -> None:
    assert ends("abababab") == "ABABaBaB"


def test_several_steps_of_one_to_one_of_the_other_end_with_that() -> None:
    assert ends("aab" * 4) == "AABAABaaBaaB"
    assert ends("aaaab" * 4).endswith("aaaaBaaaaB")


def test_one_that_steps_now_and_then_ends_a_step_of_its_own() -> None:
    assert ends("aaabaaa") == "AAABAAA"


def test_rounds_end_when_only_one_goes_on() -> None:
    assert ends("ababab" + "b" * 8).endswith("BBBBB")
    assert ends("ababab" + "a" * 8).endswith("AAAAA")


def test_rounds_longer_than_are_looked_for_end_with_every_step() -> None:
    order = "a" * Rounds.LONGEST + "b"
    assert ends(order * 3) == (order * 3).upper()


def adversaries() -> tuple[list[nn.Module], list[torch.optim.Optimizer]]:
    torch.manual_seed(0)
    nets: list[nn.Module] = [
        nn.Sequential(*(nn.Sequential(nn.Linear(128, 128), nn.Tanh()) for _ in range(6)))
        for _ in range(2)
    ]
    return nets, [torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9) for net in nets]


def train(steps: int) -> Tensor:
    """Two networks against each other; the loss of the last step."""
    nets, optimizers = adversaries()
    noise = torch.randn(256, 128)
    for _ in range(steps):
        made = nets[0](noise)
        for optimizer, judged, sign in (
            (optimizers[1], made.detach(), 1),
            (optimizers[0], made, -1),
        ):
            for each in optimizers:
                each.zero_grad()
            loss = sign * nets[1](judged).mean()
            loss.backward()
            optimizer.step()
    return loss.detach()


def test_two_networks_that_train_against_each_other_are_planned() -> None:
    plain = as_bytes(train(12))
    with headwater.budget("2MiB", device="cpu"):
        managed = as_bytes(train(12))
        assert headwater.stats().num_plans > 0
        assert headwater.stats().num_fetches_ahead > 0
    assert managed == plain
