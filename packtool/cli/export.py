"""`packtool export`."""

from __future__ import annotations

import typer

from packtool.cli.build import Values, typer_command
from packtool.options.export import ExportArguments
from packtool.options.terminal import Terminal


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
<<<<<<< HEAD
    manifest, lines = result.manifest, []
    if manifest is not None:
        lines = [f"{manifest.sequences:,} sequences, {manifest.tokens:,} tokens, as {values['format']}."]
        lines += [f"Not kept: {what}." for what in manifest.lost]
    shown = {"overwrite": values["overwrite"], "quiet": terminal.quiet, "json": terminal.json}
    show_exchange(result, {"manifest": manifest}, lines, **shown)
=======
    if result.preview is not None:
        show_preview(result.preview, overwrite=values["overwrite"], json=terminal.json)
    elif terminal.json:
        print_json(
            {
                "schema_version": 1,
                "path": str(result.path),
                "kept": result.kept,
                "run": result.run,
                "manifest": result.manifest,
            }
        )
    elif not terminal.quiet:
        from packtool.cli.results import finished
        from packtool.sizes import plural

        assert result.manifest is not None
        sequences, tokens = plural(result.manifest.sequences, "sequence"), plural(result.manifest.tokens, "token")
        lines = [f"{sequences}, {tokens}, as {values['format']}."]
        lines += [f"Not kept: {what}." for what in result.manifest.lost]
        lines += [finished(result.path)] if result.kept else [f"Wrote {result.path}."]
        typer.echo("\n".join(lines))
>>>>>>> 7ca98de (Results read alike in terminals, pipes and logs: trimmed lines, one way to write figures, short representations)
