"""Turning Headwater on and off. One session a process, since PyTorch's dispatcher is one."""

from __future__ import annotations

import importlib
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType

import torch

from headwater.devices import find_device, free_bytes
from headwater.errors import OutOfMemory
from headwater.holds import Hold, NoHold
from headwater.options import (
    Budget,
    Options,
    Size,
    disabled_by_environment,
    parse_budget,
    parse_size,
)
from headwater.stats import Stall, Stats


class _Session:
    """What ``disable`` has to know: the device, and how to undo the changes to PyTorch."""

    def __init__(self, device: str, changes: ExitStack) -> None:
        self.device = device
        self.changes = changes


_lock = threading.RLock()
_session: _Session | None = None
_last_stats = Stats()
_last_stalls: tuple[Stall, ...] = ()


def enable(
    budget: Budget | None = None,
    device: str | torch.device | None = None,
    host_budget: Size | None = None,
    *,
    disk: str | os.PathLike[str] | None = None,
    disk_budget: Size | None = None,
    min_tensor_bytes: Size | None = None,
    log_level: str | None = None,
    standby: str | None = None,
    recompute: str | None = None,
) -> None:
    """Keeps the managed tensors of ``device`` within ``budget`` bytes from here on.

    ``budget``: bytes, ``"10GiB"``, a fraction of the device such as ``0.5``, ``"auto"`` (the
    default: 90 % of what is free) or ``"minimum"`` (only what the running operator needs).
    ``device``: the current GPU, or the CPU where there is none. ``host_budget``: most host memory
    for offloaded tensors, on a GPU 90 % of what is free unless told. ``disk``: a folder for what
    does not fit there, none unless told; ``disk_budget``: most bytes there. ``min_tensor_bytes``:
    smaller tensors stay where they are (4096). ``log_level``: debug, info, warning, error or off.
    ``standby``: "off" manages every operator also while everything fits twice over.
    ``recompute``: "off" copies whatever has to leave; "auto", the default, lets operators run again
    where that takes less time. Each has an environment variable: HEADWATER_BUDGET,
    HEADWATER_DEVICE, HEADWATER_HOST_BUDGET, HEADWATER_DISK, HEADWATER_DISK_BUDGET,
    HEADWATER_MIN_TENSOR_BYTES, HEADWATER_LOG, HEADWATER_STANDBY, HEADWATER_RECOMPUTE.
    HEADWATER_DISABLE=1 makes this and every other call do nothing.

    Raises ValueError on unusable options and RuntimeError if already enabled.

    >>> headwater.enable(budget="12GiB")
    """
    global _session
    if disabled_by_environment():
        return
    with _lock:
        if _session is not None:
            raise RuntimeError(
                "Headwater is already enabled. Call headwater.set_budget() to change the budget, "
                f"or headwater.disable() first: device {_session.device}"
            )
        options = Options.gather(
            {
                "budget": budget,
                "device": device,
                "host_budget": host_budget,
                "disk": disk,
                "disk_budget": disk_budget,
                "min_tensor_bytes": min_tensor_bytes,
                "log_level": log_level,
                "standby": standby,
                "recompute": recompute,
            }
        )
        _session = _start(options)


def disable() -> None:
    """Brings every tensor back to the device and turns Headwater off.

    Does nothing if Headwater is off already. Raises OutOfMemory, and stays enabled, if the
    tensors do not all fit the device; RuntimeError inside a backward pass.

    >>> headwater.disable()
    """
    global _session, _last_stats, _last_stalls
    with _lock:
        if _session is None:
            return
        ending, waited = stats(), stalls()
        _extension().disable()
        _last_stats, _last_stalls, session, _session = ending, waited, _session, None
        session.changes.close()


@contextmanager
def budget(
    budget: Budget | None = None,
    device: str | torch.device | None = None,
    host_budget: Size | None = None,
    *,
    disk: str | os.PathLike[str] | None = None,
    disk_budget: Size | None = None,
    min_tensor_bytes: Size | None = None,
    log_level: str | None = None,
    standby: str | None = None,
    recompute: str | None = None,
) -> Iterator[None]:
    """``enable`` for the length of a block; takes the same options.

    If the tensors do not fit the device at the block's end, OutOfMemory says so and Headwater
    stays enabled. If the block itself raised, its error goes on and a warning says so instead.

    >>> with headwater.budget("12GiB"):
    ...     train()
    """
    enable(
        budget,
        device,
        host_budget,
        disk=disk,
        disk_budget=disk_budget,
        min_tensor_bytes=min_tensor_bytes,
        log_level=log_level,
        standby=standby,
        recompute=recompute,
    )
    try:
        yield
    except BaseException:
        try:
            disable()
        except RuntimeError as error:
            warnings.warn(
                f"Headwater stays enabled after an error in its block: {error}",
                RuntimeWarning,
                stacklevel=3,
            )
        raise
    disable()


