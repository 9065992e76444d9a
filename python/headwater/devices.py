"""The device to manage, and how much of it is free."""

from __future__ import annotations

from pathlib import Path

import torch

_SUPPORTED = ("cpu", "cuda")
_HOST_SHARE = 0.9


def find_device(name: str | torch.device | None) -> str:
    """Returns the full name of an existing device; None chooses the current GPU, else the CPU.

    >>> find_device("cpu")
    'cpu'
    """
    if name is None:
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"Unknown device. Use 'cpu' or 'cuda:0': got {name!r}") from error
    if device.type not in _SUPPORTED:
        raise ValueError(f"Device cannot be managed. Use 'cpu' or 'cuda:0': got {str(name)!r}")
    if device.type == "cpu":
        return "cpu"
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    index: int | None = device.index
    if index is None and count > 0:
        index = torch.cuda.current_device()
    if index is None or index >= count:
        raise ValueError(
            f"Device does not exist. Use one that does: got {str(name)!r}, GPUs found {count}"
        )
    return f"cuda:{index}"


def free_bytes(device: str) -> int:
    """Returns the bytes this process could use: free ones, and on a GPU those it already has."""
    if device == "cpu":
        return min([_available_memory(), *_control_group_rest()])
    free, _ = torch.cuda.mem_get_info(device)
    return int(free + torch.cuda.memory_reserved(device))


def default_host_budget(device: str) -> int | None:
    """Returns the most host bytes for offloaded tensors where nobody said; None is no limit.

    On a GPU, most of what the machine and this process's control group have free: the system would
    end the process otherwise. On the CPU a tensor that moves frees what it takes.
    """
    return None if device == "cpu" else max(1, int(free_bytes("cpu") * _HOST_SHARE))


def _available_memory() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("Cannot tell how much memory is free. Give the budget in bytes")


def _control_group_rest() -> list[int]:
    """Limit minus use of this process's control group; empty where there is no limit."""
    for limit_file, use_file in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ):
        try:
            limit, use = Path(limit_file).read_text(), Path(use_file).read_text()
        except OSError:
            continue
        if limit.strip().isdigit():
            return [max(0, int(limit) - int(use))]
    return []
