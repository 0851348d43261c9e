"""The command line: thin shells over the public functions.

Only Typer is imported here; a command imports what it needs when it runs, so that `--help` answers at once. One place
turns errors into messages and exit codes: 0 done, 1 data or run time, 2 usage, 130 interrupted.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

import typer

from packtool.cli import failures
from packtool.cli.build import Commands
from packtool.cli.commands import COMMANDS
from packtool.cli.interrupts import INTERRUPTED, Interrupts
from packtool.cli.terminal import Session

BROKEN_PIPE = 141  # what a shell reports for a process that SIGPIPE ended

app = Commands(
    COMMANDS,
    name="packtool",
    help="Turn text corpora into training-ready token shards, with every token accounted for.",
    epilog="First steps: packtool tokenize corpus.jsonl -o tokens, then packtool pack tokens -o packed "
    '--strategy bfd --sequence-length 2048. To train: packtool.torch.Loader("packed"), or Loader("blend.toml") for '
    "several datasets; packtool stats blend.toml says what a run takes of each. What a directory is, and what to do "
    "next: packtool info DIR.",
    context_settings={"max_content_width": 100},
)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and end the process; `run` returns instead."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # else NumPy starts threads for linear algebra, unused here
    os.environ.setdefault("MIMALLOC_PURGE_DELAY", "1000")  # else Arrow returns and clears memory for each batch
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the caller: discard output, and keep the descriptor from data files
            # `closefd`: what takes its place below writes to the same descriptor, after this object is gone.
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8", closefd=False))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a character is no reason to stop
    if isinstance(sys.stdout, io.TextIOWrapper):
        answer = io.BufferedWriter(failures.Answer(sys.stdout.fileno(), "w", closefd=False))
        lines = sys.stdout.line_buffering
        sys.stdout = io.TextIOWrapper(answer, sys.stdout.encoding, "replace", line_buffering=lines)
    status = run(arguments, Interrupts(sys.argv[1:] if arguments is None else arguments))
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # reported already, if there was a way to
            stream.flush()
    os._exit(status)  # else the interpreter would free all objects one by one: a twentieth of what a small run takes


def run(arguments: Sequence[str] | None = None, interrupts: Interrupts | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        arguments: of the command line; by default the arguments of this process.
        interrupts: take over the signals of this process; by default they stay as they are.
    """
    typed = list(sys.argv[1:] if arguments is None else arguments)
    try:
        # Only from here on an interrupt may be an exception: it is caught below, wherever it comes, also while an error
        # is explained.
        if interrupts is not None:
            interrupts.guard()
        status = _run(typed, interrupts)
        if interrupts is not None:
            interrupts.stop_listening()
    except KeyboardInterrupt:
        status = INTERRUPTED
    if status == INTERRUPTED:
        (interrupts or Interrupts(typed)).say()
    return status


def _run(typed: Sequence[str], interrupts: Interrupts | None) -> int:
    """Run the command line, explain its error if there is one, and return its exit code."""
    session = Session()
    status: object = 0
    with warnings.catch_warnings():
        failures.show_warnings()
        try:
            status = app.main(args=typed, prog_name="packtool", standalone_mode=False, obj=session)
            sys.stdout.flush()
        except typer.Abort:
            status = INTERRUPTED
        except SystemExit as left:
            # Typer leaves like this after completion scripts, and when nobody reads its output any more.
            status = BROKEN_PIPE if isinstance(left.__context__, BrokenPipeError) else left.code
        except BrokenPipeError:
            status = BROKEN_PIPE
        except Exception as error:
            # A library whose import was interrupted may raise an error of its own.
            if interrupts is not None and interrupts.requested:
                return INTERRUPTED
            failure = failures.of_answer(error) or failures.explain(error)
            if failure is None:
                raise
            failure = session.locate(failure)
            failures.say(f"packtool: error[{failure.code}]: {failure.typed()}")
            if "--json" in typed:
                with suppress(OSError):  # standard output may be what failed
                    failures.print_error(failure)
            status = failure.exit_code
    return status if isinstance(status, int) else 0
