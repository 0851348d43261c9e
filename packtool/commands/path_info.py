"""The description of a path that `info` gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_ROWS = 64  # rows by which strategies can be told apart


@dataclass(frozen=True)
class Info:
    """A description of a path.

    Attributes:
        path: as given.
        kind: ``token store``, ``packed dataset`` and so on; ``directory of datasets``; ``configuration``;
            ``blend``; ``tokenizer``; ``not written by packtool``.
        state: ``whole``, ``unfinished``, ``incomplete`` (without tokens, and its stores are elsewhere),
            ``damaged`` (files missing or of the wrong size), or ``unknown``.
        facts: the facts about the path, by name, in order.
        missing: names of files that are missing or have the wrong size.
        parts: of a directory of datasets: the description of each dataset.
        next: commands that make sense now.
    """

    path: Path | str
    kind: str
    state: str
    facts: dict[str, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    parts: list[Info] = field(default_factory=list)
    next: list[str] = field(default_factory=list)


def length_to_try(tokens: int) -> int:
    """Return a length of rows for a command to begin with: 2048, or less where that would make few rows.

    >>> length_to_try(10_000_000), length_to_try(40_000), length_to_try(0)
    (2048, 512, 128)
    """
    length = 2048
    while length > 128 and tokens < _ROWS * length:
        length //= 2
    return length


def free_name(name: str) -> str:
    """Return a name for an output in the working directory that nothing has yet."""
    found, number = name, 1
    while Path(found).exists():
        number += 1
        found = f"{name}-{number}"
    return found
