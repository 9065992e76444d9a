"""Comparing bits with and without Headwater, and making tensors whose bytes are away."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
import torch

import headwater

DEVICES = ["cpu"]
if torch.cuda.is_available():
    DEVICES.append(pytest.param("cuda", marks=pytest.mark.gpu))  # type: ignore[arg-type]

Program = Callable[[str], Iterable[torch.Tensor]]


def enable_minimum(device: str) -> None:
    headwater.enable("minimum", device=device, min_tensor_bytes=1)


def send_away(*tensors: torch.Tensor) -> None:
    """Makes the tensors' bytes leave, by running an operator that does not need them."""
    from headwater import _C

    torch.ones(16, device=tensors[0].device).add_(1)
    for tensor in tensors:
        assert _C.is_managed(tensor)
        assert not _C.is_resident(tensor)


def away(values: torch.Tensor) -> torch.Tensor:
    """A copy of ``values`` that is managed and whose bytes are away."""
    copy = values.clone()
    send_away(copy)
    return copy


def as_bytes(tensor: torch.Tensor) -> bytes:
    return tensor.detach().cpu().contiguous().resolve_conj().resolve_neg().numpy().tobytes()


def assert_same_bits(first: Iterable[torch.Tensor], second: Iterable[torch.Tensor]) -> None:
    first, second = list(first), list(second)
    assert [(t.shape, t.dtype) for t in first] == [(t.shape, t.dtype) for t in second]
    assert [as_bytes(t) for t in first] == [as_bytes(t) for t in second]


def assert_unchanged_by_headwater(
    program: Program, device: str, budget: int | str = "minimum"
) -> None:
    """Runs a program plainly and under a budget: bytes must move, and no bit may differ."""
    torch.manual_seed(0)
    plain = list(program(device))
    torch.manual_seed(0)
    with headwater.budget(budget, device=device, min_tensor_bytes=1):
        managed = list(program(device))
        assert headwater.stats().bytes_offloaded > 0
        assert headwater.stats().pinned_bytes == 0
    assert_same_bits(plain, managed)
