"""A step ends when an optimizer has stepped."""

from __future__ import annotations

from collections.abc import Callable

from torch.optim.optimizer import register_optimizer_step_post_hook

from headwater import _C


def install() -> Callable[[], None]:
    """Ends a step after every optimizer's step; returns the undo."""
    return register_optimizer_step_post_hook(_end_step).remove


def _end_step(*_: object) -> None:
    _C.end_step()
