"""Print what a command returns: a table for people, one JSON object for machines."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from packtool.errors import visible
from packtool.sizes import plural, show_bytes

if TYPE_CHECKING:
    from packtool.commands.dataset_job import DatasetResult
    from packtool.commands.export import ExportResult
    from packtool.commands.import_ import ImportResult
    from packtool.commands.result import Preview, Result, SeenFile
    from packtool.metrics.summary import Metrics
    from packtool.options.terminal import Terminal
    from packtool.report.schema import PackedReport
    from packtool.storage.schema import PackedManifest, TokenizerInfo


def show(result: Result, terminal: Terminal, facts: Mapping[str, Any], say: Callable[[], object]) -> None:
    """Print the result or preview of a command, or the share that a task did.

    Args:
        facts: what this command has to tell machines, beside what all of them have.
        say: prints the same for people.
    """
    path = str(result.path)
    if result.preview is not None:
        show_preview(result.preview, json=terminal.json)
    elif terminal.json:
        told = {"kept": result.kept, **facts} if result.part is None else asdict(result.part)
        print_json({"schema_version": 1, "path": path, **told})
    elif terminal.quiet:
        return
    elif result.part is not None:
        typer.echo(f"{path}: {result.part}. When all tasks are done: packtool merge {shlex.quote(path)}")
    else:
        say()


def show_dataset(result: DatasetResult, terminal: Terminal, *, sources: bool = False) -> None:
    """Print what became of the tokens of a packed dataset; an order has no report.

    Args:
        sources: say what was chosen of each store.
    """

    def say() -> None:
        from packtool.report.terminal.console import results_console
        from packtool.report.terminal.reports import print_ledger

        path, report, run = result.path, result.report, result.run
        if report is not None:
            print_ledger(report, results_console())
            typer.echo()
            if report.metrics is not None:
                typer.echo(key_figures(report.metrics))
            typer.echo(tokenizer_line(_manifest_of(path).tokenizer))
        if "least_rows" in run:
            typer.echo(f"Proven: no packing of these pieces has fewer than {plural(run['least_rows'], 'row')}.")
        if "batches" in run:
            typer.echo(f"{plural(run['batches'], 'batch')}, each of rows of one length")
        seconds = run["written"]
        done = f"Wrote {path} in {seconds['wall']:.1f} s ({seconds['cpu']:.1f} CPU s)."
        typer.echo(finished(path) if result.kept else done)
        if report is not None:
            typer.echo(f"More: packtool stats {shlex.quote(str(path))}")
            if sources:
                show_sources(report, path)

    show(result, terminal, {"run": result.run, "report": result.report}, say)


def show_exchange(
    result: ExportResult | ImportResult, terminal: Terminal, facts: Mapping[str, Any], lines: Sequence[str]
) -> None:
    """Print what became of an export or import: facts for machines, lines for people."""
    done = finished(result.path) if result.kept else f"Wrote {result.path}."
    show(result, terminal, {"run": result.run, **facts}, lambda: typer.echo("\n".join([*lines, done])))


def tokenizer_line(tokenizer: TokenizerInfo) -> str:
    """Say which tokenizer made the tokens, and what ends each document."""
    from packtool.storage.tokenizer_files import describe_tokenizer

    return f"tokenizer: {describe_tokenizer(tokenizer)}; EOS {visible(tokenizer.eos_token)} ({tokenizer.eos_id})"


def _manifest_of(path: Path | str) -> PackedManifest:
    from packtool.storage import manifest as manifests
    from packtool.storage.schema import PackedManifest

    return manifests.read_as(path, PackedManifest)


def finished(path: Path | str) -> str:
    """Say that there is nothing left to do."""
    return f"{path} was finished already; nothing was done."


def key_figures(metrics: Metrics) -> str:
    """Put the figures that decide between strategies in one line."""
    from packtool.report.figures import number, percent

    per_row = number(metrics.documents_per_row.mean)
    return (
        f"padding {percent(metrics.padding_ratio)}, truncation {percent(metrics.truncation_ratio)}, "
        f"{per_row} documents per row, mean context {number(metrics.mean_context)}"
    )


def show_preview(preview: Preview, *, json: bool) -> None:
    """Print a preview: what would be written, how large it would be, and what is in the way."""
    if json:
        print_json(
            {
                "schema_version": 1,
                "command": preview.command,
                "path": str(preview.output),
                "found": preview.found,
                "free_bytes": preview.free_bytes,
                **preview.figures,
                **({"inputs": [asdict(file) for file in preview.files]} if preview.files else {}),
            }
        )
        return
    for file in preview.files:
        typer.echo(describe_seen(file))
    typer.echo(describe_preview(preview))


def describe_seen(file: SeenFile) -> str:
    """Describe an input file in one line.

    >>> from packtool.commands.result import SeenFile
    >>> print(describe_seen(SeenFile("a.jsonl", "jsonl", "gzip", 4096, 12, whole=False, problem="")))
    a.jsonl: jsonl (gzip), 4.1 kB, 12 documents seen at its beginning
    """
    kind = f"{file.format} ({file.compression})" if file.compression else file.format
    documents = plural(file.documents, "document")
    seen = documents if file.whole else f"{documents} seen at its beginning"
    return f"{file.name}: {kind}, {show_bytes(file.bytes)}, {seen}{f'; {file.problem}' if file.problem else ''}"


def describe_preview(preview: Preview) -> str:
    """Describe a dry run in two lines.

    >>> from packtool.commands.result import Preview
    >>> print(describe_preview(Preview("pack", Path("/x"), "nothing", {"rows": 1000, "bytes": 4096})))
    ... # doctest: +ELLIPSIS
    packtool pack would write /x: 1,000 rows, 4.1 kB (... free).
    """
    output = str(preview.output)
    *figures, size = describe_figures(preview.figures, estimated=preview.estimated)
    text = f"packtool {preview.command} would write {output}: {', '.join([*figures, size])} "
    text += f"({show_bytes(preview.free_bytes)} free)."
    if preview.found == "finished":
        return f"{output} is finished already; with --resume nothing would be done.\n{text}"
    if preview.found == "unfinished":
        return f"{output} holds unfinished work of the same kind; --resume would go on with it.\n{text}"
    if preview.found == "other" and not preview.overwrite:
        return f"{output} holds something else, so it would be refused without --overwrite.\n{text}"
    return text


def describe_figures(figures: dict[str, Any], *, estimated: Sequence[str] = ()) -> list[str]:
    """Describe figures in words.

    >>> describe_figures({"rows": 1000, "input_bytes": 2000, "padding_ratio": 0.25, "bytes": 4096}, estimated=["bytes"])
    ['1,000 rows', '2 kB to read', 'padding 25.00%', 'about 4.1 kB']
    """
    from packtool.report.figures import percent

    words = []
    for name, value in figures.items():
        about = "about " if name in estimated else ""
        if name == "input_bytes":
            words.append(f"{show_bytes(value)} to read")
        elif name == "bytes":
            words.append(about + show_bytes(value))
        elif name.endswith("_ratio"):
            words += [f"{name.removesuffix('_ratio')} {percent(value)}"] if value is not None else []
        else:
            unit = name.replace("_", " ")
            words.append(about + plural(value, unit.removesuffix("s")))
    return words


def print_json(value: Any) -> None:
    """Print one JSON object on standard output."""
    import sys

    import msgspec

    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")


def print_result(result: Any) -> None:
    """Print a dataclass that a command returned about a path, as one JSON object."""
    print_json({"schema_version": 1, **asdict(result), "path": str(result.path)})


def show_sources(report: PackedReport, path: Path | str) -> None:
    """Print what was chosen of each store: epochs and shares, asked for and achieved, and what was left out."""
    from packtool.report.figures import percent
    from packtool.storage.manifest import input_names

    manifest = _manifest_of(path)
    if manifest.choice is None:
        return
    for number, (name, source) in enumerate(zip(input_names(path, manifest.inputs), report.sources, strict=True)):
        reasons = "".join(
            f", {left_out.documents:,} {reason.replace('_', ' ')}" for reason, left_out in source.left_out.items()
        )
        typer.echo(
            f"{visible(name)}: {percent(source.token_share)} of the tokens ({percent(source.asked_share)} asked), "
            f"{source.epochs:.4f} epochs ({source.asked_epochs:.4f} asked); "
            f"{plural(source.documents, 'document')}, {plural(source.tokens, 'token')}, "
            f"{source.repeated_tokens:,} of them repeated; left out: {reasons.removeprefix(', ') or 'nothing'}"
        )
        if report.source_mix:
            mixes = [mix.sources[number] for mix in report.source_mix]
            typer.echo(f"  in batches: {percent(min(m.min for m in mixes))} to {percent(max(m.max for m in mixes))}")
