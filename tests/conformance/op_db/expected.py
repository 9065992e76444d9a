"""The written list of accepted differences, kept honest: it is short, reasoned and cannot rot."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .worker import Result

LIST = Path(__file__).with_name("expected_failures.json")
# Accepted differences may be at most this share of the samples compared.
MAX_SHARE = 0.005


@dataclass(frozen=True)
class Entry:
    """One accepted difference; ``*`` stands for any dtype, sample, device or torch version.

    ``samples`` is an index (``"3"``), a range (``"3-7"``) or ``"*"``; ``torch`` is the beginning
    of a version (``"2.13"``).

    >>> entry = Entry("linalg.lstsq", "float32", "0-3", "cpu", "reads a pointer outside the call")
    >>> entry.covers_index(2), entry.covers_index(4)
    (True, False)
    """

    op: str
    dtype: str
    samples: str
    device: str
    reason: str
    torch: str = "*"

    def __post_init__(self) -> None:
        if not self.reason.strip():
            raise ValueError(f"Accepted difference without a reason: op {self.op}")
        self.covers_index(0)

    def applies_to(self, device: str, version: str) -> bool:
        return self.device in ("*", device) and (
            self.torch == "*" or f"{version}.".startswith(f"{self.torch}.")
        )

    def covers_index(self, index: int) -> bool:
        if self.samples == "*":
            return True
        first, _, last = self.samples.partition("-")
        return int(first) <= index <= int(last or first)

    def covers(self, result: Result) -> bool:
        return (
            self.op == result.group.name
            and self.dtype in ("*", result.group.dtype_name)
            and self.covers_index(result.index)
        )


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
            found.append(f"entry matches no difference any more, remove it: {entry}")
        if self.share > MAX_SHARE:
            found.append(
                f"accepted differences exceed their share: {self.share:.2%}, limit {MAX_SHARE:.2%}"
            )
        if not self.num_compared:
            found.append("no sample was compared: check the filter and the fraction")
        return found


def load(path: Path = LIST) -> list[Entry]:
    """Reads the list; an unknown field or a missing reason is an error."""
    return [Entry(**item) for item in json.loads(path.read_text())]


def judge(results: Iterable[Result], entries: list[Entry], *, is_full_run: bool) -> Verdict:
    """Compares failures with the entries; stale entries count only when every sample ran."""
    unexpected: list[Result] = []
    accepted: list[tuple[Result, Entry]] = []
    num_compared = 0
    for result in results:
        num_compared += result.status != "excluded"
        if result.status != "failed":
            continue
        entry = next((entry for entry in entries if entry.covers(result)), None)
        if entry is None:
            unexpected.append(result)
        else:
            accepted.append((result, entry))
    used = {entry for _, entry in accepted}
    stale = [entry for entry in entries if entry not in used] if is_full_run else []
    return Verdict(unexpected, accepted, stale, num_compared)
