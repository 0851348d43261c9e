"""Commands of packtool as a user types them, run in the process of the tests."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from packtool.cli import run
from packtool.errors import UsageError
from packtool.formats.names import UNFINISHED

ROOT = Path(__file__).parents[1]
USAGE = UsageError.exit_code


def python(program: str, *words: object, cwd: Path | None = None) -> str:
    """Run a program in a process of its own, which must end well, and return what it prints."""
    command = [sys.executable, "-c", program, *map(str, words)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def fuzzed(module: str, *words: object) -> dict[str, int]:
    """Run a fuzzer in a process of its own, which must end well, and return what it counts."""
    command = [sys.executable, "-m", module, *map(str, words)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    counts: dict[str, int] = json.loads(done.stdout)
    return counts


def _begun() -> list[Path]:
    """List the outputs near by that hold unfinished work."""
    return sorted({*Path().glob(UNFINISHED), *Path().glob(f"*/{UNFINISHED}"), *Path().glob(f"*/*/{UNFINISHED}")})


class Shell:
    """Runs commands, and has what they said last as `out` and `err`.

    Args:
        capture: what is written to the standard streams.
    """

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture
        self.out = self.err = ""

    def __call__(self, *words: object, status: int = 0) -> str:
        """Run a command that ends with this status, and return what it prints."""
        self._capture.readouterr()
        begun = _begun()
        ended = run([str(word) for word in words])
        self.out, self.err = self._capture.readouterr()
        assert ended == status, self.err
        assert ended != USAGE or _begun() == begun, "an error of usage leaves no output behind"
        return self.out

    def refused(self, *words: object, status: int = 1) -> str:
        """Run a command that ends with this status, and return what it says on standard error."""
        self(*words, status=status)
        return self.err
