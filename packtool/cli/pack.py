"""`packtool pack`."""

from __future__ import annotations

from packtool.cli.build import STAGE, Values, typer_command
from packtool.options.pack import PackArguments
from packtool.options.terminal import Terminal


@typer_command(PackArguments, STAGE)
def command(values: Values, terminal: Terminal) -> None:
    """Pack token stores into rows of equal length, shuffled, with every token accounted for.

    Plans from document lengths alone (seconds for 100 million documents), then moves each token once.
    Memory: 8 to 20 bytes a document, on disk beyond --memory, and a few megabytes a worker.

    \b
    Examples:
    packtool pack store -o packed --strategy bfd --sequence-length 2048
    packtool pack web code -o packed --strategy concat -L 8192 --seed 7
    packtool pack store -o packed --strategy buckets --buckets 2048,4096,8192
    packtool pack web wiki -o mixed --strategy bfd -L 8192 --mix web=0.4,wiki=2
    """
    from packtool.cli.results import show_dataset
    from packtool.commands.pack import pack

    show_dataset(pack(**values), terminal, sources=True)
