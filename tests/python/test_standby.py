"""While everything fits twice over operators are let through, and nothing is lost by it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
import torch

import headwater

BUDGET = 1 << 20
BLOCK = 64 << 10  # bytes of the tensors made here


def enable(budget: int, device: str) -> None:
    """Enables it with half of the budget to fill, whatever is on the device already."""
    there = 0 if device == "cpu" else torch.cuda.memory_allocated()
    headwater.enable(budget + 2 * there, device=device, min_tensor_bytes=1, standby="on")


@pytest.fixture
def standing_by(device: str) -> str:
    """A device whose session stands by."""
    enable(BUDGET, device)
    headwater.end_step()
    assert headwater.stats().standing_by
    return device


def make(device: str, value: float) -> torch.Tensor:
    return torch.full((BLOCK // 4,), value, device=device)


def test_it_begins_when_a_step_has_stayed_below_half_of_the_budget(device: str) -> None:
    enable(BUDGET, device)
    assert not headwater.stats().standing_by
    make(device, 1.0)
    headwater.end_step()
    assert headwater.stats().standing_by


def test_it_does_not_begin_after_a_step_above_half_of_the_budget(device: str) -> None:
    headwater.enable(BUDGET, device=device, min_tensor_bytes=1, standby="on")
    kept = [make(device, i) for i in range(9)]
    headwater.end_step()
    assert not headwater.stats().standing_by
    assert len(kept) == 9


def test_it_does_not_begin_while_the_host_holds_copies(device: str) -> None:
    headwater.enable(4 * BLOCK, device=device, min_tensor_bytes=1, standby="on")
    kept = [make(device, i) for i in range(6)]
    headwater.set_budget("64MiB")
    headwater.reset_peak_stats()
    headwater.end_step()
    assert not headwater.stats().standing_by
    assert [float(tensor[0]) for tensor in kept] == [0, 1, 2, 3, 4, 5]


def test_it_begins_unless_told_not_to(device: str) -> None:
    for standby in (None, "off"):
        with headwater.budget("64MiB", device=device, standby=standby):
            make(device, 1.0)
            headwater.end_step()
            assert headwater.stats().standing_by == (standby is None)


def test_operators_and_tensors_are_counted_all_the_same(standing_by: str) -> None:
    before = headwater.stats()
    kept = [make(standing_by, 1.0) + i for i in range(3)]
    stats = headwater.stats()
    assert stats.standing_by
    assert stats.num_ops >= before.num_ops + 6
    assert stats.num_tensors == before.num_tensors + len(kept)
    assert stats.resident_bytes >= before.resident_bytes + len(kept) * BLOCK
    assert stats.peak_bytes >= stats.resident_bytes


def test_what_was_made_meanwhile_moves_once_room_is_short(standing_by: str) -> None:
    kept = [make(standing_by, i) + 1 for i in range(40)]
    stats = headwater.stats()
    assert not stats.standing_by
    assert stats.peak_bytes <= stats.budget_bytes
    assert stats.bytes_offloaded >= 20 * BLOCK
    assert [float(tensor[-1]) for tensor in kept] == list(range(1, 41))


def test_lowering_the_budget_moves_what_was_made_meanwhile(standing_by: str) -> None:
    kept = [make(standing_by, i) for i in range(4)]
    headwater.set_budget("minimum")
    assert headwater.stats().bytes_offloaded >= 4 * BLOCK
    assert [float(tensor.sum()) for tensor in kept] == [i * BLOCK / 4 for i in range(4)]


def test_a_hold_ends_it(standing_by: str) -> None:
    tensor = make(standing_by, 3.0)
    with headwater.hold(tensor):
        assert not headwater.stats().standing_by
        headwater.set_budget("minimum")
        address = tensor.data_ptr()
    assert address != 0
    assert float(tensor.mean()) == 3.0


def test_writes_are_seen_after_it_has_ended(standing_by: str) -> None:
    tensor = make(standing_by, 1.0)
    view = tensor[: BLOCK // 8]
    tensor.mul_(2)
    headwater.set_budget("minimum")
    view.add_(1)
    headwater.set_budget("64MiB")
    assert (float(tensor[0]), float(tensor[-1])) == (3.0, 2.0)


def test_tensors_made_and_freed_meanwhile_are_forgotten(standing_by: str) -> None:
    before = headwater.stats().num_tensors
    for i in range(5000):
        make(standing_by, i)
    kept = torch.ones(1024, device=standing_by)
    for _ in range(5000):
        kept.add_(1)
        torch.add(kept, 1, out=kept)
    assert headwater.stats().num_tensors == before + 1
    assert headwater.stats().standing_by


def test_training_goes_on_through_it_with_the_same_bits(device: str) -> None:
    def train() -> list[torch.Tensor]:
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
        net = net.to(device)
        optimizer = torch.optim.AdamW(net.parameters())
        for size in (8, 8, 2048, 8, 8):  # one step needs more than half of the budget
            loss = net(torch.ones(size, 32, device=device)).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        return [parameter.detach().cpu().clone() for parameter in net.parameters()]

    expected = train()
    budget = (2 << 20) + (0 if device == "cpu" else 2 * torch.cuda.memory_allocated())
    with headwater.budget(budget, device=device, min_tensor_bytes=1, standby="on"):
        found = train()
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_operators_of_other_threads_go_on_while_it_begins_and_ends(device: str) -> None:
    enable(64 << 20, device)
    stop = threading.Event()
    wrong: list[float] = []

    def work(value: float) -> None:
        kept = make(device, value)
        while not stop.is_set():
            result = (kept + kept) - kept
            kept = result * 1.0
            if float(kept[7]) != value:
                wrong.append(value)

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(1, 4)]
    for thread in threads:
        thread.start()
    began = 0
    for i in range(60):
        headwater.reset_peak_stats()
        headwater.end_step()
        began += headwater.stats().standing_by
        large = torch.ones((40 << 18) if i < 2 else 1, device=device)  # 40 MiB end it
        headwater.hold(large).release()  # and so does this
        del large
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert began > 10


def operator(name: str, body: Callable[[torch.Tensor], torch.Tensor]) -> Iterator[None]:
    """An operator of the test's own while the iterator waits."""
    with torch.library._scoped_library("headwater_test", "FRAGMENT") as library:
        library.define(f"{name}(Tensor x) -> Tensor")
        library.impl(name, body, "CPU")
        yield


