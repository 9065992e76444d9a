"""PyTorch's own operator samples give the same bits under Headwater; and the harness notices."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.conformance.op_db import expected, faulty_managers, worker
from tests.conformance.op_db.bits import difference, record
from tests.conformance.op_db.execute import Outcome, execute
from tests.conformance.op_db.managers import WITH_ROOM, Plain
from tests.conformance.op_db.samples import Group, generate, groups, is_selected
from tests.conformance.op_db.worker import Result, Started, Task, run_task

ROOT = Path(__file__).parents[2]
ADD = Group(0, "add", "float32", True)


def run_command(tmp_path: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """Runs the command line; returns its exit code and its JSON."""
    out = tmp_path / "op_db.json"
    command = [sys.executable, "-m", "tests.conformance.op_db", "--json", str(out), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    print(done.stdout[-8000:], done.stderr[-2000:])
    assert out.exists(), "the run wrote no report, see its output above"
    return done.returncode, json.loads(out.read_text())


def run_add(manager: Plain) -> list[Result]:
    """Runs the float32 samples of `add` in this process."""
    sent: list[Any] = []
    group = next(groups("cpu", "^add$"))
    run_task(Task(group, "cpu", 1.0, 0), manager, sent.append)
    return [message for message in sent if isinstance(message, Result)]


def test_a_seeded_fifth_of_all_samples_has_the_same_bits(tmp_path: Path) -> None:
    code, data = run_command(tmp_path, "--fraction", "0.2", "--seed", "0")
    assert data["complaints"] == []
    assert data["counts"]["failed"] == 0
    assert data["counts"]["passed"] > 10_000
    assert code == 0


def test_a_seeded_part_of_the_samples_has_the_same_bits_when_all_fits(tmp_path: Path) -> None:
    options = ["--fraction", "0.04", "--seed", "1", "--manager", WITH_ROOM]
    code, data = run_command(tmp_path, *options)
    assert data["complaints"] == []
    assert data["counts"]["failed"] == 0
    assert data["counts"]["passed"] > 2_000
    assert code == 0


def test_samples_pass_when_nothing_is_managed() -> None:
    results = run_add(Plain())
    assert len(results) > 5
    assert {result.status for result in results} == {"passed"}


@pytest.mark.parametrize(
    ("manager", "reason"),
    [
        (faulty_managers.WrongBits, "different bits"),
        (faulty_managers.KeepsPins, "left pinned"),
        (faulty_managers.MovesNothing, "nothing moved"),
    ],
)
def test_a_faulty_manager_is_noticed(manager: type[Plain], reason: str) -> None:
    failed = [result for result in run_add(manager()) if result.status == "failed"]
    assert failed
    assert {result.reason for result in failed} == {reason}


def test_a_sample_on_which_plain_pytorch_rarely_repeats_itself_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    num_runs = 0

    def execute_unsteadily(group: Group, index: int, sample: Any) -> Outcome:
        nonlocal num_runs
        num_runs += 1
        outcome = execute(group, index, sample)
        return replace(outcome, error="forward: in any order") if num_runs > 30 else outcome

    monkeypatch.setattr(worker, "execute", execute_unsteadily)
    monkeypatch.setattr(worker, "is_selected", lambda name, *_: name.endswith("/0"))
    results = run_add(faulty_managers.WrongBits())
    assert [(n.status, n.reason) for n in results] == [
        ("excluded", "plain PyTorch differs from itself")
    ]


@pytest.mark.parametrize(
    ("manager", "reason", "pattern"),
    [("Dies", "crashed", "^ravel$"), ("Hangs", "timed out", "^view_as_complex$")],
)
def test_a_sample_that_kills_its_process_fails_alone(
    tmp_path: Path, manager: str, reason: str, pattern: str
) -> None:
    path = f"tests.conformance.op_db.faulty_managers:{manager}"
    options = ("--ops", pattern, "--manager", path, "--sample-seconds", "5", "--workers", "1")
    code, data = run_command(tmp_path, *options)
    num_samples = sum(1 for group in groups("cpu", pattern) for _ in generate(group, "cpu", _all))
    assert code == 1
    assert {row["reason"] for row in data["differences"]} == {reason}
    assert data["counts"]["compared"] == num_samples


def test_a_manager_that_cannot_be_disabled_fails_its_groups_alone(tmp_path: Path) -> None:
    path = "tests.conformance.op_db.faulty_managers:CannotBeDisabled"
    code, data = run_command(tmp_path, "--ops", "^ravel$", "--manager", path)
    assert code == 1
    assert [row["reason"] for row in data["differences"]] == ["group abandoned"] * 5
    assert data["counts"]["passed"] > 5


def _all(index: int) -> bool:
    return True


def test_two_generators_make_the_same_bits() -> None:
    group = next(groups("cpu", "^nn.functional.batch_norm$"))
    first, second = (generate(group, "cpu", _all) for _ in range(2))
    for (_, left), (_, right) in zip(first, second, strict=True):
        given = [[s.input, s.args, s.kwargs] for s in (left, right)]
        assert difference(record(given[0], ""), record(given[1], "")) is None


def test_a_write_to_one_sample_leaves_the_others_alone() -> None:
    group = next(groups("cpu", "^nn.functional.batch_norm$"))
    untouched = [record(s.args, "") for _, s in generate(group, "cpu", _all)]
    for before, (_, sample) in zip(untouched, generate(group, "cpu", _all), strict=True):
        assert difference(before, record(sample.args, "")) is None
        for running in (value for value in sample.args[:2] if value is not None):
            running.fill_(-1)


def test_the_seeded_selection_is_stable_and_has_its_share() -> None:
    ids = [f"add/float32/{index}" for index in range(10_000)]
    chosen = [name for name in ids if is_selected(name, 0.2, 0)]
    assert 1_800 < len(chosen) < 2_200
    assert chosen[:3] == FIRST_CHOSEN


# Written down, so that a change of the hash (and of what the fifth covers) is seen.
FIRST_CHOSEN = ["add/float32/0", "add/float32/6", "add/float32/7"]


def _failure(index: int) -> Result:
    return Result(ADD, index, "failed", "different bits", "output")


def _passes(count: int) -> list[Result]:
    return [Result(ADD, 1000 + index, "passed", "same bits") for index in range(count)]


def _accepted(index: int | None) -> expected.Entry:
    return expected.Entry("add", "cpu", "why", "float32", index)


def test_a_difference_outside_the_list_is_a_complaint() -> None:
    entries = [_accepted(0), _accepted(1)]
    results = [_failure(0), _failure(2), *_passes(500)]
    verdict = expected.judge(results, entries, is_full_run=False)
    assert [result.index for result in verdict.unexpected] == [2]
    assert len(verdict.complaints()) == 1


def test_an_accepted_sample_that_passes_is_a_complaint_in_every_run() -> None:
    entry = _accepted(1000)
    for is_full_run in (True, False):
        assert expected.judge(_passes(5), [entry], is_full_run=is_full_run).stale == [entry]


@pytest.mark.parametrize("entry", [_accepted(3), _accepted(None)], ids=lambda entry: entry.id)
def test_an_entry_that_matches_nothing_is_a_complaint_in_a_full_run_alone(
    entry: expected.Entry,
) -> None:
    assert expected.judge(_passes(5), [entry], is_full_run=True).stale == [entry]
    assert expected.judge(_passes(5), [entry], is_full_run=False).complaints() == []


def test_an_entry_for_every_sample_accepts_them_all() -> None:
    results = [_failure(0), _failure(7), *_passes(500)]
    verdict = expected.judge(results, [_accepted(None)], is_full_run=True)
    assert verdict.complaints() == []
    assert len(verdict.accepted) == 2


def test_accepted_differences_above_their_share_are_a_complaint() -> None:
    entries = [_accepted(0), _accepted(1)]
    few = expected.judge([_failure(0), *_passes(199)], entries[:1], is_full_run=True)
    many = expected.judge([_failure(0), _failure(1), *_passes(198)], entries, is_full_run=True)
    assert few.complaints() == []
    assert len(many.complaints()) == 1


@pytest.mark.parametrize(
    ("version", "applies"), [("2.15.0", True), ("2.15.1", True), ("2.1.5", False), ("2.150", False)]
)
def test_an_entry_applies_to_the_versions_that_begin_with_its_own(
    version: str, applies: bool
) -> None:
    entry = expected.Entry("add", "cpu", "why", torch="2.15")
    assert entry.applies_to("cpu", version) is applies
    assert not entry.applies_to("cuda", version)


@pytest.mark.parametrize("missing", ["reason", "why_every_sample"])
def test_a_row_without_its_reasons_is_refused(missing: str) -> None:
    row = {"op": "add", "device": "cpu", "samples": "every sample"}
    reasons = {"reason": "why", "why_every_sample": "why", missing: " "}
    with pytest.raises(ValueError, match="without a reason"):
        expected.expand({**row, **reasons})


def test_a_row_with_an_unknown_field_is_refused() -> None:
    row = {"op": "add", "device": "cpu", "samples": {"bool": [0]}, "reason": "why", "dtype": "*"}
    with pytest.raises(TypeError):
        expected.expand(row)


def test_the_written_list_names_each_sample_once() -> None:
    entries = expected.load()
    assert entries
    assert len({(e.id, e.device, e.torch) for e in entries}) == len(entries)


def test_every_sample_is_announced_before_it_runs() -> None:
    sent: list[Any] = []
    group = next(groups("cpu", "^view_as_complex$"))
    run_task(Task(group, "cpu", 1.0, 0, frozenset({0})), Plain(), sent.append)
    managed = [m.index for m in sent if isinstance(m, Started) and m.phase == "managed"]
    assert managed == [m.index for m in sent if isinstance(m, Result)]
    assert 0 not in managed
