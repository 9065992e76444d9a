"""The device to manage, and how much of it is free."""

from __future__ import annotations

import importlib

import torch

_SUPPORTED = ("cpu", "cuda")


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
        return _free_host_bytes()
    free, _ = torch.cuda.mem_get_info(device)
    return int(free + torch.cuda.memory_reserved(device))


def _free_host_bytes() -> int:
    free: int | None = importlib.import_module("headwater._C").free_host_bytes()
    if free is None:
        raise RuntimeError("Cannot tell how much memory is free. Give the budget in bytes")
    return free
