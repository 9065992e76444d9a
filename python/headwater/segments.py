"""The allocator's segments on a GPU: they grow, and give back what is free within them.

Tensors that come and go leave gaps. PyTorch's usual segments keep a gap until all of a segment is
free, so a device can be full of gaps none of which is large enough. Expandable segments return
them page by page when the device has no more.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import torch

_SETTING = "expandable_segments"
_VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


def install(device: str) -> Callable[[], None]:
    """Lets segments made from now on expand, unless the user has chosen; returns the undo."""
    if not device.startswith("cuda") or chosen_by_user(os.environ) or not _native():
        return _nothing
    torch.cuda.empty_cache()  # what is cached would stay as it is
    before = ",".join(filter(None, map(os.environ.get, _VARIABLES)))
    _set(before, "True")
    return lambda: _set(before, "False")


def chosen_by_user(environment: os._Environ[str] | dict[str, str]) -> bool:
    """Whether an environment variable of PyTorch's speaks of expandable segments.

    >>> chosen_by_user({"PYTORCH_ALLOC_CONF": "expandable_segments:False"})
    True
    """
    return any(_SETTING in environment.get(name, "") for name in _VARIABLES)


def _native() -> bool:
    return torch.cuda.get_allocator_backend() == "native"


def _set(before: str, value: str) -> None:
    # Settings that are not named fall back to their defaults: the user's are named again.
    settings = f"{before},{_SETTING}:{value}" if before else f"{_SETTING}:{value}"
    torch._C._accelerator_setAllocatorSettings(settings)


def _nothing() -> None:
    """There is nothing to undo."""
