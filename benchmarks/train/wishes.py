"""Options of Headwater that a version may not have: passed on where it takes them, else told."""

from __future__ import annotations

import argparse
import inspect
from typing import Any

import headwater

TAKEN = frozenset(inspect.signature(headwater.enable).parameters)
CHOICES = {"recompute": ("auto", "off"), "conv_workspace": ("dynamic",)}


def add_wishes(parser: argparse.ArgumentParser) -> None:
    """One argument for each; what is not given is left to Headwater."""
    for name, choices in CHOICES.items():
        taken = "" if name in TAKEN else "; this version takes none"
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            choices=choices,
            help=f"passed on to headwater.enable{taken}",
        )


def wishes_of(options: argparse.Namespace) -> dict[str, str]:
    """Those that were given and that this version takes, ready for ``enable``."""
    given = {name: getattr(options, name) for name in CHOICES}
    return {name: value for name, value in given.items() if value and name in TAKEN}


def describe_wishes(options: argparse.Namespace) -> dict[str, Any]:
    """For a report: what was passed on, and what was given in vain."""
    given = {name for name in CHOICES if getattr(options, name)}
    return {"passed_on": wishes_of(options), "not_taken": sorted(given - TAKEN)}


def as_arguments(options: argparse.Namespace) -> list[str]:
    """The same for another process."""
    given = [(name, getattr(options, name)) for name in CHOICES]
    words = [(f"--{name.replace('_', '-')}", value) for name, value in given if value]
    return [word for pair in words for word in pair]
