"""Optimizers over lists go piece by piece where room is short: same bits, and state moves once."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from bits import as_bytes
from headwater.optimizers import cut

import headwater

SIDE = 64
LAYERS = 24
STATE_BYTES = LAYERS * SIDE * SIDE * 4

Maker = Callable[[Any], torch.optim.Optimizer]

OPTIMIZERS: dict[str, Maker] = {
    "Adadelta": lambda params: torch.optim.Adadelta(params, foreach=True),
    "Adafactor": lambda params: torch.optim.Adafactor(params, foreach=True),
    "Adagrad": lambda params: torch.optim.Adagrad(params, foreach=True),
    "Adam with amsgrad": lambda params: torch.optim.Adam(params, amsgrad=True, foreach=True),
    "AdamW": lambda params: torch.optim.AdamW(params, foreach=True),
    "fused AdamW": lambda params: torch.optim.AdamW(params, fused=True),
    "Adamax": lambda params: torch.optim.Adamax(params, foreach=True),
    "ASGD": lambda params: torch.optim.ASGD(params, t0=2, foreach=True),
    "NAdam": lambda params: torch.optim.NAdam(params, foreach=True),
    "RAdam": lambda params: torch.optim.RAdam(params, foreach=True),
    "RMSprop": lambda params: torch.optim.RMSprop(
        params, momentum=0.9, centered=True, foreach=True
    ),
    "Rprop": lambda params: torch.optim.Rprop(params, foreach=True),
    "SGD": lambda params: torch.optim.SGD(params, lr=0.01, momentum=0.9, foreach=True),
}


class Updates:
    """Parameters whose gradients are given, so that a step is the optimizer's alone."""

    def __init__(self, make: Maker, device: str) -> None:
        torch.manual_seed(0)
        self.parameters = [
            torch.nn.Parameter(torch.randn(SIDE, SIDE).to(device)) for _ in range(LAYERS)
        ]
        self.optimizer = make(self.parameters)

    def step(self) -> None:
        for parameter in self.parameters:
            parameter.grad = parameter.detach() * 0.1
        self.optimizer.step()

    def bits(self) -> list[bytes]:
        state = self.optimizer.state
        tensors = [n for p in self.parameters for n in (p, *state[p].values())]
        return [as_bytes(n.detach()) for n in tensors if isinstance(n, torch.Tensor)]


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_an_optimizer_gives_the_same_bits_in_pieces(make: Maker, device: str) -> None:
    plain = Updates(make, device)
    for _ in range(7):
        plain.step()
    expected = plain.bits()
    there = 0 if device == "cpu" else torch.cuda.memory_allocated()
    headwater.enable(STATE_BYTES // 2 + there, device=device)
    ours = Updates(make, device)
    for _ in range(7):
        ours.step()
    assert headwater.stats().bytes_offloaded > STATE_BYTES
    headwater.set_budget(0.5)
    assert ours.bits() == expected


def test_the_state_of_an_optimizer_moves_about_once_a_step() -> None:
    headwater.enable(2 * STATE_BYTES, device="cpu")
    updates = Updates(OPTIMIZERS["AdamW"], "cpu")
    for _ in range(6):
        updates.step()
    before = headwater.stats().bytes_fetched
    updates.step()
    # Parameters are read for their gradients too.
    assert headwater.stats().bytes_fetched - before <= 4.5 * STATE_BYTES


def test_the_state_of_an_optimizer_is_made_in_pieces() -> None:
    headwater.enable(STATE_BYTES, device="cpu")
    updates = Updates(OPTIMIZERS["AdamW"], "cpu")
    updates.step()
    # Parameters, gradients and two states of each; a pass over all of them would take half more.
    assert headwater.stats().peak_host_bytes <= 4.2 * STATE_BYTES


def test_nothing_is_cut_while_everything_fits() -> None:
    headwater.enable("1GiB", device="cpu")
    updates = Updates(OPTIMIZERS["AdamW"], "cpu")
    updates.step()
    before = headwater.stats().num_ops
    updates.step()
    assert headwater.stats().num_ops - before < 4 * LAYERS
    assert headwater.stats().num_chunked_ops == 0


def test_pytorchs_functions_are_put_back() -> None:
    module = importlib.import_module("torch.optim.adam")
    before = module._multi_tensor_adam
    headwater.enable("1GiB", device="cpu")
    assert module._multi_tensor_adam is not before
    headwater.disable()
    assert module._multi_tensor_adam is before


@pytest.mark.parametrize(
    ("sizes", "room", "ends"),
    [([], 4, []), ([1, 1, 1], 9, [3]), ([5, 5, 5], 4, [1, 2, 3]), ([2, 2, 5, 1], 4, [2, 3, 4])],
)
def test_pieces_hold_what_fits(sizes: list[int], room: int, ends: list[int]) -> None:
    pieces = list(cut(sizes, room))
    assert [piece.stop for piece in pieces] == ends
    assert [piece.start for piece in pieces] == [0, *ends[:-1]][: len(ends)]
