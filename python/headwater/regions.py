"""What is to become of tensors, by the user's say: of those made in a block, or one by one."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import ContextDecorator
from types import TracebackType

from torch import Tensor

from headwater.options import disabled_by_environment

_WISHES = {"keep": 1, "offload": 2, "recompute": 3}  # by their numbers in C++; 0: none


Policy = Callable[[str, Tensor], "str | None"]


class region(ContextDecorator):  # noqa: N801  used as a function
    """Says what is to become of the tensors that operators make in a block, or in a function.

    ``"recompute"``: their bytes are given up without a copy, and the operators run again when
    somebody needs them. Exact: random numbers, batch norm's statistics and in-place changes come
    out as they were, and what cannot be made again with the same bits is offloaded.
    ``"offload"``: their bytes are copied to the host, even where making them again would be faster.
    ``"keep"``: plans send others away before them. Outside of regions, measured times decide once
    steps repeat. Regions nest, and the inner one counts; each thread has its own. Raises ValueError
    on another choice.

    >>> with headwater.region("recompute"):
    ...     hidden = torch.nn.functional.gelu(norm(hidden))
    """

    def __init__(self, choice: str) -> None:
        if choice not in _WISHES:
            raise ValueError(f"Region is one of {', '.join(map(repr, _WISHES))}: {choice!r}")
        self._choice = choice
        self._before: list[int] = []

    def _recreate_cm(self) -> region:
        return region(self._choice)  # calls of a decorated function may overlap

    def __enter__(self) -> region:
        self._before.append(_set_wish(_WISHES[self._choice]))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _set_wish(self._before.pop())


def set_policy(policy: Policy | None) -> None:
    """Lets a function say what is to become of the tensors that operators make, outside of regions.

    It is called with an operator's name and its first result, once for each kind of operator and
    shapes of its arguments, and returns ``"keep"``, ``"offload"``, ``"recompute"``, or None to
    leave it to measured times. It may look at the tensor but not change it. What it says counts
    from the plan after the next. ``set_policy(None)`` ends that. Raises RuntimeError if not
    enabled; what the function raises, and ValueError for another answer, comes out of the operator.

    >>> headwater.set_policy(lambda op, made: "keep" if op == "aten::mm" else None)
    """
    if disabled_by_environment():
        return

    def ask(op: str, made: Tensor) -> int:
        assert policy is not None
        if (choice := policy(op, made)) is not None and choice not in _WISHES:
            raise ValueError(
                f"A policy says one of {', '.join(map(repr, _WISHES))} or None: {choice!r}"
            )
        return 0 if choice is None else _WISHES[choice]

    importlib.import_module("headwater._C").set_policy(None if policy is None else ask)


def _set_wish(wish: int) -> int:
    if disabled_by_environment():
        return 0
    before: int = importlib.import_module("headwater._C").set_wish(wish)
    return before
