"""What a sample runs under: Headwater at its smallest budget or with room, or nothing at all."""

import importlib
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Counters:
    """Running totals; ``num_moves`` is None where nothing is expected to move."""

    num_moves: int | None
    pinned_bytes: int


class Manager(Protocol):
    """Switches management of tensors on and off and says what it has done."""

    def enable(self, device: str) -> None: ...

    def disable(self) -> None: ...

    def end_step(self) -> None: ...

    def counters(self) -> Counters: ...


class Headwater:
    """Every tensor, however small, leaves the device after every operator."""

    def __init__(self) -> None:
        import headwater

        self._headwater = headwater

    def enable(self, device: str) -> None:
        self._headwater.enable(budget="minimum", device=device, min_tensor_bytes=1)

    def disable(self) -> None:
        self._headwater.disable()

    def end_step(self) -> None:
        """Releases pointers that were asked for and live to the end of the step."""
        self._headwater._C.end_step()

    def counters(self) -> Counters:
        stats = self._headwater._C.stats()
        moves = stats["num_offloads"] + stats["num_clean_drops"]
        return Counters(int(moves), int(stats["pinned_bytes"]))


class HeadwaterWithRoom(Headwater):
    """Every tensor is managed and none has to move: the way operators go when all of it fits."""

    def enable(self, device: str) -> None:
        self._headwater.enable(budget="4GiB", device=device, min_tensor_bytes=1)

    def counters(self) -> Counters:
        return Counters(None, super().counters().pinned_bytes)


class Plain:
    """No management: the harness run against itself, for timing and for its own tests."""

    def enable(self, device: str) -> None:
        pass

    def disable(self) -> None:
        pass

    def end_step(self) -> None:
        pass

    def counters(self) -> Counters:
        return Counters(None, 0)


HEADWATER = f"{__name__}:Headwater"
WITH_ROOM = f"{__name__}:HeadwaterWithRoom"
PLAIN = f"{__name__}:Plain"


def load(path: str) -> Manager:
    """Makes the manager that ``module:Class`` names.

    >>> load(PLAIN).counters()
    Counters(num_moves=None, pinned_bytes=0)
    """
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)()
