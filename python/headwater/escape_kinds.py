"""The ways bytes escape, each a wrapper that makes them stay for as long as they are used."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import BuiltinFunctionType
from typing import Any, TypeVar

import torch
from torch.overrides import has_torch_function_unary

from headwater import _C

_F = TypeVar("_F", bound=Callable[..., Any])

ABSENT = object()  # in place of a wrapper: the attribute is removed

# Functions that compare addresses or use them as keys, and never read what is there. They get a
# number that stays the same when the bytes move, and nothing is fetched for them.
_IDENTITY_CALLERS: dict[str, frozenset[str]] = {
    "torch._tensor": frozenset({"__deepcopy__", "_reduce_ex_internal"}),
    "torch.autograd.graph": frozenset({"_get_tid", "_get_sid"}),
    "torch.distributed.checkpoint._state_dict_stager": frozenset({"_offload_tensor"}),
    "torch.distributed.fsdp._flat_param": frozenset({"_same_storage"}),
    "torch.distributed.fsdp._fully_shard._fsdp_param": frozenset({"reset_sharded_param"}),
    "torch.distributed.fsdp._runtime_utils": frozenset({"_catch_all_reshard"}),
    "torch.distributed.utils": frozenset({"_data_ptr_allocated"}),
    "torch.nn.modules.rnn": frozenset({"flatten_parameters", "<setcomp>"}),
    "torch.serialization": frozenset({"persistent_id", "persistent_load", "load_tensor"}),
    "torch.storage": frozenset({"_to"}),
    "safetensors.torch": frozenset(
        {"storage_ptr", "_end_ptr", "_filter_shared_not_shared", "_is_complete"}
    ),
}

_thread = threading.local()


@contextmanager
def suspended() -> Iterator[None]:
    """Lets this thread read addresses unwrapped: what it reads is held already."""
    before = is_suspended()
    _thread.suspended = True
    try:
        yield
    finally:
        _thread.suspended = before


def wraps(original: Callable[..., Any]) -> Callable[[_F], _F]:
    """``functools.wraps``, and torch.compile traces a builtin in its wrapper's place."""

    def decorate(wrapper: _F) -> _F:
        functools.update_wrapper(wrapper, original)
        if isinstance(original, BuiltinFunctionType):
            wrapper._torchdynamo_inline = original  # type: ignore[attr-defined]
        return _untraced(wrapper)

    return decorate


def _untraced(function: _F) -> _F:
    """Keeps torch.compile from tracing a function and its callees, without importing Dynamo."""
    frames = torch._C._dynamo.eval_frame
    if hasattr(frames, "set_code_exec_strategy"):
        skip = frames._FrameAction.SKIP
        strategy = frames._FrameExecStrategy(skip, skip)
        frames.set_code_exec_strategy(function.__code__, strategy)
    return function


