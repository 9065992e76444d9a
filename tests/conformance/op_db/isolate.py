"""Gives a sample its own bytes, so that no other sample's writes can reach it."""

from dataclasses import dataclass, field

import torch
from torch.testing._internal.opinfo.core import SampleInput

from .bits import is_dense, tensors


@dataclass
class _Shared:
    """Tensors of one sample over the same bytes, and how many elements they reach."""

    members: list[torch.Tensor] = field(default_factory=list)
    num_elements: int = 0


def isolate(sample: SampleInput) -> SampleInput:
    """A copy with the same values, strides, offsets and aliases; its tensors are leaves.

    Samples of one operator may share tensors, and some operators write to them: without a copy, a
    result would depend on which samples ran before.
    """
    copies: dict[int, torch.Tensor] = {}
    for shared in _by_bytes(tensors([sample.input, sample.args, sample.kwargs])):
        copies.update(_copy(shared))

    def copied(value: object) -> object:
        return copies[id(value)] if isinstance(value, torch.Tensor) else value

    return sample.transform(copied)


def _by_bytes(values: list[torch.Tensor]) -> list[_Shared]:
    found: list[_Shared] = []
    for value in values:
        shared = next((s for s in found if _share_bytes(s.members[0], value)), None)
        if shared is None:
            shared = _Shared()
            found.append(shared)
        shared.members.append(value)
        shared.num_elements = max(shared.num_elements, _reach(value))
    return found


def _share_bytes(left: torch.Tensor, right: torch.Tensor) -> bool:
    if left is right:
        return True
    if not (is_dense(left) and is_dense(right)) or left.dtype != right.dtype:
        return False
    return torch._C._is_alias_of(left, right)


def _reach(value: torch.Tensor) -> int:
    if not is_dense(value) or value.numel() == 0:
        return 0
    last = sum((size - 1) * step for size, step in zip(value.shape, value.stride(), strict=True))
    return value.storage_offset() + last + 1


def _copy(shared: _Shared) -> dict[int, torch.Tensor]:
    first = shared.members[0]
    with torch.no_grad():
        if not is_dense(first) or first.device.type == "meta":
            copy = first.detach().clone()
            return {id(value): _like(copy, value) for value in shared.members}
        base = _plain_bits(first).as_strided((shared.num_elements,), (1,), 0).clone()
        return {id(value): _like(_view(base, value), value) for value in shared.members}


def _view(base: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    if value.numel() == 0:
        return value.detach().clone()
    view = base.as_strided(value.shape, value.stride(), value.storage_offset()).detach()
    if value.is_conj():
        view = view.conj()
    return torch._neg_view(view) if value.is_neg() else view


def _plain_bits(value: torch.Tensor) -> torch.Tensor:
    """The stored bytes, without the marks that say they are to be read conjugated or negated."""
    value = value.detach()
    if value.is_neg():
        value = torch._neg_view(value)
    return value.conj() if value.is_conj() else value


def _like(copy: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    if isinstance(value, torch.nn.Parameter):
        return torch.nn.Parameter(copy, requires_grad=value.requires_grad)
    return copy.requires_grad_(value.requires_grad) if value.requires_grad else copy
