"""Stop on Ctrl-C, SIGTERM and SIGHUP within two seconds, at a point from which the command can resume."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING

from packtool.cli.failures import say

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

INTERRUPTED = 130
GRACE_SECONDS = 1.5
"""Seconds that a command may take to stop. Then it is ended where it is, as if killed, which everything it writes
survives."""


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, what a scheduler sends, and what a terminal sends that is closed."""


class Interrupts:
    """Ctrl-C, SIGTERM and SIGHUP while a command runs.

    Args:
        arguments: of the command line, for what to say.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = list(arguments)
        self._said = threading.Event()
        self.requested = False  # an interrupt has come

    def guard(self) -> None:
        """Raise a KeyboardInterrupt at the first of these signals, and end the process if that does not end it soon.

        A signal that is ignored stays so, as under nohup.

        A signal reaches Python code only when the main thread is back from what it waits for, such as a slow disk. So
        the number of the signal goes through a pipe, as the system's own handler writes it there, to a thread.
        """
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        with suppress(RuntimeError):  # where threads are few, an interrupt waits for the main one
            threading.Thread(target=self._watch, args=(reader,), daemon=True).start()
        sys.unraisablehook = self._unraisable
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._interrupt)

    def stop_listening(self) -> None:
        """Let a signal change nothing any more: the command is done, and the process about to end."""
        self.requested = True

    def say(self) -> None:
        """Say that the command was interrupted, and how to go on."""
        self._said.set()
        with suppress(OSError):  # the terminal may be closed
            say(f"packtool: interrupted{_way_on(self._arguments)}")

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            return  # a second Ctrl-C must not disturb what cleans up after the first
        self.requested = True
        raise KeyboardInterrupt

    def _watch(self, reader: int) -> None:
        while os.read(reader, 1)[0] not in SIGNALS:
            pass
        time.sleep(GRACE_SECONDS)
        if not self._said.is_set():
            self.say()
        if "packtool.support.temporary" in sys.modules:  # else there are none
            from packtool.support.temporary import remove_all

            remove_all()
        os._exit(INTERRUPTED)

    def _unraisable(self, found: UnraisableHookArgs) -> None:
        """Keep silent about an interrupt that came where no exception can be raised: the thread ends the process."""
        if not issubclass(found.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(found)


def _way_on(arguments: Sequence[str]) -> str:
    command = arguments[0] if arguments else ""
    if command == "run":
        return "; the same command goes on from here"
    if command in ("tokenize", "pack", "shuffle", "materialize", "export", "import") and "-" not in arguments:
        return "; with --resume, what is finished is kept"
    return ""
