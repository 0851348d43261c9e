"""Show progress on standard error: a bar on a terminal, a line now and then in a log. Only the parent process does.

The environment variable PACKTOOL_PROGRESS overrides this: bar, log or none. The option --progress sets it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from types import TracebackType
from typing import Any

from packtool.support.sizes import show_bytes

INTERVAL = 30.0
"""Seconds between lines of a log."""

_BAR = "{desc} {percentage:3.0f}%|{bar}|"


class Progress:
    """Progress so far, its speed, and the estimated rest.

    Args:
        total: amount of work.
        label: what is being done.
        unit: of the work; "B" for bytes.
        initial: amount done already, by an earlier run; it does not count toward the rate.
        tokens: number of tokens that all the work moves, where it is known; else `add_tokens` counts them.
        quiet: show nothing.
    """

    def __init__(
        self, total: int, label: str, *, unit: str = "B", initial: int = 0, tokens: int = 0, quiet: bool = False
    ) -> None:
        self._total, self._label, self._unit = total, label, unit
        self._initial = self._done = initial
        self._tokens_of_all, self._tokens = tokens, 0
        self._begin = self._last = time.monotonic()
        self._lock = threading.Lock()
        self._bar: Any = None
        mode = "none"
        if not quiet and sys.stderr is not None:
            mode = os.environ.get("PACKTOOL_PROGRESS", "auto")
            if mode == "auto":
                mode = "bar" if sys.stderr.isatty() else "log"
        self._log = mode == "log"
        if mode == "bar":
            from tqdm import tqdm

            self._bar = tqdm(
                total=total,
                desc=label,
                initial=initial,
                leave=False,
                dynamic_ncols=True,
                file=sys.stderr,
                bar_format=f"{_BAR} {self.figures()}",
            )

    def advance(self, amount: int) -> None:
        """Record `amount` more work as done."""
        with self._lock:
            self._done += amount
            if self._bar is not None:
                self._bar.bar_format = f"{_BAR} {self.figures()}"  # tqdm puts a comma before a postfix
                self._bar.update(amount)
            elif self._log and time.monotonic() - self._last >= INTERVAL:
                self._last = time.monotonic()
                share = 100 * self._done / max(self._total, 1)
                sys.stderr.write(f"packtool: {self._label} {share:.0f} %, {self.figures()}\n")
                sys.stderr.flush()

    def add_tokens(self, tokens: int) -> None:
        """Record tokens that this run has made."""
        self._tokens += tokens

    def figures(self) -> str:
        """Write amounts, rates and the time left, of this run alone.

        >>> progress = Progress(10**9, "pack", tokens=10**8, initial=0, quiet=True)
        >>> progress._begin -= 1000; progress.advance(250_000_000); progress.figures()
        '250 MB of 1 GB, 250 kB/s, 25k tokens/s, 50:00 left'
        """
        seconds = max(time.monotonic() - self._begin, 1e-3)
        done_now = self._done - self._initial
        rate = done_now / seconds
        if self._unit == "B":
            words = [f"{show_bytes(self._done)} of {show_bytes(self._total)}"]
            if rate:
                words.append(f"{show_bytes(rate)}/s")
        else:
            words = [f"{self._done:,} of {self._total:,}{self._unit}"]
        tokens: float = self._tokens
        if self._tokens_of_all:
            tokens = self._tokens_of_all * done_now / max(self._total, 1)
        if tokens:
            words.append(f"{_short(tokens / seconds)} tokens/s")
        if rate:
            left = round(max(self._total - self._done, 0) / rate)
            minutes, seconds_left = divmod(left, 60)
            time_left = f"{minutes}:{seconds_left:02}"
            if minutes >= 60:
                time_left = f"{minutes // 60}:{minutes % 60:02}:{seconds_left:02}"
            words.append(f"{time_left} left")
        return ", ".join(words)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()


def _short(number: float) -> str:
    """Write a number in three digits.

    >>> _short(62_512_000), _short(950)
    ('62.5M', '950')
    """
    for suffix in ("", "k", "M", "G"):
        if number < 999.5:
            return f"{number:.3g}{suffix}"
        number /= 1000
    return f"{number:.3g}T"
