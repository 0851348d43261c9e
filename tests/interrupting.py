"""Commands that are killed just before they finish, and damage to what they leave."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from packtool.formats import manifest as manifests


class Interrupted(BaseException):
    """As if the process had been killed."""


def interrupted(monkeypatch: pytest.MonkeyPatch, command: Callable[..., object], *args: Any, **options: Any) -> None:
    """Call a command that ends just before its manifest is written."""

    def stop(*args: object) -> None:
        raise Interrupted

    with monkeypatch.context() as patch, pytest.raises(Interrupted):
        patch.setattr(manifests, "write", stop)
        command(*args, **options)


def flip(file: Path) -> None:
    whole = bytearray(file.read_bytes())
    whole[-1] ^= 1
    file.write_bytes(whole)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


DAMAGES = [flip, cut, Path.unlink, lambda file: file.write_bytes(b"[" * 2000)]
