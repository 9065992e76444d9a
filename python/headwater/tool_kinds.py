"""Wrappers for PyTorch's own tools that look at tensors, or at how operators are dispatched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from headwater import _C
from headwater.escape_kinds import is_suspended, suspended, wraps


def script_module(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Reads all its parameters and buffers, and what it makes: runs as one operator."""

    @wraps(original)
    def as_one_operator(module: Any, *args: Any, **kwargs: Any) -> Any:
        if is_suspended():
            return original(module, *args, **kwargs)
        with _C.CompiledCall(list(_script_tensors(module))), suspended():
            return original(module, *args, **kwargs)

    return as_one_operator


def without_our_key(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Operators over functions have kernels by key and none for ours: what they call is managed."""
    ours = torch._C._parse_dispatch_key(_C.intercept_key())

    @wraps(original)
    def other_keys(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs).remove(ours)

    return other_keys


def expect_readers() -> None:
    """Absent bytes may be asked for their addresses from now on."""
    _C.expect_readers()


def reads_all(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """From then on addresses of all operators' arguments are written down, and none is used."""

    @wraps(original)
    def announced(*args: Any, **kwargs: Any) -> Any:
        expect_readers()
        return original(*args, **kwargs)

    return announced


def attached_afterwards(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Puts back how operators were dispatched before; Headwater may be enabled since."""

    @wraps(original)
    def attached(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        _C.attach_thread()
        return result

    return attached


def _script_tensors(module: Any) -> Iterator[torch.Tensor]:
    for kind in (torch._C.ParameterDict, torch._C.BufferDict):
        yield from (tensor for _, tensor in kind(module).items())  # type: ignore[union-attr]
    for _, child in torch._C.ModuleDict(module).items():
        yield from _script_tensors(child)
