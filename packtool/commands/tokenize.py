"""`tokenize`: from text files to a token store."""

from __future__ import annotations

import os
import platform
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from packtool import __version__, executor
from packtool.clock import Clock
from packtool.corpus import blocks
from packtool.corpus.discover import FORMATS, STDIN, CorpusFile, copy_stdin, find
from packtool.corpus.filters import Filters
from packtool.corpus.open import is_remote
from packtool.corpus.records import Block
from packtool.errors import PacktoolError, UsageError
from packtool.preview import Preview
from packtool.progress import Progress
from packtool.storage import manifest as manifests
from packtool.storage import output as outputs
from packtool.storage.files import FileEntry, sync_directory, write_bytes
from packtool.storage.manifest import InputEntry, StoreManifest, TokenShard
from packtool.storage.token_store import token_dtype
from packtool.tokenizing import block as tasks
from packtool.tokenizing import load
from packtool.tokenizing.choose import choose
from packtool.tokenizing.encoders import EncoderMismatchError
from packtool.tokenizing.rejects import RejectJoiner
from packtool.warnings import warn

ON_ERROR = ("fail", "skip", "quarantine")


@dataclass(frozen=True)
class TokenizeResult:
    """What `tokenize` did.

    Attributes:
        path: the token store.
        counts: as in its manifest.
        run: facts of this run, as in its run.json: seconds, encoder and why, texts cross-checked, per-file counts.
        preview: what would be read and written, after a dry run; counts and run are empty then.
        kept: it was finished before, and nothing was done.
    """

    path: Path
    counts: dict[str, int]
    run: dict[str, Any]
    preview: Preview | None = None
    kept: bool = False


def tokenize(
    inputs: Sequence[Path | str] | Path | str,
    output: Path | str,
    *,
    tokenizer: str | Path | None = None,
    revision: str | None = None,
    text_field: str = "text",
    format: str | None = None,
    eos_token: str | int | None = None,
    bos: bool = False,
    bos_token: str | int | None = None,
    special_tokens: str = "token",
    min_words: int | None = None,
    min_chars: int | None = None,
    max_chars: int | None = None,
    on_error: str = "fail",
    max_errors: int | None = None,
    encoder: str = "auto",
    workers: int | None = None,
    overwrite: bool = False,
    resume: bool = False,
    dry_run: bool = False,
    quiet: bool = True,
) -> TokenizeResult:
    """Tokenize text files into a token store.

    Args:
        inputs: files, directories, globs, URLs (`s3://`, `gs://`, `hf://`), or "-" for standard input.
        output: directory of the token store.
        tokenizer: a tokenizer.json, a directory that holds one, or a hub id; None for the one that comes with packtool.
        revision: of the hub repository.
        text_field: field or column of the text; dots go down into objects.
        format: jsonl, parquet, text (one document a file) or lines (one a line); None to tell by name and content.
        eos_token: text or id of the token that ends every document; None to find it beside the tokenizer.
        bos: begin every document with a BOS.
        bos_token: text or id of it; implies `bos`.
        special_tokens: "token" to encode special tokens that occur in a text as themselves, "text" as plain text.
        min_words, min_chars, max_chars: leave out documents with fewer words, fewer or more characters.
        on_error: what to do with a record that can't be used: fail, skip, or quarantine (to rejected.jsonl).
        max_errors: give up after so many; None for no limit.
        encoder: auto, tokenizers or gigatoken.
        workers: processes; None for all processors. The output does not depend on it.
        overwrite: replace an earlier output.
        resume: go on with an interrupted one.
        dry_run: look at options, tokenizer and inputs, and write nothing.
        quiet: no progress.

    Raises:
        PacktoolError: whatever is wrong with options, tokenizer, inputs or output.
    """
    clock = Clock()
    inputs = [inputs] if isinstance(inputs, str | Path) else list(inputs)
    filters = Filters(min_words, min_chars, max_chars)
    _check_options(inputs, format, special_tokens, on_error, max_errors, resume)
    loaded = load.load(tokenizer, revision=revision, eos_token=eos_token, bos=bos, bos_token=bos_token)
    encoder_name, why = choose(loaded.spec, encoder)
    options = {
        "text_field": text_field,
        "format": format,
        "special_tokens": special_tokens,
        **msgspec.to_builtins(filters),
        "on_error": on_error,
    }
    found = [None if str(each) == STDIN else find(each, format) for each in inputs]
    key = outputs.key_of(__version__, options, loaded.info, [_identity(files) for files in found])
    if dry_run:
        return _preview(Path(output), key, [file for group in found for file in group or ()], loaded.info.vocab_size)
    out = outputs.prepare(
        output,
        "tokenize",
        key=key,
        inputs=[each for each in inputs if str(each) != STDIN and not is_remote(str(each))],
        overwrite=overwrite,
        resume=resume,
    )
    if out.finished:
        return _finished(out)
    files = [file for group in found for file in group or [copy_stdin(out.work, format)]]
    write_bytes(out.work / "tokenizer.json", loaded.data)
    context = tasks.Context(
        work=str(out.work),
        tokenizer=loaded.info,
        encoder=encoder_name,
        special_as_text=special_tokens == "text",
        text_field=text_field,
        filters=filters,
        on_error=on_error,
        max_errors=max_errors,
    )
    job = _Job(context, files, workers or executor.available_cpus(), quiet)
    try:
        try:
            job.run()
        except EncoderMismatchError as error:
            if encoder == "gigatoken":
                raise
            why = f"fell back: {error.what}"
            remedy = "nothing is lost: tokenizers encodes everything instead, only slower"
            warn("encoder-fallback", error.what, remedy=remedy, where=error.where)
            job.start_again("tokenizers")
            job.run()
    except PacktoolError:
        if not job.results:
            out.discard()  # nothing there that a resumed run could use
        raise
    return _assemble(out, job, options, why, clock)


