"""Print what became of the tokens of a packed dataset."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from packtool.cli.printing import echo
from packtool.cli.results import finished_already, show_result, tokenizer_line
from packtool.errors import visible
from packtool.support.sizes import plural

if TYPE_CHECKING:
    from packtool.commands.dataset_job import DatasetResult
    from packtool.formats.schema import PackedManifest
    from packtool.options.shared import Terminal
    from packtool.planning.metrics.summary import Metrics
    from packtool.report.schema import PackedReport


def show_dataset(result: DatasetResult, terminal: Terminal, *, sources: bool = False) -> None:
    """Print what became of the tokens of a packed dataset.

    Args:
        sources: also print what was chosen of each store.
    """

    def say() -> None:
        from packtool.report.console import results_console
        from packtool.report.terminal import print_ledger

        path, report, run = result.path, result.report, result.run
        assert report is not None  # a preview, the only result without one, is printed elsewhere
        print_ledger(report, results_console())
        echo()
        if report.metrics is not None:
            echo("\n".join([key_figures(report.metrics), *order_lines(report)]))
        echo(tokenizer_line(_manifest_of(path).tokenizer, run.get("tokenizer")))
        if "batches" in run:
            echo(f"{plural(run['batches'], 'batch')}, each of rows of one length")
        seconds = run["written"]
        done = f"Wrote {path} in {seconds['wall']:.1f} s ({seconds['cpu']:.1f} CPU s)."
        echo(finished_already(path) if result.kept else done)
        echo(f"More: packtool stats {shlex.quote(str(path))}")
        for line in source_lines(report, path) if sources else ():
            echo(line)

    show_result(result, terminal, {"run": result.run, "report": result.report}, say)


def order_lines(report: PackedReport) -> list[str]:
    """Say what belongs together in rows of documents that were put in an order, and what the shuffle moves apart."""
    from msgspec import UNSET

    from packtool.planning.packing import strategy
    from packtool.report.verdict import neighbours_shown

    lines = []
    if report.neighbours is not UNSET:
        lines.append(neighbours_shown(report.neighbours))
    shuffled = report.shuffle is not None and strategy(report.strategy).takes("atom_size")
    if "order_by" not in report.options or not shuffled:
        return lines
    row = max(bucket.sequence_length for bucket in report.buckets)
    atom = report.options.get("atom_size", row)
    if atom <= row:
        together = f"--no-shuffle keeps their order, an --atom-size above {row:,} more of it together"
        lines.append(f"The shuffle moves atoms of {atom:,} tokens apart, which cut documents: {together}")
    return lines


def source_lines(report: PackedReport, path: Path | str) -> list[str]:
    """Say what was chosen of each store: epochs and shares, asked for and achieved, and what was left out."""
    from packtool.formats.manifest import input_names
    from packtool.report.figures import percent

    manifest = _manifest_of(path)
    if manifest.choice is None:
        return []
    lines = []
    for number, (name, source) in enumerate(zip(input_names(path, manifest.inputs), report.sources, strict=True)):
        reasons = [f"{left_out.documents:,} {reason.replace('_', ' ')}" for reason, left_out in source.left_out.items()]
        repeated = f", {source.repeated_tokens:,} of them repeated" if source.repeated_tokens else ""
        lines += [
            f"{visible(name)}: {percent(source.token_share)} of the tokens ({percent(source.asked_share)} asked), "
            f"{source.epochs:.4f} epochs ({source.asked_epochs:.4f} asked)",
            f"  {plural(source.documents, 'document')}, {plural(source.tokens, 'token')}{repeated}",
            f"  left out: {', '.join(reasons) or 'nothing'}",
        ]
        if report.source_mix:
            mixes = [mix.sources[number] for mix in report.source_mix]
            lines.append(f"  in batches: {percent(min(m.min for m in mixes))} to {percent(max(m.max for m in mixes))}")
    if "holdout_bound" in manifest.choice.options:
        amount, again = manifest.choice.options["holdout"], shlex.quote(str(path))
        lines.append(f"The hold-out of {amount} is drawn from these stores; for others: --holdout-of {again}")
    return lines


def key_figures(metrics: Metrics) -> str:
    """Put the figures that decide between strategies in one line."""
    from packtool.report.figures import number, percent

    per_row = number(metrics.documents_per_row.mean)
    return (
        f"padding {percent(metrics.padding_ratio)}, truncation {percent(metrics.truncation_ratio)}, "
        f"{per_row} documents per row, mean context {number(metrics.mean_context)}"
    )


def _manifest_of(path: Path | str) -> PackedManifest:
    from packtool.formats import manifest as manifests
    from packtool.formats.schema import PackedManifest

    return manifests.read_as(path, PackedManifest)
