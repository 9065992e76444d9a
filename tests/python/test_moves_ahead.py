"""Steps that repeat have their tensors moved ahead of need; whatever deviates keeps its bits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from bits import as_bytes
from new_process import in_a_new_process

import headwater
from examples.models import build
from examples.models.gpt import GPT

SIDE = 256
TENSOR_BYTES = SIDE * SIDE * 4


class Chain:
    """A long chain of products over weights that stay, beside a tensor that every step changes."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.weights = [torch.randn(SIDE, SIDE) * 0.06 for _ in range(24)]
        self.start = torch.randn(SIDE, SIDE)
        self.changed = torch.ones(SIDE, SIDE)
        parameter = torch.nn.Parameter(torch.zeros(4))
        parameter.grad = torch.zeros(4)
        self.optimizer = torch.optim.SGD([parameter])

    def forward(self, depth: int) -> torch.Tensor:
        value = self.start
        for weight in self.weights[:depth]:
            value = torch.tanh(value @ weight)
        return value


def plain_step(chain: Chain, step: int) -> torch.Tensor:
    chain.changed.add_(1)
    value = chain.forward(24)
    chain.changed.mul_(1.01)
    return value


def step_that_may_stop_early(chain: Chain, step: int) -> torch.Tensor:
    chain.changed.add_(1)
    chain.forward(1 if step in (9, 12, 15) else 24)
    chain.changed.mul_(1.01)
    return chain.forward(24)


def step_that_writes_through_an_array(chain: Chain, step: int) -> torch.Tensor:
    chain.changed.add_(1)
    array = chain.changed.numpy()
    chain.forward(16)
    array += 1
    del array
    return chain.forward(24)


def train(step: Callable[[Chain, int], torch.Tensor], budget: int | None) -> tuple[bytes, bytes]:
    """Runs sixteen steps; returns the bits of the last result and of the changed tensor."""
    chain = Chain()
    if budget is not None:
        headwater.enable(budget, device="cpu")
    for number in range(16):
        value = step(chain, number)
        chain.optimizer.step()
    if budget is not None:
        assert headwater.stats().num_fetches_ahead > 0
        headwater.disable()
    return as_bytes(value), as_bytes(chain.changed)


@pytest.mark.parametrize("num_tensors", [8, 12, 20])
@pytest.mark.parametrize(
    "step", [plain_step, step_that_may_stop_early, step_that_writes_through_an_array]
)
def test_bits_are_the_same_under_a_plan(
    step: Callable[[Chain, int], torch.Tensor], num_tensors: int
) -> None:
    assert train(step, num_tensors * TENSOR_BYTES) == train(step, None)


class Trees:
    """A TreeLSTM: another graph at every step."""

    def __init__(self) -> None:
        self.task = build("tree_lstm", "cpu", seed=0)
        self.optimizer = torch.optim.AdamW(self.task.parameters(), lr=1e-3)

    def train(self) -> list[str]:
        losses = []
        for step in range(6):
            self.optimizer.zero_grad()
            loss = self.task.loss(step)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item().hex())
        return losses


def test_backward_is_foreseen_where_no_step_repeats() -> None:
    expected = Trees().train()
    with headwater.budget("8GiB", device="cpu"):
        assert Trees().train() == expected
        peak = headwater.stats().peak_bytes
    with headwater.budget(peak * 4 // 10, device="cpu"):
        assert Trees().train() == expected
        stats = headwater.stats()
    assert stats.num_fetches_ahead > stats.num_fetches // 3
    assert stats.num_offloads_ahead > stats.num_offloads // 8


def test_steps_that_only_read_are_planned_too() -> None:
    chain = Chain()
    headwater.enable(10 * TENSOR_BYTES, device="cpu")
    for _ in range(8):
        chain.forward(24)
        chain.optimizer.step()
    before = headwater.stats()
    chain.forward(24)
    after = headwater.stats()
    assert after.num_fetches_ahead > before.num_fetches_ahead


FORK = """
import os, signal, torch, headwater
torch.set_num_threads(1)  # a forked child has none of PyTorch's own threads either
from test_moves_ahead import Chain, TENSOR_BYTES, plain_step
chain = Chain()
headwater.enable(10 * TENSOR_BYTES, device="cpu")
for number in range(8):
    plain_step(chain, number)
    chain.optimizer.step()
assert headwater.stats().num_fetches_ahead > 0
chain.forward(8)
child = os.fork()
if child == 0:
    signal.alarm(30)
    WORK
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
chain.forward(24)
headwater.disable()
print("parent goes on")
"""


@pytest.mark.parametrize(
    "work",
    [
        "[float(weight.sum()) for weight in chain.weights]",
        "[(plain_step(chain, i), chain.optimizer.step()) for i in range(3)]",
    ],
)
def test_a_forked_child_goes_on_without_the_threads_that_move(work: str) -> None:
    result = in_a_new_process(FORK.replace("WORK", work))
    assert result.stdout.strip() == "parent goes on", result.stderr


def test_operators_work_on_a_mix_of_tensors_that_are_there_and_away() -> None:
    values = torch.randn(64, 64)
    index = torch.randint(64, (2000,))
    expected = as_bytes(values[index])
    headwater.enable("1MiB", device="cpu", min_tensor_bytes=1)
    with headwater.hold(values):
        assert index.sum() >= 0  # managed from here on
        headwater.set_budget("minimum")
    headwater.set_budget("1MiB")
    with headwater.hold(values):
        assert as_bytes(values[index]) == expected


def test_a_list_whose_largest_element_does_not_fit_is_left_as_it_was() -> None:
    small = [torch.zeros(1000) for _ in range(10)]
    large = torch.zeros(100_000)
    headwater.enable(200_000, device="cpu", min_tensor_bytes=1)
    with pytest.raises(headwater.OutOfMemory):
        torch._foreach_add_([*small, large], 1.0)
    assert {float(tensor[0]) for tensor in small} == {0.0}


@pytest.mark.parametrize("share", [0.7, 0.5, 0.4])
def test_what_operators_need_beside_their_results_has_its_place_in_the_plan(share: float) -> None:
    with headwater.budget("8GiB", device="cpu", standby="off"):
        training = Attention()
        training.step()
        peak = headwater.stats().peak_bytes
        del training
    headwater.enable(int(peak * share), device="cpu")
    training = Attention()
    for _ in range(10):
        training.step()
    before = headwater.stats()
    training.step()
    after = headwater.stats()
    assert after.num_fetches > before.num_fetches
    on_demand = [n.num_fetches - n.num_fetches_ahead for n in (before, after)]
    assert on_demand[0] == on_demand[1]


class Attention:
    """Blocks of attention, whose backward takes workspaces, and an optimizer with two states."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.net = GPT(vocabulary=3000, width=128, heads=4, layers=6, length=128)
        self.optimizer = torch.optim.AdamW(self.net.parameters())
        self.tokens = torch.randint(3000, (2, 129))

    def step(self) -> None:
        self.optimizer.zero_grad()
        logits = self.net(self.tokens[:, :-1])
        F.cross_entropy(logits.flatten(0, 1), self.tokens[:, 1:].flatten()).backward()
        self.optimizer.step()
