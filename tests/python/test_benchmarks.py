"""The benchmark programs work and compute what they say; their numbers mean nothing here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.train.bits import largest_difference
from benchmarks.train.largest import Growth, search, shape_of
from benchmarks.train.one_try import read_answer
from benchmarks.train.pressure import hidden_share
from benchmarks.train.wishes import TAKEN
from benchmarks.train.workloads import GPTShape

PROGRAMS = Path(__file__).parents[2] / "benchmarks" / "train"
GIGABYTE = 10**9


def run_program(
    name: str, *options: str | Path, folder: Path = PROGRAMS
) -> subprocess.CompletedProcess[str]:
    """Runs a benchmark program on one thread, so that a busy machine does not slow it down."""
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, str(folder / name), *map(str, options)],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    print(done.stdout[-4000:], done.stderr[-2000:])
    return done


def plain_report(tmp_path: Path) -> Path:
    """40 ms forward, 80 ms after; 20 GB at the peak; 50 GB/s out, 25 GB/s in."""
    plain = {
        "peak_bytes": 20 * GIGABYTE,
        "forward_ms": {"median_ms": 40.0},
        "backward_ms": {"median_ms": 80.0},
    }
    case = {"budget_bytes": 16 * GIGABYTE}
    report = {
        "link": {
            "d2h_bytes_per_second": 50.0 * GIGABYTE,
            "h2d_bytes_per_second": 25.0 * GIGABYTE,
        },
        "workloads": {
            "net": {"plain": plain, "headwater": [case], "at_peer_peaks": {"trl": case}},
            "failed": {"plain": {"error": "no"}, "headwater": [], "at_peer_peaks": {}},
        },
    }
    path = tmp_path / "report.json"
    path.write_text(json.dumps(report))
    return path


def test_the_bound_waits_for_the_longer_side_of_each_half(tmp_path: Path) -> None:
    shares = ("--shares", "95", "80", "50")
    done = run_program("bound.py", plain_report(tmp_path), "--json", *shares)
    rows = json.loads(done.stdout)["net"]
    assert [row["budget_bytes"] for row in rows] == [19 * GIGABYTE, 16 * GIGABYTE, 10 * GIGABYTE]
    # Away: 1, 4 and 10 GB, so 20, 80 and 200 ms out, and 40, 160 and 400 ms in.
    assert [row["bound_ms"] for row in rows] == pytest.approx([40 + 80, 80 + 160, 200 + 400])
    sides = [(row["forward_waits_for"], row["backward_waits_for"]) for row in rows]
    assert sides == [("compute", "compute"), ("link", "link"), ("link", "link")]


def test_the_bound_of_a_report_is_at_the_budgets_it_has_measured(tmp_path: Path) -> None:
    done = run_program("bound.py", plain_report(tmp_path), "--json")
    found = json.loads(done.stdout)
    assert list(found) == ["net"]
    assert [row["budget_bytes"] for row in found["net"]] == [16 * GIGABYTE] * 2


def test_a_budget_above_the_peak_is_bound_by_compute_alone(tmp_path: Path) -> None:
    done = run_program("bound.py", plain_report(tmp_path), "--json", "--shares", "110")
    (row,) = json.loads(done.stdout)["net"]
    assert (row["away_bytes"], row["bound_ms"]) == (0, 120)


def test_transfers_that_lengthen_no_step_are_hidden() -> None:
    link = {"d2h_bytes_per_second": 1000.0, "h2d_bytes_per_second": 500.0}
    plain = {"step_ms": {"median_ms": 100.0}}

    def share(step_ms: float, moved: int) -> float:
        step = {"median_ms": step_ms}
        case = {"bytes_offloaded": moved, "bytes_fetched": moved, "step_ms": step}
        return hidden_share(case, plain, link)

    # 100 bytes take 100 ms out and 200 ms in.
    shares = [share(130, 100), share(99, 100), share(1000, 100), share(130, 0)]
    assert shares == pytest.approx([0.9, 1, 0, 1])


def test_losses_differ_by_the_largest_relative_difference() -> None:
    losses = [value.hex() for value in (1.0, 2.0, 4.0)]
    others = [value.hex() for value in (1.0, 2.5, 4.0)]
    assert largest_difference(losses, losses) == 0
    assert largest_difference(losses, others) == pytest.approx(0.2)


def test_pressure_measures_ours_beside_plain_and_peers(tmp_path: Path) -> None:
    out = tmp_path / "pressure.json"
    sizes = ("--workloads", "gpt2_medium", "--shares", "50", "--warm-up", "4", "--steps", "1")
    sizes = (*sizes, "--recompute", "off")
    done = run_program(
        "pressure.py", "--device", "cpu", "--tiny", "--check-bits", *sizes, "--out", out
    )
    assert done.returncode == 0
    report = json.loads(out.read_text())
    result = report["workloads"]["gpt2_medium"]
    (ours,) = result["headwater"]
    assert set(result["peers"]) == {"save_on_cpu", "checkpoint"}
    assert list(report["skipped"]) == ["trl"]
    assert ours["loss_difference"] == 0
    assert set(result["at_peer_peaks"]) == {"save_on_cpu", "checkpoint"}
    assert result["bits"]["same_losses"][str(ours["budget_bytes"])]
    assert report["wishes"] == wishes("recompute", "off")
    assert 0 < ours["peak_over_budget"] <= 1.05
    assert ours["bytes_fetched"] > 0
    assert result["bounds"][0]["budget_bytes"] == ours["budget_bytes"]
    assert (ours["replays"], ours["predicted_step_ms"]) >= (0, 0)
    assert "At the peak of a checkpoint a block" in out.with_suffix(".md").read_text()
    assert "| 50% |" in out.with_suffix(".md").read_text()


def wishes(option: str, value: str) -> dict[str, Any]:
    """What a report says of an option that was given, whatever this version takes."""
    if option in TAKEN:
        return {"passed_on": {option: value}, "not_taken": []}
    return {"passed_on": {}, "not_taken": [option]}


@pytest.mark.parametrize("largest", [1, 3, 43, 64, 100])
def test_the_search_finds_the_largest_size_that_fits(largest: int) -> None:
    tried: list[int] = []

    def fits(size: int) -> bool:
        tried.append(size)
        return size <= largest

    assert search(fits, Growth(start=1, resolution=1, most=100)) == largest
    assert len(tried) == len(set(tried))
    assert max(tried) <= 100


def test_the_search_stops_at_its_resolution() -> None:
    assert search(lambda size: size <= 43, Growth(start=32, resolution=16, most=999)) == 32
    assert search(lambda size: False, Growth(start=32, resolution=1, most=999)) is None


def test_models_grow_in_depth_or_by_heads() -> None:
    base = GPTShape(vocabulary=10, width=128, heads=2, layers=24, batch=1, length=8)
    deep, wide = shape_of(43, "depth", base), shape_of(21, "width", base)
    assert (deep.layers, deep.width, deep.heads) == (43, 128, 2)
    assert (wide.layers, wide.width, wide.heads) == (24, 1344, 21)


def test_a_try_that_was_killed_has_failed() -> None:
    killed = subprocess.CompletedProcess([], -9, stdout="", stderr="step 0")
    assert read_answer(killed) == {"error": "ended with -9: step 0"}


def largest(tmp_path: Path, *options: str) -> dict[str, Any]:
    """Runs the program for one arm and one size; returns that arm."""
    out = tmp_path / "largest.json"
    run_program(
        "largest.py", "--device", "cpu", "--tiny", "--final-steps", "0", "--out", out, *options
    )
    (arm,) = json.loads(out.read_text())["arms"].values()
    return arm


def test_largest_reports_what_a_size_took(tmp_path: Path) -> None:
    arm = largest(tmp_path, "--arms", "headwater", "--sizes", "6")
    row = arm["largest"]
    assert arm["tries"] == [row]
    assert row["shape"]["layers"] == 6
    assert row["tokens_per_second"] > 0
    assert row["peak_bytes"] <= 4 * 2**20 < row["stats"]["managed_bytes"]


def test_a_plain_try_above_the_cap_fails(tmp_path: Path) -> None:
    arm = largest(tmp_path, "--arms", "plain", "--sizes", "6")
    assert arm["largest"] is None
    assert "above the cap" in arm["tries"][0]["error"]
