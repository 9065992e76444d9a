"""Forked children: data loader workers and multiprocessing's fork start method."""

from __future__ import annotations

import os

from headwater import _C

_registered = False


def install() -> None:
    """Lets operators come to rest around every fork: a child has none of the parent's other
    threads, so what they had locked would stay locked. Registers once, as Python cannot take it
    back."""
    global _registered
    if not _registered and hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=_C.before_fork,
            after_in_parent=_C.after_fork,
            after_in_child=_C.after_fork,
        )
        _registered = True
