"""`packtool verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from packtool.cli import options


def command(
    path: Annotated[Path, typer.Argument(help="A token store or packed dataset.", metavar="PATH")],
    store: Annotated[
        list[Path] | None,
        typer.Option(help="Also compare all rows with the store they were packed from.", metavar="STORE"),
    ] = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    json: options.Json = False,
) -> None:
    """Check a dataset against its manifest: files, sizes, checksums, ids, segments and ledger.

    Of a packed dataset also that no token is placed twice. Reads every byte twice. Exit code 1 when anything is wrong.
    With --store, once for each store in the order that pack was given, all rows are compared with the stores' tokens.

    \b
    Examples:
    packtool verify packed
    packtool verify packed --store tokens
    """
    from packtool.cli.results import print_json, print_problems
    from packtool.commands.verify import verify

    result = verify(path, stores=store or (), quiet=quiet)
    if json:
        print_json(
            {
                "schema_version": 1,
                "path": str(path),
                "kind": result.kind,
                "sound": not result.problems,
                "files": result.files,
                "bytes": result.bytes,
                "tokens": result.tokens,
                "problems": [{"code": p.code, "where": p.where, "what": p.what} for p in result.problems],
            }
        )
    print_problems(result.problems)
    if not result.problems and not json and not quiet:
        typer.echo(f"{path}: sound. {result.files} files, {result.bytes:,} bytes, {result.tokens:,} tokens.")
    raise typer.Exit(1 if result.problems else 0)
