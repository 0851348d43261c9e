"""Print what became of the tokens of a packed dataset."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from packtool.cli.printing import echo
from packtool.cli.results import finished_already, left_out_lines, show_result, tokenizer_line
from packtool.errors import visible
from packtool.support.sizes import plural

if TYPE_CHECKING:
    from packtool.commands.dataset_job import DatasetResult
    from packtool.formats.schema import Options, PackedManifest
    from packtool.options.shared import Terminal
    from packtool.planning.metrics.mixing import BatchShares
    from packtool.report.types import PackedReport, PackedSourceFigures


def show_dataset(result: DatasetResult, terminal: Terminal, *, sources: bool = False) -> None:
    """Print what became of the tokens of a packed dataset.

    Args:
        sources: also print what was chosen of each store.
    """

    def say() -> None:
        from packtool.report.console import results_console
        from packtool.report.terminal import print_judgements, print_ledger

        path, report, run = result.path, result.report, result.run
        assert report is not None  # a preview, the only result without one, is printed elsewhere
        print_ledger(report, results_console())
        echo()
        print_judgements(report, results_console())
        lines = order_lines(report)
        if sources:
            lines += source_lines(report, path)
        lines.append(tokenizer_line(_manifest_of(path).tokenizer, run.get("tokenizer")))
        if "batches" in run:
            lines.append(f"{plural(run['batches'], 'batch')}, each of rows of one length")
        seconds = run["written"]
        done = f"Wrote {path} in {seconds['wall']:.1f} s ({seconds['cpu']:.1f} CPU s)."
        lines.append(finished_already(path) if result.kept else done)
        for line in (*lines, f"More: packtool stats {shlex.quote(str(path))}"):
            echo(line)

    show_result(result, terminal, {"run": result.run, "report": result.report}, say)


def order_lines(report: PackedReport) -> list[str]:
    """Say what the shuffle moves apart in rows of documents that were put in an order."""
    from packtool.planning.packing import strategy

    shuffled = report.shuffle is not None and strategy(report.strategy).takes("atom_size")
    if "order_by" not in report.options or not shuffled or not report.buckets:
        return []
    row = max(bucket.sequence_length for bucket in report.buckets)
    atom = report.options.get("atom_size", row)
    if atom > row:
        return []
    together = f"--no-shuffle keeps their order, an --atom-size above {row:,} more of it together"
    return [f"The shuffle moves atoms of {atom:,} tokens apart, which cut documents: {together}"]


def source_lines(report: PackedReport, path: Path | str) -> list[str]:
    """Say what was chosen of each store: its share and epochs, got and asked for, and what was left out."""
    from packtool.formats.manifest import input_names
    from packtool.options.kinds import recorded_part
    from packtool.report.choice_words import left_out_in_words

    manifest = _manifest_of(path)
    if manifest.choice is None:
        return []
    asked, lines = manifest.choice.options, []
    for number, (name, source) in enumerate(zip(input_names(path, manifest.inputs), report.sources, strict=False)):
        amounts = f"{plural(source.documents, 'document')}, {plural(source.tokens, 'token')}"
        if len(report.sources) > 1:
            amounts += _share(source, asked)
        lines.append(f"store {visible(name)}: {amounts}")
        left_out = left_out_lines(left_out_in_words([source.left_out], asked))
        lines += [f"  {line}" for line in (*_epochs(source, asked), *left_out)]
        for mix in report.source_mix:
            lines += [f"  {line}" for line in _in_batches(mix, number)]
    if "holdout_bound" in asked:
        amount, again = recorded_part(asked["holdout"]).in_words(), shlex.quote(str(path))
        lines.append(f"To hold these {amount} out of other stores, too: --holdout-of {again}")
    return lines


def _share(source: PackedSourceFigures, asked: Options) -> str:
    """Say which share of all tokens a store has, and which one it was to have, where tokens were divided."""
    from packtool.report.figures import percent

    got = f", {percent(source.token_share)} of all"
    wanted = percent(source.asked_share)
    if "tokens" not in asked or wanted == percent(source.token_share):
        return got
    return f"{got} ({wanted} asked)"


def _epochs(source: PackedSourceFigures, asked: Options) -> Iterator[str]:
    """Say how often a store was taken, where that was asked."""
    from packtool.report.figures import decimal

    if "mix" not in asked:
        return
    got = decimal(source.epochs)
    line = f"{got} epochs"
    if got == "1":
        line = "1 epoch"
    if "tokens" not in asked and decimal(source.asked_epochs) != got:
        line += f" ({decimal(source.asked_epochs)} asked)"
    if source.repeated_tokens:
        line += f", {plural(source.repeated_tokens, 'token')} packed again in further ones"
    yield line


def _in_batches(mix: BatchShares, number: int) -> Iterator[str]:
    """Say which share of the tokens of a batch a store has, where batches differ."""
    from packtool.report.figures import percent

    least, most = percent(mix.sources[number].min), percent(mix.sources[number].max)
    if least != most:
        rows = f"{plural(mix.batch_size, 'row')} of {mix.sequence_length:,} tokens"
        yield f"{least} to {most} of the tokens of a batch of {rows}"


def _manifest_of(path: Path | str) -> PackedManifest:
    from packtool.formats import manifest as manifests
    from packtool.formats.schema import PackedManifest

    return manifests.read_as(path, PackedManifest)