@pytest.mark.parametrize("policy", ["off", "on"])
def test_a_step_may_end_while_an_operator_waits_for_that(policy: str) -> None:
    inside, ended = threading.Event(), threading.Event()

    def wait(x: torch.Tensor) -> torch.Tensor:
        inside.set()
        assert ended.wait(60)
        return x.clone()

    headwater.enable("64MiB", device="cpu", min_tensor_bytes=1, standby=policy)
    x = make("cpu", 2.0)
    for _ in operator("wait", wait):
        thread = threading.Thread(target=lambda: torch.ops.headwater_test.wait(x))
        thread.start()
        inside.wait()
        headwater.end_step()
        ended.set()
        thread.join()
    assert float(x[0]) == 2.0


def test_an_operator_may_wait_for_threads_whose_operators_end_it() -> None:
    headwater.enable(BUDGET, device="cpu", min_tensor_bytes=1, standby="on")
    pool = ThreadPoolExecutor(1)
    pool.submit(int).result()

    def parallel(x: torch.Tensor) -> torch.Tensor:
        return pool.submit(lambda: torch.ones(100_000) + x[0]).result()

    x = torch.ones(10)
    headwater.end_step()
    assert headwater.stats().standing_by
    for _ in operator("parallel", parallel):
        assert float(torch.ops.headwater_test.parallel(x)[0]) == 2.0
    pool.shutdown()


