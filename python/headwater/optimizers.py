"""Optimizers that work on lists of tensors go through them piece by piece while room is short.

PyTorch's own make a dozen passes over all parameters and their state, one operator a pass. Where
these do not all fit, every pass would move all of them. Every element is updated on its own, so
all passes over one piece may run before the next piece, with the same bits; its tensors then move
once a step.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import torch

from headwater import _C

Update = Callable[..., None]

# Modules of torch.optim with such a function; one that a version of PyTorch lacks is left out.
_ALGORITHMS = (
    "_adafactor",
    "adadelta",
    "adagrad",
    "adam",
    "adamax",
    "asgd",
    "nadam",
    "radam",
    "rmsprop",
    "rprop",
    "sgd",
)


def install() -> Callable[[], None]:
    """Cuts the updates of PyTorch's optimizers; returns the undo."""
    with ExitStack() as changes:
        for algorithm in _ALGORITHMS:
            module = importlib.import_module(f"torch.optim.{algorithm}")
            name = f"_multi_tensor_{algorithm.lstrip('_')}"
            if (update := getattr(module, name, None)) is not None:
                setattr(module, name, in_pieces(update))
                changes.callback(setattr, module, name, update)
        return changes.pop_all().close


def in_pieces(update: Update) -> Update:
    """The same update, over as many elements at a time as there is room for."""

    @functools.wraps(update)
    def run(params: list[torch.Tensor], *arguments: Any, **options: Any) -> None:
        room = _C.piece_bytes()
        if room is None or len(params) < 2:
            update(params, *arguments, **options)
            return
        lists = [params, *(n for n in arguments if _belongs_to(n, params))]
        for piece in cut([_bytes_of(elements) for elements in zip(*lists, strict=True)], room):
            parts = [n[piece] if _belongs_to(n, params) else n for n in arguments]
            update(params[piece], *parts, **options)
            for whole, part in zip(arguments, parts, strict=True):
                if whole is not part:
                    whole[piece] = part  # an update may have made state

    return run


def cut(sizes: Sequence[int], room: int) -> Iterator[slice]:
    """Runs of elements that fit the room; one that does not fit is alone.

    >>> list(cut([3, 3, 3, 9, 1], 6))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None), slice(4, 5, None)]
    """
    begin, taken = 0, 0
    for i, size in enumerate(sizes):
        if i > begin and taken + size > room:
            yield slice(begin, i)
            begin, taken = i, 0
        taken += size
    if sizes:
        yield slice(begin, len(sizes))


def _belongs_to(argument: object, params: list[torch.Tensor]) -> bool:
    return isinstance(argument, list) and len(argument) == len(params)


def _bytes_of(elements: Sequence[object]) -> int:
    return sum(n.nbytes for n in elements if isinstance(n, torch.Tensor))
