#!/usr/bin/env python3
"""Fails when the documents and the tree disagree.

Usage: check_docs.py [ROOT]   (ROOT is the repository, the current folder by default)

Checks the folders of the core against src/headwater/README.md and ARCHITECTURE.md, the files
named in links, and that the words ruled out by docs/glossary.md do not appear in the code.
"""

import pathlib
import re
import sys
from collections.abc import Iterator

from check_layers import LAYERS, sources

MAP = pathlib.Path("src/headwater/README.md")
RULED_OUT = re.compile(r"\b(evict\w*|spill\w*|migrat\w*|pag(e|es|ed|ing) out)\b", re.IGNORECASE)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)[^)]*\)")
SKIPPED = ("build", ".venv", ".git", "dist")


def documents(root: pathlib.Path) -> Iterator[pathlib.Path]:
    for path in sorted(root.rglob("*.md")):
        place = path.relative_to(root)
        if not place.parts[0].startswith(SKIPPED):
            yield place


def map_faults(root: pathlib.Path) -> Iterator[str]:
    listed = re.findall(r"^## (\w+)/$", (root / MAP).read_text(encoding="utf-8"), re.MULTILINE)
    there = sorted(path.name for path in (root / MAP).parent.iterdir() if path.is_dir())
    for name in sorted(set(there) - set(listed)):
        yield f"{MAP}: folder {name}/ is not described"
    for name in sorted(set(listed) - set(there)):
        yield f"{MAP}: describes {name}/, which is not there"
    order = [name for name in LAYERS if name in listed]
    if [name for name in listed if name in LAYERS] != order:
        yield f"{MAP}: folders are not in the order {', '.join(order)}"
    architecture = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for name in there:
        if not re.search(rf"^\| `(src/headwater/)?{name}` \|", architecture, re.MULTILINE):
            yield f"ARCHITECTURE.md: no row for {name}"


def link_faults(root: pathlib.Path) -> Iterator[str]:
    for place in documents(root):
        for target in LINK.findall((root / place).read_text(encoding="utf-8")):
            if "://" not in target and not (root / place.parent / target).exists():
                yield f"{place}: link to {target}, which is not there"


def word_faults(root: pathlib.Path) -> Iterator[str]:
    for place in sources(root):
        if place.parts[0] == "tools":
            continue
        for number, line in enumerate((root / place).read_text(encoding="utf-8").splitlines(), 1):
            for found in RULED_OUT.finditer(line):
                yield f"{place}:{number}: '{found[0]}' is not a word of the glossary"


if __name__ == "__main__":
    place = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    found = [*map_faults(place), *link_faults(place), *word_faults(place)]
    print("\n".join(found) or "documents: ok")
    sys.exit(bool(found))
