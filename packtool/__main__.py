"""`python -m packtool`, and the entry point of the command."""

import os
import signal
import sys
from collections.abc import Callable


def _end(number: int, frame: object) -> None:
    """End the process at once, as nothing has begun yet. An exception would come from the midst of an import."""
    os.write(2, b"packtool: interrupted\n")
    os._exit(130)


for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(_number) in (signal.SIG_DFL, signal.default_int_handler):
        signal.signal(_number, _end)  # until the command listens to them

import gc  # noqa: E402 - the first of the imports that take time

gc.set_threshold(100_000, 20, 20)  # imports make many objects that stay, for each collection to visit


def _command() -> Callable[[], None]:
    """Import the command, or end with what to install where only reading was."""
    from packtool.errors import UsageError
    from packtool.support.installing import needing

    try:
        with needing("the command packtool"):
            from packtool.cli import main
    except UsageError as error:
        print(f"packtool: error[{error.code}]: {error.typed()}", file=sys.stderr)  # noqa: T201 - what prints is not installed
        sys.exit(error.exit_code)
    return main


main = _command()

if __name__ == "__main__":
    main()
