"""`packtool run`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from packtool.cli.build import Values, typer_command
from packtool.options.run import RunArguments
from packtool.options.terminal import Terminal
from packtool.sizes import show_bytes

if TYPE_CHECKING:
    from packtool.commands.pipeline import Stage
    from packtool.commands.run import StageResult


_NOTES = {
    "would refuse": " (holds something else; --overwrite would replace it)",
    "would compare": " (kept if its input comes out as before)",
}


@typer_command(RunArguments, ("progress", "quiet", "verbose", "full", "json"))
def command(values: Values, terminal: Terminal) -> None:
    """Run the stages of a configuration file: tokenize, pack, shuffle, export, stats.

    What is finished and unchanged is kept, what was interrupted goes on, so running it twice does no harm. Several
    [[pack]] tables try several packings on one tokenization.

    \b
    Examples:
    packtool run corpus.toml --input corpus.jsonl --output data
    packtool run corpus.toml --input corpus.jsonl --output data --dry-run
    """
    from packtool.cli.results import print_json
    from packtool.commands.run import run

    results = run(**values, announce=None if terminal.quiet or values["dry_run"] else _announce)
    if terminal.json:
        print_json(
            {"schema_version": 1, "dry_run": values["dry_run"], "stages": [_plain(result) for result in results]}
        )
    elif not terminal.quiet:
        _print(results, full=terminal.full)


def _announce(number: int, count: int, stage: Stage) -> None:
    typer.echo(f"packtool: [{number}/{count}] {stage.name} {_target(stage)}", err=True)


def _target(stage: Stage) -> str:
    return stage.inputs[0] if stage.output is None else str(stage.output)


def _plain(result: StageResult) -> dict[str, Any]:
    stage = result.stage
    return {
        "stage": stage.name,
        "inputs": list(stage.inputs),
        "output": None if stage.output is None else str(stage.output),
        "state": result.state,
        "seconds": result.seconds,
        "figures": _figures(result),
        "report": result.result if stage.output is None else getattr(result.result, "report", None),
    }


def _figures(result: StageResult) -> dict[str, Any]:
    """Summarise the output of a stage, written or estimated, in figures."""
    from packtool.commands.info import info

    if result.preview is not None:
        return result.preview.figures
    if result.about_bytes is not None:
        return {"bytes": result.about_bytes}
    if result.result is None or result.stage.output is None:
        return {}
    facts = info(result.stage.output).facts
    figures: dict[str, Any] = {name: facts[name] for name in ("documents", "rows", "tokens", "bytes") if name in facts}
    report = getattr(result.result, "report", None)
    if report:
        metrics = report.metrics
        shares = ("padding_ratio", "truncation_ratio", "dropped_ratio", "repeated_ratio") if metrics else ()
        measured = {name: getattr(metrics, name) for name in shares}
        figures |= {
            name: share for name, share in measured.items() if share or not name.startswith(("dropped", "repeated"))
        }
    return figures


def _print(results: list[StageResult], *, full: bool) -> None:
    from packtool.cli.results import describe_figures

    width = max(len(_target(result.stage)) for result in results)
    for result in results:
        about = () if result.about_bytes is None else ("bytes",)
        estimated = about if result.preview is None else result.preview.estimated
        figures = ", ".join(describe_figures(_figures(result), estimated=estimated))
        note = f" ({result.seconds:.1f} s)" if result.state == "done" else _NOTES.get(result.state, "")
        typer.echo(f"{result.stage.name:8}  {_target(result.stage):{width}}  {result.state}{note}")
        if figures:
            typer.echo(f"{'':10}{figures}")
    previews = [result.preview for result in results if result.preview is not None]
    if previews:
        typer.echo(f"{show_bytes(previews[0].free_bytes)} free")
    measured = [result for result in results if result.stage.output is None and result.result is not None]
    if measured:
        from packtool.report.terminal.console import results_console
        from packtool.report.terminal.reports import print_answer, print_stats

        for result in measured:
            typer.echo()
            page = result.stage.options.get("html")
            if full:
                print_stats(result.result, results_console(), full=True, page=page)
            else:
                print_answer(result.result, results_console(), page)
