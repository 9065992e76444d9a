"""A step ends when an optimizer has stepped, or the last of several that take turns."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook

from headwater import _C


class Rounds:
    """Tells when several optimizers, as of networks that train against each other, are through.

    A round is what repeats: ``A B A B`` has rounds of two, ``A A B A A B`` of three. As long as
    nothing repeats, every step of an optimizer counts as one.

    >>> rounds = Rounds()
    >>> [rounds.ends_with(optimizer) for optimizer in ("A", "B", "A", "B", "A", "B", "A", "B")]
    [True, True, True, True, False, True, False, True]
    """

    LONGEST = 8  # steps of optimizers in a round

    def __init__(self) -> None:
        self._order: deque[object] = deque(maxlen=2 * self.LONGEST)
        self._length = 1
        self._taken = 0  # steps of the round at hand

    def ends_with(self, optimizer: object) -> bool:
        """Notes that an optimizer has stepped; whether that ends a round."""
        self._order.append(optimizer)
        self._taken += 1
        length = self._repeating()
        if length != self._length:  # rounds are counted from here
            self._length = self._taken = length
        if self._taken < length:
            return False
        self._taken = 0
        return True

    def _repeating(self) -> int:
        """The length of the rounds if they go on, else of those that have just begun."""
        order = list(self._order)

        def repeats(length: int) -> bool:
            return order[-length:] == order[-2 * length : -length]

        if self._length > 1 and repeats(self._length) and len(set(order[-self._length :])) > 1:
            return self._length
        return next(filter(repeats, range(1, len(order) // 2 + 1)), 1)


def install() -> Callable[[], None]:
    """Ends a step after every round of the optimizers; returns the undo."""
    rounds = Rounds()

    def end_step(optimizer: object, *_: Any) -> None:
        if rounds.ends_with(id(optimizer)):
            _C.end_step()

    return register_optimizer_step_post_hook(end_step).remove
