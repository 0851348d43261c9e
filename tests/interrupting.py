"""Commands that are killed just before they finish, and damage to what they leave."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from packtool.errors import DataError
from packtool.formats import manifest as manifests
from tests.stores import contents


class Interrupted(BaseException):
    """As if the process had been killed."""


def interrupted(monkeypatch: pytest.MonkeyPatch, command: Callable[..., object], *args: Any, **options: Any) -> None:
    """Call a command that ends just before its manifest is written."""

    def stop(*args: object) -> None:
        raise Interrupted

    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(manifests, "write", stop)
        command(*args, **options)


def interrupted_everywhere(monkeypatch: pytest.MonkeyPatch, place: Path, make: Callable[..., Any]) -> int:
    """Call a command on a disk that is full after no file, one, two …; resumed, it ends with the same bytes.

    Args:
        make: called with an output, and with `resume=True` to go on with it.

    Returns:
        how many files it puts in their places.
    """
    make(place / "whole")
    expected, replace = contents(place / "whole"), Path.replace
    for room in range(100):
        output, left = place / f"cut-{room}", iter(range(room))

        def failing(self: Path, target: Path, left: Iterator[int] = left) -> Path:
            if next(left, None) is None:
                raise OSError(28, "No space left on device", str(target))
            return replace(self, target)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", failing)
            try:
                make(output)
            except (OSError, DataError):
                pass
            else:
                return room
        assert not (output / "manifest.json").exists()
        make(output, resume=True)
        assert contents(output) == expected
        assert make(output, resume=True).kept
    raise AssertionError("it needs no end of files")


def flip(file: Path) -> None:
    whole = bytearray(file.read_bytes())
    whole[-1] ^= 1
    file.write_bytes(whole)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


DAMAGES = [flip, cut, Path.unlink, lambda file: file.write_bytes(b"[" * 2000)]
