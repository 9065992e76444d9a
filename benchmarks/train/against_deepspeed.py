"""Tokens a second beside DeepSpeed, in no more device memory than DeepSpeed reserves.

For each size and each of DeepSpeed's modes: DeepSpeed trains first; then Headwater trains the same
network on the same batches, capped at what DeepSpeed had reserved. Both recompute every block in
the backward pass. Each training is a process of its own with a time limit. Run on a GPU;
``--device cpu --tiny`` tries the program out.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.train.one_try import WARM_UP, run_try
from benchmarks.train.report import describe_run, write_report
from benchmarks.train.workloads import GPTShape

MODES = {"zero2": "ZeRO-2 + CPU Adam", "zero3": "ZeRO-3 + parameter offload"}
SIZES = {
    "1.56B": GPTShape(vocabulary=50257, width=1600, heads=25, layers=48, batch=8, length=1024),
    "2.65B": GPTShape(vocabulary=50257, width=2560, heads=32, layers=32, batch=8, length=1024),
}
TINY = {"tiny": GPTShape(vocabulary=200, width=64, heads=2, layers=3, batch=2, length=32)}
TINY_CAP = 2 * 2**20  # a CPU reserves nothing that could be counted
GOAL = 1.33
SHARES = (92, 85, 78)


def num_parameters(shape: GPTShape) -> int:
    """Of a GPT whose head is its token embedding.

    >>> num_parameters(SIZES["1.56B"]), num_parameters(SIZES["2.65B"])
    (1557611200, 2648931840)
    """
    width = shape.width
    block = 12 * width**2 + 13 * width  # attention 4 and perceptron 8, their biases, two norms
    return (shape.vocabulary + shape.length) * width + shape.layers * block + 2 * width


class Comparison:
    """All pairs of trainings; every result is on disk before the next one begins."""

    def __init__(self, report: dict[str, Any], options: argparse.Namespace) -> None:
        self._report, self._options = report, options
        report |= {"deepspeed": {}, "pairs": []}

    def run(self) -> bool:
        """Tells whether there is a ratio for every pair."""
        built = self._try("deepspeed_peer.py", ["--build"], self._options.build_limit)
        self._report["deepspeed"] = built
        self._keep("deepspeed, built", built)
        if "error" in built:
            return False
        sizes = TINY if self._options.tiny else SIZES
        chosen = [(size, shape) for size, shape in sizes.items() if size in self._options.sizes]
        pairs = [(size, shape, mode) for size, shape in chosen for mode in self._options.modes]
        measured = [self._compare(*pair) for pair in pairs]
        return all(measured)

    def _compare(self, size: str, shape: GPTShape, mode: str) -> bool:
        pair: dict[str, Any] = {"size": size, "mode": mode, "parameters": num_parameters(shape)}
        self._report["pairs"].append(pair)
        pair["deepspeed"] = self._peer(shape, mode)
        self._keep(f"{size} {mode} deepspeed", pair["deepspeed"])
        if "error" in pair["deepspeed"]:
            return False
        pair["cap_bytes"] = pair["deepspeed"]["peak_reserved_bytes"] or TINY_CAP
        pair["tries"] = []
        for share in self._options.shares:
            ours = self._ours(shape, pair["cap_bytes"], share)
            pair["tries"].append(ours)
            add_ratio(pair)
            self._keep(f"{size} {mode} headwater {share:g} %", ours)
            if not worth_another_share(ours):
                break
        return "ratio" in pair

    def _peer(self, shape: GPTShape, mode: str) -> dict[str, Any]:
        options = self._options
        steps = ["--steps", str(options.warm_up + options.steps), "--warm-up", str(options.warm_up)]
        arguments = ["--mode", mode, "--loss", options.loss, *shape_argument(shape), *steps]
        return self._try("deepspeed_peer.py", arguments, options.case_limit)

    def _ours(self, shape: GPTShape, cap: int, share: float) -> dict[str, Any]:
        options, budget = self._options, int(cap * share / 100)
        warm_up = options.headwater_warm_up
        arguments = ["--arm", "headwater", "--checkpoint", *shape_argument(shape)]
        arguments += ["--steps", str(warm_up + options.steps), "--warm-up", str(warm_up)]
        arguments += ["--cap-bytes", str(cap), "--budget-bytes", str(budget)]
        arguments += ["--host-budget", options.host_budget] if options.host_budget else []
        case = self._try("largest_try.py", arguments, options.case_limit)
        return {**case, "share": share, "budget_bytes": budget}

    def _try(self, program: str, arguments: list[str], limit: float) -> dict[str, Any]:
        start = time.monotonic()
        command = [sys.executable, str(Path(__file__).with_name(program)), *arguments]
        command += ["--device", self._options.device]
        environment = dict(os.environ)
        if program == "deepspeed_peer.py":
            environment = peer_environment(environment, self._options)
        case = run_try(command, limit, environment)
        return {**case, "wall_seconds": time.monotonic() - start}

    def _keep(self, label: str, case: dict[str, Any]) -> None:
        write_report(self._options.out, self._report)
        print(f"{label:32s} {in_words(case)}", flush=True)


def worth_another_share(case: dict[str, Any]) -> bool:
    """A lower budget helps where the cap was met, and not against any other failure."""
    return "OutOfMemory" in case.get("error", "")


def shape_argument(shape: GPTShape) -> list[str]:
    return ["--shape", json.dumps(dataclasses.asdict(shape))]


def peer_environment(environment: dict[str, str], options: argparse.Namespace) -> dict[str, str]:
    """DeepSpeed's folder first, and a thread for every core: its Adam runs on the host."""
    changed = {**environment, "OMP_NUM_THREADS": str(options.threads)}
    if options.deepspeed is not None:
        folders = [str(options.deepspeed.resolve()), environment.get("PYTHONPATH", "")]
        changed["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    return changed


def add_ratio(pair: dict[str, Any]) -> None:
    """Of the last try, if it went well."""
    ours = pair["tries"][-1]
    if "error" not in ours:
        pair["headwater"] = ours
        pair["ratio"] = ours["tokens_per_second"] / pair["deepspeed"]["tokens_per_second"]


def in_words(case: dict[str, Any]) -> str:
    wall = f"{case['wall_seconds']:.0f} s"
    if "error" in case:
        return f"failed ({wall}): {(case['error'].splitlines() or [''])[0][:300]}"
    if "tokens_per_second" not in case:
        return f"{case['version']} ({wall})"
    text = (
        f"{case['tokens_per_second']:.0f} tokens/s ({wall}), "
        f"allocated {case['peak_bytes'] / 2**30:.2f} GiB, "
        f"reserved {case['peak_reserved_bytes'] / 2**30:.2f} GiB, "
        f"host {case['host_used_bytes'] / 2**30:.1f} GiB, loss {case['losses'][-1]:.3f}"
    )
    if "stats" in case:
        text += f", {case['stats']['num_plans']} plans, {case['stats']['num_stages']} stages"
    return text


def table_lines(report: dict[str, Any]) -> Iterator[str]:
    """Every pair in Markdown: DeepSpeed and Headwater side by side."""
    version = report["deepspeed"].get("version", "that did not start")
    yield f"DeepSpeed {version} and Headwater, {report['device']}. Bytes in GiB, D and H."
    yield ""
    yield "| parameters | DeepSpeed's mode | tokens/s | ratio | reserved | allocated | host |"
    yield "|---|---|---|---|---|---|---|"
    for pair in report["pairs"]:
        name = f"| {pair['parameters'] / 1e9:.3f} B | {MODES[pair['mode']]} "
        peer, ours = pair["deepspeed"], pair.get("headwater")
        if "error" in peer or ours is None:
            who = "DeepSpeed" if "error" in peer else "Headwater"
            yield f"{name}| {who} failed | | | | |"
            continue
        met = "" if pair["ratio"] >= GOAL else f", below {GOAL}"
        speed = f"{peer['tokens_per_second']:.0f}, {ours['tokens_per_second']:.0f}"
        fields = ("peak_reserved_bytes", "peak_bytes", "host_used_bytes")
        sizes = [f"{peer[field] / 2**30:.2f}, {ours[field] / 2**30:.2f}" for field in fields]
        yield f"{name}| {speed} | {pair['ratio']:.2f}{met} | {' | '.join(sizes)} |"


def num_cores() -> int:
    return int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))


