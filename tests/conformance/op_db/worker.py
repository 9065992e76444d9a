"""One process that runs groups of samples and tells its parent of every step, so that the parent
knows which sample was running when the process dies."""

import gc
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

import torch

from .bits import difference
from .execute import (
    UNREPEATABLE,
    Outcome,
    describe_inputs,
    execute,
    poison_fresh_memory,
    reads_outside,
)
from .managers import Manager, load
from .samples import Group, generate, is_adopted, is_selected

# Two bytes that give different numbers in every dtype.
_POISON = (0x5A, 0xA5)
_DIFFERENT = "different bits"
_DIFFERS_FROM_ITSELF = "plain PyTorch differs from itself"
# Plain runs of a sample that came out different: sums in any order differ rarely.
_NUM_DOUBTS = 64
# Index of a step that belongs to a whole group.
WHOLE_GROUP = -1


@dataclass(frozen=True)
class Task:
    """A group to run, without the samples already answered by a process that died."""

    group: Group
    device: str
    fraction: float
    seed: int
    answered: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Started:
    """The process is about to run this sample in this phase: plain, managed or group."""

    phase: str
    index: int


@dataclass(frozen=True)
class Result:
    """The verdict on one sample: status is passed, failed or excluded."""

    group: Group
    index: int
    status: str
    reason: str
    detail: str = ""

    @property
    def id(self) -> str:
        return self.group.sample_id(self.index)


@dataclass(frozen=True)
class Finished:
    """The group is done; the process waits for the next one."""


@dataclass(frozen=True)
class Abandoned:
    """The group cannot go on (enabling or disabling failed); nor can this process be trusted."""

    text: str


@dataclass(frozen=True)
class Broken:
    """The process cannot work at all, for the reason given."""

    text: str


Message = Started | Result | Finished | Abandoned | Broken
Send = Callable[[Message], None]