def test_the_budget_is_not_changed_inside_an_operator(standing_by: str) -> None:
    if standing_by != "cpu":
        pytest.skip("the operator is one for the CPU")
    x = torch.full((10,), 2.0)

    def shrink(x: torch.Tensor) -> torch.Tensor:
        with pytest.raises(RuntimeError, match="cannot be changed"):
            headwater.set_budget("minimum")
        return x.clone()

    for _ in operator("shrink", shrink):
        assert float(torch.ops.headwater_test.shrink(x)[0]) == 2.0


def test_an_expanded_tensor_counts_by_what_it_shows(standing_by: str) -> None:
    small = torch.ones(1, device=standing_by)
    with pytest.raises(headwater.OutOfMemory) if standing_by == "cpu" else nullcontext():
        small.expand(BUDGET).clone()


def test_the_budget_may_be_lowered_while_steps_end() -> None:
    for _ in range(30):
        headwater.enable("64MiB", device="cpu", min_tensor_bytes=1, standby="on")
        large, stop = torch.full((1 << 20,), 3.0), threading.Event()

        def end_steps(stop: threading.Event = stop) -> None:
            while not stop.is_set():
                headwater.end_step()

        thread = threading.Thread(target=end_steps)
        thread.start()
        headwater.set_budget("3MiB")
        stats = headwater.stats()
        stop.set()
        thread.join()
        assert not (stats.standing_by and stats.host_bytes)
        headwater.set_budget("64MiB")
        assert float(large[5]) == 3.0
        headwater.disable()


def test_an_operator_that_makes_much_out_of_little_is_not_let_through(standing_by: str) -> None:
    rows = torch.arange(400.0, device=standing_by)[:, None]
    assert headwater.stats().standing_by
    table = rows * rows.T  # 625 KiB out of 1.6: more than half of the budget
    assert not headwater.stats().standing_by
    assert float(table[20, 30]) == 600.0
    headwater.end_step()


def test_the_gradient_of_a_slice_counts_by_what_it_fills(standing_by: str) -> None:
    row = torch.ones(1, 400, device=standing_by)
    table = torch.ops.aten.select_backward(row[0], [400, 400], 0, 7)
    assert not headwater.stats().standing_by
    assert float(table.sum()) == 400.0


def test_it_does_not_begin_again_where_steps_keep_ending_it(standing_by: str) -> None:
    began = 0
    for _ in range(6):
        began += headwater.stats().standing_by
        rows = torch.arange(400.0, device=standing_by)[:, None]
        (rows * rows.T).sum()
        headwater.reset_peak_stats()
        headwater.end_step()
    assert began == 3
    assert not headwater.stats().standing_by


def test_tensors_given_for_their_shape_do_not_count(standing_by: str) -> None:
    like = torch.ones(8 << 10, device=standing_by)
    for _ in range(4):
        torch.zeros_like(like)
        assert headwater.stats().standing_by
    table = torch.ones(1, device=standing_by).new_zeros(200_000)
    assert not headwater.stats().standing_by
    assert float(table.sum()) == 0.0


@pytest.mark.parametrize(
    "make_much",
    [
        lambda x: torch.add(x, x.T, out=torch.empty(0, device=x.device)),
        lambda x: torch.empty(0, device=x.device).resize_(160_000),
        lambda x: x.T[torch.zeros(400, dtype=torch.long, device=x.device)],
        lambda x: torch.nn.functional.interpolate(x[None, None, :20, :1], size=(400, 400)),
    ],
    ids=["out", "resize", "index", "upsample"],
)
def test_results_that_grow_in_other_ways_end_it(
    standing_by: str, make_much: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    rows = torch.arange(400.0, device=standing_by)[:, None]
    assert make_much(rows).numel() >= 160_000
    assert not headwater.stats().standing_by
