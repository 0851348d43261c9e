"""Stop on Ctrl-C and SIGTERM within two seconds, at a point from which the command can resume."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from types import FrameType

from packtool.cli.failures import say

INTERRUPTED = 130
GRACE_SECONDS = 1.5
"""Seconds that a command may take to stop. Then it is ended where it is, as if killed, which everything it writes
survives."""


class Interrupts:
    """Ctrl-C and SIGTERM while a command runs.

    Args:
        arguments: of the command line, for what to say.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = list(arguments)
        self._said = threading.Event()

    def guard(self) -> None:
        """Treat SIGTERM like Ctrl-C, and act on either without delay.

        A signal reaches Python code only when the main thread is back from what it waits for, such as a slow disk. So
        the number of the signal goes through a pipe, as the system's own handler writes it there, to a thread.
        """
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _interrupt)
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        threading.Thread(target=self._watch, args=(reader,), daemon=True).start()

    def say(self) -> None:
        """Say that the command was interrupted, and how to go on."""
        self._said.set()
        say(f"packtool: interrupted{_way_on(self._arguments)}")

    def _watch(self, reader: int) -> None:
        while os.read(reader, 1)[0] not in (signal.SIGINT, signal.SIGTERM):
            pass
        time.sleep(GRACE_SECONDS)
        if not self._said.is_set():
            self.say()
        if "packtool.support.temporary" in sys.modules:  # else there are none
            from packtool.support.temporary import remove_all

            remove_all()
        os._exit(INTERRUPTED)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _way_on(arguments: Sequence[str]) -> str:
    command = arguments[0] if arguments else ""
    if command == "run":
        return "; the same command goes on from here"
    if command in ("tokenize", "pack", "shuffle", "materialize", "export", "import") and "-" not in arguments:
        return "; with --resume, what is finished is kept"
    return ""
