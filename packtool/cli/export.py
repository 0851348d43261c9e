"""`packtool export`."""

from __future__ import annotations

from packtool.cli.build import Values, typer_command
from packtool.options.export import ExportArguments
from packtool.options.terminal import Terminal
from packtool.sizes import plural


@typer_command(ExportArguments, ("quiet", "verbose", "json"))
def command(values: Values, terminal: Terminal) -> None:
    """Write a token store or a packed dataset in the format of another trainer.

    Every token, in the stored order; what the format can't keep beside them is said.

    \b
    Examples:
    packtool export packed -o parquet --format parquet
    packtool export tokens -o megatron --format megatron
    """
    from packtool.cli.results import show_exchange
    from packtool.commands.export import export

    result = export(**values)
    manifest, lines = result.manifest, []
    if manifest is not None:
        lines = [
            f"{plural(manifest.sequences, 'sequence')}, {plural(manifest.tokens, 'token')}, as {values['format']}."
        ]
        lines += [f"Not kept: {what}." for what in manifest.lost]
    show_exchange(result, terminal, {"manifest": manifest}, lines)
