"""Spreads the groups over worker processes and survives their crashes."""

import multiprocessing
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait
from typing import Any

from .managers import HEADWATER
from .samples import Group
from .worker import WHOLE_GROUP, Abandoned, Broken, Finished, Message, Result, Started, Task, serve

# Without its thread caches glibc fills all fresh memory alike (see poison_fresh_memory).
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0",
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
}
# A group that kills this many processes is given up: the rest of it counts as one failure.
_MAX_CRASHES = 25
# A new process first imports torch; this long it may be silent beyond the limit of a sample.
_START_SECONDS = 180.0
_NOT_STARTED = Started("group", WHOLE_GROUP)


class HarnessError(RuntimeError):
    """A worker could not do its work at all."""


@dataclass(frozen=True)
class Options:
    """What to run; ``sample_seconds`` is the time limit of one sample."""

    device: str = "cpu"
    fraction: float = 1.0
    seed: int = 0
    workers: int = 1
    manager: str = HEADWATER
    sample_seconds: float = 60.0
    show_progress: bool = True


@dataclass
class _Worker:
    process: Any
    connection: Connection
    task: Task | None = None
    started: Started = _NOT_STARTED
    since: float = 0.0
    answered: set[int] = field(default_factory=set)


class Runner:
    """Runs groups to their end; `results` grows as workers answer. One thread only."""

    def __init__(self, options: Options) -> None:
        self.results: list[Result] = []
        self._options = options
        self._waiting: deque[Task] = deque()
        self._workers: list[_Worker] = []
        self._crashes: Counter[str] = Counter()
        self._alone: deque[Task] = deque()
        self._num_tasks = 0
        self._num_done = 0
        self._begin = time.monotonic()
        self._shown = 0.0
        self._context = self._make_context()

    def run(self, groups: Iterable[Group]) -> list[Result]:
        """Runs every group and returns one result for every chosen sample."""
        options = self._options
        for group in groups:
            self._waiting.append(Task(group, options.device, options.fraction, options.seed))
        self._num_tasks = len(self._waiting)
        self._workers = [self._start() for _ in range(min(options.workers, self._num_tasks))]
        try:
            self._loop()
            self._run_alone()
        finally:
            for worker in self._workers:
                _stop(worker)
        self._show("done")
        return self.results

    def _make_context(self) -> Any:
        os.environ.update(_ENVIRONMENT)
        if self._options.device != "cpu":
            return multiprocessing.get_context("spawn")
        # The server imports torch once; a worker that died is replaced at the cost of a fork.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([f"{__package__}.worker"])
        return context

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        options = self._options
        process = self._context.Process(
            target=serve, args=(theirs, options.manager, options.device), daemon=True
        )
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def _loop(self) -> None:
        while True:
            for worker in self._workers:
                if worker.task is None and self._waiting:
                    self._assign(worker, self._waiting.popleft())
            busy = [worker for worker in self._workers if worker.task is not None]
            if not busy:
                return
            ready = wait([worker.connection for worker in busy], timeout=1.0)
            for worker in busy:
                if worker.connection in ready:
                    self._receive(worker)
                elif time.monotonic() - worker.since > self._options.sample_seconds:
                    self._replace(worker, "timed out")
            self._show("running")

    def _run_alone(self) -> None:
        """Runs what was given up once more, by itself.

        Processes that share a GPU can share its faults: one that fails takes down the others.
        """
        while len(self._workers) > 1:
            _stop(self._workers.pop())
        while self._alone:
            self._waiting.append(self._alone.popleft())
            self._loop()

    def _assign(self, worker: _Worker, task: Task) -> None:
        worker.task = task
        worker.started = _NOT_STARTED
        worker.since = time.monotonic() + _START_SECONDS
        worker.answered = set(task.answered)
        try:
            worker.connection.send(task)
        except OSError:
            self._replace(worker, "crashed")

    def _receive(self, worker: _Worker) -> None:
        try:
            while worker.task is not None and worker.connection.poll():
                self._take(worker, worker.connection.recv())
        except (EOFError, OSError):
            self._replace(worker, "crashed")

    def _take(self, worker: _Worker, message: Message) -> None:
        match message:
            case Started():
                worker.started = message
                worker.since = time.monotonic()
            case Result():
                worker.answered.add(message.index)
                self.results.append(message)
            case Finished():
                worker.task = None
                self._num_done += 1
            case Abandoned():
                worker.started = _NOT_STARTED
                self._replace(worker, "group abandoned", message.text)
            case Broken():
                raise HarnessError(f"{worker.task}\n{message.text}")

    def _replace(self, worker: _Worker, reason: str, text: str = "") -> None:
        """Blames the running sample, starts a new process and lets it go on with the rest."""
        task, started = worker.task, worker.started
        assert task is not None
        worker.process.kill()
        worker.process.join()
        shares_a_gpu = self._options.device != "cpu" and len(self._workers) > 1
        if started.index == WHOLE_GROUP and shares_a_gpu:
            print(f"op_db: {task.group.id} again alone, after: {text[:200]}", file=sys.stderr)
            self._alone.append(replace(task, answered=frozenset()))
            self.results = [result for result in self.results if result.group != task.group]
            self._restart(worker)
            return
        detail = text or f"exit code {worker.process.exitcode} while {started.phase}"
        status = "excluded" if started.phase == "plain" else "failed"
        name = f"plain PyTorch {reason}" if started.phase == "plain" else reason
        self.results.append(Result(task.group, started.index, status, name, detail))
        self._crashes[task.group.id] += 1
        worker.answered.add(started.index)
        if started.index == WHOLE_GROUP or self._crashes[task.group.id] >= _MAX_CRASHES:
            if started.index != WHOLE_GROUP:
                rest = f"gave up after {_MAX_CRASHES} crashes"
                self.results.append(Result(task.group, WHOLE_GROUP, "failed", rest, detail))
            self._num_done += 1
        else:
            self._waiting.appendleft(replace(task, answered=frozenset(worker.answered)))
        self._restart(worker)

    def _restart(self, worker: _Worker) -> None:
        worker.task = None
        worker.connection.close()
        self._workers[self._workers.index(worker)] = self._start()

    def _show(self, state: str) -> None:
        now = time.monotonic()
        if not self._options.show_progress or (state == "running" and now - self._shown < 5.0):
            return
        self._shown = now
        spent = now - self._begin
        left = spent / self._num_done * (self._num_tasks - self._num_done) if self._num_done else 0
        counts = Counter(result.status for result in self.results)
        print(
            f"op_db {state}: {self._num_done}/{self._num_tasks} groups, {counts['passed']} passed, "
            f"{counts['failed']} failed, {counts['excluded']} skipped, "
            f"{spent:.0f} s spent, {left:.0f} s left",
            file=sys.stderr,
            flush=True,
        )


def _stop(worker: _Worker) -> None:
    try:
        if worker.task is None:
            worker.connection.send(None)
        else:
            worker.process.kill()
    except OSError:
        worker.process.kill()
    worker.process.join(timeout=10)
    worker.connection.close()
