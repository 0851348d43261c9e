"""Print what became of the stages of `packtool run`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from packtool.cli.dataset_results import order_lines, source_lines
from packtool.cli.previews import figures_in_words, other_in_words
from packtool.cli.printing import echo
from packtool.cli.results import export_lines
from packtool.cli.store_results import text_lines
from packtool.support.sizes import show_bytes

if TYPE_CHECKING:
    from packtool.commands.result import CommandResult
    from packtool.commands.run import PipelineStage, StageResult
    from packtool.formats.schema import ExportManifest

_NOTES = {
    "would refuse": " (holds {other}; --overwrite would replace it)",
    "would compare": " (kept if its input comes out as before)",
}
"""Notes on the states of stages whose names do not say enough."""
_INDENT = 10
"""Columns before what is said of a stage."""
_RARE = ("dropped_ratio", "repeated_ratio")
"""Shares that are given only if they are not 0."""


def announce_stage(number: int, count: int, stage: PipelineStage) -> None:
    """Say on standard error which stage of `packtool run` begins."""
    echo(f"packtool: [{number}/{count}] {stage.name} {_target(stage)}", err=True)


def print_stages(results: list[StageResult], *, full: bool) -> None:
    """Print the results of the stages of `packtool run`, and the answers of its `stats`.

    Args:
        full: print everything that `stats` measured.
    """
    width = max(len(_target(result.stage)) for result in results)
    for result in results:
        note = _NOTES.get(result.state, "")
        if result.state == "done":
            note = f" ({result.seconds:.1f} s)"
        if result.preview is not None:
            note = note.format(other=other_in_words(result.preview))
        echo(f"{result.stage.name:8}  {_target(result.stage):{width}}  {result.state}{note}")
        _print_stage(result)
    first = next((result.preview for result in results if result.preview is not None), None)
    if first is not None:
        echo(f"{show_bytes(first.free_bytes)} free")
    measured = [result for result in results if result.stage.output is None and result.result is not None]
    if measured:
        from packtool.report.console import results_console
        from packtool.report.terminal import print_answer, print_stats

        for result in measured:
            echo()
            page = result.stage.options.get("html")
            if full:
                print_stats(result.result, results_console(), full=True, page=page)
            else:
                print_answer(result.result, results_console(), page)


def plain_stage(result: StageResult) -> dict[str, Any]:
    """Return the result of a stage, for JSON."""
    stage = result.stage
    report = getattr(result.result, "report", None)
    if stage.output is None:  # what `stats` returns is a report
        report = result.result
    export, lost = _export_of(result), []
    if export is not None:
        lost = export.lost
    return {
        "stage": stage.name,
        "inputs": stage.inputs,
        "output": stage.output,
        "state": result.state,
        "seconds": result.seconds,
        "figures": _figures_of(result),
        "counts": getattr(result.result, "counts", None),
        "report": report,
        "lost": lost,
    }


def _print_stage(result: StageResult) -> None:
    """Print the amounts of a stage, and what its command would say: what was cut, chosen, left out or not kept."""
    if result.preview is not None:
        echo(f"{'':{_INDENT}}to read: {', '.join(figures_in_words(result.preview.known))}")
    if result.result is None or result.stage.output is None:
        return
    echo(f"{'':{_INDENT}}{', '.join(figures_in_words(_amounts(result.result)))}")
    report = getattr(result.result, "report", None)
    if report is not None:
        from packtool.report.console import results_console
        from packtool.report.terminal import print_judgements

        print_judgements(report, results_console(), _INDENT)
    for line in _remarks(result):
        echo(f"{'':{_INDENT}}{line}")


def _remarks(result: StageResult) -> list[str]:
    """Say of a stage what its command would, apart from what the figures of a report mean."""
    if result.stage.name == "tokenize":
        from packtool.formats import manifest as manifests
        from packtool.formats.schema import StoreManifest

        return text_lines(manifests.read_as(result.result.path, StoreManifest), result.result.run)
    report = getattr(result.result, "report", None)
    if report is None:
        export = _export_of(result)
        if export is None:
            return []
        return export_lines(export)
    lines = order_lines(report)
    if result.stage.name == "pack":
        lines += source_lines(report, result.result.path)
    return lines


def _export_of(result: StageResult) -> ExportManifest | None:
    """Return the manifest of the export that a stage wrote; None for any other stage, and after a dry run."""
    if result.stage.name != "export" or result.result is None:
        return None
    manifest: ExportManifest | None = result.result.manifest
    return manifest


def _figures_of(result: StageResult) -> dict[str, Any]:
    """Summarise in figures the output of a stage, or after a dry run its input."""
    if result.preview is not None:
        return result.preview.known
    if result.result is None or result.stage.output is None:
        return {}
    figures: dict[str, Any] = _amounts(result.result)
    report = getattr(result.result, "report", None)
    if report and report.metrics:
        for name in ("padding_ratio", "cut_fitting_ratio", "dropped_ratio", "repeated_ratio"):
            share = getattr(report.metrics, name)
            if share or name not in _RARE:
                figures[name] = share
    return figures


def _amounts(result: CommandResult) -> dict[str, int]:
    """Count the contents of a command's output, from its manifest."""
    from packtool.formats import manifest as manifests
    from packtool.formats.schema import ExportManifest, StoreManifest, listed_files

    manifest = manifests.read(result.path)
    size = sum(file.bytes for file in listed_files(manifest))
    if isinstance(manifest, StoreManifest):
        return {"documents": manifest.counts["documents"], "tokens": manifest.counts["tokens"], "bytes": size}
    if isinstance(manifest, ExportManifest):
        return {"sequences": manifest.sequences, "tokens": manifest.tokens, "bytes": size}
    ledger = manifest.ledger
    return {"documents": manifest.documents, "rows": ledger.rows, "tokens": ledger.output, "bytes": size}


def _target(stage: PipelineStage) -> str:
    """Return where a stage writes; of `stats`, which writes nothing, what it measures."""
    if stage.output is None:
        return stage.inputs[0]
    return str(stage.output)
