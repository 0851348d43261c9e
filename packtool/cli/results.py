"""Print what a command returns: text for people, one JSON object for machines."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from packtool.errors import visible
from packtool.support.sizes import plural, show_bytes, show_seconds

if TYPE_CHECKING:
    from packtool.commands.absent_document import AbsentDocument
    from packtool.commands.dataset_job import DatasetResult
    from packtool.commands.export import ExportResult
    from packtool.commands.find import FindResult
    from packtool.commands.import_ import ImportResult
    from packtool.commands.info import Info
    from packtool.commands.overlap import Overlaps
    from packtool.commands.result import CommandResult, Preview
    from packtool.commands.run import PipelineStage, StageResult
    from packtool.commands.stored_document import StoredDocument
    from packtool.commands.tokenize import TokenizeResult
    from packtool.formats.schema import PackedManifest, StoreManifest, TokenizerInfo
    from packtool.options.shared import Terminal
    from packtool.planning.metrics.summary import Metrics
    from packtool.report.schema import PackedReport
    from packtool.text.corpus.records import CorpusFile
    from packtool.text.tokenizing.estimate import Estimate


def echo(text: str = "", *, err: bool = False) -> None:
    """Print lines for people, on standard output or standard error; names in them can't command a terminal."""
    lines = map(visible, text.split("\n"))
    typer.echo("\n".join(lines), err=err)


def print_json(value: Any) -> None:
    """Print one JSON object on standard output; what could command a terminal is written as JSON's own escapes."""
    import msgspec

    text = msgspec.json.encode(value, enc_hook=str).decode()  # paths as strings
    sys.stdout.buffer.write(visible(text, as_json=True).encode() + b"\n")


def _show_result(
    result: CommandResult, terminal: Terminal, facts: Mapping[str, Any], say: Callable[[], object]
) -> None:
    """Print the result or preview of a command.

    Args:
        facts: what this command reports to machines, in addition to what every command does.
        say: prints them for people.
    """
    if result.preview is not None:
        _show_preview(result.preview, json=terminal.json)
    elif terminal.json:
        print_json({"schema_version": 1, "path": result.path, "kept": result.kept, **facts})
    elif not terminal.quiet:
        say()


def show_store(result: TokenizeResult, terminal: Terminal) -> None:
    """Print what became of the texts that were tokenized."""

    def say() -> None:
        echo(_finished(result.path) if result.kept else "\n".join(_store_lines(result)))

    _show_result(result, terminal, {"counts": result.counts, "run": result.run}, say)


def _input_lines(counts: Mapping[str, int], options: Mapping[str, Any]) -> list[str]:
    """Say what was odd about the input, and which of its fields were taken."""
    from packtool.text.corpus.layouts import FieldLayout

    lines = []
    if "own_eos" in counts:
        lines.append(f"{plural(counts['own_eos'], 'text')} with an EOS at the end, which get no second one")
    if options.get("conversations", "auto") != "auto":
        lines.append(f"conversations of the field {options['conversations']}")
    if "completion" in options:
        fields = FieldLayout(
            tuple(options["prompt"]), options["completion"], options.get("system", ""), options.get("history", "")
        )
        lines.append(f"conversations of prompt and answer: {fields.shown()}")
    return lines


