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
    from packtool.cli.results import show, show_part, show_preview
    from packtool.commands.materialize import materialize

    result = materialize(**values)
    if result.preview is not None:
        show_preview(result.preview, overwrite=values["overwrite"], json=terminal.json)
    elif result.part is not None:
        show_part(result.path, result.part, quiet=terminal.quiet, json=terminal.json)
    else:
        show(result.path, result.report, result.run, kept=result.kept, quiet=terminal.quiet, json=terminal.json)
