"""The written list of accepted differences, kept honest: it is short, reasoned and cannot rot."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .worker import Result

# In place of a row's samples, for an operator that was not yet run sample by sample.
EVERY = "every sample"
NOT_SINGLE = "why_every_sample"
LIST = Path(__file__).with_name("expected_failures.json")
# Accepted differences may be at most this share of the samples compared.
MAX_SHARE = 0.005


@dataclass(frozen=True)
class Entry:
    """One accepted difference: a sample, or every sample of an operator that was not yet run
    sample by sample.

    ``op`` includes the variant, as in ``"linalg.svd.left"``. ``device`` may be ``*``, ``torch`` is
    the beginning of a version (``"2.13"``) or ``*``.

    >>> entry = Entry("linalg.lstsq", "cpu", "reads an address outside the call", "float32", 3)
    >>> entry.id, entry.is_single
    ('linalg.lstsq/float32/3', True)
    """

    op: str
    device: str
    reason: str
    dtype: str = "*"
    index: int | None = None
    torch: str = "*"

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise ValueError(f"Accepted difference without a reason. Give one: op {self.op}")

    @property
    def is_single(self) -> bool:
        return self.index is not None

    @property
    def id(self) -> str:
        """Names a sample as reports do.

        >>> Entry("quantile", "cpu", "why").id
        'quantile/every sample'
        """
        return f"{self.op}/{self.dtype}/{self.index}" if self.is_single else f"{self.op}/{EVERY}"

    def applies_to(self, device: str, version: str) -> bool:
        return self.device in ("*", device) and (
            self.torch == "*" or f"{version}.".startswith(f"{self.torch}.")
        )

    def covers(self, result: Result) -> bool:
        return self.id == result.id if self.is_single else self.op == result.group.name


@dataclass(frozen=True)
class Verdict:
    """Failures split into accepted and unexpected, and entries that no longer match."""

    unexpected: list[Result]
    accepted: list[tuple[Result, Entry]]
    stale: list[Entry]
    num_compared: int

    @property
    def share(self) -> float:
        return len(self.accepted) / max(1, self.num_compared)

    def complaints(self) -> list[str]:
        """What makes the run a failure, in words; empty when it succeeded."""
        found = []
        if self.unexpected:
            found.append(f"samples differ that are not in {LIST.name}: {len(self.unexpected)}")
        for entry in self.stale:
            found.append(f"accepted difference is none any more, remove it: {entry.id}")
        if self.share > MAX_SHARE:
            found.append(
                f"accepted differences exceed their share: {self.share:.2%}, limit {MAX_SHARE:.2%}"
            )
        if not self.num_compared:
            found.append("no sample was compared: check the filter and the fraction")
        return found


def load(path: Path = LIST) -> list[Entry]:
    """Reads the list; an unknown field or a missing reason is an error."""
    return [entry for row in json.loads(path.read_text()) for entry in expand(row)]


def expand(row: Mapping[str, Any]) -> list[Entry]:
    """The entries of one row: one for each of its samples.

    >>> row = {"op": "add", "device": "cpu", "reason": "why", "samples": {"bool": [0, 3]}}
    >>> [entry.id for entry in expand(row)]
    ['add/bool/0', 'add/bool/3']
    """
    common = {name: value for name, value in row.items() if name not in ("samples", NOT_SINGLE)}
    if row["samples"] == EVERY:
        if not row.get(NOT_SINGLE, "").strip():
            raise ValueError(
                f"Accepted differences without a reason why no samples are named. Give one as "
                f"{NOT_SINGLE}: op {row['op']}"
            )
        return [Entry(**common)]
    return [
        Entry(**common, dtype=dtype, index=index)
        for dtype, indices in row["samples"].items()
        for index in indices
    ]


def judge(results: Iterable[Result], entries: list[Entry], *, is_full_run: bool) -> Verdict:
    """Compares failures with the entries.

    A named sample that ran and did not fail is stale in every run; one that did not run, and an
    entry for every sample, only where all samples ran.
    """
    unexpected: list[Result] = []
    accepted: list[tuple[Result, Entry]] = []
    ran: set[str] = set()
    num_compared = 0
    for result in results:
        ran.add(result.id)
        num_compared += result.status != "excluded"
        if result.status != "failed":
            continue
        entry = next((entry for entry in entries if entry.covers(result)), None)
        if entry is None:
            unexpected.append(result)
        else:
            accepted.append((result, entry))
    used = {entry for _, entry in accepted}
    stale = [e for e in entries if e not in used and (is_full_run or e.id in ran)]
    return Verdict(unexpected, accepted, stale, num_compared)
