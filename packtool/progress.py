"""Progress on stderr, only on a terminal. Only the parent process draws."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any


class Progress:
    """A progress bar with rate and remaining time; nothing at all when `quiet` or when stderr is no terminal.

    Args:
        total: amount of work.
        label: what is being done.
        unit: of the work; "B" for bytes.
        initial: amount done already, by an earlier run.
        quiet: draw nothing.
    """

    def __init__(self, total: int, label: str, *, unit: str = "B", initial: int = 0, quiet: bool = False) -> None:
        self._bar: Any = None
        if not quiet and sys.stderr is not None and sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(
                total=total,
                desc=label,
                unit=unit,
                unit_scale=True,
                initial=initial,
                leave=False,
                dynamic_ncols=True,
                file=sys.stderr,
            )

    def advance(self, amount: int) -> None:
        """Record `amount` more work as done."""
        if self._bar is not None:
            self._bar.update(amount)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()
