"""Threads: those alive before, those started after, PyTorch's own; and errors inside operators."""

from __future__ import annotations

import _thread
import contextlib
import cProfile
import queue
import sys
import threading
from _thread import start_new_thread
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

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


STARTERS: list[Callable[..., object]] = [
    lambda work: _thread.start_new_thread(work, ()),
    lambda work: start_new_thread(work, ()),  # taken before Headwater was enabled
    lambda work: threading.Timer(0, work).start(),
]


@pytest.mark.parametrize("start", STARTERS, ids=["_thread", "a name of our own", "Timer"])
def test_a_thread_is_managed_however_it_was_started(
    start: Callable[..., object], minimum: str
) -> None:
    made: queue.Queue[torch.Tensor] = queue.Queue()
    start(lambda: made.put(torch.ones(64, device=minimum) + 1))
    tensor = made.get(timeout=60)
    assert is_managed(tensor)
    assert tensor.sum().item() == 128


def test_a_thread_below_the_threading_module_goes_on_after_disable(minimum: str) -> None:
    given: queue.Queue[torch.Tensor] = queue.Queue()
    made: queue.Queue[torch.Tensor] = queue.Queue()

    def work() -> None:
        for _ in range(2):
            made.put(given.get(timeout=60) + 1)

    _thread.start_new_thread(work, ())
    given.put(torch.ones(64, device=minimum))
    tensor = made.get(timeout=60)
    assert is_managed(tensor)
    headwater.disable()
    given.put(tensor)
    assert made.get(timeout=60).sum().item() == 192


def test_starting_a_thread_wrongly_is_refused_as_without_headwater(minimum: str) -> None:
    for wrong in [(3, ()), (print, []), (print, (), 3), (print,)]:
        with pytest.raises(TypeError):
            _thread.start_new_thread(*wrong)


def test_a_thread_gets_its_arguments_and_its_error_names_its_function(
    minimum: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr(
        "sys.unraisablehook", lambda what: told.put(f"{what.object} {what.exc_value}")
    )

    def fail(text: str, end: str = "") -> None:
        raise KeyError(text + end)

    _thread.start_new_thread(fail, ("left",), {"end": "right"})
    report = told.get(timeout=60)
    assert "fail" in report
    assert "leftright" in report


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
    def starters() -> list[object]:
        names = ("start_new_thread", "start_new", "start_joinable_thread")
        modules = [vars(_thread), vars(threading), globals()]
        return [
            module.get(prefix + name)
            for module in modules
            for prefix in ("", "_")
            for name in names
        ]

    before = starters()
    with headwater.budget("minimum", device="cpu"):
        assert starters() != before
    assert starters() == before


def test_a_starter_taken_while_enabled_is_restored_by_disable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    late = ModuleType("late")
    monkeypatch.setitem(sys.modules, "late", late)
    before = _thread.start_new_thread
    with headwater.budget("minimum", device="cpu"):
        vars(late)["start"] = _thread.start_new_thread
    assert vars(late)["start"] is before


def test_a_starter_that_somebody_else_replaced_meanwhile_is_left_to_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def theirs(*args: object) -> None: ...

    with headwater.budget("minimum", device="cpu"):
        monkeypatch.setattr(_thread, "start_new_thread", theirs)
    assert _thread.start_new_thread is theirs


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


def test_the_budget_may_change_while_another_thread_changes_sessions() -> None:
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            with contextlib.suppress(RuntimeError):  # not enabled at this moment
                headwater.set_budget("1MiB")

    worker = threading.Thread(target=change)
    worker.start()
    for _ in range(50):
        with headwater.budget("minimum", device="cpu"):
            headwater.set_budget("2MiB")
    stop.set()
    worker.join()


def test_a_profiler_goes_on_when_headwater_is_enabled() -> None:
    profiler = cProfile.Profile()
    profiler.enable()
    headwater.enable("minimum", device="cpu")
    sum(range(3))
    profiler.disable()
    names = {entry.code for entry in profiler.getstats() if isinstance(entry.code, str)}
    assert any("sum" in name for name in names)


@pytest.mark.parametrize("num_threads", [2, 5])
def test_operators_of_several_threads_that_do_not_fit_together_take_turns(num_threads: int) -> None:
    headwater.enable("3MiB", device="cpu")
    errors: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            value = torch.full((1 << 18,), float(seed))  # 1 MiB: an operator needs two or three
            for step in range(40):
                value = value * 2 - value if step % 2 else value + 0
            assert value.eq(seed).all()
        except BaseException as error:  # told to the main thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(num_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert headwater.stats().peak_bytes <= 3 << 20
