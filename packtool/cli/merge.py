"""`packtool merge`."""

from __future__ import annotations

from packtool.cli.build import Values, typer_command
from packtool.options.merge import MergeArguments
from packtool.options.terminal import Terminal


@typer_command(MergeArguments, ("progress", "quiet", "verbose", "json"))
def command(values: Values, terminal: Terminal) -> None:
    """Assemble the work of the tasks of tokenize, pack or shuffle: the same bytes as one run.

    Checks every piece by its checksum. Where one is missing or damaged it says which tasks to run again, and writes
    nothing.

    \b
    Examples:
    packtool merge store
    packtool merge packed -j 8
    """
    from packtool.cli.results import show_dataset
    from packtool.cli.tokenize import show_store
    from packtool.commands.merge import merge
    from packtool.commands.tokenize import TokenizeResult

    result = merge(**values)
    if isinstance(result, TokenizeResult):
        show_store(result, terminal)
    else:
        show_dataset(result, terminal, sources=True)
