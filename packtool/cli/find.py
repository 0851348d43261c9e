"""`packtool find`."""

from __future__ import annotations

import typer

from packtool.cli.build import Values, typer_command
from packtool.options.find import FindArguments
from packtool.options.terminal import Terminal


@typer_command(FindArguments, ("json",))
def command(values: Values, terminal: Terminal) -> None:
    """Find the rows of a packed dataset that hold a document, by its id or its input file and line.

    Exit code 1 when no row holds it, 2 when no store knows it.

    \b
    Examples:
    packtool find packed corpus.jsonl:17 --store tokens
    """
    from packtool.commands.find import find

    location = find(**values)
    if terminal.json:
        from packtool.cli.results import print_result

        print_result(location)
        raise typer.Exit(0 if location.places else 1)
    if not location.documents:
        typer.echo(f"{location.record} is not in the dataset: it was left out, has no tokens, or does not exist")
    for place in location.places:
        again = f", the first {place.repeated:,} repeated" if place.repeated else ""
        typer.echo(
            f"row {place.row:,} of {place.sequence_length:,} tokens: document {place.document:,}, "
            f"tokens {place.start:,} to {place.start + place.length - 1:,}{again}"
        )
    if location.documents and not location.places:
        typer.echo(f"{location.record} is in no row: the strategy dropped its tokens")
    raise typer.Exit(0 if location.places else 1)