def _text_lines(manifest: StoreManifest, run: Mapping[str, Any]) -> list[str]:
    """Say what became of the texts of a token store: what trains, what repeats, what was left out."""
    from packtool.report.figures import percent
    from packtool.text.tokenizing.chat_counts import ends_shown

    counts = manifest.counts
    lines = _input_lines(counts, manifest.options)
    if "trained_tokens" in counts:
        lines.append(f"{counts['trained_tokens']:,} of the tokens train")
    if run.get("ends"):
        lines.append(ends_shown(run["ends"], manifest.options["stops"]))
    if "reasoning_conversations" in counts:
        done = {"mask": "masked", "drop": "dropped"}[manifest.options["reasoning"]]
        of = f"{counts['reasoning_conversations']:,} of {plural(counts['conversations'], 'conversation')}"
        others = f"{counts['other_reasoning_conversations']:,} hold what looks like reasoning in another form"
        lines.append(f"reasoning {done} in {of}; {others}")
    if "repeated_context_tokens" in counts:
        repeated = counts["repeated_context_tokens"]
        share = percent(repeated / max(counts["tokens"], 1))
        again = f"{repeated:,} tokens of context repeat ({share})"
        lines.append(f"of {plural(counts['conversations'], 'conversation')}, each turn as the model saw it: {again}")
        if repeated:
            lines.append(
                "A template for training that keeps earlier turns as they were repeats none: --chat-template FILE"
            )
    if "fim_documents" in counts:
        forms = f"{counts['fim_prefix_first']:,} prefix first, {counts['fim_suffix_first']:,} suffix first"
        lines.append(f"{plural(counts['fim_documents'], 'document')} rearranged to fill in the middle: {forms}")
    left_out = {name: counts[name] for name in ("empty", "filtered", "rejected") if counts[name]}
    if left_out:
        reasons = {name.removeprefix("rejected_"): count for name, count in counts.items() if "rejected_" in name}
        why = ", ".join(f"{count:,} {name.replace('_', '-')}" for name, count in reasons.items() if count)
        listed = ", ".join(f"{count:,} {name}" for name, count in left_out.items())
        lines.append(f"left out: {listed}{f' ({why})' * bool(why)}")
    return lines


def _store_lines(result: TokenizeResult) -> list[str]:
    from packtool.formats.token_store import TokenStore
    from packtool.outputs.tokenizer_files import is_default

    manifest = TokenStore(result.path).manifest
    tokenizer = manifest.tokenizer
    counts, run = result.counts, result.run
    documents, tokens, seconds = counts["documents"], counts["tokens"], max(run["written"]["wall"], 1e-3)
    now = run["this_run"]
    earlier = f" ({show_bytes(run['text_bytes'] - now['text_bytes'])} by an earlier run)"
    speed = (
        f"{show_bytes(now['text_bytes'] / seconds)}/s, {now['tokens'] / seconds:,.0f} tokens/s "
        f"with {plural(run['workers'], 'worker')}"
    )
    done = f"{show_bytes(run['text_bytes'])}{earlier * (now['text_bytes'] < run['text_bytes'])} in {seconds:.1f} s"
    lines = [
        f"{plural(documents, 'document')}, {plural(tokens, 'token')}, "
        f"{tokens / max(documents, 1):,.1f} tokens per document",
        f"{done}: {speed}" if now["text_bytes"] else done,
        f"encoder {run['encoder']} ({run['encoder_why']}); {plural(run['texts_checked'], 'text')} cross-checked",
        tokenizer_line(tokenizer),
    ]
    if is_default(tokenizer):
        lines.append("To train a model, give its tokenizer: --tokenizer FILE, DIRECTORY or HUB_ID")
    lines += _text_lines(manifest, run)
    if not documents:
        lines.append(f"Wrote {result.path}, which holds no document. To see what an input holds: packtool info INPUT.")
    else:
        lines.append(f"Wrote {result.path}. What each strategy would make of it:")
        lines.append(f"packtool stats {shlex.quote(str(result.path))} --compare all --sequence-length 2048")
    return lines


def show_overlaps(result: Overlaps) -> None:
    """Print documents that overlap, one a line, as a list of documents to exclude; and how many, on standard error."""
    from packtool.commands.document_origins import REMARK

    last = result.tokens - 1
    for each in result.found:
        other = each.other_origin or f"document {each.other_document:,}"
        echo(
            f"{each.origin}{REMARK}tokens {each.start:,} to {each.start + last:,} are tokens {each.other_start:,} to "
            f"{each.other_start + last:,} of {other} in {each.other_store}"
        )
    run = f"a run of {plural(result.tokens, 'token')}"
    echo(f"{len(result.found):,} of {plural(result.documents, 'document')} share {run}", err=True)
    if result.too_short:
        short = f"{result.too_short:,} of the {plural(result.other_documents, 'document')} to compare with"
        remedy = "--exclude their store for exact copies of them, or give fewer --tokens"
        echo(f"{short} are shorter, so nothing shares a run with them: {remedy}", err=True)


