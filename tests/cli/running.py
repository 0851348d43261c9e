"""packtool as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}


def packtool(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "packtool", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False, **options)  # type: ignore[call-overload, no-any-return]
