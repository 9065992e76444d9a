"""Which PyTorch versions work. Checked before the compiled module loads, since a module built
for another version would fail there with an unreadable missing symbol."""

from __future__ import annotations

import re

OLDEST = (2, 11)
NEWEST = (2, 15)


def check_versions(installed: str, built_for: str | None) -> None:
    """Raises ImportError unless the installed PyTorch is supported and is the one built for.

    ``built_for`` is None where the package was never built.

    >>> check_versions("2.13.0+cpu", "2.13.0")
    """
    supported = f"{_text(OLDEST)} to {_text(NEWEST)}"
    minor = _minor(installed)
    if minor is None or not OLDEST <= minor <= NEWEST:
        raise ImportError(
            "Headwater does not support the installed PyTorch. Install a supported version: "
            f"supported {supported}, installed {installed}"
        )
    if built_for is None:
        raise ImportError(
            "Headwater's compiled module is missing. Build it with "
            f"'pip install --no-build-isolation .': installed PyTorch {installed}"
        )
    if _minor(built_for) != minor:
        raise ImportError(
            "Headwater was built for another PyTorch. Build it again with "
            "'pip install --no-build-isolation --force-reinstall .': "
            f"built for {built_for}, installed {installed}"
        )


def _minor(version: str) -> tuple[int, int] | None:
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else None


def _text(minor: tuple[int, int]) -> str:
    return f"{minor[0]}.{minor[1]}"
