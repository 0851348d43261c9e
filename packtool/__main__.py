"""`python -m packtool`, and the entry point of the command."""

import gc

gc.set_threshold(100_000, 20, 20)  # imports make many objects that stay, for each collection to visit

from packtool.cli import main  # noqa: E402 - the first of these imports

if __name__ == "__main__":
    main()
