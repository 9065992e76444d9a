"""Managers that go wrong on purpose, so that the harness itself can be tested."""

import os
import time

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .managers import Counters, Plain


class _AddsOneTooMany(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        return result + 1 if func is torch.ops.aten.add.Tensor else result


class WrongBits(Plain):
    """Every addition comes out wrong."""

    def __init__(self) -> None:
        self._mode = _AddsOneTooMany()

    def enable(self, device: str) -> None:
        self._mode.__enter__()

    def disable(self) -> None:
        self._mode.__exit__(None, None, None)


class KeepsPins(Plain):
    """Every sample leaves four more bytes pinned."""

    def __init__(self) -> None:
        self._pinned = 0

    def counters(self) -> Counters:
        self._pinned += 4
        return Counters(None, self._pinned)


class MovesNothing(Plain):
    """Claims to manage, and never moves a tensor."""

    def counters(self) -> Counters:
        return Counters(0, 0)


class Dies(Plain):
    """The process dies in the second managed sample of every group it is given."""

    def __init__(self) -> None:
        self._num_calls = 0

    def enable(self, device: str) -> None:
        self._num_calls = 0

    def counters(self) -> Counters:
        self._num_calls += 1
        if self._num_calls == 3:
            os.abort()
        return super().counters()


class CannotBeDisabled(Plain):
    """Disabling fails after every group."""

    def disable(self) -> None:
        raise RuntimeError("Cannot bring everything back")


class Hangs(Plain):
    """The first managed sample of every group never ends."""

    def counters(self) -> Counters:
        time.sleep(3600)
        return super().counters()
