"""What fits neither the device nor the host goes to disk, and nothing of it stays behind."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from bits import as_bytes
from new_process import in_a_new_process

import headwater

MIB = 1 << 20
SIDE = 256
LAYERS = 8
BUDGET = 2 * MIB
HOST_BUDGET = MIB


def train(device: str, steps: int = 5) -> list[bytes]:
    """Trains and returns every bit of losses, parameters and optimizer state (8 MiB)."""
    torch.manual_seed(1)
    layers = [torch.nn.Linear(SIDE, SIDE, device=device) for _ in range(LAYERS)]
    net = torch.nn.Sequential(*(part for layer in layers for part in (layer, torch.nn.GELU())))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    losses = []
    for _ in range(steps):
        loss = net(torch.randn(32, SIDE, device=device)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    state = [value for entry in optimizer.state.values() for value in entry.values()]
    return [as_bytes(tensor) for tensor in [*losses, *net.parameters(), *state]]


def test_a_model_larger_than_device_and_host_trains_with_the_same_bits(
    device: str, tmp_path: Path
) -> None:
    plain = train(device)
    there = 0 if device == "cpu" else torch.cuda.memory_allocated()
    with headwater.budget(BUDGET + there, device=device, host_budget=HOST_BUDGET, disk=tmp_path):
        assert train(device) == plain
        stats = headwater.stats()
    assert stats.bytes_stowed > 8 * MIB
    assert stats.bytes_recalled > 8 * MIB
    assert stats.peak_bytes <= BUDGET + there
    assert list(tmp_path.iterdir()) == []


def test_statistics_tell_what_is_on_disk_and_disabling_brings_it_back(tmp_path: Path) -> None:
    headwater.enable(MIB, device="cpu", host_budget=MIB, disk=tmp_path, disk_budget="16MiB")
    made = [torch.full((64 * 1024,), float(n)) for n in range(32)]
    stats = headwater.stats()
    assert stats.host_bytes <= MIB
    assert stats.managed_bytes == 8 * MIB
    assert 6 * MIB <= stats.disk_bytes <= 16 * MIB
    headwater.disable()
    for n, tensor in enumerate(made):
        assert as_bytes(tensor) == as_bytes(torch.full((64 * 1024,), float(n)))


def test_a_full_disk_raises_and_loses_nothing(tmp_path: Path) -> None:
    headwater.enable(MIB, device="cpu", host_budget=MIB, disk=tmp_path, disk_budget=2 * MIB)
    made: list[torch.Tensor] = []
    with pytest.raises(headwater.OutOfMemory, match="disk_budget"):
        for n in range(64):
            made.append(torch.full((64 * 1024,), float(n)))
    assert 16 <= len(made) < 20
    headwater.disable()
    for n, tensor in enumerate(made):
        assert as_bytes(tensor) == as_bytes(torch.full((64 * 1024,), float(n)))


def test_a_folder_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    not_a_folder = tmp_path / "file"
    not_a_folder.touch()
    for folder in (tmp_path / "absent", not_a_folder, Path("/proc")):
        with pytest.raises(ValueError, match="Disk folder cannot be used"):
            headwater.enable("minimum", device="cpu", disk=folder)
        assert not headwater.is_enabled()


def test_a_disk_budget_needs_a_disk() -> None:
    with pytest.raises(ValueError, match="Disk budget without a disk"):
        headwater.enable("minimum", device="cpu", disk_budget="1GiB")
    with pytest.raises(ValueError, match="disk_budget"):
        headwater.enable("minimum", device="cpu", disk=".", disk_budget=0)


def test_the_environment_names_the_disk_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWATER_DISK", str(tmp_path))
    monkeypatch.setenv("HEADWATER_DISK_BUDGET", "16MiB")
    with headwater.budget(MIB, device="cpu", host_budget=MIB):
        made = [torch.ones(64 * 1024) for _ in range(16)]
        assert headwater.stats().bytes_stowed > 0
    assert len(made) == 16


START = (
    "import os, sys, torch, headwater\n"
    "headwater.enable('1MiB', device='cpu', host_budget='1MiB', disk=sys.argv[1])\n"
    "kept = [torch.full((64 * 1024,), float(n)) for n in range(32)]\n"
    "assert headwater.stats().bytes_stowed > 0\n"
)


def test_a_killed_process_leaves_nothing_behind(tmp_path: Path) -> None:
    program = START + "print('on disk', flush=True)\nwhile True: [t.add_(1) for t in kept]\n"
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process, process.stdout:
        select.select([process.stdout], [], [], 120)
        assert process.stdout.readline() == "on disk\n"
        open_files = [os.readlink(file) for file in Path(f"/proc/{process.pid}/fd").iterdir()]
        assert any(name.startswith(str(tmp_path)) for name in open_files)
        process.send_signal(signal.SIGKILL)
    assert list(tmp_path.iterdir()) == []


def test_a_process_may_end_with_tensors_on_disk(tmp_path: Path) -> None:
    done = in_a_new_process(START.replace("sys.argv[1]", repr(str(tmp_path))) + "print('end')")
    assert (done.returncode, done.stdout.strip(), done.stderr.strip()) == (0, "end", "")
    assert list(tmp_path.iterdir()) == []


FORK = """
child = os.fork()
if child == 0:
    try:
        kept[0].sum().item()
        os._exit(1)
    except RuntimeError as error:
        os._exit(0 if "forked" in str(error) else 2)
assert os.waitpid(child, 0)[1] == 0
assert [int(tensor[0]) for tensor in kept] == list(range(32))
print('same')
"""


FORK_AND_READ = """
last = [tensor.sum().item() for tensor in kept[:3]]
child = os.fork()
if child == 0:
    del kept[3:]  # room on the host for what has to leave
    more = [torch.ones(64 * 1024) for _ in range(2)]
    os._exit(0 if [tensor.sum().item() for tensor in kept[:3]] == last else 1)
assert os.waitpid(child, 0)[1] == 0
print('same')
"""


def test_a_forked_child_keeps_what_was_on_the_device(tmp_path: Path) -> None:
    # A child has none of the threads that share an operator's work.
    start = "import torch; torch.set_num_threads(1)\n" + START
    done = in_a_new_process(start.replace("sys.argv[1]", repr(str(tmp_path))) + FORK_AND_READ)
    assert (done.returncode, done.stdout.strip()) == (0, "same"), done.stderr


def test_a_forked_child_is_told_that_the_disk_is_its_parents(tmp_path: Path) -> None:
    code = START.replace("sys.argv[1]", repr(str(tmp_path))) + FORK
    done = in_a_new_process(code)
    assert (done.returncode, done.stdout.strip()) == (0, "same"), done.stderr
