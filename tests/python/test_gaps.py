"""A device that has less room than the budget: others leave, and later room is kept free."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import headwater_counting_allocator as counting_allocator
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from bits import as_bytes

import headwater

MIB = 2**20
SIDE = 256
TENSOR_BYTES = SIDE * SIDE * 4

counting_allocator.install()  # before Headwater puts its own allocator in front


@pytest.fixture
def full_device() -> Iterator[Callable[[int], None]]:
    """Lets the CPU have so many bytes more than it has now, as a device that others use has."""
    yield lambda more: counting_allocator.set_cap(counting_allocator.live_bytes() + more)
    counting_allocator.set_cap(2**63)


OPERATORS = pytest.mark.parametrize(
    "operator", [torch.exp, torch.special.entr], ids=["direct", "boxed"]
)
Operator = Callable[[torch.Tensor], torch.Tensor]


def halves(number: int) -> list[torch.Tensor]:
    return [torch.full((MIB // 4,), 0.5) for _ in range(number)]


@OPERATORS
def test_where_the_device_has_less_room_than_the_budget_some_leave_for_an_operator(
    full_device: Callable[[int], None], operator: Operator
) -> None:
    plain = operator(*halves(1)).tolist()
    headwater.enable("16MiB", device="cpu")
    tensors = halves(9)
    full_device(MIB // 2)
    result = operator(tensors[0])
    assert headwater.stats().num_evacuations == 1
    assert headwater.stats().bytes_evacuated == MIB
    full_device(16 * MIB)
    assert result.tolist() == plain
    assert all(tensor[0] == 0.5 for tensor in tensors)


@OPERATORS
def test_others_leave_also_where_everything_seemed_to_fit_twice_over(
    full_device: Callable[[int], None], operator: Operator
) -> None:
    plain = operator(*halves(1)).tolist()
    headwater.enable("64MiB", device="cpu")
    tensors = halves(9)
    headwater.end_step()
    assert headwater.stats().standing_by
    full_device(MIB // 2)
    result = operator(tensors[0])
    assert not headwater.stats().standing_by
    assert headwater.stats().num_evacuations > 0
    full_device(16 * MIB)
    assert result.tolist() == plain
    assert all(tensor[0] == 0.5 for tensor in tensors)


@OPERATORS
def test_all_leave_where_some_were_not_enough(
    full_device: Callable[[int], None], operator: Operator
) -> None:
    plain = operator(halves(1)[0].expand(4, -1)).tolist()
    headwater.enable("16MiB", device="cpu")
    tensors = halves(9)
    full_device(MIB // 2)
    result = operator(tensors[0].expand(4, -1))
    assert headwater.stats().num_evacuations == 2
    assert headwater.stats().bytes_evacuated == 8 * MIB
    full_device(16 * MIB)
    assert result.tolist() == plain
    assert all(tensor[0] == 0.5 for tensor in tensors)


@OPERATORS
def test_where_all_is_not_enough_the_operator_raises_and_nothing_is_lost(
    full_device: Callable[[int], None], operator: Operator
) -> None:
    headwater.enable("16MiB", device="cpu")
    tensors = halves(5)
    full_device(MIB // 2)
    with pytest.raises(torch.OutOfMemoryError):
        operator(tensors[0].expand(10, -1))
    assert headwater.stats().num_evacuations == 2
    assert headwater.stats().pinned_bytes == 0
    full_device(16 * MIB)
    assert all(tensor[0] == 0.5 for tensor in tensors)


def test_an_operator_that_writes_its_arguments_is_not_run_twice(
    full_device: Callable[[int], None],
) -> None:
    headwater.enable("16MiB", device="cpu")
    a, b = (torch.ones(MIB // 4) for _ in range(2))
    others = [torch.ones(MIB // 4) for _ in range(7)]
    full_device(MIB // 2)
    with pytest.raises(torch.OutOfMemoryError):
        torch.sort(a, out=(b, torch.empty(0, dtype=torch.int64)))
    assert headwater.stats().num_evacuations == 0
    assert headwater.stats().pinned_bytes == 0
    assert len(others) == 7


def test_attention_that_draws_nothing_is_run_twice(full_device: Callable[[int], None]) -> None:
    torch.manual_seed(0)
    query = torch.randn(1, 8, 512, 64)
    plain = F.scaled_dot_product_attention(query, query, query).tolist()
    headwater.enable("16MiB", device="cpu")
    tensors = halves(9)
    query = query + 0
    full_device(MIB // 2)
    result = F.scaled_dot_product_attention(query, query, query)
    assert headwater.stats().num_evacuations > 0
    full_device(16 * MIB)
    assert result.tolist() == plain
    assert all(tensor[0] == 0.5 for tensor in tensors)


def test_what_is_drawn_again_for_want_of_room_is_the_same(
    full_device: Callable[[int], None],
) -> None:
    source = halves(1)[0]
    torch.manual_seed(0)
    plain, _ = torch.native_dropout(source, 0.5, True)
    expected, state = plain.tolist(), torch.get_rng_state()
    del plain
    headwater.enable("16MiB", device="cpu")
    source = source + 0
    torch.manual_seed(0)
    with headwater.region("recompute"):
        drawn, _ = torch.native_dropout(source, 0.5, True)
    others = halves(16)
    assert headwater.stats().num_given_up > 0
    del others[-3:]  # the budget has room
    full_device(MIB // 2)  # enough for the mask: it is drawn before room is wanted
    drawn.add_(0)
    assert headwater.stats().num_replays > 0
    assert headwater.stats().num_evacuations > 0
    full_device(16 * MIB)
    assert drawn.tolist() == expected
    assert torch.equal(torch.get_rng_state(), state)
    assert len(others) == 13


class Training:
    """A long chain of products over weights that stay: no operator writes what it reads."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.weights = [torch.randn(SIDE, SIDE) * 0.06 for _ in range(48)]
        self.start = torch.randn(SIDE, SIDE)
        parameter = torch.nn.Parameter(torch.zeros(4))
        parameter.grad = torch.zeros(4)
        self.optimizer = torch.optim.SGD([parameter])

    def steps(self, number: int) -> bytes:
        for _ in range(number):
            value = self.start
            for weight in self.weights:
                value = torch.tanh(value @ weight)
            self.optimizer.step()
        return as_bytes(value)


