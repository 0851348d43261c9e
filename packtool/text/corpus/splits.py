"""Recognise by their names files for training that lie beside files of the same dataset for something else."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from typing import NamedTuple

TRAIN = frozenset({"train", "training"})
OTHERS = frozenset({"test", "testing", "validation", "valid", "val", "dev", "eval", "evaluation"})
"""Words of names."""


class Splits(NamedTuple):
    """Files for training beside others."""

    train: str  # the word for files for training
    others: list[str]  # the words for the others
    include: str  # pattern that takes the first alone, quoted for a shell; "" if none does


def splits(names: Sequence[str], takes: Callable[[str, str], bool]) -> Splits | None:
    """Return what tells files for training from others beside them; None if there are not both.

    Args:
        names: of the files, with their folders.
        takes: (name, pattern) to whether the pattern takes the file.

    >>> from fnmatch import fnmatch
    >>> splits(["data/train-00.parquet", "data/test-00.parquet"], fnmatch)
    Splits(train='train', others=['test'], include="'*train*'")
    """
    train: dict[str, str] = {}
    others: dict[str, None] = {}
    for name in names:
        words = re.findall(r"[A-Za-z]+", name)
        other = [word for word in words if word.lower() in OTHERS]
        own = [word for word in words if word.lower() in TRAIN]
        others |= dict.fromkeys(other)
        if own and not other:
            train[name] = own[0]
    if not train or not others:
        return None
    word = next(iter(train.values()))
    for pattern in (f"*{word}*", f"{word}/**", f"**/{word}/**", f"**/*{word}*/**"):
        if {name for name in names if takes(name, pattern)} == set(train):
            return Splits(word, list(others), shlex.quote(pattern))
    return Splits(word, list(others), "")
