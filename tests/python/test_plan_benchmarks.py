"""The programs that measure plans work and compute what they say, whole, refused and cut short."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import headwater

sys.path.insert(0, str(Path(__file__).parents[2]))

from test_benchmarks import run_program

from benchmarks.plan import ablation_rows
from benchmarks.plan.ablation_rows import ROWS, MissingError, Rows
from benchmarks.plan.capacity import search
from benchmarks.plan.capacity_networks import NETWORKS, Guess, num_layers
from benchmarks.plan.capacity_table import capacity_table
from benchmarks.plan.plan_report import document
from benchmarks.plan.sweep_table import faults
from benchmarks.train import wishes
from benchmarks.train.pressure_table import against_checkpoint, overheads
from benchmarks.train.timed_training import Length

PLAN = Path(__file__).parents[2] / "benchmarks" / "plan"
SHORT = ("--warm-up", "4", "--steps", "1")


def measure(name: str, out: Path, *options: str | Path) -> tuple[int, dict[str, Any]]:
    """Runs a program on small networks; its exit status and what it wrote."""
    small = ("--device", "cpu", "--tiny", "--out", out)
    done = run_program(name, *small, *options, folder=PLAN)
    return done.returncode, json.loads(out.read_text())


def timed(ms: float, **others: Any) -> dict[str, Any]:
    return {"step_ms": {"median_ms": ms, "lowest_ms": ms, "highest_ms": ms}, **others}


def ours(share: float, ms: float, peak: int) -> dict[str, Any]:
    """A budget of so many hundredths, beside a plain step of 100 ms."""
    return timed(
        ms,
        share=share,
        overhead=ms / 100 - 1,
        budget_bytes=int(100 * share),
        peak_bytes=peak,
        replays=3.0,
        bytes_replayed=2**29,
        bytes_offloaded=2**30,
        predicted_step_ms=99.0,
        predicted_peak_bytes=None,
    )


def test_step_times_are_held_against_their_lines() -> None:
    cases = [ours(0.8, 102, 80), ours(0.6, 109, 60), {"error": "no", "share": 0.4}]
    lines = overheads("gpt2_medium", {"headwater": cases}).splitlines()[2:]
    assert lines == [
        "| 80% | 1.020 | 1.03 | yes | 3 | 0.50 | 1.00 | 0.971 | - |",
        "| 60% | 1.090 | 1.08 | NO | 3 | 0.50 | 1.00 | 0.908 | - |",
    ]


@pytest.mark.parametrize(("ms", "met"), [(110, "is met"), (130, "is NOT met")])
def test_overhead_is_at_most_half_of_a_checkpoint_s(ms: float, met: str) -> None:
    result = {
        "plain": timed(100),
        "peers": {"checkpoint": timed(140, peak_bytes=2**30)},
        "at_peer_peaks": {"checkpoint": timed(ms)},
    }
    assert met in against_checkpoint(result)


def test_a_sweep_tells_what_should_not_have_been() -> None:
    assert faults([ours(1.0, 100, 100), ours(0.9, 101, 90), ours(0.8, 101, 80)]) == []
    assert faults([ours(0.9, 100, 80), ours(0.8, 90, 81), ours(0.7, 95, 70)]) == [
        "80.0%: peak is 1.012 times the budget",
        "80.0%: peak is above that at 90.0%",
        "90.0%: step is 11.1% slower than at 80.0%",
    ]


def test_a_sweep_ends_at_the_largest_operator_s_working_set(tmp_path: Path) -> None:
    net = ("--workloads", "gpt2_medium", "--step", "40", "--check-bits", *SHORT)
    status, report = measure("sweep.py", tmp_path / "sweep.json", *net)
    result = report["workloads"]["gpt2_medium"]
    budgets = [case["budget_bytes"] for case in result["cases"]]
    assert status == 0
    assert len(budgets) == 4
    assert budgets[-1] == result["minimum"]["peak_bytes"]
    assert all(case["peak_over_budget"] <= 1 for case in result["cases"])
    assert all(result["bits"]["same_losses"].values())


def test_a_refused_budget_is_told_and_the_sweep_goes_on(tmp_path: Path) -> None:
    shares = ("--workloads", "gpt2_medium", "--shares", "1", "50", *SHORT)
    status, report = measure("sweep.py", tmp_path / "sweep.json", *shares)
    refused, kept = report["workloads"]["gpt2_medium"]["cases"]
    assert status == 1
    assert refused["smallest_budget"] > refused["budget_bytes"]
    assert kept["peak_over_budget"] <= 1
    assert "OutOfMemory" in document([report])


@pytest.mark.parametrize("largest", [1, 5, 31, 32, 33, 60, 100])
@pytest.mark.parametrize("start", [1, 32, 90])
def test_a_search_finds_the_largest_from_any_guess(largest: int, start: int) -> None:
    tried: list[int] = []

    def fits(size: int) -> bool:
        tried.append(size)
        return size <= largest

    assert search(fits, Guess(start, resolution=1), most=100) == largest
    assert len(tried) == len(set(tried)) <= 12


def test_a_search_near_its_guess_takes_few_tries() -> None:
    tried: list[int] = []

    def fits(size: int) -> bool:
        tried.append(size)
        return size <= 270

    assert search(fits, Guess(256, resolution=32), most=4096) == 256
    assert tried == [256, 320, 288]
    assert search(lambda size: False, Guess(256, resolution=32), most=4096) is None


def test_layers_are_counted_as_superneurons_does() -> None:
    assert (num_layers(788), num_layers(156), num_layers(331)) == (2498, 602, 1127)
    assert NETWORKS["resnet50"].extent(256) == 256


def test_capacity_is_cut_short_and_goes_on(tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    net = ("--networks", "gpt2_medium", "--arms", "plain", "headwater", "--sizes", "1", "2")
    status, report = measure("capacity.py", first, *net, "--time-limit", "0.1")
    assert (status, report["tries"]) == (1, [])
    assert "gpt2_medium plain 1" in report["cut"]
    status, report = measure("capacity.py", first, *net[:3], "plain", *net[5:])
    earlier = report["tries"]
    status, report = measure("capacity.py", second, *net, "--resume", first, "--check-bits")
    assert status == 0
    assert report["tries"][:2] == earlier
    assert [(n["arm"], n["size"]) for n in report["tries"][2:4]] == [
        ("headwater", 1),
        ("headwater", 2),
    ]
    assert report["bits"]["gpt2_medium"] == {"size": 2, "same_losses": True, "errors": []}
    assert "| headwater | 2 | 1.00 |" in document([report])


def test_capacity_tells_a_size_that_does_not_fit(tmp_path: Path) -> None:
    only = ("--networks", "resnet50", "--arms", "plain", "--sizes", "8")
    _, report = measure("capacity.py", tmp_path / "capacity.json", *only)
    (case,) = report["tries"]
    assert "above the cap" in case["error"]
    assert "| plain | none found |" in capacity_table(report)


def tried(arm: str, size: int, rate: float) -> dict[str, Any]:
    sizes = dict.fromkeys(("peak_bytes", "peak_reserved_bytes", "host_bytes", "parameters"), 2**30)
    asked = {"steps": 6}
    return {"network": "resnet50", "arm": arm, "size": size, "rate": rate, "asked": asked, **sizes}


def test_a_batch_that_is_too_slow_does_not_count_for_the_line() -> None:
    cases = [tried("plain", 256, 2400), tried("headwater", 928, 1800), tried("headwater", 1500, 9)]
    text = capacity_table({"tries": cases, "bits": {}, "cap_bytes": 2**30})
    assert "| headwater | 1500 | 5.86 |" in text
    assert "met, 928 are 3.62 times, at 1800.0 images/s" in text


def test_the_ablation_has_every_row_or_says_why_not(tmp_path: Path) -> None:
    net = ("--networks", "unet", "--check-bits", *SHORT)
    status, report = measure("ablation.py", tmp_path / "ablation.json", *net)
    rows = report["networks"]["unet"]
    assert status == 0
    peaks = [rows[row]["peak_bytes"] for row in ("none", "plain", "cache", "minimum")]
    assert peaks == sorted(peaks, reverse=True)
    assert len(set(peaks)) == 4
    assert rows["offload"]["fetches_on_demand"] < rows["cache"]["fetches_on_demand"]
    assert "missing" in rows["recompute"] or rows["recompute"]["replays"] > 0
    assert ("missing" in rows["plan"]) == ("recompute" not in wishes.TAKEN)
    assert all(case.get("same_losses", True) for case in rows.values())


def test_a_report_joins_runs_that_were_split(tmp_path: Path) -> None:
    def run(share: float, ms: float, commit: str) -> dict[str, Any]:
        found = {"plain": timed(100, peak_bytes=100), "headwater": [ours(share, ms, 1)]}
        found |= {"peers": {}, "at_peer_peaks": {}}
        about = {"program": "pressure.py", "device": "GPU", "torch": "2", "commit": commit}
        return {**about, "workloads": {"resnet50": found}}

    text = document([run(0.8, 102, "a"), run(0.3, 110, "a"), run(0.3, 120, "b")])
    assert "differ in commit" in text
    assert "| 80% | 1.020 | 1.02 | yes |" in text
    assert "| 30% | 1.200 | 1.18 | NO |" in text
    assert "1.100" not in text


def test_a_report_of_another_program_is_refused() -> None:
    with pytest.raises(SystemExit, match=r"got overhead\.py"):
        document([{"program": "overhead.py"}])


def options(**given: str) -> Namespace:
    return Namespace(**{**dict.fromkeys(wishes.CHOICES), **given})


def test_a_wish_is_passed_on_only_to_a_version_that_takes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = options(recompute="off", conv_workspace="dynamic")
    monkeypatch.setattr(wishes, "TAKEN", frozenset({"budget", "recompute"}))
    assert wishes.wishes_of(given) == {"recompute": "off"}
    assert wishes.wishes_of(options()) == {}
    assert wishes.describe_wishes(given)["not_taken"] == ["conv_workspace"]
    assert wishes.as_arguments(given) == ["--recompute", "off", "--conv-workspace", "dynamic"]


def test_rows_ask_for_what_they_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, str]] = []

    @contextmanager
    def budget(budget: int, device: str, **passed_on: str) -> Iterator[None]:
        asked.append(passed_on)
        yield

    monkeypatch.setattr(headwater, "budget", budget)
    monkeypatch.setattr(ablation_rows, "TAKEN", frozenset({"recompute"}))
    rows = Rows("gpt2_medium", "cpu", tiny=True, length=Length(warm_up=0, timed=1))
    for row in ("offload", "plan"):
        ROWS[row](rows, 10**9)
    assert asked == [{"recompute": "off"}, {"recompute": "auto"}]
    with pytest.raises(MissingError, match="conv_workspace"):
        ROWS["workspace"](rows, 10**9)
    with pytest.raises(MissingError, match="no timed step replayed"):
        ROWS["recompute"](rows, 10**9)
