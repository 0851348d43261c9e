"""What earlier runs found: that an encoder agrees with the reference on a tokenizer.json.

To load the reference and ask the probes is what takes longest where little is encoded. So a verdict is kept, for this
very file, these versions of the libraries and of packtool, in the user's cache, and dropped with the first difference.
"""

from __future__ import annotations

import hashlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from packtool import __version__

_PACKAGES = {"splintr": "splintr-rs"}
"""Encoder: the package that it comes in, where that has another name."""


def _installed(package: str) -> str:
    """Name and version of an installed package; `importlib.metadata` takes longer to import than all else here."""
    name = package.replace("-", "_")
    places = (Path(place).glob(f"{name}-*.dist-info") for place in sys.path)
    return next((found.name for each in places for found in each), package)


def directory() -> Path:
    """Return where verdicts are kept."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "packtool" / "verified"


@dataclass(frozen=True)
class Verdict:
    """A verdict that may be kept.

    Attributes:
        path: its file, which is empty; None where none is kept.
    """

    path: Path | None

    @classmethod
    def of(cls, directory: str, data: bytes, encoder: str, *, special_as_text: bool) -> Verdict:
        """Find the verdict on a tokenizer.json under an encoder.

        Args:
            directory: empty to keep none.
        """
        if not directory:
            return cls(None)
        versions = [_installed(name) for name in ("tokenizers", _PACKAGES.get(encoder, encoder))]
        digest = hashlib.sha256(data).hexdigest()
        key = "\0".join([digest, encoder, *versions, __version__, str(special_as_text)])
        return cls(Path(directory) / hashlib.sha256(key.encode()).hexdigest())

    def known(self) -> bool:
        """Return whether an earlier run kept it."""
        return self.path is not None and self.path.is_file()

    def keep(self) -> None:
        """Keep it; where that can't be, the next run verifies again."""
        if self.path is not None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.touch()
            except OSError:
                return

    def drop(self) -> None:
        """Keep it no longer."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