def show_places(result: FindResult) -> None:
    """Print where a document is in the rows of a dataset; of documents that it does not have, what it records."""
    for place in result.places:
        again = ""
        if place.repeated:
            again = f", the first {place.repeated:,} repeated"
        echo(
            f"row {place.row:,} of {place.sequence_length:,} tokens: document {place.document:,}, "
            f"tokens {place.start:,} to {place.start + place.length - 1:,}{again}"
        )
    if result.documents and not result.places:
        echo(f"{result.record} is in no row: the strategy dropped its tokens")
    for absent in result.absent:
        echo(_absent_line(result.record, absent))
    if not result.documents and not result.absent:
        echo(f"{result.record} is in none of the stores: tokenize took no document from that line")


def _absent_line(record: str | None, absent: AbsentDocument) -> str:
    """Say why a document is not in a dataset, as far as that is known."""
    lead = f"{record} (document {absent.stored.number} of {absent.store}) is not in the dataset"
    if absent.on_other_side:
        return (
            f"{lead}: of --holdout {absent.holdout} it is on the side {absent.side}, and the dataset has the side "
            f"{absent.packed_side}"
        )
    side = ""
    if absent.side is not None:
        side = f", though it is on its side, {absent.side}"
    reasons = [f"{count:,} {reason.replace('_', ' ')}" for reason, count in absent.left_out.items()]
    return f"{lead}{side}. Left out of {absent.store}: {', '.join(reasons)}; the dataset does not record which"


def show_stored(record: str | None, documents: Sequence[StoredDocument]) -> None:
    """Print documents of a store that were found, one a line: number, file and line, tokens, and columns."""
    if not documents:
        echo(f"{record} is not in the store: it was left out, has no tokens, or does not exist")
    for document in documents:
        facts = [plural(document.tokens, "token")]
        if document.origin is not None:
            facts.insert(0, document.origin)
        for name, value in document.columns.items():
            if value is not None:
                facts.append(f"{name} {value}")
        echo(f"document {document.number}: {visible(', '.join(facts))}")


def show_dataset(result: DatasetResult, terminal: Terminal, *, sources: bool = False) -> None:
    """Print what became of the tokens of a packed dataset; an order has no report.

    Args:
        sources: also print what was chosen of each store.
    """

    def say() -> None:
        from packtool.report.console import results_console
        from packtool.report.terminal import print_ledger

        path, report, run = result.path, result.report, result.run
        if report is not None:
            print_ledger(report, results_console())
            echo()
            if report.metrics is not None:
                echo("\n".join([key_figures(report.metrics), *_order_lines(report)]))
            echo(tokenizer_line(_manifest_of(path).tokenizer, run.get("tokenizer")))
        if "batches" in run:
            echo(f"{plural(run['batches'], 'batch')}, each of rows of one length")
        seconds = run["written"]
        done = f"Wrote {path} in {seconds['wall']:.1f} s ({seconds['cpu']:.1f} CPU s)."
        echo(_finished(path) if result.kept else done)
        if report is not None:
            echo(f"More: packtool stats {shlex.quote(str(path))}")
            for line in _source_lines(report, path) if sources else ():
                echo(line)

    _show_result(result, terminal, {"run": result.run, "report": result.report}, say)


def _order_lines(report: PackedReport) -> list[str]:
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


def _source_lines(report: PackedReport, path: Path | str) -> list[str]:
    """Say what was chosen of each store: epochs and shares, asked for and achieved, and what was left out."""
    from packtool.commands.holdout import BOUND
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
    if BOUND in manifest.choice.options:
        amount, again = manifest.choice.options["holdout"], shlex.quote(str(path))
        lines.append(f"The hold-out of {amount} is drawn from these stores; for others: --holdout-of {again}")
    return lines


