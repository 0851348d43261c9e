"""`packtool export`."""

from __future__ import annotations

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
    from packtool.cli.results import print_json, show_preview
    from packtool.commands.export import export

    result = export(**values)
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

        assert result.manifest is not None
        lines = [f"{result.manifest.sequences:,} sequences, {result.manifest.tokens:,} tokens, as {values['format']}."]
        lines += [f"Not kept: {what}." for what in result.manifest.lost]
        lines += [finished(result.path)] if result.kept else [f"Wrote {result.path}."]
        print("\n".join(lines))  # noqa: T201
