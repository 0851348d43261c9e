"""`packtool doctor`."""

from __future__ import annotations

import typer

from packtool.cli.build import Values, typer_command
from packtool.options.terminal import Terminal


@typer_command(None, ("json",))
def command(values: Values, terminal: Terminal) -> None:
    """Look at versions, encoders and extras, and say what is missing. Changes nothing.

    Exit code 1 when something that packtool cannot do without is broken.

    \b
    Examples:
    packtool doctor
    packtool doctor --json
    """
    from dataclasses import asdict

    from packtool.commands.doctor import doctor

    checks = doctor()
    if terminal.json:
        from packtool.cli.results import print_json

        print_json({"schema_version": 1, "checks": [asdict(check) for check in checks]})
    else:
        for check in checks:
            typer.echo(f"{check.state:7}  {check.name:15}  {check.found}")
            if check.remedy:
                typer.echo(f"{'':7}  {'':15}  {check.remedy}")
    raise typer.Exit(1 if any(check.state == "broken" for check in checks) else 0)