def show_exchange(
    result: ExportResult | ImportResult, terminal: Terminal, facts: Mapping[str, Any], lines: Sequence[str]
) -> None:
    """Print what became of an export or import: facts for machines, lines for people."""
    done = _finished(result.path) if result.kept else f"Wrote {result.path}."
    _show_result(result, terminal, {"run": result.run, **facts}, lambda: echo("\n".join([*lines, done])))


def tokenizer_line(tokenizer: TokenizerInfo, name: str | None = None) -> str:
    """Say which tokenizer made the tokens, and what ends each document."""
    from packtool.outputs.tokenizer_files import describe_tokenizer

    shown = visible(describe_tokenizer(tokenizer, name))
    return f"tokenizer: {shown}; EOS {visible(tokenizer.eos_token)} ({tokenizer.eos_id})"


def _manifest_of(path: Path | str) -> PackedManifest:
    from packtool.formats import manifest as manifests
    from packtool.formats.schema import PackedManifest

    return manifests.read_as(path, PackedManifest)


def _finished(path: Path | str) -> str:
    return f"{path} was finished already; nothing was done."


def key_figures(metrics: Metrics) -> str:
    """Put the figures that decide between strategies in one line."""
    from packtool.report.figures import number, percent

    per_row = number(metrics.documents_per_row.mean)
    return (
        f"padding {percent(metrics.padding_ratio)}, truncation {percent(metrics.truncation_ratio)}, "
        f"{per_row} documents per row, mean context {number(metrics.mean_context)}"
    )


def _show_preview(preview: Preview, *, json: bool) -> None:
    """Print a preview: what would be read and written, and what is in the way."""
    if json:
        print_json(
            {
                "schema_version": 1,
                "command": preview.command,
                "options": preview.options,
                "path": preview.output,
                "found": preview.found,
                "free_bytes": preview.free_bytes,
                **preview.known,
                **({"written": preview.written} if preview.written else {}),
                **(_plain_estimate(preview.estimate) if preview.estimate else {}),
                **({"inputs": list(map(_plain_file, preview.files))} if preview.files else {}),
            }
        )
        return
    for file in preview.files[:_FILES_SHOWN]:
        echo(_describe_file(file))
    if len(preview.files) > _FILES_SHOWN:
        echo(f"… and {plural(len(preview.files) - _FILES_SHOWN, 'file')} more")
    echo(_describe_preview(preview))


def _plain_estimate(estimate: Estimate) -> dict[str, Any]:
    """Return what is known of an estimate beside its amounts, for JSON."""
    return {
        "estimate": {
            "least_tokens": estimate.least,
            "most_tokens": estimate.most,
            "cpu_seconds": estimate.cpu_seconds,
            "places": estimate.places,
            "beginnings": estimate.beginnings,
        }
    }


def _plain_file(file: CorpusFile) -> dict[str, Any]:
    return {"name": file.name, "format": file.format, "compression": file.compression, "bytes": file.bytes}


def _describe_file(file: CorpusFile) -> str:
    """Describe an input file in one line.

    >>> from packtool.text.corpus.records import CorpusFile
    >>> _describe_file(CorpusFile("a.jsonl", "/corpus/a.jsonl", 4096, "jsonl", "gzip"))
    'a.jsonl: jsonl (gzip), 4.1 kB'
    """
    kind = f"{file.format} ({file.compression})" if file.compression else file.format
    return f"{visible(file.name)}: {kind}, {show_bytes(file.bytes)}{f'; {file.problem}' if file.problem else ''}"


_FILES_SHOWN = 12
"""Files that a dry run names."""
_FOUND = {
    "nothing": "which is new",
    "unfinished": "which holds unfinished work of the same kind: --resume continues it",
    "finished": "which is finished already: --resume does nothing",
    "other": "which holds something else: it is refused without --overwrite",
}
"""Descriptions of what a dry run found at the output."""


