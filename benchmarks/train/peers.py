"""Other ways to train in less device memory, each put on a workload before its first step."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn
from torch.autograd.graph import save_on_cpu
from torch.utils.checkpoint import checkpoint

from benchmarks.train.workloads import Workload

Scope = Callable[[], AbstractContextManager[Any]]
# Changes the network where it has to; returns what each forward and backward pass runs in.
Peer = Callable[[Workload], Scope]

TRL_FILE = "activation_offloading.py"


def make_peers(device: str, trl: Path | None) -> tuple[dict[str, Peer], dict[str, str]]:
    """The peers that can run here by name, and why the others cannot."""
    peers: dict[str, Peer] = {"save_on_cpu": _save_on_cpu, "checkpoint": _checkpoint}
    skipped: dict[str, str] = {}
    try:
        peers["trl"] = functools.partial(_offload_activations, _load_trl(device, trl))
    except (ImportError, OSError) as error:
        skipped["trl"] = str(error)
    return peers, skipped


def trl_version(folder: Path | None) -> str | None:
    """What the file VERSION beside TRL's source says."""
    version = folder / "VERSION" if folder is not None else None
    return version.read_text().strip() if version is not None and version.exists() else None


def checkpoint_blocks(blocks: Iterable[nn.Module]) -> None:
    """Has each keep its input alone and run again in the backward pass."""
    for block in blocks:
        block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)


def _save_on_cpu(workload: Workload) -> Scope:
    pinned = workload.device == "cuda"
    return lambda: save_on_cpu(pin_memory=pinned)


def _checkpoint(workload: Workload) -> Scope:
    blocks = workload.blocks()
    if not blocks:
        raise RuntimeError("The network has no blocks to checkpoint")
    checkpoint_blocks(blocks)
    return nullcontext


def _offload_activations(module: ModuleType, workload: Workload) -> Scope:
    """As TRL's trainers use it: the output head is left alone, the scope spans both passes."""
    manager = module.get_act_offloading_ctx_manager(workload.net, warn_if_no_head=False)
    return lambda: manager


def _load_trl(device: str, folder: Path | None) -> ModuleType:
    if folder is None:
        raise ImportError(f"no --trl folder with {TRL_FILE} was given")
    if device != "cuda":
        raise ImportError("TRL's OffloadActivations needs a GPU")
    if not (folder / TRL_FILE).exists():
        raise FileNotFoundError(f"not found: {folder / TRL_FILE}")
    # TRL's file logs through accelerate, which refuses to before this.
    importlib.import_module("accelerate").PartialState()
    spec = importlib.util.spec_from_file_location("trl_activation_offloading", folder / TRL_FILE)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot be imported: {folder / TRL_FILE}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
