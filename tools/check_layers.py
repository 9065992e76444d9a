#!/usr/bin/env python3
"""Fails when a file includes what is above its layer, or is longer than its limit.

Usage: check_layers.py [ROOT]   (ROOT is the repository, the current folder by default)
"""

import pathlib
import re
import sys
from collections.abc import Iterator

# Bottom to top: a folder may include itself and the folders before it.
LAYERS = (
    "base",
    "device",
    "memory",
    "tensor",
    "trace",
    "pilot",
    "plan",
    "offload",
    "share",
    "runtime",
)
# Folders that see ids, sizes and times only, so that they can be tested as plain values.
PURE = {"trace", "pilot", "plan"}
IMPURE = {"device", "memory"}
# Headers of others, and the only places that may include them.
FOREIGN = {
    r"cuda|cudnn|cublas|nvml": (),  # the driver is declared by hand and loaded at run time
    r"liburing": ("src/headwater/device/disk",),
    r"torch/csrc/(utils|autograd/python|Exceptions|Dynamic|Storage|THP|jit/python)": (
        "python/src",
    ),
    r"torch/|ATen/|c10/|caffe2/": ("adapters/torch", "python/src"),
    r"pybind11/|Python\.h": ("python/src",),
}
# The first folder that matches decides; sizes in lines.
LIMITS = (
    ("src/headwater", {".h": 300, ".cpp": 500}),
    ("adapters", {".h": 300, ".cpp": 300}),
    ("python", {".h": 300, ".cpp": 300, ".py": 300, ".pyi": 300}),
    ("tests", {".h": 500, ".cpp": 500, ".py": 500}),
    ("", {".h": 300, ".cpp": 300, ".py": 300}),
)
MAX_UNITS = 15
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
CORE = "src/headwater"
CHECKED = ("src", "adapters", "python", "tests", "benchmarks", "examples", "tools")


def sources(root: pathlib.Path) -> Iterator[pathlib.Path]:
    for folder in CHECKED:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in {".h", ".cpp", ".py", ".pyi", ".cu"}:
                yield path.relative_to(root)


def limit_of(place: pathlib.Path) -> int | None:
    for folder, limits in LIMITS:
        if place.is_relative_to(folder):
            return limits.get(place.suffix)
    return None


def layer_faults(place: pathlib.Path, included: str) -> Iterator[str]:
    own = place.relative_to(CORE).parts[0]
    parts = included.split("/")
    if parts[0] != "headwater" or len(parts) < 3 or own not in LAYERS:
        return
    if parts[1] not in LAYERS:
        yield f"includes {included}, which is no layer of the core"
    elif LAYERS.index(parts[1]) > LAYERS.index(own):
        yield f"includes {included}, a layer above"
    elif own in PURE and parts[1] in IMPURE:
        yield f"includes {included}, but {own} knows only ids, sizes and times"


def foreign_faults(place: pathlib.Path, included: str) -> Iterator[str]:
    for pattern, homes in FOREIGN.items():
        if re.match(pattern, included):
            if not any(place.is_relative_to(home) for home in homes):
                yield f"includes {included}, allowed in {' and '.join(homes) or 'no folder'}"
            return


def file_faults(root: pathlib.Path, place: pathlib.Path) -> Iterator[str]:
    text = (root / place).read_text(encoding="utf-8")
    lines, limit = text.count("\n"), limit_of(place)
    if limit is not None and lines > limit:
        yield f"{lines} lines, limit {limit}"
    if place.suffix not in {".h", ".cpp", ".cu"}:
        return
    for included in INCLUDE.findall(text):
        if place.is_relative_to(CORE):
            yield from layer_faults(place, included)
        if place.parts[0] in {"src", "adapters", "python"}:
            yield from foreign_faults(place, included)


def folder_faults(root: pathlib.Path) -> Iterator[str]:
    for folder in sorted(path for path in (root / CORE).rglob("*") if path.is_dir()):
        place = folder.relative_to(root)
        if place.parts[2] not in LAYERS:
            yield f"{place}: not a layer; known are {', '.join(LAYERS)}"
        units = {path.stem for path in folder.iterdir() if path.suffix in {".h", ".cpp"}}
        if len(units) > MAX_UNITS:
            yield f"{place}: {len(units)} units, limit {MAX_UNITS}"


def faults(root: pathlib.Path) -> Iterator[str]:
    for place in sources(root):
        for fault in file_faults(root, place):
            yield f"{place}: {fault}"
    yield from folder_faults(root)


if __name__ == "__main__":
    found = list(faults(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
    print("\n".join(found) or "layers: ok")
    sys.exit(bool(found))
