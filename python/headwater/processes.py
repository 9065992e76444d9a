"""Forks and the end of the process, when other threads may be in the middle of an operator."""

from __future__ import annotations

import atexit
import os
import sys
import time

from headwater import _C

# Several times as long as a thread may keep the interpreter lock while others wait for it.
_MOMENT_SECONDS = 0.05


def install() -> None:
    """Lets operators come to rest around every fork, and for good before the interpreter ends.

    A forked child, such as a data loader's worker, has none of the parent's other threads, so what
    they had locked would stay locked. A thread that is in one of PyTorch's functions when the
    interpreter ends takes the process down with it.

    Called once, as Python cannot take it back. What is registered first is called last at exit,
    and others that run then may wait for their threads: so the earlier the better.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=_C.before_fork,
            after_in_parent=_C.after_fork,
            after_in_child=_C.after_fork_in_child,
        )
    atexit.register(_stop_threads)


def _stop_threads() -> None:
    _C.hold_back_other_threads()
    if len(sys._current_frames()) > 1:
        # A thread that has just left an operator waits for the interpreter lock. It goes on to its
        # next operator, and stays there.
        time.sleep(_MOMENT_SECONDS)