def _describe_preview(preview: Preview) -> str:
    """Describe a dry run: the command with its options, what it would read, how much it would write, and where.

    >>> from packtool.commands.result import Preview
    >>> options = {"stores": ["/s"], "strategy": "bfd"}
    >>> print(_describe_preview(Preview("pack", options, Path("/x"), "nothing", {"documents": 1000, "tokens": 4096})))
    ... # doctest: +ELLIPSIS
    packtool pack /s -o /x --strategy bfd
    would read 1,000 documents, 4,096 tokens
    would write to /x, which is new (... free)
    """
    from packtool.options.arguments import command_line

    replaces = preview.overwrite and preview.found != "nothing"
    found = "which holds something else: --overwrite replaces it" if replaces else _FOUND[preview.found]
    lines = [
        command_line(preview.command, preview.options, str(preview.output)),
        f"would read {', '.join(_describe_figures(preview.known))}",
    ]
    if preview.estimate is not None:
        lines += _estimate_lines(preview.estimate, preview.workers)
    elif preview.written:
        lines.append(f"would write {', '.join(_describe_figures(preview.written))}")
    if preview.unknown:
        lines.append(f"would write what is not known: {preview.unknown}")
    lines.append(f"would write to {preview.output}, {found} ({show_bytes(preview.free_bytes)} free)")
    return "\n".join(lines)


def _estimate_lines(estimate: Estimate, workers: int) -> list[str]:
    """Say what tokenizing will give and take, and how that is known."""
    spread = ""
    if estimate.most > estimate.least:
        spread = f" ({estimate.least:,} to {estimate.most:,}, 19 times of 20)"
    seconds = estimate.cpu_seconds
    lines = [
        f"would write about {plural(estimate.tokens, 'token')}{spread}, {plural(estimate.documents, 'document')}, "
        f"{show_bytes(estimate.bytes)}",
        f"would take about {show_seconds(seconds)} of CPU time, {show_seconds(seconds / workers)} with "
        f"{plural(workers, 'worker')}",
    ]
    looked = f"looked at {plural(estimate.places, 'place')}"
    if estimate.beginnings:
        looked += f"; of {plural(estimate.beginnings, 'file')} only at the beginning, which may not stand for the rest"
    return [*lines, looked]


def _describe_figures(figures: Mapping[str, Any]) -> list[str]:
    """Describe figures in words.

    >>> _describe_figures({"rows": 1000, "padding_ratio": 0.25, "bytes": 4096})
    ['1,000 rows', 'padding 25.00%', '4.1 kB']
    """
    from packtool.report.figures import percent

    words = []
    for name, value in figures.items():
        if name == "bytes":
            words.append(show_bytes(value))
        elif name.endswith("_ratio"):
            words += [f"{name.removesuffix('_ratio')} {percent(value)}"] if value is not None else []
        else:
            words.append(plural(value, name.replace("_", " ").removesuffix("s")))
    return words


def plain_info(result: Info) -> dict[str, Any]:
    """Return what `packtool info` found, for JSON."""
    return {
        "path": result.path,
        "kind": result.kind,
        "state": result.state,
        "facts": {name.replace(" ", "_"): value for name, value in result.facts.items()},
        "missing": result.missing,
        "next": result.next,
        "parts": list(map(plain_info, result.parts)),
    }


def describe_info(result: Info) -> list[str]:
    """Describe what `packtool info` found, in lines."""
    state = "" if result.state == "unknown" else f", {result.state}"
    lines = [f"{result.path}: {result.kind}{state}"]
    width = max(map(len, result.facts), default=0)
    lines += [f"  {name:{width}}  {_fact(name, value)}" for name, value in result.facts.items()]
    lines += [f"  missing or of the wrong size: {name}" for name in result.missing]
    for part in result.parts:
        size = part.facts.get("rows", part.facts.get("documents"))
        amount = "" if size is None else f", {plural(size, 'row' if 'rows' in part.facts else 'document')}"
        lines.append(f"  {Path(part.path).name:20}  {part.kind}, {part.state}{amount}")
    if result.next:
        lines += ["Next:", *(f"  {command}" for command in result.next)]
    return lines


