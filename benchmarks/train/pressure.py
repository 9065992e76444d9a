"""What a training pays under budgets from 90 to 30 % of its plain peak, beside its peers.

Plain PyTorch, Headwater at every budget, other ways to save memory, and Headwater again at the
peaks these reach: one process, each training from scratch in a fresh state. ``bound.py`` then says
from the plain numbers what a step can take at best. Run on a GPU; ``--device cpu --tiny`` tries the
program out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.train.bits import all_same, compare_bits, largest_difference
from benchmarks.train.link import measure_link
from benchmarks.train.peers import Peer, make_peers, trl_version
from benchmarks.train.pressure_table import overhead, write_table
from benchmarks.train.report import describe_run, write_report
from benchmarks.train.timed_training import (
    Length,
    Trainer,
    ample_budget,
)
from benchmarks.train.wishes import add_wishes, describe_wishes, wishes_of

WORKLOADS = ("resnet50", "gpt2_medium", "gpt2_transformers")
SHARES = (90, 80, 70, 60, 50, 40, 30)
PEERS = ("save_on_cpu", "checkpoint", "trl")
LEAST_WARM_UP = 4  # a plan begins at the 4th step


class Comparison:
    """All trainings of one workload; every result is on disk before the next one begins."""

    def __init__(self, name: str, report: dict[str, Any], options: argparse.Namespace) -> None:
        self._name, self._report, self._options = name, report, options
        self._result: dict[str, Any] = {"headwater": [], "peers": {}, "at_peer_peaks": {}}
        report["workloads"][name] = self._result
        length = Length(options.warm_up, options.steps)
        tiny, wishes = options.tiny, wishes_of(options)
        self._trainer = Trainer(name, options.device, tiny, length, wishes)

    def run(self, peers: dict[str, Peer]) -> bool:
        """Tells whether every training of ours went well, with the losses of the plain one."""
        plain = self._result["plain"] = self._unmanaged()
        self._keep("plain", plain)
        if "error" in plain:
            return False
        for share in self._options.shares:
            case = self._ours(int(plain["peak_bytes"] * share / 100))
            self._result["headwater"].append(case)
            self._keep(f"headwater {share:g} %", case)
        self._compare_with(peers)
        self._result["plain_again"] = self._unmanaged()
        self._keep("plain again", self._result["plain_again"])
        same = self._same_bits()
        cases = [*self._result["headwater"], *self._result["at_peer_peaks"].values()]
        return same and all("error" not in case for case in cases)

    def _unmanaged(self, peer: Peer | None = None) -> dict[str, Any]:
        case = self._trainer.train(peer=peer)
        if "error" not in case and not case["peak_bytes"]:
            counted = self._trainer.train(ample_budget("cpu"), peer)
            case["peak_bytes"] = counted.get("peak_bytes", 0)
        return case

    def _ours(self, budget: int) -> dict[str, Any]:
        plain, case = self._result["plain"], self._trainer.train(budget)
        case["share"] = budget / plain["peak_bytes"]
        if "error" not in case:
            case["loss_difference"] = largest_difference(case["losses"], plain["losses"])
            case["overhead"] = overhead(case, plain)
            case["hidden_share"] = hidden_share(case, plain, self._report["link"])
        return case

    def _compare_with(self, peers: dict[str, Peer]) -> None:
        for name, peer in peers.items():
            case = self._result["peers"][name] = self._unmanaged(peer)
            self._keep(name, case)
            if case.get("peak_bytes"):
                ours = self._ours(case["peak_bytes"])
                self._result["at_peer_peaks"][name] = ours
                self._keep(f"headwater at the peak of {name}", ours)

    def _same_bits(self) -> bool:
        """True where not asked for."""
        if not self._options.check_bits:
            return True
        cases = [*self._result["headwater"], *self._result["at_peer_peaks"].values()]
        budgets = [case["budget_bytes"] for case in cases if "error" not in case]
        bits = self._result["bits"] = compare_bits(self._trainer, budgets)
        self._say("same losses, deterministically", "yes" if all_same(bits) else "NO")
        return all_same(bits)

    def _keep(self, label: str, case: dict[str, Any]) -> None:
        write_report(self._options.out, self._report)
        self._say(label, case["error"] if "error" in case else in_words(case))

    def _say(self, label: str, text: str) -> None:
        print(f"{self._name:12s} {label:32s} {text}", flush=True)


def hidden_share(case: dict[str, Any], plain: dict[str, Any], link: dict[str, float]) -> float:
    """Of the time the link was busy, what did not lengthen the step; 1 if nothing moved."""
    busy = case["bytes_offloaded"] / link["d2h_bytes_per_second"]
    busy += case["bytes_fetched"] / link["h2d_bytes_per_second"]
    exposed = (case["step_ms"]["median_ms"] - plain["step_ms"]["median_ms"]) / 1e3
    return min(1.0, max(0.0, 1 - exposed / busy)) if busy else 1.0


def in_words(case: dict[str, Any]) -> str:
    step = case["step_ms"]
    text = (
        f"{step['median_ms']:8.2f} ms ({step['lowest_ms']:.2f} to {step['highest_ms']:.2f}), "
        f"peak {case['peak_bytes'] / 2**20:.0f} MiB"
    )
    if "peak_over_budget" in case:
        text += (
            f" ({case['peak_over_budget']:.3f} x budget), stall {case['stall_ms']:.1f} ms, "
            f"fetched {case['bytes_fetched'] / 2**20:.0f} MiB, {case['hidden_share']:.0%} hidden"
        )
    return text


def add_bounds(report: dict[str, Any], path: Path) -> None:
    """Lets bound.py read the report, and keeps its answer beside the measurements."""
    command = [sys.executable, str(Path(__file__).with_name("bound.py")), str(path), "--json"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name, rows in json.loads(answer).items():
        report["workloads"][name]["bounds"] = rows


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--tiny", action="store_true", help="sizes for a CPU")
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--shares", nargs="*", type=float, metavar="PERCENT", default=list(SHARES))
    parser.add_argument("--warm-up", type=int, default=6, help="steps before timing; at least 4")
    parser.add_argument("--steps", type=int, default=10, help="timed steps")
    parser.add_argument(
        "--check-bits", action="store_true", help="losses at every share, repeatably"
    )
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument("--trl", type=Path, help="folder with TRL's activation_offloading.py")
    add_wishes(parser)
    parser.add_argument("--out", type=Path, default=Path("pressure.json"))
    parser.add_argument("--table", type=Path, help="Markdown; by default beside --out")
    arguments = parser.parse_args()
    if arguments.warm_up < LEAST_WARM_UP or arguments.steps < 1:
        parser.error(f"--warm-up must be at least {LEAST_WARM_UP} and --steps at least 1")
    arguments.table = arguments.table or arguments.out.with_suffix(".md")
    return arguments


def main() -> int:
    options = parse_arguments()
    peers, skipped = make_peers(options.device, options.trl)
    peers = {name: peer for name, peer in peers.items() if name in options.peers}
    skipped = {name: why for name, why in skipped.items() if name in options.peers}
    report: dict[str, Any] = {
        **describe_run(options),
        "wishes": describe_wishes(options),
        "trl": trl_version(options.trl),
        "skipped": skipped,
        "link": measure_link(options.device, options.tiny),
        "workloads": {},
    }
    for name, why in skipped.items():
        print(f"skipped      {name}: {why}", flush=True)
    print(f"link         {describe_link(report['link'])}", flush=True)
    well = True
    for name in options.workloads:
        well = Comparison(name, report, options).run(peers) and well
        write_report(options.out, report)
        add_bounds(report, options.out)
        write_report(options.out, report)
        write_table(options.table, report)
    print(options.table.read_text(encoding="utf-8"))
    return 0 if well else 1


def describe_link(link: dict[str, float]) -> str:
    return (
        f"{link['d2h_bytes_per_second'] / 1e9:.1f} GB/s out, "
        f"{link['h2d_bytes_per_second'] / 1e9:.1f} GB/s in, "
        f"{link['both_bytes_per_second'] / 1e9:.1f} GB/s both at once"
    )


if __name__ == "__main__":
    sys.exit(main())
