"""Budgets that change at random while a training runs: its bits stay the same."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Iterator

import pytest
import torch
from bits import as_bytes

import headwater

# Operators this small gain nothing from a second thread, and lose much on a busy machine.
torch.set_num_threads(1)

STEPS = 24


class Training:
    """Ten layers with an optimizer that keeps two states a parameter."""

    def __init__(self, **options: bool) -> None:
        torch.manual_seed(0)
        layers = [m for _ in range(10) for m in (torch.nn.Linear(128, 128), torch.nn.Tanh())]
        self.network = torch.nn.Sequential(*layers, torch.nn.BatchNorm1d(128))
        self.optimizer = torch.optim.AdamW(self.network.parameters(), lr=0.01, **options)

    def step(self) -> bytes:
        self.optimizer.zero_grad()
        loss = self.network(torch.randn(256, 128)).square().mean()
        loss.backward()
        self.optimizer.step()
        return as_bytes(loss)


def train(before_step: Callable[[], None], num_steps: int = STEPS, **options: bool) -> list[bytes]:
    """Returns the bits of every loss and, at the end, of every parameter and buffer."""
    training = Training(**options)
    bits = []
    for _ in range(num_steps):
        before_step()
        bits.append(training.step())
    return bits + [as_bytes(tensor) for tensor in training.network.state_dict().values()]


def do_nothing() -> None: ...


@pytest.fixture(scope="module")
def plain() -> list[bytes]:
    return train(do_nothing)


def peak_under(budget: str) -> int:
    with headwater.budget(budget, device="cpu"):
        train(do_nothing)
        return headwater.stats().peak_bytes


@pytest.fixture(scope="module")
def draw() -> Callable[[random.Random], int | str]:
    """Draws a budget that every operator fits."""
    least, most = peak_under("minimum"), peak_under("1GiB")
    return lambda dice: "minimum" if dice.random() < 0.1 else dice.randint(least, most)


@contextlib.contextmanager
def running(work: Callable[[], None]) -> Iterator[None]:
    """Repeats ``work`` on a thread of its own, and raises here what it raised there."""
    stop, errors = threading.Event(), []

    def repeat() -> None:
        try:
            while not stop.is_set():
                work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert errors == []


@pytest.mark.parametrize("seed", range(4))
def test_budgets_may_change_between_steps(
    seed: int, plain: list[bytes], draw: Callable[[random.Random], int | str]
) -> None:
    dice = random.Random(seed)

    def change() -> None:
        if dice.random() < 0.5:  # or a plan never lasts for a step
            headwater.set_budget(draw(dice))

    headwater.enable("minimum", device="cpu")
    assert train(change) == plain, f"seed {seed}"
    assert headwater.stats().bytes_offloaded > 0
    assert headwater.stats().num_plans > 1


@pytest.mark.parametrize("seed", range(4))
def test_another_thread_may_change_budgets_while_operators_run(
    seed: int, plain: list[bytes], draw: Callable[[random.Random], int | str]
) -> None:
    dice, pause = random.Random(seed), threading.Event()

    def change() -> None:
        headwater.set_budget(draw(dice))
        pause.wait(dice.random() * 0.002)  # never set: lets operators run between two changes

    headwater.enable("minimum", device="cpu")
    with running(change):
        assert train(do_nothing) == plain, f"seed {seed}"
    assert headwater.stats().bytes_offloaded > 0
    assert headwater.stats().pinned_bytes == 0


def test_lists_are_cut_again_when_the_budget_falls_under_their_operators() -> None:
    dice, pause = random.Random(0), threading.Event()
    least = peak_under("minimum")

    def change() -> None:
        headwater.set_budget(dice.choice([least, 16 * least]))
        pause.wait(dice.random() * 0.003)

    plain = train(do_nothing, 4 * STEPS, foreach=True)
    headwater.enable(16 * least, device="cpu", standby="off")
    with running(change):
        assert train(do_nothing, 4 * STEPS, foreach=True) == plain


def test_a_budget_that_tensors_cannot_leave_for_is_refused_and_the_old_one_stays() -> None:
    tensors = [torch.ones(1 << 18) for _ in range(8)]
    headwater.enable("20MiB", device="cpu", host_budget="2MiB", standby="off")
    for tensor in tensors:
        tensor.sum()
    with pytest.raises(headwater.OutOfMemory, match="nowhere to go.*asked 2 MiB"):
        headwater.set_budget("2MiB")
    assert headwater.stats().budget_bytes == 20 << 20
    assert all(tensor.sum().item() == 1 << 18 for tensor in tensors)