def _check_options(
    inputs: Sequence[Path | str],
    format: str | None,
    special_tokens: str,
    on_error: str,
    max_errors: int | None,
    resume: bool,
) -> None:
    for option, value, allowed in (
        ("--format", format, (None, *FORMATS)),
        ("--special-tokens", special_tokens, ("token", "text")),
        ("--on-error", on_error, ON_ERROR),
    ):
        if value not in allowed:
            choices = ", ".join(each for each in allowed if each)
            raise UsageError("bad-option", f"{value!r} is none of {choices}", remedy="choose one of them", where=option)
    if max_errors is not None and on_error == "fail":
        remedy = "give --on-error skip or quarantine with it"
        raise UsageError("bad-option", "without effect while --on-error is fail", remedy=remedy, where="--max-errors")
    if not inputs:
        remedy = "name files, directories, globs or URLs, or - for standard input"
        raise UsageError("no-input", "no input is named", remedy=remedy)
    stdin = sum(str(each) == STDIN for each in inputs)
    if stdin > 1:
        raise UsageError("stdin-twice", "standard input is named twice", remedy="name it once", where=STDIN)
    if stdin and resume:
        remedy = "write it to a file first, or give --overwrite"
        raise UsageError("stdin-no-resume", "standard input can't be resumed", remedy=remedy, where="--resume")


def _preview(output: Path, key: str, files: Sequence[CorpusFile], vocab_size: int) -> TokenizeResult:
    """What there is to read, and about what will be written: four bytes of text a token, archives a third of it."""
    text = sum(file.bytes * (3 if file.compression or file.format == "parquet" else 1) for file in files)
    figures = {
        "files": len(files),
        "input_bytes": sum(file.bytes for file in files),
        "bytes": text // 4 * token_dtype(vocab_size).itemsize,
    }
    found = outputs.look(output, "tokenize", key)
    return TokenizeResult(output, {}, {}, Preview("tokenize", output, found, figures, estimated=True))


def _identity(files: Sequence[CorpusFile] | None) -> list[tuple[str, int, int]] | None:
    """What must not change between an interrupted run and the one that goes on."""
    return None if files is None else [(file.name, file.bytes, file.modified) for file in files]


