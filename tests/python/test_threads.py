"""Threads: those alive before, those started after, PyTorch's own; and errors inside operators."""

from __future__ import annotations

import cProfile
import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from bits import as_bytes, away

import headwater


def is_managed(tensor: torch.Tensor) -> bool:
    from headwater import _C

    return _C.is_managed(tensor)


class Worker:
    """A thread that runs what it is given."""

    def __init__(self) -> None:
        self._work: queue.Queue[Callable[[], object] | None] = queue.Queue()
        self._done: queue.Queue[object] = queue.Queue()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def run(self, work: Callable[[], object]) -> object:
        self._work.put(work)
        result = self._done.get(timeout=60)
        if isinstance(result, BaseException):
            raise result
        return result

    def stop(self) -> None:
        self._work.put(None)
        self._thread.join(timeout=60)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            try:
                self._done.put(work())
            except BaseException as error:
                self._done.put(error)


def test_a_thread_alive_before_enable_is_managed(device: str) -> None:
    worker = Worker()
    try:
        worker.run(lambda: torch.ones(4, device=device).add(1))
        headwater.enable("minimum", device=device, min_tensor_bytes=1)
        tensor = worker.run(lambda: torch.ones(64, device=device) + 1)
        assert isinstance(tensor, torch.Tensor)
        assert is_managed(tensor)
        assert tensor.tolist() == [2.0] * 64
    finally:
        worker.stop()


def test_a_thread_started_after_enable_is_managed(minimum: str) -> None:
    worker = Worker()
    try:
        tensor = worker.run(lambda: torch.ones(64, device=minimum) + 1)
        assert isinstance(tensor, torch.Tensor)
        assert is_managed(tensor)
    finally:
        worker.stop()


def test_a_thread_class_with_its_own_run_is_managed(minimum: str) -> None:
    class Own(threading.Thread):
        def run(self) -> None:
            self.tensor = torch.ones(64, device=minimum) * 3

    thread = Own()
    thread.start()
    thread.join(timeout=60)
    assert is_managed(thread.tensor)
    assert thread.tensor[0].item() == 3


def test_a_thread_reads_what_another_left_away(minimum: str) -> None:
    tensor = away(torch.arange(64.0, device=minimum))
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: tensor.sum().item()).result(timeout=60) == 2016


def test_threads_at_once_do_not_disturb_each_other(minimum: str) -> None:
    shared = torch.arange(256.0, device=minimum)

    def train(seed: int) -> bytes:
        x = shared * seed
        for _ in range(50):
            x = (x + shared).sqrt()
        return as_bytes(x)

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(train, range(8)))
    headwater.disable()
    assert together == [train(seed) for seed in range(8)]


def test_backward_passes_in_several_threads_give_the_same_gradients(minimum: str) -> None:
    weights = torch.randn(16, 16, device=minimum)

    def gradient(seed: int) -> bytes:
        x = (weights + seed).requires_grad_()
        (x @ weights).tanh().sum().backward()
        assert x.grad is not None
        return as_bytes(x.grad)

    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(gradient, range(6)))
    headwater.disable()
    assert together == [gradient(seed) for seed in range(6)]


def test_a_worker_goes_on_after_disable_and_the_next_enable(device: str) -> None:
    worker = Worker()
    try:
        for _ in range(2):
            headwater.enable("minimum", device=device, min_tensor_bytes=1)
            tensor = worker.run(lambda: torch.ones(64, device=device) + 1)
            assert isinstance(tensor, torch.Tensor)
            assert is_managed(tensor)
            headwater.disable()
            total = worker.run(lambda tensor=tensor: tensor.sum().item())
            assert total == 128
    finally:
        worker.stop()


@pytest.mark.parametrize("depth", ["an operator", "a backward pass"])
def test_an_error_leaves_nothing_pinned_and_everything_usable(depth: str, minimum: str) -> None:
    a, b = torch.randn(8, 4, device=minimum), torch.randn(8, 4, device=minimum)
    if depth == "an operator":
        with pytest.raises(RuntimeError, match="shape"):
            torch.mm(a, b)
    else:
        x = a.clone().requires_grad_()
        y = x * b

        def fail(_: torch.Tensor) -> None:
            raise KeyError("from a hook")

        y.register_hook(fail)
        with pytest.raises(KeyError, match="from a hook"):
            y.sum().backward()
    assert headwater.stats().pinned_bytes == 0
    expected = a.cpu() + b.cpu()
    assert as_bytes(a + b) == as_bytes(expected)


def test_thread_starting_is_restored_by_disable() -> None:
    before = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]
    with headwater.budget("minimum", device="cpu"):
        assert threading.Thread._bootstrap_inner is not before  # type: ignore[attr-defined]
    assert threading.Thread._bootstrap_inner is before  # type: ignore[attr-defined]


def test_sessions_may_change_while_other_threads_hold_tensors() -> None:
    tensor = torch.arange(2048.0)
    stop = threading.Event()

    def hold() -> None:
        while not stop.is_set():
            with headwater.hold(tensor):
                headwater.stats()

    workers = [threading.Thread(target=hold) for _ in range(3)]
    for worker in workers:
        worker.start()
    for _ in range(100):
        headwater.enable("minimum", device="cpu", min_tensor_bytes=1)
        assert tensor.add(1)[1].item() == 2.0
        headwater.disable()
    stop.set()
    for worker in workers:
        worker.join()


def test_a_profiler_goes_on_when_headwater_is_enabled() -> None:
    profiler = cProfile.Profile()
    profiler.enable()
    headwater.enable("minimum", device="cpu")
    sum(range(3))
    profiler.disable()
    names = {entry.code for entry in profiler.getstats() if isinstance(entry.code, str)}
    assert any("sum" in name for name in names)
