"""`packtool stats`."""

from __future__ import annotations

import typer

from packtool.cli.build import STAGE, Values, typer_command
from packtool.options.stats import StatsArguments
from packtool.options.terminal import Terminal


@typer_command(StatsArguments, (*STAGE, "full"))
def command(values: Values, terminal: Terminal) -> None:
    """Measure a corpus, a token store or a packed dataset; compare strategies before anything is written.

    Of stores and datasets it reads lengths and segment tables, no tokens. Of text files it reads everything.

    \b
    Examples:
    packtool stats packed --batch-size 256
    packtool stats store --compare all -L 2048,8192 --html report.html
    packtool stats web code --compare bfd-extra -L 2048 --extra-capacity 10,50
    packtool stats corpus.jsonl.gz --compare concat,bfd -L 2048
    """
    from packtool.cli.results import print_json
    from packtool.commands.stats import stats

    report = stats(**values)
    if terminal.json:
        print_json(report)
    else:
        from packtool.report.terminal.console import results_console
        from packtool.report.terminal.reports import print_stats

        print_stats(report, results_console(), full=terminal.full, page=values["html"])
        if report.kind != "packed" and report.tokenizer is not None:
            from packtool.cli.results import tokenizer_line

            typer.echo(tokenizer_line(report.tokenizer))