def set_budget(budget: Budget) -> None:
    """Changes the budget of the running session; takes what ``enable`` takes.

    >>> headwater.set_budget("6GiB")
    """
    if disabled_by_environment():
        return
    with _lock:
        device = _running("set_budget").device
        _extension().set_budget(_budget_bytes(budget, device))


def stats() -> Stats:
    """Returns the running session's numbers; after ``disable``, those it ended with.

    >>> headwater.stats().bytes_offloaded
    0
    """
    if _session is None:
        return Stats() if disabled_by_environment() else _last_stats
    known = Stats.__dataclass_fields__
    return Stats(**{name: n for name, n in _extension().stats().items() if name in known})


def stalls() -> tuple[Stall, ...]:
    """Returns what operators of the session waited for most, the worst first; at most sixteen.

    Counted are moves on demand and moves ahead of need that a thread had to wait for. After
    ``disable``, those of the session that ended.

    >>> headwater.stalls()
    ()
    """
    if _session is None:
        return () if disabled_by_environment() else _last_stalls
    return tuple(Stall(**stall) for stall in _extension().stalls())


def reset_peak_stats() -> None:
    """Starts all peaks anew from what is there now. Does nothing while off."""
    if _session is not None:
        _extension().reset_peak_stats()


def hold(tensor: torch.Tensor) -> Hold:
    """Brings a tensor's bytes to the device and keeps them there until released.

    For code that reads a tensor by its address, such as an extension that does not go through
    PyTorch's dispatcher. Does nothing while Headwater is off.

    >>> with headwater.hold(weights):
    ...     my_extension.run(weights.data_ptr())
    """
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"hold() takes a tensor: got {type(tensor).__name__}")
    return NoHold() if _session is None else _extension().hold(tensor)


def end_step() -> None:
    """Marks the end of a training step where no PyTorch optimizer does, as in inference."""
    if _session is not None:
        _extension().end_step()


def is_enabled() -> bool:
    """Tells whether Headwater is on.

    >>> headwater.is_enabled()
    False
    """
    return _session is not None


def _start(options: Options) -> _Session:
    device = find_device(options.device)
    host = options.host_budget
    if host is not None:
        host = parse_size(host, options.name("host_budget"))
    disk = "" if options.disk is None else os.fspath(options.disk)
    disk_bytes = None
    if options.disk_budget is not None:
        disk_bytes = parse_size(options.disk_budget, options.name("disk_budget"))
    floor = parse_size(options.min_tensor_bytes, options.name("min_tensor_bytes"))
    budget_bytes = _budget_bytes(options.budget, device, options.name("budget"))
    extension = _extension()
    extension.set_out_of_memory_type(OutOfMemory)
    policies = {name: getattr(options, name) for name in ("log_level", "standby", "recompute")}
    extension.enable(budget_bytes, device, host, (disk, disk_bytes), floor, policies)
    try:
        return _Session(device, _change_torch(device))
    except BaseException:
        extension.disable()
        raise


def _change_torch(device: str) -> ExitStack:
    from headwater import compiled, escapes, optimizers, segments, steps, threads

    with ExitStack() as changes:
        changes.callback(segments.install(device))
        changes.callback(escapes.install(device))
        changes.callback(compiled.install())
        changes.callback(threads.install())
        changes.callback(optimizers.install())
        changes.callback(steps.install())
        return changes.pop_all()


def _budget_bytes(budget: Budget, device: str, name: str = "budget") -> int | None:
    total = _extension().device_total_bytes(device)
    return parse_budget(budget, device, total, lambda: free_bytes(device), name)


def _running(caller: str) -> _Session:
    if _session is None:
        raise RuntimeError(f"Headwater is not enabled. Call headwater.enable() before {caller}()")
    return _session


def _extension() -> ModuleType:
    # Looked up when needed, so that HEADWATER_DISABLE=1 works where it was never built.
    return importlib.import_module("headwater._C")
