"""Interception is a property of a thread: every Python thread has to switch it on for itself."""

from __future__ import annotations

import _thread
import functools
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from headwater import _C

_Starter = Callable[..., Any]

# Every thread that Python starts begins in one of these, ``threading.Thread`` included. Which of
# them there are depends on Python's version.
_STARTERS = ("start_new_thread", "start_new", "start_joinable_thread")


def install() -> Callable[[], None]:
    """Attaches threads alive now and those started later; returns the undo.

    PyTorch itself carries interception into the threads of its autograd engine.
    """
    originals = [getattr(_thread, name) for name in _STARTERS if hasattr(_thread, name)]
    _exchange({original: _attaching(original) for original in originals})
    _C.attach_all_threads()
    return functools.partial(_exchange, {_attaching(original): original for original in originals})


def _exchange(substitutes: Mapping[_Starter, _Starter]) -> None:
    """Exchanges functions wherever a module has them, ``from _thread import …`` included."""
    by_id = {id(function): substitute for function, substitute in substitutes.items()}
    modules = [module for module in list(sys.modules.values()) if isinstance(module, ModuleType)]
    for names in map(vars, modules):
        for name, value in list(names.items()):
            if id(value) in by_id:
                names[name] = by_id[id(value)]


@functools.cache
def _attaching(original: _Starter) -> _Starter:
    """A starter whose threads attach first. One for each, so that the undo knows it again."""

    @functools.wraps(original)
    def start(function: Any, *args: Any, **kwargs: Any) -> Any:
        attached = _attached(function) if callable(function) and _C.is_enabled() else function
        return original(attached, *args, **kwargs)

    return start


def _attached(function: Callable[..., Any]) -> Callable[..., Any]:
    attach = _C.attach_thread

    @functools.wraps(function)  # Python names the function when it dies of an error
    def attach_and_run(*args: Any, **kwargs: Any) -> Any:
        attach()
        return function(*args, **kwargs)

    return attach_and_run
