"""The command line: thin shells over the functions in `packtool.commands`.

Only Typer is imported here; each command imports what it needs when it runs, so that `--help` answers at once. One
place turns errors into messages and exit codes: 0 done, 1 data or run time, 2 usage, 130 interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.exceptions import TyperException

from packtool import __version__
from packtool.cli import pack, stats, verify
from packtool.errors import DataError, PacktoolError

USAGE = 2
INTERRUPTED = 130
BROKEN_PIPE = 141  # what a shell reports for a process that SIGPIPE ended

app = typer.Typer(
    name="packtool",
    help="Turn text corpora into training-ready token shards, with every token accounted for.",
    epilog="First steps: packtool tokenize corpus.jsonl -o store · packtool pack store -o packed --strategy concat "
    "--sequence-length 2048 · packtool stats packed",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("pack")(pack.command)
app.command("stats")(stats.command)
app.command("verify")(verify.command)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"packtool {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    sys.exit(run(arguments))


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        status = app(args=arguments, standalone_mode=False)
        sys.stdout.flush()
        if status == INTERRUPTED:  # Typer turns Ctrl-C into a status
            raise KeyboardInterrupt
        return status if isinstance(status, int) else 0
    except PacktoolError as error:
        _complain(error)
        return error.exit_code
    except TyperException as error:
        # Without a command, Typer has shown the help, and there is nothing to add.
        if message := error.format_message():
            sys.stderr.write(f"packtool: error[usage]: {message.rstrip('.')}. See packtool --help.\n")
        return USAGE
    except (KeyboardInterrupt, typer.Abort):
        sys.stderr.write("packtool: interrupted\n")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone; keep the interpreter from complaining about it while it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except OSError as error:
        failure = _from_os(error)
        if failure is None:
            raise
        _complain(failure)
        return failure.exit_code


def _complain(error: PacktoolError) -> None:
    sys.stderr.write(f"packtool: error[{error.code}]: {error}\n")


def _from_os(error: OSError) -> DataError | None:
    """What the system refused, in our words; None where it is not the user's to mend."""
    known = {
        errno.ENOSPC: ("disk-full", "no space left on the device", "free some space and run the command again"),
        errno.EDQUOT: ("disk-full", "disk quota exceeded", "free some space and run the command again"),
        errno.EACCES: ("permission-denied", "permission denied", "check the permissions"),
        errno.EPERM: ("permission-denied", "operation not permitted", "check the permissions"),
        errno.EROFS: ("permission-denied", "read-only file system", "write somewhere else"),
        errno.ENOENT: ("missing-input", "no such file or directory", "check the path"),
        errno.EISDIR: ("missing-input", "is a directory", "give a file"),
        errno.ENOTDIR: ("missing-input", "is not a directory", "check the path"),
        errno.EMFILE: ("too-many-files", "too many open files", "raise the limit with ulimit -n"),
        errno.EIO: ("io-error", "input/output error", "check the disk"),
    }
    if error.errno not in known:
        return None
    code, what, remedy = known[error.errno]
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else None
    return DataError(code, what, remedy=remedy, where=where)
