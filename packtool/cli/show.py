"""`packtool show`."""

from __future__ import annotations

from packtool.cli.build import Values, typer_command
from packtool.options.show import ShowArguments
from packtool.options.terminal import Terminal


@typer_command(ShowArguments, ("ids", "json"))
def command(values: Values, terminal: Terminal) -> None:
    """Show one row of a packed dataset: documents in alternating colours, boundaries, cuts, repeats and padding.

    Tokens are decoded with the tokenizer that the dataset keeps. ✂ stands where a document is cut. Where the dataset
    says which tokens train, those are underlined, and the others pale.

    \b
    Examples:
    packtool show packed --row 12
    packtool show packed --row -1 --bucket 4096
    packtool show packed --row 12 --ids
    """
    from packtool.commands.show import show

    shown = show(**values)
    if terminal.json:
        from packtool.cli.results import print_result

        print_result(shown)
    else:
        from packtool.report.row_view import print_row
        from packtool.report.terminal.console import results_console

        print_row(shown, results_console(), ids=terminal.ids)