def parse_arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--tiny", action="store_true", help="a size for a CPU")
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), help="default: all")
    parser.add_argument("--modes", nargs="+", choices=list(MODES), default=list(MODES))
    parser.add_argument("--deepspeed", type=Path, help="folder to import DeepSpeed from")
    parser.add_argument("--warm-up", type=int, default=2, help="DeepSpeed's steps before timing")
    parser.add_argument(
        "--headwater-warm-up",
        type=int,
        default=20,
        help="Headwater's; a plan begins at the 4th, room for gaps settles later",
    )
    parser.add_argument("--steps", type=int, default=3, help="timed steps, of both")
    parser.add_argument(
        "--shares",
        nargs="+",
        type=float,
        metavar="PERCENT",
        default=list(SHARES),
        help="Headwater's budget in percent of what DeepSpeed reserved; the first that fits counts",
    )
    parser.add_argument("--host-budget", help="most host memory for Headwater's offloaded tensors")
    parser.add_argument(
        "--loss",
        choices=["float32", "bfloat16"],
        default="float32",
        help="type of the logits in DeepSpeed's loss; float32 is what autocast gives Headwater",
    )
    parser.add_argument("--threads", type=int, default=num_cores(), help="of DeepSpeed's Adam")
    parser.add_argument("--case-limit", type=float, default=120, help="seconds a training")
    parser.add_argument("--build-limit", type=float, default=300, help="seconds to compile Adam")
    parser.add_argument("--out", type=Path, default=Path("against_deepspeed.json"))
    arguments = parser.parse_args(words)
    if arguments.headwater_warm_up < WARM_UP or arguments.warm_up < 1 or arguments.steps < 1:
        parser.error(
            f"--headwater-warm-up must be at least {WARM_UP}, --warm-up and --steps at least 1"
        )
    arguments.sizes = list(TINY) if arguments.tiny else arguments.sizes or list(SIZES)
    return arguments


def main() -> int:
    options = parse_arguments()
    report = describe_run(options)
    well = Comparison(report, options).run()
    write_report(options.out, report)
    table = "\n".join(table_lines(report))
    options.out.with_suffix(".md").write_text(table + "\n", encoding="utf-8")
    print(table)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