def call(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Bytes are read during the call only."""

    @wraps(original)
    def held_call(*args: Any, **kwargs: Any) -> Any:
        if is_suspended():
            return original(*args, **kwargs)
        with ExitStack() as holds:
            for owner in (*args, *kwargs.values()):
                _hold(owner, holds)
            return original(*args, **kwargs)

    return held_call


def contents(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Tensors inside a list are read with interception switched off by PyTorch."""

    @wraps(original)
    def held_contents(*args: Any, **kwargs: Any) -> Any:
        if is_suspended():
            return original(*args, **kwargs)
        with ExitStack() as holds:
            for value in (*args, *kwargs.values()):
                if isinstance(value, (list, tuple)):
                    _hold_inside(value, holds)
            return original(*args, **kwargs)

    return held_contents


def whole(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Reads the bytes of what it makes on the way: runs as one operator."""

    @wraps(original)
    def as_one_operator(*args: Any, **kwargs: Any) -> Any:
        if is_suspended():
            return original(*args, **kwargs)
        with _C.CompiledCall(list(_tensors_in((*args, *kwargs.values())))), suspended():
            return original(*args, **kwargs)

    return as_one_operator


def lengths(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Lengths, given or made, are read without an operator from then on, in backward too."""

    @wraps(original)
    def held_lengths(*args: Any, **kwargs: Any) -> Any:
        if is_suspended():
            return original(*args, **kwargs)
        _hold_lengths(args)
        result = original(*args, **kwargs)
        _hold_lengths(result)
        return result

    return held_lengths


def address(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A bare address leaves: nobody can tell for how long, so the bytes stay for the step."""

    @wraps(original)
    def held_address(owner: Any, *args: Any, **kwargs: Any) -> Any:
        if is_suspended():
            return original(owner, *args, **kwargs)
        if _asks_for_identity():
            return _identity(owner) if _C.is_managed(owner) else original(owner, *args, **kwargs)
        _C.hold_until_step_ends(owner)
        return original(owner, *args, **kwargs)

    return held_address


def export(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """An object over the bytes leaves: it is made over an alias, which holds while it lives."""
    during_call = call(original, name)

    @wraps(original)
    def held_export(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if is_suspended() or not isinstance(tensor, torch.Tensor):
            return original(tensor, *args, **kwargs)
        if has_torch_function_unary(tensor) or tensor.layout is not torch.strided:
            return original(tensor, *args, **kwargs)
        if tensor.is_conj() or tensor.is_neg():  # refused, or copied
            return during_call(tensor, *args, **kwargs)
        if tensor.requires_grad and torch.is_grad_enabled() and not kwargs.get("force"):
            return original(tensor, *args, **kwargs)  # refused
        return original(_C.held_alias(tensor.detach()), *args, **kwargs)

    return held_export


def permanent(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Another process or library keeps the address and never tells when it is done."""

    @wraps(original)
    def held_forever(owner: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_suspended():
            _C.hold_forever(owner)
        return original(owner, *args, **kwargs)

    return held_forever


def permanent_property(original: property, name: str) -> property:
    """``permanent`` for a property. It raises for CPU tensors, and then nothing is held."""

    def held_forever(tensor: torch.Tensor) -> Any:
        if tensor.is_cuda and not has_torch_function_unary(tensor) and not is_suspended():
            _C.hold_forever(tensor)
        return original.__get__(tensor)

    return property(held_forever, doc=original.__doc__)


def storage_item(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """One byte is read during the call; a slice is a storage over the same bytes."""
    during_call = call(original, name)

    @wraps(original)
    def held_item(storage: torch.UntypedStorage, index: Any) -> Any:
        if not isinstance(index, slice) or is_suspended() or not _C.is_managed(storage):
            return during_call(storage, index)
        whole = torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)
        return original(_C.held_alias(whole).untyped_storage(), index)

    return held_item


def refused(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Cannot work while bytes move."""

    @wraps(original)
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "This relies on tensors that never move, and cannot be used while Headwater is "
            f"enabled. Call headwater.disable() first: {name}"
        )

    return refuse


def hidden(original: Any, name: str) -> Any:
    """Has a substitute that is wrapped; callers fall back on it."""
    return ABSENT


def is_suspended() -> bool:
    """Whether this thread reads addresses unwrapped."""
    return getattr(_thread, "suspended", False)


def _hold(owner: Any, holds: ExitStack) -> None:
    if isinstance(owner, torch.Tensor):
        holds.enter_context(_C.hold(owner))
    elif isinstance(owner, torch.UntypedStorage):
        holds.enter_context(_C.hold_storage(owner))
    elif isinstance(owner, torch.TypedStorage):
        holds.enter_context(_C.hold_storage(owner._untyped_storage))


def _hold_lengths(values: Sequence[Any]) -> None:
    for tensor in _tensors_in(values):
        if tensor.dim() == 1 and tensor.dtype == torch.int64:
            _C.hold_forever(tensor)


def _tensors_in(values: Sequence[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors_in(value)


def _hold_inside(values: Sequence[Any], holds: ExitStack) -> None:
    # Long lists of numbers are common: the kinds of elements are found without a Python loop.
    if any(issubclass(kind, (torch.Tensor, list, tuple)) for kind in set(map(type, values))):
        for value in values:
            if isinstance(value, (list, tuple)):
                _hold_inside(value, holds)
            else:
                _hold(value, holds)


def _asks_for_identity() -> bool:
    frame = sys._getframe(2)
    while frame.f_back and frame.f_globals.get("__name__") == "torch.storage":
        if frame.f_code.co_name not in ("data_ptr", "_data_ptr"):
            break
        frame = frame.f_back
    callers = _IDENTITY_CALLERS.get(frame.f_globals.get("__name__", ""), frozenset())
    return frame.f_code.co_name in callers


def _identity(owner: torch.Tensor | torch.UntypedStorage) -> int:
    if isinstance(owner, torch.Tensor):
        offset = int(owner.storage_offset()) * owner.element_size()
        return int(owner.untyped_storage()._cdata) + offset
    return int(owner._cdata)
