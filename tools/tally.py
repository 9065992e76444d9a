#!/usr/bin/env python3
"""Runs the steps of a make target and closes with one line: 12 passed, 0 failed, 3 skipped.

Usage: tally.py run FOLDER NAME -- COMMAND...   run a step; a failure does not stop the next one
       tally.py close FOLDER                    print the sum; exit 1 if anything failed

A step that writes FOLDER/NAME.xml (JUnit) or FOLDER/NAME.report.json (an object "counts" in it)
counts by what these say; any other step counts as one.
"""

import json
import pathlib
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

Counts = dict[str, int]


def read_junit(path: pathlib.Path) -> Counts:
    """Sums the test cases of a JUnit file, written by ctest or by pytest."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            counts["failed"] += 1
        elif case.find("skipped") is not None:
            counts["skipped"] += 1
        else:
            counts["passed"] += 1
    return counts


def read_report(path: pathlib.Path) -> Counts:
    """Reads the counts of a JSON report; excluded samples count as skipped."""
    counts = json.loads(path.read_text())["counts"]
    skipped = counts.get("skipped", 0) + counts.get("excluded", 0)
    return {"passed": counts["passed"], "failed": counts["failed"], "skipped": skipped}


def line(counts: Counts) -> str:
    """The closing line for some counts."""
    text = f"{counts['passed']} passed, {counts['failed']} failed"
    return text + (f", {counts['skipped']} skipped" if counts["skipped"] else "")


def run(folder: pathlib.Path, name: str, command: list[str]) -> None:
    """Runs one step and stores its counts in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    junit, report = folder / f"{name}.xml", folder / f"{name}.report.json"
    junit.unlink(missing_ok=True)
    report.unlink(missing_ok=True)
    print(f"\n=== {name}", flush=True)
    start = time.monotonic()
    status = subprocess.run(command, check=False).returncode
    if junit.exists():
        counts = read_junit(junit)
    elif report.exists():
        counts = read_report(report)
    else:
        counts = {"passed": int(status == 0), "failed": 0, "skipped": 0}
    if status != 0 and counts["failed"] == 0:
        counts["failed"] = 1  # the step broke outside its tests
    (folder / f"{name}.counts").write_text(json.dumps(counts))
    print(f"=== {name}: {line(counts)} ({time.monotonic() - start:.0f} s)", flush=True)


def close(folder: pathlib.Path) -> int:
    """Prints the sum of all steps; returns the exit status."""
    total = {"passed": 0, "failed": 0, "skipped": 0}
    print()
    for path in sorted(folder.glob("*.counts")):
        counts = json.loads(path.read_text())
        print(f"{path.stem:24}{line(counts)}")
        total = {key: total[key] + counts[key] for key in total}
    (folder / "closing.txt").write_text(line(total) + "\n")
    print(line(total))
    return int(total["failed"] > 0 or total["passed"] == 0)


def main(arguments: list[str]) -> int:
    """Carries out the verb named on the command line."""
    if len(arguments) >= 5 and arguments[0] == "run" and arguments[3] == "--":
        run(pathlib.Path(arguments[1]), arguments[2], arguments[4:])
        return 0
    if len(arguments) == 2 and arguments[0] == "close":
        return close(pathlib.Path(arguments[1]))
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
