"""Forked children: data loader workers and multiprocessing's fork start method."""

from __future__ import annotations

import os

from headwater import _C

_registered = False


def install() -> None:
    """Tells the compiled module of every fork. Registers once, as Python cannot take it back."""
    global _registered
    if not _registered and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork_in_child)
        _registered = True


def _after_fork_in_child() -> None:
    # The threads that copy bytes live in the parent only.
    if _C.is_enabled() and hasattr(_C, "after_fork_in_child"):
        _C.after_fork_in_child()
