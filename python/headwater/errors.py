"""Exceptions of Headwater."""

from __future__ import annotations

import torch


class OutOfMemory(torch.OutOfMemoryError):
    """A request that no amount of moving makes fit. Nothing was lost; the process can go on.

    All sizes are in bytes. ``smallest_budget`` is the least budget under which the same request
    succeeds; ``op`` is empty where no operator asked.

    >>> try:
    ...     raise OutOfMemory("does not fit", op="aten::mm", working_set=300, budget=200)
    ... except torch.OutOfMemoryError as error:
    ...     print(error, error.op, error.working_set)
    does not fit aten::mm 300
    """

    def __init__(
        self,
        message: str,
        op: str = "",
        working_set: int = 0,
        budget: int = 0,
        pinned: int = 0,
        smallest_budget: int = 0,
    ) -> None:
        super().__init__(message)
        self.op = op
        self.working_set = working_set
        self.budget = budget
        self.pinned = pinned
        self.smallest_budget = smallest_budget
