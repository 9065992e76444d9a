"""Finds arguments that an operator writes although its schema does not mark them.

    python -m tests.conformance.op_db.writes --fraction 1.0

Every operator call of every sample, forward and backward, is watched: the bytes of all arguments
and of the sample's own tensors are copied before the call and compared after it.
"""

import argparse
import itertools
import json
import multiprocessing
import os
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .bits import holds_bytes, tensors
from .execute import execute
from .samples import DTYPES, Group, generate, groups, is_selected

# Index reported for a tensor that the operator changed without having been given it.
NOT_AN_ARGUMENT = -1


class WriteWatch(TorchDispatchMode):
    """Collects ``{operator: {argument index}}`` for writes that the schema does not mark."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, set[int]] = defaultdict(set)
        self.seen: set[str] = set()
        self.bystanders: list[torch.Tensor] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        given = _bind(func._schema, args, kwargs or {})
        watched = [(NOT_AN_ARGUMENT, _bytes_of(t)) for t in self.bystanders if holds_bytes(t)]
        written = set()
        for index, value in given:
            for tensor in filter(holds_bytes, tensors(value)):
                watched.append((index, _bytes_of(tensor)))
                if _is_marked(func._schema, index):
                    written.add(_storage_key(tensor))
        before = [view.clone() for _, view in watched]
        result = func(*args, **(kwargs or {}))
        self.seen.add(func._schema.name)
        self._compare(func._schema.name, watched, before, written)
        return result

    def _compare(
        self,
        name: str,
        watched: list[tuple[int, torch.Tensor]],
        before: list[torch.Tensor],
        written: set[int],
    ) -> None:
        changed = {
            _storage_key(view): index
            for (index, view), old in zip(watched, before, strict=True)
            if not torch.equal(view, old) and _storage_key(view) not in written
        }
        # An argument is watched after the bystanders, so its index wins where both are one storage.
        self.found[name].update(changed.values())


def _bind(schema: torch._C.FunctionSchema, args: tuple, kwargs: dict) -> list[tuple[int, object]]:
    places = {argument.name: index for index, argument in enumerate(schema.arguments)}
    bound: list[tuple[int, object]] = list(enumerate(args))
    return bound + [(places[name], value) for name, value in kwargs.items() if name in places]


def _is_marked(schema: torch._C.FunctionSchema, index: int) -> bool:
    alias = schema.arguments[index].alias_info
    return alias is not None and alias.is_write


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    """A view of the whole storage, so that writes outside the tensor's own elements show too."""
    view = torch.empty(0, dtype=torch.uint8, device=tensor.device)
    return view.set_(tensor.untyped_storage())


def _storage_key(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


@dataclass
class Findings:
    """Unmarked writes by operator, the operators watched, and the samples that raised."""

    writes: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    operators: set[str] = field(default_factory=set)
    num_samples: int = 0
    raised: list[str] = field(default_factory=list)

    def add(self, other: "Findings") -> None:
        for name, indices in other.writes.items():
            self.writes[name] |= indices
        self.operators |= other.operators
        self.num_samples += other.num_samples
        self.raised += other.raised

    def as_table(self) -> dict[str, list[int]]:
        """The writes as the adapter's table has them."""
        return {name: sorted(self.writes[name]) for name in sorted(self.writes)}


@dataclass(frozen=True)
class Choice:
    """Which samples to watch: a seeded fraction of the operators that match a pattern."""

    device: str = "cpu"
    fraction: float = 1.0
    seed: int = 0
    pattern: str = ""
    dtypes: tuple[torch.dtype, ...] = (torch.float32,)


def watch_group(group: Group, choice: Choice) -> Findings:
    """Runs the chosen samples of one group in this process."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    watch, findings = WriteWatch(), Findings()

    def wanted(index: int) -> bool:
        return is_selected(group.sample_id(index), choice.fraction, choice.seed)

    for index, sample in generate(group, choice.device, wanted):
        watch.bystanders = tensors([sample.input, sample.args, sample.kwargs])
        with watch:
            outcome = execute(group, index, sample)
        findings.num_samples += 1
        if outcome.error:
            findings.raised.append(f"{group.sample_id(index)}: {outcome.error}: {outcome.message}")
    findings.writes.update({name: found for name, found in watch.found.items() if found})
    findings.operators = watch.seen
    return findings


def find_writes(choice: Choice, workers: int | None = None) -> Findings:
    """Watches all chosen samples, spread over worker processes."""
    os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX2")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    chosen = list(groups(choice.device, choice.pattern, choice.dtypes))
    method = "forkserver" if choice.device == "cpu" else "spawn"
    context: Any = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload([f"{__package__}.writes"])
    findings = Findings()
    with ProcessPoolExecutor(workers or os.cpu_count(), mp_context=context) as pool:
        for part in pool.map(watch_group, chosen, itertools.repeat(choice)):
            findings.add(part)
    return findings


def main() -> None:
    """Prints the writes found as JSON, and what was watched."""
    parser = argparse.ArgumentParser(description="Finds writes that schemas do not mark.")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--fraction", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ops", default="", help="regular expression on operator names")
    parser.add_argument("--all-dtypes", action="store_true", help="not only float32")
    parser.add_argument("--workers", type=int, default=None)
    given = parser.parse_args()
    dtypes = DTYPES if given.all_dtypes else (torch.float32,)
    choice = Choice(given.device, given.fraction, given.seed, given.ops, dtypes)
    findings = find_writes(choice, given.workers)
    for text in findings.raised:
        print(text.replace("\n", " ")[:200])
    print(json.dumps(findings.as_table(), indent=2))
    print(
        f"{findings.num_samples} samples, {len(findings.operators)} operators watched, "
        f"{len(findings.writes)} with unmarked writes, {len(findings.raised)} samples raised"
    )


if __name__ == "__main__":
    main()
