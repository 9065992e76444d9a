"""Headwater: training that fits a byte budget, with unchanged code and the same bits.

>>> import headwater
>>> headwater.enable(budget="2GiB")          # any PyTorch training from here on
>>> headwater.stats().peak_bytes <= 2 * 2**30
True
>>> headwater.disable()
"""

from __future__ import annotations

try:
    import torch
except ModuleNotFoundError as missing:
    raise ImportError(
        "Headwater needs PyTorch, which is not installed. Install it: supported 2.11 to 2.15"
    ) from missing

from headwater.options import disabled_by_environment
from headwater.versions import check_versions

_built_for: str | None
try:  # written by the build
    from headwater._build_info import HEADWATER_VERSION as __version__
    from headwater._build_info import TORCH_VERSION as _built_for
except ModuleNotFoundError:
    __version__, _built_for = "0+unbuilt", None

if not disabled_by_environment():
    check_versions(torch.__version__, _built_for)
    import headwater._C as _C  # noqa: F401  a broken build shows here, not in enable()
    from headwater import processes

    processes.install()

from headwater.errors import OutOfMemory  # noqa: E402
from headwater.regions import region, set_policy  # noqa: E402
from headwater.session import (  # noqa: E402
    budget,
    disable,
    enable,
    end_step,
    hold,
    is_enabled,
    reset_peak_stats,
    set_budget,
    stalls,
    stats,
)
from headwater.stats import Stall, Stats  # noqa: E402
from headwater.traces import (  # noqa: E402
    OpShare,
    StepSummary,
    TraceSummary,
    read_trace,
    trace,
)

__all__ = [
    "OpShare",
    "OutOfMemory",
    "Stall",
    "Stats",
    "StepSummary",
    "TraceSummary",
    "__version__",
    "budget",
    "disable",
    "enable",
    "end_step",
    "hold",
    "is_enabled",
    "read_trace",
    "region",
    "reset_peak_stats",
    "set_budget",
    "set_policy",
    "stalls",
    "stats",
    "trace",
]
