"""`packtool import`."""

from __future__ import annotations

from packtool.cli.build import Values, typer_command
from packtool.options.import_ import ImportArguments
from packtool.options.terminal import Terminal
from packtool.sizes import plural


@typer_command(ImportArguments, ("quiet", "verbose", "json"))
def command(values: Values, terminal: Terminal) -> None:
    """Make a token store of token ids that another tool has written.

    Checks every id against the tokenizer. Documents without EOS at their end get one, counted; in files without
    boundaries, each EOS ends a document.

    \b
    Examples:
    packtool import data.idx -o tokens --format megatron --tokenizer gpt2.json
    packtool import train.bin -o tokens --format nanogpt --tokenizer gpt2
    """
    from packtool.cli.results import show_exchange
    from packtool.commands.import_ import import_

    result = import_(**values)
    counts, lines = result.counts, []
    if counts:
        lines = [f"{plural(counts['documents'], 'document')}, {plural(counts['tokens'], 'token')}."]
        lines += [f"EOS added to {plural(counts['eos_added'], 'document')}."] if counts["eos_added"] else []
        lines += [f"{plural(counts['empty'], 'empty document')} left out."] if counts["empty"] else []
    show_exchange(result, terminal, {"counts": counts}, lines)
