"""Programs that need an interpreter of their own."""

from __future__ import annotations

import os
import subprocess
import sys


def in_a_new_process(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program with this one's search path; returns its exit code and what it wrote."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