def _fact(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name == "bytes":
        return f"{value:,} ({show_bytes(value)})" if value >= 1000 else str(value)
    if isinstance(value, int):
        return f"{value:,}"
    return " / ".join(f"{number:,}" for number in value) if isinstance(value, list) else str(value)


def announce_stage(number: int, count: int, stage: PipelineStage) -> None:
    """Say on standard error which stage of `packtool run` begins."""
    echo(f"packtool: [{number}/{count}] {stage.name} {_target(stage)}", err=True)


def plain_stage(result: StageResult) -> dict[str, Any]:
    """Return what became of a stage, for JSON."""
    stage = result.stage
    return {
        "stage": stage.name,
        "inputs": stage.inputs,
        "output": stage.output,
        "state": result.state,
        "seconds": result.seconds,
        "figures": _figures_of(result),
        "counts": getattr(result.result, "counts", None),
        "report": result.result if stage.output is None else getattr(result.result, "report", None),
        "lost": _lost(result),
    }


def not_kept(lost: Sequence[str]) -> list[str]:
    """Say what an export does not keep of its input, a line for each part."""
    return [f"Not kept: {what}." for what in lost]


def _stage_lines(result: StageResult) -> list[str]:
    """Say of a stage what its command would: what was chosen, left out, repeated or not kept."""
    if result.result is None or result.preview is not None:
        return []
    if result.stage.name == "tokenize":
        from packtool.formats.token_store import TokenStore

        return _text_lines(TokenStore(result.result.path).manifest, result.result.run)
    report = getattr(result.result, "report", None)
    if result.stage.name == "pack" and report is not None:
        return [*_order_lines(report), *_source_lines(report, result.result.path)]
    return not_kept(_lost(result))


def _lost(result: StageResult) -> list[str]:
    """Return what the export of a stage does not keep."""
    if result.stage.name != "export" or result.result is None or result.result.manifest is None:
        return []
    lost: list[str] = result.result.manifest.lost
    return lost


def _figures_of(result: StageResult) -> dict[str, Any]:
    """Summarise what a stage wrote, or after a dry run what it would read, in figures."""
    from packtool.commands.info import info

    if result.preview is not None:
        return result.preview.known
    if result.result is None or result.stage.output is None:
        return {}
    facts = info(result.stage.output).facts
    figures: dict[str, Any] = {name: facts[name] for name in ("documents", "rows", "tokens", "bytes") if name in facts}
    report = getattr(result.result, "report", None)
    if report and report.metrics:
        figures |= {name: getattr(report.metrics, name) for name in ("padding_ratio", "truncation_ratio")}
        rare = {name: getattr(report.metrics, name) for name in ("dropped_ratio", "repeated_ratio")}
        figures |= {name: share for name, share in rare.items() if share}
    return figures


_NOTES = {
    "would refuse": " (holds something else; --overwrite would replace it)",
    "would compare": " (kept if its input comes out as before)",
}
"""Notes on the states of stages whose names do not say enough."""


def print_stages(results: list[StageResult], *, full: bool) -> None:
    """Print what became of the stages of `packtool run`, and the answers of its `stats`.

    Args:
        full: print everything that `stats` measured.
    """
    width = max(len(_target(result.stage)) for result in results)
    for result in results:
        figures, words = _figures_of(result), "to read: " if result.preview else ""
        note = f" ({result.seconds:.1f} s)" if result.state == "done" else _NOTES.get(result.state, "")
        echo(f"{result.stage.name:8}  {_target(result.stage):{width}}  {result.state}{note}")
        for shares in (False, True):
            part = {name: value for name, value in figures.items() if name.endswith("_ratio") is shares}
            if part:
                echo(f"{'':10}{words}{', '.join(_describe_figures(part))}")
        for line in _stage_lines(result):
            echo(f"{'':10}{line}")
    previews = [result.preview for result in results if result.preview is not None]
    if previews:
        echo(f"{show_bytes(previews[0].free_bytes)} free")
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


def _target(stage: PipelineStage) -> str:
    return stage.inputs[0] if stage.output is None else str(stage.output)
