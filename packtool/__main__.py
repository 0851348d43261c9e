"""`python -m packtool`, and the entry point of the command."""

import os
import signal


def _end(number: int, frame: object) -> None:
    """End the process at once, as nothing has begun yet. An exception would come from the midst of an import."""
    os.write(2, b"packtool: interrupted\n")
    os._exit(130)


for _number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(_number) in (signal.SIG_DFL, signal.default_int_handler):
        signal.signal(_number, _end)  # until the command listens to them

import gc  # noqa: E402 - the first of the imports that take time

gc.set_threshold(100_000, 20, 20)  # imports make many objects that stay, for each collection to visit

from packtool.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
