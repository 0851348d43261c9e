"""`packtool verify`."""

from __future__ import annotations

import typer

from packtool.cli.build import Values, typer_command
from packtool.options.terminal import Terminal
from packtool.options.verify import VerifyArguments
from packtool.sizes import plural


@typer_command(VerifyArguments, ("progress", "quiet", "verbose", "json"))
def command(values: Values, terminal: Terminal) -> None:
    """Check a dataset against its manifest: files, sizes, checksums, ids, segments and ledger.

    Of a packed dataset also that no token is placed twice. Reads every byte twice. Exit code 1 when anything is wrong.
    With --store, once for each store in the order that pack was given, all rows are compared with the stores' tokens.

    \b
    Examples:
    packtool verify packed
    packtool verify packed --store tokens
    """
    from packtool.cli.failures import say
    from packtool.cli.results import print_json
    from packtool.commands.verify import verify

    result = verify(**values)
    if terminal.json:
        print_json(
            {
                "schema_version": 1,
                "path": str(result.path),
                "kind": result.kind,
                "sound": not result.problems,
                "files": result.files,
                "bytes": result.bytes,
                "tokens": result.tokens,
                "problems": [{"code": p.code, "where": p.where, "what": p.what} for p in result.problems],
            }
        )
    for problem in result.problems:
        say(f"packtool: error[{problem.code}]: {problem}")
    if not result.problems and not terminal.json and not terminal.quiet:
        held = ", ".join(map(plural, (result.files, result.bytes, result.tokens), ("file", "byte", "token")))
        typer.echo(f"{result.path}: sound. {held}.")
    raise typer.Exit(1 if result.problems else 0)
