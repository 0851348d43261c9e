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
    from packtool.cli.results import show, show_part, show_preview
    from packtool.commands.shuffle import shuffle

    result = shuffle(**values)
    if result.preview is not None:
        show_preview(result.preview, overwrite=values["overwrite"], json=terminal.json)
    elif result.part is not None:
        show_part(result.path, result.part, quiet=terminal.quiet, json=terminal.json)
    else:
        show(result.path, result.report, result.run, kept=result.kept, quiet=terminal.quiet, json=terminal.json)
