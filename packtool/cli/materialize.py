"""`packtool materialize`."""

from __future__ import annotations

from packtool.cli.build import STAGE, Values, typer_command
from packtool.options.materialize import MaterializeArguments
from packtool.options.terminal import Terminal


@typer_command(MaterializeArguments, STAGE)
def command(values: Values, terminal: Terminal) -> None:
    """Write the tokens of a dataset that was packed with --index-only: the same files as without it.

    With --index-only the reverse: write a dataset without its tokens, to be gathered from its token stores.

    \b
    Examples:
    packtool materialize index -o packed
    packtool materialize index -o packed --store /data/tokens
    packtool materialize packed -o index --index-only
    """
    from packtool.cli.results import show_dataset
    from packtool.commands.materialize import materialize

    show_dataset(materialize(**values), terminal)
