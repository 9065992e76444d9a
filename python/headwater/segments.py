"""The allocator's segments on a GPU: they grow, and give back what is free within them.

Tensors that come and go leave gaps. PyTorch's usual segments keep a gap until all of a segment is
free, so a device can be full of gaps none of which is large enough. Expandable segments return
them page by page when the device has no more.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import torch

_EXPANDABLE = "expandable_segments"
_PAGE = "large_segment_size_mb"  # of expandable segments too: what they map and return at once
_VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")

# The smallest page that PyTorch takes (more than 10) and that is a multiple of the device's 2 MiB.
_SMALL_PAGES = f"{_PAGE}:12"
_USUAL_PAGES = f"{_PAGE}:20"


def install(device: str) -> Callable[[], None]:
    """Lets segments made from now on expand, unless the user has chosen; returns the undo.

    Their pages are small, so that a smaller gap can be returned.
    """
    if not device.startswith("cuda") or chosen_by_user(os.environ) or not _native():
        return _nothing
    torch.cuda.empty_cache()  # what is cached would stay as it is
    before = list(filter(None, map(os.environ.get, _VARIABLES)))
    if not chosen_by_user(os.environ, _PAGE) and _try_set(before, True, _SMALL_PAGES):
        return lambda: _set(before, False, _USUAL_PAGES)
    _set(before, True)
    return lambda: _set(before, False)


def chosen_by_user(
    environment: os._Environ[str] | dict[str, str], setting: str = _EXPANDABLE
) -> bool:
    """Whether an environment variable of PyTorch's speaks of expandable segments.

    >>> chosen_by_user({"PYTORCH_ALLOC_CONF": "expandable_segments:False"})
    True
    """
    return any(setting in environment.get(name, "") for name in _VARIABLES)


def _native() -> bool:
    return torch.cuda.get_allocator_backend() == "native"


def _try_set(before: list[str], expandable: bool, pages: str) -> bool:
    try:
        _set(before, expandable, pages)
    except (RuntimeError, ValueError):  # a build that knows no such setting
        return False
    return True


def _set(before: list[str], expandable: bool, *others: str) -> None:
    # Some settings that are not named fall back to their defaults: the user's are named again.
    settings = [*before, f"{_EXPANDABLE}:{expandable}", *others]
    torch._C._accelerator_setAllocatorSettings(",".join(settings))


def _nothing() -> None:
    """There is nothing to undo."""
