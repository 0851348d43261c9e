"""packtool as a process of its own."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}


def packtool(*arguments: str, **options: Any) -> subprocess.CompletedProcess[Any]:
    """Run a command. `options` are those of `subprocess.run`; its streams are texts unless they say otherwise."""
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": ENVIRONMENT, **options}
    return subprocess.run([sys.executable, "-m", "packtool", *arguments], check=False, **given)
