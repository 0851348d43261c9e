"""`packtool doctor`."""

from __future__ import annotations

import typer

from packtool.cli.build import Values, typer_command
from packtool.options.doctor import DoctorArguments
from packtool.options.terminal import Terminal


@typer_command(DoctorArguments, ("json",))
def command(values: Values, terminal: Terminal) -> None:
    """Report versions, encoders and extras, and what is missing. Changes nothing.

    With `--tokenizer`, look at a tokenizer instead: the encoder it gets and why, whether long documents are encoded in
    pieces, its EOS, and how fast each encoder is on a megabyte of Python's own sources, which both must encode alike.

    Exit code 1 when something that packtool cannot do without is broken.

    \b
    Examples:
    packtool doctor
    packtool doctor --json
    packtool doctor --tokenizer path/to/tokenizer.json
    """
    from dataclasses import asdict

    from packtool.commands.doctor import doctor, doctor_of_tokenizer

    checks = doctor() if values["tokenizer"] is None else doctor_of_tokenizer(values["tokenizer"])
    if terminal.json:
        from packtool.cli.results import print_json

        print_json({"schema_version": 1, "checks": [asdict(check) for check in checks]})
    else:
        for check in checks:
            typer.echo(f"{check.state:7}  {check.name:15}  {check.found}")
            if check.remedy:
                typer.echo(f"{'':7}  {'':15}  {check.remedy}")
    raise typer.Exit(1 if any(check.state == "broken" for check in checks) else 0)
