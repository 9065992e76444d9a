"""Interception is a property of a thread: every Python thread has to switch it on for itself."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from headwater import _C


def install() -> Callable[[], None]:
    """Attaches threads alive now and those started later; returns the undo.

    PyTorch itself carries interception into the threads of its autograd engine.
    """
    # The method every Thread runs first, whether a subclass overrides run() or not.
    original = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    @functools.wraps(original)
    def attach_and_run(self: threading.Thread, *args: Any) -> Any:
        if _C.is_enabled():
            _C.attach_thread()
        return original(self, *args)

    def undo() -> None:
        threading.Thread._bootstrap_inner = original  # type: ignore[attr-defined]

    threading.Thread._bootstrap_inner = attach_and_run  # type: ignore[attr-defined]
    _C.attach_all_threads()
    return undo
