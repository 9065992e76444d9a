"""The comparison with DeepSpeed computes what it says. A stand-in trains in DeepSpeed's place."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from test_benchmarks import run_program

from benchmarks.train.against_deepspeed import (
    SIZES,
    TINY,
    add_ratio,
    num_parameters,
    parse_arguments,
    peer_environment,
    table_lines,
    worth_another_share,
)
from benchmarks.train.deepspeed_peer import configuration
from benchmarks.train.one_try import run_try, steady
from examples.models.gpt import GPT

GIBIBYTE = 2**30

STAND_IN = """
from types import SimpleNamespace
import torch

__version__ = "0.0 "
ops = SimpleNamespace(adam=SimpleNamespace(DeepSpeedCPUAdam=torch.optim.AdamW))

def init_distributed(backend):
    assert backend == "gloo"

class Engine:
    def __init__(self, model, optimizer):
        self.module, self.optimizer = model, optimizer
    def __call__(self, tokens):
        return self.module(tokens)
    def backward(self, loss):
        loss.backward()
    def step(self):
        self.optimizer.step()
        self.optimizer.zero_grad()

def initialize(model, optimizer, config):
    assert config["zero_optimization"]["stage"] == 2
    return Engine(model, optimizer), optimizer, None, None
"""


def compare(tmp_path: Path, stand_in: str) -> tuple[subprocess.CompletedProcess[str], Any]:
    """Runs the program for one pair of trainings on a CPU; returns its report as well."""
    out, package = tmp_path / "pairs.json", tmp_path / "site" / "deepspeed"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(stand_in)
    options = ("--device", "cpu", "--tiny", "--modes", "zero2", "--steps", "1")
    done = run_program(
        "against_deepspeed.py", *options, "--deepspeed", package.parent, "--out", out
    )
    return done, json.loads(out.read_text())


def training(tokens_per_second: float, reserved: int = 0) -> dict[str, Any]:
    return {
        "tokens_per_second": tokens_per_second,
        "peak_bytes": reserved,
        "peak_reserved_bytes": reserved,
        "host_used_bytes": 0,
    }


@pytest.mark.parametrize("name", [*SIZES, *TINY])
def test_parameters_are_counted_as_the_network_has_them(name: str) -> None:
    shape = {**SIZES, **TINY}[name]
    with torch.device("meta"):
        net = GPT(shape.vocabulary, shape.width, shape.heads, shape.layers, shape.length)
    assert num_parameters(shape) == sum(each.numel() for each in net.parameters())


def test_the_sizes_are_those_they_are_named_after() -> None:
    named = {f"{num_parameters(shape) / 1e9:.2f}B" for shape in SIZES.values()}
    assert named == set(SIZES)
    assert all((shape.batch, shape.length) == (8, 1024) for shape in SIZES.values())


def test_all_sizes_and_modes_are_compared_unless_told() -> None:
    options = parse_arguments([])
    assert (options.sizes, options.modes) == (["1.56B", "2.65B"], ["zero2", "zero3"])
    assert parse_arguments(["--sizes", "2.65B"]).sizes == ["2.65B"]
    assert parse_arguments(["--tiny"]).sizes == ["tiny"]


@pytest.mark.parametrize("words", [["--headwater-warm-up", "3"], ["--steps", "0"]])
def test_too_few_steps_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_arguments(words)
    assert "--headwater-warm-up must be at least 4" in capsys.readouterr().err


def test_deepspeed_alone_gets_its_folder_and_its_threads(tmp_path: Path) -> None:
    options = parse_arguments(["--deepspeed", str(tmp_path), "--threads", "16"])
    changed = peer_environment({"PYTHONPATH": "python", "HOME": "h"}, options)
    assert changed["PYTHONPATH"].split(":") == [str(tmp_path.resolve()), "python"]
    assert (changed["OMP_NUM_THREADS"], changed["HOME"]) == ("16", "h")


def test_parameters_are_offloaded_in_stage_3_alone() -> None:
    two, three = (configuration(mode, 8)["zero_optimization"] for mode in ("zero2", "zero3"))
    assert two["offload_optimizer"] == {"device": "cpu", "pin_memory": True}
    assert three == {**two, "stage": 3, "offload_param": two["offload_optimizer"]}


def test_a_lower_budget_is_tried_only_where_memory_ran_out() -> None:
    errors = ("OutOfMemoryError: Peak is above the cap", "not done after 120 s")
    assert [worth_another_share({"error": error}) for error in errors] == [True, False]
    assert not worth_another_share(training(10))


def test_the_ratio_is_that_of_the_try_that_went_well() -> None:
    pair = {"deepspeed": training(100), "tries": [{"error": "OutOfMemoryError: no"}]}
    add_ratio(pair)
    assert "ratio" not in pair
    pair["tries"].append(training(150))
    add_ratio(pair)
    assert pair["ratio"] == 1.5


def test_the_table_says_what_failed_and_what_is_below_the_goal() -> None:
    names = {"size": "1.56B", "parameters": 1_557_611_200}
    peer = training(1000, 9 * GIBIBYTE)
    fast = {"deepspeed": peer, "headwater": training(1500, 8 * GIBIBYTE), "ratio": 1.5}
    slow = {"deepspeed": peer, "headwater": training(1200, 8 * GIBIBYTE), "ratio": 1.2}
    pairs = [fast, slow, {"deepspeed": {"error": "no"}}, {"deepspeed": peer}]
    pairs = [{**names, "mode": "zero2", **pair} for pair in pairs]
    report = {"device": "GPU", "deepspeed": {"version": "0.19.8"}, "pairs": pairs}
    rows = list(table_lines(report))[-4:]
    assert "| 1000, 1500 | 1.50 | 9.00, 8.00 |" in rows[0]
    assert "| 1.20, below 1.33 |" in rows[1]
    assert [row.split(" | ")[2] for row in rows[2:]] == ["DeepSpeed failed", "Headwater failed"]


def test_a_training_that_hangs_is_ended() -> None:
    hangs = [sys.executable, "-c", "import threading; threading.Event().wait()"]
    result = run_try(hangs, limit=0.1)
    assert result["out_of_time"]
    assert result["error"] == "not done after 0 s"


def test_a_steady_step_comes_after_the_warm_up() -> None:
    seconds = [9.0, 8.0, 1.0, 2.0, 3.0]
    assert [steady(seconds, warm_up) for warm_up in (2, 4, 7)] == [2.0, 3.0, 3.0]


def test_headwater_trains_after_deepspeed_and_beside_it(tmp_path: Path) -> None:
    done, report = compare(tmp_path, STAND_IN)
    assert done.returncode == 0
    (pair,) = report["pairs"]
    assert report["deepspeed"]["version"] == "0.0"
    assert pair["deepspeed"]["parameters"] == pair["headwater"]["parameters"] == pair["parameters"]
    assert pair["headwater"]["peak_bytes"] <= pair["cap_bytes"]
    assert pair["headwater"]["stats"]["bytes_fetched"] > 0
    speeds = [pair[name]["tokens_per_second"] for name in ("headwater", "deepspeed")]
    assert pair["ratio"] == speeds[0] / speeds[1]
    assert "ZeRO-2 + CPU Adam" in (tmp_path / "pairs.md").read_text()


def test_a_deepspeed_that_does_not_start_is_told(tmp_path: Path) -> None:
    done, report = compare(tmp_path, "raise ImportError('no compiler')")
    assert done.returncode == 1
    assert report["deepspeed"]["error"] == "ImportError: no compiler"
    assert report["pairs"] == []
