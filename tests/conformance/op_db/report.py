"""The outcome of a run as data and as text."""

from collections import Counter, defaultdict
from typing import Any

import torch

from .expected import Verdict
from .runner import Options
from .worker import Result

_MAX_SHOWN = 40


def as_data(
    results: list[Result], verdict: Verdict, options: Options, seconds: float
) -> dict[str, Any]:
    """Everything worth keeping of a run, ready for JSON."""
    by_dtype: dict[str, Counter[str]] = defaultdict(Counter)
    by_reason: dict[str, Counter[str]] = defaultdict(Counter)
    for result in results:
        by_dtype[result.group.dtype_name][result.status] += 1
        by_reason[f"{result.status}: {result.reason}"][result.group.name] += 1
    return {
        "torch": torch.__version__,
        "device": options.device,
        "fraction": options.fraction,
        "seed": options.seed,
        "workers": options.workers,
        "manager": options.manager,
        "seconds": round(seconds, 1),
        "counts": counts(results, verdict),
        "by_dtype": {name: dict(count) for name, count in sorted(by_dtype.items())},
        "by_reason": {
            reason: {"total": ops.total(), "ops": dict(ops.most_common())}
            for reason, ops in sorted(by_reason.items())
            if not reason.startswith("passed: same")
        },
        "differences": [_row(result) for result in verdict.unexpected],
        "accepted": [_row(result) | {"why": entry.reason} for result, entry in verdict.accepted],
        "excluded": [_row(result) for result in results if result.status == "excluded"],
        "complaints": verdict.complaints(),
    }


def counts(results: list[Result], verdict: Verdict) -> dict[str, int]:
    """Number of samples by outcome."""
    by_status = Counter(result.status for result in results)
    return {
        "passed": by_status["passed"],
        "failed": len(verdict.unexpected),
        "accepted": len(verdict.accepted),
        "skipped": by_status["excluded"],
        "compared": verdict.num_compared,
    }


def print_text(data: dict[str, Any]) -> None:
    """Prints differences, a table by reason, complaints and a closing line of counts."""
    for row in data["differences"][:_MAX_SHOWN]:
        print(f"FAILED {row['id']}: {row['reason']}: {row['detail'][:400]}")
    if len(data["differences"]) > _MAX_SHOWN:
        print(f"... and {len(data['differences']) - _MAX_SHOWN} more, see --json")
    for dtype, statuses in data["by_dtype"].items():
        print(f"{dtype:<12} " + ", ".join(f"{n} {name}" for name, n in sorted(statuses.items())))
    for reason, entry in data["by_reason"].items():
        names = ", ".join(f"{op} {n}" for op, n in list(entry["ops"].items())[:6])
        print(f"{entry['total']:>7}  {reason} ({names}{', ...' if len(entry['ops']) > 6 else ''})")
    for complaint in data["complaints"]:
        print(f"error: {complaint}")
    number = data["counts"]
    print(
        f"op_db on {data['device']}, torch {data['torch']}: {number['passed']} passed, "
        f"{number['failed']} failed, {number['skipped']} skipped, "
        f"{number['accepted']} accepted differences in {data['seconds']} s"
    )


def _row(result: Result) -> dict[str, str]:
    return {"id": result.id, "reason": result.reason, "detail": result.detail[:1000]}
