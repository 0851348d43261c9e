"""`packtool import`."""

from __future__ import annotations

import typer

from packtool.cli.build import Values, typer_command
from packtool.options.import_ import ImportArguments
from packtool.options.terminal import Terminal


@typer_command(ImportArguments, ("quiet", "verbose", "json"))
def command(values: Values, terminal: Terminal) -> None:
    """Make a token store of token ids that another tool has written.

    Every id is held against the tokenizer. Documents without EOS at their end get one, counted; in files without
    boundaries, each EOS ends a document.

    \b
    Examples:
    packtool import data.idx -o tokens --format megatron --tokenizer gpt2.json
    packtool import train.bin -o tokens --format nanogpt --tokenizer gpt2
    """
    from packtool.cli.results import show_exchange
    from packtool.commands.import_ import import_

    result = import_(**values)
<<<<<<< HEAD
    counts, lines = result.counts, []
    if counts:
        lines = [f"{counts['documents']:,} documents, {counts['tokens']:,} tokens."]
        lines += [f"EOS added to {counts['eos_added']:,} documents."] if counts["eos_added"] else []
        lines += [f"{counts['empty']:,} empty documents left out."] if counts["empty"] else []
    shown = {"overwrite": values["overwrite"], "quiet": terminal.quiet, "json": terminal.json}
    show_exchange(result, {"counts": counts}, lines, **shown)
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
                "counts": result.counts,
            }
        )
    elif not terminal.quiet:
        from packtool.cli.results import finished
        from packtool.sizes import plural

        counts = result.counts
        lines = [f"{plural(counts['documents'], 'document')}, {plural(counts['tokens'], 'token')}."]
        lines += [f"EOS added to {plural(counts['eos_added'], 'document')}."] if counts["eos_added"] else []
        lines += [f"{plural(counts['empty'], 'empty document')} left out."] if counts["empty"] else []
        lines += [finished(result.path)] if result.kept else [f"Wrote {result.path}."]
        typer.echo("\n".join(lines))
>>>>>>> 7ca98de (Results read alike in terminals, pipes and logs: trimmed lines, one way to write figures, short representations)
