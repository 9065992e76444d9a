"""Every sample of every operator that PyTorch tests itself with, each with a stable id."""

import hashlib
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from .isolate import isolate

DTYPES = (torch.float32, torch.bool, torch.int64, torch.complex64, torch.bfloat16)


@dataclass(frozen=True)
class Group:
    """All samples of one operator and dtype: the unit of work that a process takes.

    >>> next(iter(groups("cpu", "^add$"))).id
    'add/float32'
    """

    position: int
    name: str
    dtype_name: str
    backward: bool

    @property
    def id(self) -> str:
        return f"{self.name}/{self.dtype_name}"

    @property
    def op(self) -> OpInfo:
        return op_db[self.position]

    @property
    def dtype(self) -> torch.dtype:
        return getattr(torch, self.dtype_name)

    def sample_id(self, index: int) -> str:
        return f"{self.id}/{index}"


def groups(
    device: str, pattern: str = "", dtypes: tuple[torch.dtype, ...] = DTYPES
) -> Iterator[Group]:
    """Yields the groups whose operator name matches ``pattern`` (a regular expression)."""
    wanted = re.compile(pattern)
    device_type = torch.device(device).type
    for position, op in enumerate(op_db):
        name = f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name
        if not wanted.search(name):
            continue
        supported = op.supported_dtypes(device_type)
        differentiable = op.supported_backward_dtypes(device_type) if op.supports_autograd else ()
        for dtype in dtypes:
            if dtype in supported:
                dtype_name = str(dtype).removeprefix("torch.")
                yield Group(position, name, dtype_name, dtype in differentiable)


def stable_hash(*parts: object) -> int:
    """A 63-bit number that is the same in every process and on every machine."""
    text = "\0".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def is_selected(sample_id: str, fraction: float, seed: int) -> bool:
    """Whether a seeded ``fraction`` of all samples contains this one.

    >>> is_selected("add/float32/0", 1.0, 0)
    True
    """
    return stable_hash("select", seed, sample_id) < fraction * 2**63


def is_adopted(sample_id: str) -> bool:
    """Whether the inputs exist before Headwater is enabled (else they are made under it)."""
    return stable_hash("adopt", sample_id) % 2 == 0


def seed_everything(*parts: object) -> None:
    """Seeds every generator that a sample or an operator may draw from."""
    seed = stable_hash(*parts)
    # Without a GPU in use, torch.manual_seed would keep a stack trace of every call for later.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
    random.seed(seed)
    numpy.random.seed(seed % 2**32)


def generate(
    group: Group, device: str, wanted: Callable[[int], bool]
) -> Iterator[tuple[int, SampleInput]]:
    """Yields fresh inputs for the wanted indices; every generator yields the same bits."""
    if torch.device(device).type == "cuda":
        torch.cuda.init()
    seed_everything("generate", group.id)
    source = iter(
        group.op.sample_inputs(device, group.dtype, requires_grad=group.backward, set_seed=False)
    )
    index = 0
    while True:
        seed_everything("generate", group.sample_id(index))
        try:
            sample = next(source)
        except StopIteration:
            return
        if wanted(index):
            yield index, isolate(sample)
        index += 1
