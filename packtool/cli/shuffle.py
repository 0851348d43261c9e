"""`packtool shuffle`."""

from __future__ import annotations

from packtool.cli.build import STAGE, Values, typer_command
from packtool.options.shuffle import ShuffleArguments
from packtool.options.terminal import Terminal


@typer_command(ShuffleArguments, STAGE)
def command(values: Values, terminal: Terminal) -> None:
    """Write the rows of a packed dataset in another order: exact, reproducible, within --memory.

    The rows depend on the corpus, on seed and epoch only, not on the order they had before. Moves each token once, or
    twice where the dataset is larger than --memory.

    \b
    Examples:
    packtool shuffle packed -o epoch1 --epoch 1
    packtool shuffle packed -o order1 --epoch 1 --order-only
    packtool shuffle store -o rotated --method partial -B 64 -L 512
    packtool shuffle packed -o batches --method bucket --batch-tokens 65536
    """
    from packtool.cli.results import show_dataset
    from packtool.commands.shuffle import shuffle

    show_dataset(shuffle(**values), terminal)