class _Job:
    """The blocks of a run: those finished earlier, and those still to do."""

    def __init__(self, context: tasks.Context, files: list[CorpusFile], workers: int, quiet: bool) -> None:
        self.context = context
        self.files = files
        self.workers = workers
        self.results: dict[int, tasks.BlockResult] = {}
        self.digests: dict[int, str] = {}
        self._quiet = quiet
        self._blocks = blocks.plan(files)
        self._work = Path(context.work)
        for number in range(len(self._blocks)):
            record = tasks.block_record(self._work, number)
            if record.exists():
                self.results[number] = msgspec.json.decode(record.read_bytes(), type=tasks.BlockResult)

    def start_again(self, encoder: str) -> None:
        """Forget what the other encoder did."""
        for number in [n for n, result in self.results.items() if result.encoder != encoder]:
            tasks.block_record(self._work, number).unlink()
            del self.results[number]
        self.context = msgspec.structs.replace(self.context, encoder=encoder)

    def run(self) -> None:
        """Do what is still to do."""
        split = sorted({block[0].file for block in self._blocks if not block[0].whole} - self.digests.keys())
        todo = [tasks.Task(-1, (), (self.files[number],)) for number in split]
        for number, block in enumerate(self._blocks):
            if number not in self.results:
                todo.append(tasks.Task(number, block, tuple(self.files[span.file] for span in block)))
        total = sum(file.bytes for file in self.files)
        left = sum(self._bytes(block) for n, block in enumerate(self._blocks) if n not in self.results)
        with (
            Progress(total, "tokenize", initial=total - left, quiet=self._quiet) as progress,
            closing(self._results(todo, progress)) as results,
        ):
            for number, result in results:
                if isinstance(result, str):
                    self.digests[split[number]] = result
                else:
                    self.results[todo[number].number] = result
                    self._limit_errors()

    def _results(
        self, todo: list[tasks.Task], progress: Progress
    ) -> Generator[tuple[int, tasks.BlockResult | str], None, None]:
        function = partial(tasks.run, self.context)
        yield from executor.run(function, todo, workers=self.workers, on_advance=progress.advance)

    def _bytes(self, block: Block) -> int:
        """Bytes of a block, for progress; where a file has several, about."""
        if block[0].whole:
            return sum(self.files[span.file].bytes for span in block)
        number = block[0].file
        return self.files[number].bytes // sum(other[0].file == number for other in self._blocks)

    def _limit_errors(self) -> None:
        limit = self.context.max_errors
        if limit is not None and sum(span.rejects for r in self.results.values() for span in r.spans) > limit:
            raise tasks.too_many(limit)

    def in_order(self) -> list[tuple[Path, tasks.BlockResult]]:
        """Each block's directory and result."""
        return [(tasks.block_directory(self._work, number), self.results[number]) for number in sorted(self.results)]


def _assemble(out: outputs.Output, job: _Job, options: dict[str, Any], why: str, clock: Clock) -> TokenizeResult:
    """Give shards their final names, join what was rejected, write the manifest."""
    shards: list[TokenShard] = []
    documents = 0
    per_file: dict[int, tasks.SpanCounts] = {}
    with RejectJoiner(out.path, [file.name for file in job.files]) as joiner:
        for directory, result in job.in_order():
            joiner.add(directory)
            for span in result.spans:
                joiner.passed(span.file, span.records)
                per_file.setdefault(span.file, tasks.SpanCounts(span.file)).add(span)
            for shard in result.shards:
                tokens = _place(out.path, directory, len(shards), shard.tokens)
                offsets = _place(out.path, directory, len(shards), shard.offsets)
                shards.append(TokenShard(tokens, offsets, documents))
                documents += shard.offsets.shape[0] - 1
    sync_directory(out.path)
    total = tasks.SpanCounts(-1)
    for counts in per_file.values():
        total.add(counts)
    inputs = [
        InputEntry(file.name, file.bytes, job.digests.get(number) or per_file[number].digest)
        for number, file in enumerate(job.files)
    ]
    manifest = StoreManifest(
        options=options,
        inputs=inputs,
        tokenizer=job.context.tokenizer,
        dtype=token_dtype(job.context.tokenizer.vocab_size).str,
        counts=total.flat(),
        shards=shards,
    )
    run = {
        "written": clock.seconds(),
        "workers": job.workers,
        "encoder": job.context.encoder,
        "encoder_why": why,
        "texts_checked": sum(result.checked for _, result in job.in_order()),
        "text_bytes": total.bytes,
        "machine": {"system": platform.platform(), "python": platform.python_version(), "cpus": os.cpu_count()},
        "files": [{"name": job.files[n].name, **counts.flat()} for n, counts in sorted(per_file.items())],
    }
    out.finish(manifest, run)
    _warn_of_gaps(out.path, manifest.counts)
    return TokenizeResult(out.path, manifest.counts, run)


def _warn_of_gaps(path: Path, counts: dict[str, int]) -> None:
    if counts["rejected"]:
        kept = path / outputs.REJECTED
        remedy = f"see {kept}" if kept.exists() else "use --on-error quarantine to see which, with the reasons"
        warn("records-rejected", f"{counts['rejected']:,} records could not be used", remedy=remedy, where=str(path))
    if not counts["documents"]:
        warn("no-documents", "no document is left", remedy="check the input and the filters", where=str(path))


def _place(store: Path, directory: Path, number: int, entry: FileEntry) -> FileEntry:
    """Move one file of a shard to its place. A resumed run may find it there already."""
    name = f"{entry.name.partition('-')[0]}-{number:05d}.npy"
    source = directory / entry.name
    if source.exists():
        source.rename(store / name)
    return msgspec.structs.replace(entry, name=name)


def _finished(out: outputs.Output) -> TokenizeResult:
    manifest = manifests.read(out.path)
    assert isinstance(manifest, StoreManifest)
    run = msgspec.json.decode((out.path / manifests.RUN).read_bytes(), type=dict[str, Any])
    return TokenizeResult(out.path, manifest.counts, run, kept=True)
