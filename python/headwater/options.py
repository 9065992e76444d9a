"""Options: what may be passed to ``enable`` or set in the environment, and how it is read."""

from __future__ import annotations

import math
import operator
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Budget = int | float | str
Size = int | str

STANDBY_POLICIES = ("off", "on")
RECOMPUTE_POLICIES = ("off", "auto")
LOG_LEVELS = ("debug", "info", "warning", "error", "off")
MINIMUM = None  # how the compiled module spells budget="minimum"
_AUTO_SHARE = 0.9
_LARGEST = 2**63
_UNITS = {
    "b": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", 1)},
}
_SIZE_FORMS = "an int of bytes or a text such as '512MiB', '10GiB' or '1.5GB'"
_BUDGET_FORMS = f"{_SIZE_FORMS}, a fraction of the device such as 0.5, 'auto' or 'minimum'"


@dataclass(frozen=True)
class Options:
    """Options as the user gave them.

    An explicit argument wins over its environment variable, which wins over the default.

    >>> Options.gather({"budget": "2GiB"}, {"HEADWATER_LOG": "info"})
    Options(budget='2GiB', device=None, host_budget=None, disk=None, disk_budget=None,
        min_tensor_bytes=4096, log_level='info', standby='on', recompute='auto')
    """

    budget: Budget = "auto"
    device: str | None = None  # None: the current GPU, or the CPU where there is none
    host_budget: Size | None = None  # None: most of what the machine has free
    disk: str | os.PathLike[str] | None = None  # None: no tensor goes to disk
    disk_budget: Size | None = None  # None: what the disk has, less a margin
    min_tensor_bytes: Size = 4096  # smaller tensors stay where they are
    log_level: str = "warning"
    standby: str = "on"  # whether operators are let through while everything fits twice over
    recompute: str = "auto"  # whether plans may make tensors again instead of copying them
    from_environment: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    @classmethod
    def gather(
        cls, arguments: Mapping[str, object], environment: Mapping[str, str] = os.environ
    ) -> Options:
        """Joins explicit arguments (None: not given) with the environment."""
        given = {name: value for name, value in arguments.items() if value is not None}
        found: dict[str, object] = {
            name: environment[variable]
            for name, variable in VARIABLES.items()
            if environment.get(variable) and name not in given
        }
        return cls(**given, **found, from_environment=frozenset(found))  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        self._check_choice("log_level", LOG_LEVELS)
        self._check_choice("standby", STANDBY_POLICIES)
        self._check_choice("recompute", RECOMPUTE_POLICIES)

    def _check_choice(self, option: str, choices: tuple[str, ...]) -> None:
        if (chosen := getattr(self, option)) not in choices:
            raise ValueError(
                f"Unknown {self.name(option)}. Use one of {', '.join(choices)}: got {chosen!r}"
            )

    def name(self, option: str) -> str:
        """What errors call an option: its environment variable if that is where it came from.

        >>> Options.gather({}, {"HEADWATER_BUDGET": "1GiB"}).name("budget")
        'HEADWATER_BUDGET'
        """
        return VARIABLES[option] if option in self.from_environment else option


VARIABLES = {
    "budget": "HEADWATER_BUDGET",
    "device": "HEADWATER_DEVICE",
    "host_budget": "HEADWATER_HOST_BUDGET",
    "disk": "HEADWATER_DISK",
    "disk_budget": "HEADWATER_DISK_BUDGET",
    "min_tensor_bytes": "HEADWATER_MIN_TENSOR_BYTES",
    "log_level": "HEADWATER_LOG",
    "standby": "HEADWATER_STANDBY",
    "recompute": "HEADWATER_RECOMPUTE",
}


def disabled_by_environment(environment: Mapping[str, str] = os.environ) -> bool:
    """Tells whether ``HEADWATER_DISABLE`` turns everything off.

    >>> disabled_by_environment({"HEADWATER_DISABLE": "1"})
    True
    """
    value = environment.get("HEADWATER_DISABLE", "")
    return value.strip().lower() not in ("", "0", "false", "no", "off")


def parse_size(value: Size, name: str = "size") -> int:
    """Reads a positive number of bytes.

    >>> parse_size("1.5 KiB")
    1536
    """
    if isinstance(value, str):
        return _positive(_parse_text(value, name, _SIZE_FORMS), value, name)
    return _positive(_parse_int(value, name, _SIZE_FORMS), value, name)


def parse_budget(
    value: Budget,
    device: str,
    total_bytes: int,
    free_bytes: Callable[[], int],
    name: str = "budget",
) -> int | None:
    """Reads a budget for a device and returns its bytes, or MINIMUM.

    ``free_bytes`` is asked only for "auto".

    >>> parse_budget(0.5, "cpu", total_bytes=4096, free_bytes=lambda: 0)
    2048
    """
    text = value.strip().lower() if isinstance(value, str) else None
    if text == "minimum":
        return MINIMUM
    if text == "auto":
        return max(1, min(total_bytes, int(free_bytes() * _AUTO_SHARE)))
    if text is not None and re.fullmatch(r"[+-]?\d*\.\d+", text):
        return _parse_fraction(float(text), total_bytes)
    if isinstance(value, float):
        return _parse_fraction(value, total_bytes)
    if isinstance(value, str):
        read = _parse_text(value, name, _BUDGET_FORMS)
    else:
        read = _parse_int(value, name, _BUDGET_FORMS)
    asked = _positive(read, value, name)
    if asked > total_bytes:
        raise ValueError(
            "Budget is above the device's memory. Ask for less: "
            f"asked {format_bytes(asked)}, {device} has {format_bytes(total_bytes)}"
        )
    return asked


def format_bytes(size: int) -> str:
    """Prints a size in the largest unit that keeps it at or above one.

    >>> format_bytes(1536)
    '1.5 KiB'
    """
    scaled, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if scaled < 1024:
            break
        scaled, unit = scaled / 1024, larger
    return f"{scaled:.4g} {unit}"


def _parse_fraction(fraction: float, total_bytes: int) -> int:
    if math.isnan(fraction) or not 0 < fraction <= 1:
        raise ValueError(
            "A budget given as a float is a fraction of the device, above 0 and at most 1. "
            f"Write bytes as an int: got {fraction}"
        )
    return max(1, int(total_bytes * fraction))


def _parse_text(text: str, name: str, forms: str) -> int:
    found = re.fullmatch(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-z]*)\s*", text.lower())
    if found is None or (found[2] or "b") not in _UNITS:
        raise ValueError(f"Cannot read {name}. Write {forms}: got {text!r}")
    return int(float(found[1]) * _UNITS[found[2]]) if found[2] else int(float(found[1]))


def _parse_int(value: object, name: str, forms: str) -> int:
    if not isinstance(value, bool):
        try:
            return operator.index(value)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise ValueError(f"Cannot read {name}. Write {forms}: got {value!r}")


def _positive(size: int, value: object, name: str) -> int:
    if not 0 < size < _LARGEST:
        raise ValueError(
            f"Cannot use {name}. Give at least 1 byte and less than 2**63 bytes: got {value!r}"
        )
    return size
