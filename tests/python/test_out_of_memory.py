"""Too little memory: a clear error, nothing lost, and the process goes on."""

from __future__ import annotations

import pytest
import torch
from bits import as_bytes

import headwater

MIB = 2**20


def test_an_operator_above_the_budget_raises_and_names_its_numbers(device: str) -> None:
    a, b = torch.ones(512, 512, device=device), torch.ones(512, 512, device=device)
    headwater.enable("1MiB", device=device, min_tensor_bytes=1)
    with pytest.raises(headwater.OutOfMemory) as caught:
        torch.mm(a, b)
    error = caught.value
    assert isinstance(error, torch.OutOfMemoryError)
    assert "mm" in error.op and "mm" in str(error)
    assert error.working_set >= 2 * MIB
    assert error.budget == MIB
    assert error.pinned == 0
    assert error.smallest_budget >= error.working_set


def test_the_process_goes_on_after_out_of_memory(device: str) -> None:
    a = torch.ones(512, 512, device=device)
    headwater.enable("1MiB", device=device, min_tensor_bytes=1)
    with pytest.raises(headwater.OutOfMemory):
        torch.mm(a, a.t().contiguous())
    assert headwater.stats().pinned_bytes == 0
    assert torch.ones(16, device=device).add(1).tolist() == [2.0] * 16


def test_the_smallest_budget_named_is_enough(device: str) -> None:
    a, b = torch.ones(512, 512, device=device), torch.ones(512, 512, device=device)
    headwater.enable("1MiB", device=device, min_tensor_bytes=1)
    with pytest.raises(headwater.OutOfMemory) as caught:
        torch.mm(a, b)
    headwater.set_budget(caught.value.smallest_budget)
    assert torch.mm(a, b)[0, 0].item() == 512
    assert headwater.stats().peak_bytes <= caught.value.smallest_budget


def test_out_of_memory_inside_a_backward_pass_can_be_recovered_from(device: str) -> None:
    x = torch.ones(512, 512, device=device, requires_grad=True)
    headwater.enable("8MiB", device=device, min_tensor_bytes=1)
    y = (x @ x).sum()
    headwater.set_budget("1MiB")
    with pytest.raises(torch.OutOfMemoryError):
        y.backward()
    headwater.set_budget("8MiB")
    x.grad = None
    (x @ x).sum().backward()
    assert x.grad is not None
    assert x.grad[0, 0].item() == 1024


def test_what_is_held_by_hand_counts_as_pinned(device: str) -> None:
    held = torch.ones(512, 512, device=device)
    other = torch.ones(512, 512, device=device)
    headwater.enable("1536KiB", device=device, min_tensor_bytes=1)
    with headwater.hold(held):
        with pytest.raises(headwater.OutOfMemory) as caught:
            other.add_(1)
        assert caught.value.pinned == MIB
    assert other.add_(1)[0, 0].item() == 2


def test_too_little_host_memory_raises_and_loses_nothing(device: str) -> None:
    headwater.enable("1MiB", device=device, host_budget="1MiB", min_tensor_bytes=1)
    made: list[torch.Tensor] = []
    with pytest.raises(headwater.OutOfMemory, match=r"[Hh]ost"):
        for n in range(64):
            made.append(torch.full((64 * 1024,), float(n), device=device))
    assert 0 < len(made) < 64
    headwater.disable()
    for n, tensor in enumerate(made):
        assert as_bytes(tensor) == as_bytes(torch.full((64 * 1024,), float(n)))


def test_training_at_the_smallest_budget_named_gives_the_same_bits(device: str) -> None:
    def train() -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.Linear(128, 8)).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(32, 64, device=device)).sum().backward()
            optimizer.step()
        return [p.detach() for p in model.parameters()]

    plain = train()
    budget = 1
    while True:
        try:
            with headwater.budget(budget, device=device, min_tensor_bytes=1):
                small = train()
            break
        except headwater.OutOfMemory as error:
            assert error.smallest_budget > budget
            budget = error.smallest_budget
    assert [as_bytes(t) for t in small] == [as_bytes(t) for t in plain]
