"""How fast bytes move between host and device: what a bound on a step is made of."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

PIECE_BYTES = 256 * 2**20
REPEATS = 12


def measure_link(device: str, tiny: bool) -> dict[str, float]:
    """Bytes a second each way alone, and both ways at once together; the median of several copies.

    On a CPU the copies are plain ones, which only tries the program out.
    """
    size = 2**20 if tiny else PIECE_BYTES
    cuda = device == "cuda"
    host = [torch.ones(size, dtype=torch.uint8, pin_memory=cuda) for _ in range(2)]
    near = [torch.ones(size, dtype=torch.uint8, device=device) for _ in range(2)]
    out, back = (torch.cuda.Stream() if cuda else None for _ in range(2))

    def leave() -> None:
        with torch.cuda.stream(out):
            host[0].copy_(near[0], non_blocking=True)

    def come() -> None:
        with torch.cuda.stream(back):
            near[1].copy_(host[1], non_blocking=True)

    def both() -> None:
        leave()
        come()

    return {
        "piece_bytes": size,
        "d2h_bytes_per_second": size / _seconds(leave, cuda),
        "h2d_bytes_per_second": size / _seconds(come, cuda),
        "both_bytes_per_second": 2 * size / _seconds(both, cuda),
    }


def _seconds(copy: Callable[[], None], cuda: bool) -> float:
    """The median; the first copy is a warm-up."""
    taken = []
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        copy()
        if cuda:
            torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:])