def test_room_is_kept_free_until_no_operator_is_refused_any_more(
    full_device: Callable[[int], None],
) -> None:
    plain = Training().steps(1)
    budget = 32 * TENSOR_BYTES
    training = Training()
    headwater.enable(budget, device="cpu")
    training.steps(1)
    full_device(budget * 9 // 10 - headwater.stats().resident_bytes)
    training.steps(24)
    before = headwater.stats()
    assert before.num_evacuations > 0
    assert 0 < before.gap_bytes <= budget // 4
    assert before.budget_bytes == budget
    assert training.steps(4) == plain
    after = headwater.stats()
    assert after.num_evacuations == before.num_evacuations
    assert after.num_plans == before.num_plans


def test_an_operator_that_needs_what_is_kept_free_has_it(
    full_device: Callable[[int], None],
) -> None:
    training = Training()
    headwater.enable(32 * TENSOR_BYTES, device="cpu")
    training.steps(1)
    full_device(28 * TENSOR_BYTES - headwater.stats().resident_bytes)
    training.steps(16)
    assert headwater.stats().gap_bytes > 2 * TENSOR_BYTES
    full_device(64 * TENSOR_BYTES)
    result = torch.cat([training.start] * 30)
    assert as_bytes(result[-SIDE:]) == as_bytes(training.start)


def test_nothing_is_kept_free_of_another_budget(full_device: Callable[[int], None]) -> None:
    training = Training()
    headwater.enable(32 * TENSOR_BYTES, device="cpu")
    training.steps(1)
    full_device(28 * TENSOR_BYTES - headwater.stats().resident_bytes)
    training.steps(16)
    assert headwater.stats().gap_bytes > 0
    full_device(64 * TENSOR_BYTES)
    headwater.set_budget(6 * TENSOR_BYTES)
    before = headwater.stats()
    assert before.gap_bytes == 0
    for _ in range(50):
        training.start @ training.weights[0]
    assert headwater.stats().num_fetches <= before.num_fetches + 2


def test_nothing_is_kept_free_where_the_device_has_room_for_the_budget() -> None:
    training = Training()
    headwater.enable(32 * TENSOR_BYTES, device="cpu")
    training.steps(8)
    assert headwater.stats().num_plans > 0
    assert headwater.stats().gap_bytes == 0
