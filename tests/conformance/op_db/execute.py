"""Runs one sample, forward and backward, and records everything that came out."""

import contextlib
import ctypes
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch.testing._internal.opinfo.core import SampleInput

from .bits import Record, holds_bytes, leaves, record, record_aliases, tensors
from .samples import Group, seed_everything

# Operators whose result depends on uninitialised memory although it should not, seldom enough that
# two plain runs often agree: LAPACK's gelsy takes the pivots PyTorch leaves uninitialised as input.
UNREPEATABLE = frozenset({("linalg.lstsq", "cpu")})


def reads_outside(group: Group, device: str, sample: SampleInput) -> bool:
    """Whether plain PyTorch reads beyond its tensors: what lies there decides if the process dies.

    The repeatable backward of reflection padding on a GPU does, where a padding is negative
    (pytorch/pytorch issue 193694).
    """
    if group.name != "nn.functional.pad.reflect" or torch.device(device).type != "cuda":
        return False
    return min(sample.args[0]) < 0


# Operators that hand out memory as they find it. They run with PyTorch's own filling of
# uninitialised memory, so that their bits mean something and can be compared.
UNINITIALISED = frozenset(
    {
        "empty",
        "empty_like",
        "empty_permuted",
        "empty_strided",
        "new_empty",
        "new_empty_strided",
        "resize_",
        "resize_as_",
    }
)
_M_PERTURB = -6


@dataclass(frozen=True)
class Outcome:
    """Everything a run left behind; ``error`` names the phase and type of an exception."""

    records: list[Record]
    error: str | None
    message: str
    places: frozenset[str]  # types of the devices that held bytes of it


def poison_fresh_memory(value: int) -> None:
    """Makes the C library fill fresh memory with a byte, where it can (glibc).

    Two runs with two values differ whenever a result depends on uninitialised memory.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_PERTURB, value)


def execute(group: Group, index: int, sample: SampleInput) -> Outcome:
    """Runs the operator on the sample and, where it has one, its backward."""
    given = [sample.input, list(sample.args), dict(sample.kwargs)]
    seed_everything("run", group.sample_id(index))
    with _filled_memory(group):
        try:
            result = group.op(sample.input, *sample.args, **sample.kwargs)
        except Exception as error:
            return _failed("forward", error)
        return _finish(group, sample, given, result)


def _finish(group: Group, sample: SampleInput, given: list[object], result: object) -> Outcome:
    # The results are read first: the backward of an operator may write to them.
    records = record(result, "output")
    error, message = None, ""
    if group.backward:
        try:
            _run_backward(sample.output_process_fn_grad(result))
        except Exception as caught:
            error, message = f"backward {type(caught).__name__}", str(caught)
    inputs = tensors(given)
    records += record(given, "input after the call")
    records += record([t.grad for t in inputs if t.requires_grad], "grad")
    records.append(record_aliases(inputs + tensors(result)))
    places = frozenset(t.device.type for t in inputs + tensors(result) if holds_bytes(t))
    return Outcome(records, error, message, places)


def _run_backward(result: object) -> None:
    outputs = [t for t in tensors(result) if t.requires_grad]
    if not outputs:
        return
    torch.autograd.backward(outputs, [_seeded_grad(t) for t in outputs])


def _seeded_grad(output: torch.Tensor) -> torch.Tensor:
    if output.layout == torch.strided and not output.is_nested:
        return torch.randn(output.shape, dtype=output.dtype, device=output.device)
    return torch.ones_like(output.detach())


def _failed(phase: str, error: Exception) -> Outcome:
    return Outcome([], f"{phase} {type(error).__name__}", str(error), places=frozenset())


@contextlib.contextmanager
def _filled_memory(group: Group) -> Iterator[None]:
    if group.op.name not in UNINITIALISED:
        yield
        return
    before = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warn_only)


def describe_inputs(sample: SampleInput) -> str:
    """The sample's arguments in one line, for reports."""
    given = [sample.input, list(sample.args), dict(sample.kwargs)]
    words = []
    for _, leaf in leaves(given, ""):
        if isinstance(leaf, torch.Tensor):
            words.append(f"{str(leaf.dtype).removeprefix('torch.')}{tuple(leaf.shape)}")
        else:
            words.append(repr(leaf)[:40])
    return ", ".join(words)