def serve(connection: Connection, manager_path: str, device: str) -> None:
    """Runs tasks from the connection until None arrives."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    # What the imports left behind stays: collecting garbage then looks at the samples alone.
    gc.freeze()
    if torch.device(device).type == "cuda":
        torch.use_deterministic_algorithms(True)
    try:
        manager = load(manager_path)
    except Exception:
        connection.send(Broken(traceback.format_exc()))
        return
    while (task := connection.recv()) is not None:
        try:
            run_task(task, manager, connection.send)
        except Exception as error:
            text = f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
            connection.send(Abandoned(text))
            return
        connection.send(Finished())


def run_task(task: Task, manager: Manager, send: Send) -> None:
    """Runs the group plain, twice, and then managed, and sends a result for every sample."""
    send(Started("group", WHOLE_GROUP))
    expected = _run_plain(task, send)
    if expected:
        _run_managed(task, expected, manager, send)
    gc.collect()


def _run_plain(task: Task, send: Send) -> dict[int, Outcome]:
    """Returns what plain PyTorch gives, for the samples on which it agrees with itself."""
    group, expected = task.group, {}

    def wanted(index: int) -> bool:
        chosen = is_selected(group.sample_id(index), task.fraction, task.seed)
        return chosen and index not in task.answered

    runs = (generate(group, task.device, wanted) for _ in range(2))
    for (index, first), (_, second) in _until_it_raises(zip(*runs, strict=True), group, send):
        if reads_outside(group, task.device, first):
            detail = describe_inputs(first)
            send(Result(group, index, "excluded", "plain PyTorch reads outside tensors", detail))
            continue
        send(Started("plain", index))
        poison_fresh_memory(_POISON[0])
        outcome = execute(group, index, first)
        poison_fresh_memory(_POISON[1])
        again = execute(group, index, second)
        poison_fresh_memory(0)
        if outcome.error and outcome.error.startswith("forward"):
            detail = f"{outcome.error}: {outcome.message}"
            send(Result(group, index, "excluded", "plain PyTorch raises", detail))
        elif (group.op.name, task.device) in UNREPEATABLE:
            detail = "depends on uninitialised memory"
            send(Result(group, index, "excluded", "plain PyTorch is not repeatable", detail))
        elif found := _disagreement(outcome, again):
            send(Result(group, index, "excluded", _DIFFERS_FROM_ITSELF, found))
        else:
            expected[index] = outcome
    return expected


def _until_it_raises(pairs, group: Group, send: Send):  # type: ignore[no-untyped-def]
    """Passes the samples on; a generator that fails is an excluded sample, not the end of all."""
    try:
        yield from pairs
    except Exception as error:
        detail = f"{type(error).__name__}: {error}"
        send(Result(group, WHOLE_GROUP, "excluded", "samples cannot be made", detail))


def _run_managed(task: Task, expected: dict[int, Outcome], manager: Manager, send: Send) -> None:
    group = task.group

    def wanted_early(index: int) -> bool:
        return index in expected and is_adopted(group.sample_id(index))

    early = generate(group, task.device, wanted_early)
    adopted = dict(_until_it_raises(early, group, _ignore))
    stopped: list[Message] = []
    doubtful: dict[int, tuple[Outcome, str]] = {}
    manager.enable(task.device)
    try:
        made = generate(group, task.device, expected.__contains__)
        for index, sample in _until_it_raises(made, group, stopped.append):
            sample = adopted.pop(index, sample)
            send(Started("managed", index))
            plain = expected.pop(index)
            reason, detail = _judge(task, index, sample, plain, manager)
            if reason == _DIFFERENT:
                doubtful[index] = plain, detail
            else:
                send(Result(group, index, "failed" if detail else "passed", reason, detail))
        send(Started("group", WHOLE_GROUP))
    finally:
        manager.disable()
    _settle(task, doubtful, send)
    detail = "; ".join(m.detail for m in stopped if isinstance(m, Result)) or "no such sample"
    for index in expected:
        send(Result(group, index, "failed", "cannot be made under management", detail))


def _settle(task: Task, doubtful: dict[int, tuple[Outcome, str]], send: Send) -> None:
    """A sample that came out different has failed, unless plain PyTorch does so in many runs."""
    group = task.group
    for _ in range(_NUM_DOUBTS if doubtful else 0):
        made = generate(group, task.device, set(doubtful).__contains__)
        for index, sample in _until_it_raises(made, group, _ignore):
            send(Started("plain", index))
            if found := _disagreement(doubtful[index][0], execute(group, index, sample)):
                del doubtful[index]
                send(Result(group, index, "excluded", _DIFFERS_FROM_ITSELF, found))
    for index, (_, detail) in doubtful.items():
        send(Result(group, index, "failed", _DIFFERENT, detail))


def _judge(task, index, sample, expected: Outcome, manager: Manager):  # type: ignore[no-untyped-def]
    """Runs one sample under management; returns a reason and, for a failure, the details."""
    before = manager.counters()
    outcome = execute(task.group, index, sample)
    inputs = describe_inputs(sample)
    if outcome.error != expected.error:
        found = f"expected {expected.error}, got {outcome.error}: {outcome.message}"
        return "raises", f"{found} | {inputs}"
    if found := _disagreement(expected, outcome):
        return _DIFFERENT, f"{found} | {inputs}"
    if (now := manager.counters()).pinned_bytes > before.pinned_bytes:
        gc.collect()
        manager.end_step()
        now = manager.counters()
    if now.pinned_bytes > before.pinned_bytes:
        extra = now.pinned_bytes - before.pinned_bytes
        return "left pinned", f"{extra} bytes still pinned after the sample | {inputs}"
    has_bytes = torch.device(task.device).type in outcome.places
    if has_bytes and now.num_moves is not None and now.num_moves == before.num_moves:
        return "nothing moved", f"no tensor left the device | {inputs}"
    return ("backward raises alike" if outcome.error else "same bits"), ""


def _disagreement(left: Outcome, right: Outcome) -> str | None:
    if left.error != right.error:
        return f"expected {left.error}, got {right.error}"
    return difference(left.records, right.records)


def _ignore(message: Message) -> None:
    """The plain pass has already told of it."""
