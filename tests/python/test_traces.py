"""Steps can be written to a file and read elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from bits import enable_minimum
from torch import nn

import headwater

WIDTH, LAYERS, STEPS = 256, 4, 4
ACTIVATION_BYTES = 64 * WIDTH * 4


def train(device: str, steps: int = STEPS) -> None:
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()) for _ in range(LAYERS)]
    net = nn.Sequential(*layers).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.ones(64, WIDTH, device=device)).square().mean().backward()
        optimizer.step()


@pytest.mark.parametrize("budget", ["1GiB", "minimum"])
def test_steps_are_written_down_whether_they_fit_or_not(
    budget: str, device: str, tmp_path: Path
) -> None:
    headwater.enable(budget, device=device)
    train(device)
    with headwater.trace(tmp_path / "steps.hwt"):
        train(device)
    found = headwater.read_trace(tmp_path / "steps.hwt")
    assert found.device.startswith(device)
    assert len(found.steps) == STEPS
    last = found.steps[-1]
    assert last.ops["aten::tanh"].num_ops == LAYERS
    assert last.ops["aten::tanh"].made_bytes == LAYERS * ACTIVATION_BYTES
    assert last.num_ops == sum(share.num_ops for share in last.ops.values())
    assert LAYERS * ACTIVATION_BYTES < last.peak_bytes < last.bytes_without_release
    assert [step.number for step in found.steps] == sorted(step.number for step in found.steps)


def test_a_trace_stands_by_again_afterwards(tmp_path: Path) -> None:
    headwater.enable("4GiB", device="cpu")
    train("cpu")
    assert headwater.stats().standing_by
    with headwater.trace(tmp_path / "steps.hwt"):
        assert not headwater.stats().standing_by
        train("cpu")
    train("cpu")
    assert headwater.stats().standing_by


def test_an_error_in_the_block_leaves_the_file(tmp_path: Path) -> None:
    enable_minimum("cpu")
    with pytest.raises(ZeroDivisionError), headwater.trace(tmp_path / "steps.hwt"):
        train("cpu", steps=2)
        raise ZeroDivisionError
    assert len(headwater.read_trace(tmp_path / "steps.hwt").steps) == 2


def test_one_trace_at_a_time(tmp_path: Path) -> None:
    enable_minimum("cpu")
    with headwater.trace(tmp_path / "first.hwt"):
        with pytest.raises(RuntimeError, match="kept already"):  # noqa: SIM117
            with headwater.trace(tmp_path / "second.hwt"):
                pass
        train("cpu", steps=1)
    assert len(headwater.read_trace(tmp_path / "first.hwt").steps) == 1
    assert not (tmp_path / "second.hwt").exists()


def test_a_trace_may_outlive_its_session(tmp_path: Path) -> None:
    enable_minimum("cpu")
    with headwater.trace(tmp_path / "steps.hwt"):
        train("cpu", steps=2)
        headwater.disable()
    assert len(headwater.read_trace(tmp_path / "steps.hwt").steps) == 2


def test_nothing_is_traced_unless_enabled(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="not enabled"), headwater.trace(tmp_path / "no.hwt"):
        pass
    assert not (tmp_path / "no.hwt").exists()


def test_foreign_and_missing_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "foreign").write_bytes(b"something else altogether")
    for name in ("foreign", "missing"):
        with pytest.raises(ValueError, match=name):
            headwater.read_trace(tmp_path / name)
