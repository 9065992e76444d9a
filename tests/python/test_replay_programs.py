"""Random programs with views, in-place changes and random numbers keep their bits under replay.

A seed decides a program; the same program runs plainly and with everything given up that can be.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from bits import as_bytes
from torch import Tensor

import headwater
from headwater import _C

ROWS = 32
NUM_PROGRAMS, PROGRAMS_A_TEST = 1000, 200
BUDGETS = ("minimum", 24 << 10, 36 << 10, 60 << 10)


class Program:
    """Values that operators make of each other; what a value is made of may change or be freed."""

    def __init__(self, seed: int, device: str) -> None:
        self._dice = random.Random(seed)
        self._device = device
        torch.manual_seed(seed)
        self._generator = torch.Generator(device=device).manual_seed(seed)
        self._learns = self._dice.random() < 0.5
        self._leaves = [torch.randn(ROWS, ROWS).to(device) for _ in range(2)]
        self._statistics = [torch.zeros(ROWS, device=device), torch.ones(ROWS, device=device)]
        for leaf in self._leaves:
            leaf.requires_grad_(self._learns)
        self._values = [leaf * 1.0 for leaf in self._leaves]

    def run(self, num_ops: int) -> Iterator[bytes]:
        for _ in range(num_ops):
            operator = self._dice.choice(OPERATORS)
            with headwater.region(self._dice.choice(["recompute", "recompute", "offload"])):
                try:
                    operator(self)
                except RuntimeError as error:  # autograd has rules of its own
                    yield str(error).encode()
            if len(self._values) > 6:
                self._values.pop(self._dice.randrange(len(self._values)))
        if self._learns:
            yield from self._gradients()
        for value in (*self._values, *self._statistics):
            yield as_bytes(value)
        yield as_bytes(torch.rand(4, device=self._device))

    def _gradients(self) -> Iterator[bytes]:
        loss = torch.stack([value.float().mean() for value in self._values]).sum()
        try:
            loss.backward()
        except RuntimeError as error:  # a value that backward needs was changed in place
            yield str(error).split(":")[0].encode()
            return
        for leaf in self._leaves:
            yield b"" if leaf.grad is None else as_bytes(leaf.grad)

    def _any(self) -> Tensor:
        return self._dice.choice(self._values)

    def unary(self) -> None:
        function = self._dice.choice([torch.tanh, torch.cos, F.gelu, torch.neg, torch.relu])
        self._values.append(function(self._any()))

    def binary(self) -> None:
        function = self._dice.choice([torch.add, torch.mul, torch.maximum, torch.matmul])
        self._values.append(torch.tanh(function(self._any(), self._any())))

    def scale(self) -> None:
        self._values.append(self._any() * self._dice.uniform(0.5, 1.5))

    def change(self) -> None:
        value = self._any()
        change = self._dice.choice([value.tanh_, value.relu_, lambda: value.mul_(0.5)])
        change()

    def add_in_place(self) -> None:
        self._any().add_(self._any().clone(), alpha=0.25)

    def change_a_part(self) -> None:
        first = self._dice.randrange(ROWS // 2)
        self._any()[first : first + 5].cos_()

    def transpose(self) -> None:
        self._values.append(self._any().t())

    def join(self) -> None:
        left, right = self._any(), self._any()
        self._values.append(torch.cat([left[:, ::2], right[:, 1::2]], dim=1))

    def pick(self) -> None:
        rows = torch.arange(ROWS, device=self._device).flip(0)
        self._values.append(self._any()[rows])

    def drop(self) -> None:
        self._values.append(F.dropout(self._any(), 0.3))

    def draw(self) -> None:
        noise = torch.empty_like(self._any(), requires_grad=False)
        with torch.no_grad():
            noise.normal_(generator=self._generator if self._dice.random() < 0.5 else None)
        self._values.append(noise)

    def mask(self) -> None:
        value = self._any()
        self._values.append(torch.where(torch.rand_like(value) > 0.5, value, value * 0.1))

    def leak(self) -> None:
        self._values.append(F.rrelu(self._any(), training=True))

    def norm(self) -> None:
        mean, variance = self._statistics
        self._values.append(F.batch_norm(self._any(), mean, variance, training=True))

    def normalise(self) -> None:
        self._values.append(F.layer_norm(self._any(), (ROWS,)))

    def halve(self) -> None:
        self._values.append(self._any().bfloat16().float())

    def spoil_a_leaf(self) -> None:
        with torch.no_grad():
            self._leaves[self._dice.randrange(2)].mul_(0.9)

    def forget(self) -> None:
        if len(self._values) > 1:
            self._values.pop(self._dice.randrange(len(self._values)))


OPERATORS: list[Callable[[Program], None]] = [
    Program.unary,
    Program.unary,
    Program.binary,
    Program.binary,
    Program.scale,
    Program.change,
    Program.add_in_place,
    Program.change_a_part,
    Program.transpose,
    Program.join,
    Program.pick,
    Program.drop,
    Program.draw,
    Program.mask,
    Program.leak,
    Program.norm,
    Program.normalise,
    Program.halve,
    Program.spoil_a_leaf,
    Program.forget,
]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """For operators this small, others only get in the way."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def run(seed: int, device: str) -> list[bytes]:
    return list(Program(seed, device).run(num_ops=10 + seed % 25))


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("first", range(0, NUM_PROGRAMS, PROGRAMS_A_TEST))
def test_random_programs_keep_their_bits(first: int, budget: int | str, device: str) -> None:
    seeds = range(first + BUDGETS.index(budget), first + PROGRAMS_A_TEST, len(BUDGETS))
    expected = {seed: run(seed, device) for seed in seeds}
    headwater.enable(budget, device=device, min_tensor_bytes=1)
    for seed in seeds:
        assert run(seed, device) == expected[seed], f"seed {seed}"
    assert headwater.stats().num_replays > 0


PLANNED_BUDGETS = (32 << 10, 48 << 10, 80 << 10)
NUM_PLANNED, STEPS = 600, 6


@pytest.mark.parametrize("budget", PLANNED_BUDGETS)
def test_random_programs_keep_their_bits_by_plan(budget: int, device: str) -> None:
    """A program run again and again is a step that repeats: what is made again is planned."""
    seeds = range(PLANNED_BUDGETS.index(budget), NUM_PLANNED, len(PLANNED_BUDGETS))
    expected = {seed: run(seed, device) for seed in seeds}
    headwater.enable(budget, device=device, min_tensor_bytes=1)
    planned = 0
    for seed in seeds:
        for step in range(STEPS):
            before = headwater.stats().num_replays
            assert run(seed, device) == expected[seed], f"seed {seed}, step {step}"
            planned += headwater.stats().num_replays - before if step == STEPS - 1 else 0
            headwater.end_step()
            _C.finish_planning()
    assert planned > 0
    assert headwater.stats().num_plans > 0
