"""Warnings: what a user should know although the command continues.

They form a closed set: each code is listed here, and in docs/codes.md with its messages. They travel as Python
warnings, so that a program which calls packtool can filter them; the command line prints them on standard error,
once each, unless `--quiet` is given.
"""

from __future__ import annotations

import warnings

from packtool.errors import Explained

CODES = frozenset(
    {
        "added-tokens-moved",
        "bos-left-out",
        "column-empty",
        "directory-repeated",
        "empty-answers",
        "encoder-fallback",
        "eos-doubtful",
        "fields-left-out",
        "files-skipped",
        "holdout-by-text",
        "input-named-twice",
        "matched-nothing",
        "no-directory-sync",
        "no-document-ends",
        "no-documents",
        "no-end",
        "no-locks",
        "no-workers",
        "none-found",
        "order-unchanged",
        "order-without-effect",
        "records-rejected",
        "rows-without-target",
        "run-ended",
        "shards-fetched-again",
        "no-token",
        "special-tokens",
        "splits-together",
        "tokenizer-options",
        "validation-trained-on",
    }
)


class PacktoolWarning(Explained, UserWarning):
    """One clear warning, with the same parts as a `PacktoolError`."""


def warn(code: str, what: str, *, remedy: str, where: str | None = None) -> None:
    """Warn the user. Only the parent process warns, never a worker.

    Args:
        code: one of `CODES`.
        what: what is unusual, in a sentence without a final stop.
        remedy: what to do about it, or why it does no harm, likewise.
        where: the option, file or ``file:line`` it is about.
    """
    if code not in CODES:
        raise ValueError(f"{code} is not a known warning")
    warnings.warn(PacktoolWarning(code, what, remedy=remedy, where=where), stacklevel=2)
