"""What ``headwater.hold`` returns."""

from __future__ import annotations

from typing import Protocol


class Hold(Protocol):
    """Keeps a tensor's bytes on the device until released or until its block ends."""

    def release(self) -> None:
        """Lets the bytes leave again."""

    def __enter__(self) -> Hold: ...
    def __exit__(self, *exception: object) -> None: ...


class NoHold:
    """The hold handed out while Headwater is off, when bytes stay anyway."""

    def release(self) -> None:
        """Does nothing."""

    def __enter__(self) -> NoHold:
        return self

    def __exit__(self, *exception: object) -> None:
        pass
