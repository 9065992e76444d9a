"""Models whose state is many times the budget are built, trained, saved and loaded under it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from bits import as_bytes
from new_process import in_a_new_process

import headwater

SIDE = 256
LAYERS = 16
BUDGET = 8 * SIDE * SIDE * 4  # parameters, gradients and state of AdamW are eight times that


class Net(torch.nn.Module):
    def __init__(self, device: str) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(
            torch.nn.Linear(SIDE, SIDE, device=device) for _ in range(LAYERS)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


def train(net: Net, optimizer: torch.optim.Optimizer, steps: int, device: str) -> None:
    for _ in range(steps):
        net(torch.ones(4, SIDE, device=device)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def build(device: str) -> tuple[Net, torch.optim.Optimizer]:
    torch.manual_seed(1)
    net = Net(device)
    return net, torch.optim.AdamW(net.parameters(), lr=1e-3)


def bits(net: Net) -> list[bytes]:
    return [as_bytes(parameter.detach()) for parameter in net.parameters()]


@contextmanager
def small_budget(device: str) -> Iterator[None]:
    there = 0 if device == "cpu" else torch.cuda.memory_allocated()
    with headwater.budget(BUDGET + there, device=device):
        yield
        assert headwater.stats().peak_bytes <= headwater.stats().budget_bytes


@pytest.fixture
def expected(device: str) -> list[bytes]:
    net, optimizer = build(device)
    train(net, optimizer, 6, device)
    return bits(net)


def test_a_model_is_built_and_trained_under_a_budget(device: str, expected: list[bytes]) -> None:
    with small_budget(device):
        net, optimizer = build(device)
        train(net, optimizer, 6, device)
        assert headwater.stats().bytes_offloaded > 4 * BUDGET
    assert bits(net) == expected


def test_a_model_is_saved_and_loaded_under_a_budget(device: str, expected: list[bytes]) -> None:
    file = io.BytesIO()
    with small_budget(device):
        net, optimizer = build(device)
        train(net, optimizer, 3, device)
        torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, file)
        del net, optimizer
        other, optimizer = build(device)
        file.seek(0)
        state = torch.load(file, map_location=device)
        other.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        train(other, optimizer, 3, device)
    assert bits(other) == expected


def test_host_memory_goes_back_to_the_system() -> None:
    done = in_a_new_process(
        "import gc, torch, headwater\n"
        "def resident():\n"
        "    return int(open('/proc/self/statm').read().split()[1]) * 4096\n"
        "def use():\n"
        "    with headwater.budget('8MiB', device='cpu'):\n"
        "        kept = [torch.ones(1 << 20) + i for i in range(100)]\n"
        "        peak = resident()\n"
        "        del kept\n"
        "    gc.collect()\n"
        "    return peak\n"
        "use()\n"
        "before = resident()\n"
        "peak = use()\n"
        "print(peak - before > 300 << 20, resident() < 1.05 * before)\n"
    )
    assert done.stdout.split() == ["True", "True"], done.stderr
