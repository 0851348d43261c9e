"""`tokenize`: from text files to a token store."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from packtool import __version__, executor
from packtool.clock import Clock
from packtool.commands.inputs import find_files, warn_of_repeats
from packtool.commands.preview import Preview
from packtool.corpus import blocks
from packtool.corpus.classify import FORMATS
from packtool.corpus.discover import STDIN, copy_stdin
from packtool.corpus.filters import Filters
from packtool.corpus.open import is_remote
from packtool.corpus.records import RECORD_BYTES, CorpusFile
from packtool.errors import PacktoolError, UsageError
from packtool.sizes import parse_bytes
from packtool.storage import manifest as manifests
from packtool.storage import output as outputs
from packtool.storage.files import write_bytes
from packtool.storage.manifest import StoreManifest
from packtool.storage.token_store import token_dtype
from packtool.tokenizing import block as tasks
from packtool.tokenizing import load
from packtool.tokenizing.assemble import assemble
from packtool.tokenizing.choose import choose, recipe, spared
from packtool.tokenizing.encoders import EncoderMismatchError, EncoderUnsuitableError, reference_tokenizer
from packtool.tokenizing.job import Job
from packtool.warnings import warn

log = logging.getLogger(__name__)

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
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    eos_token: str | int | None = None,
    bos: bool = False,
    bos_token: str | int | None = None,
    special_tokens: str = "token",
    min_words: int | None = None,
    min_chars: int | None = None,
    max_chars: int | None = None,
    on_error: str = "fail",
    max_errors: int | None = None,
    max_record_bytes: int | str = RECORD_BYTES,
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
        include: patterns; files that match none of them are not read. With it, files of any suffix are read.
        exclude: patterns of files not to read. Patterns without "/" are held against a file's name, others against its
            path under the input.
        eos_token: text or id of the token that ends every document; None to find it beside the tokenizer.
        bos: begin every document with a BOS.
        bos_token: text or id of it; implies `bos`.
        special_tokens: "token" to encode special tokens that occur in a text as themselves, "text" as plain text.
        min_words, min_chars, max_chars: leave out documents with fewer words, fewer or more characters.
        on_error: what to do with a record that can't be used: fail, skip, or quarantine (to rejected.jsonl).
        max_errors: give up after so many; None for no limit.
        max_record_bytes: largest record, uncompressed, such as "1GiB"; larger ones can't be used. Memory grows with it.
        encoder: auto, tokenizers or gigatoken.
        workers: processes; None for all processors. The output does not depend on it.
        overwrite: replace an earlier output.
        resume: go on with an interrupted one.
        dry_run: look at options, tokenizer and inputs, and write nothing.
        quiet: no progress bar.

    Raises:
        PacktoolError: whatever is wrong with options, tokenizer, inputs or output.
    """
    clock = Clock()
    inputs = [inputs] if isinstance(inputs, str | Path) else list(inputs)
    limit = parse_bytes(max_record_bytes, "--max-record-bytes")
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
        "max_record_bytes": limit,
    }
    found = [None if str(each) == STDIN else find_files(each, format, include, exclude) for each in inputs]
    key = outputs.key_of(__version__, options, loaded.info, [_identity(files) for files in found])
    if dry_run:
        reference_tokenizer(loaded.data)  # a real run finds out as it begins
        return _preview(Path(output), key, [file for files in found for file in files or ()], loaded.info.vocab_size)
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
    warn_of_repeats(files)
    if encoder == "auto" and not any(file.compression or file.format == "parquet" for file in files):
        encoder_name, why = spared(encoder_name, why, sum(file.bytes for file in files))
    log.info("encoder %s: %s", encoder_name, why)
    write_bytes(out.work / "tokenizer.json", loaded.data)
    context = tasks.Context(
        work=str(out.work),
        tokenizer=loaded.info,
        recipe=recipe(loaded.spec, encoder_name, loaded.info.vocab_size, special_as_text=special_tokens == "text"),
        text_field=text_field,
        filters=filters,
        on_error=on_error,
        max_errors=max_errors,
        max_record_bytes=limit,
    )
    job = Job(context, files, workers or executor.available_cpus(), quiet)
    try:
        try:
            job.run()
        except (EncoderMismatchError, EncoderUnsuitableError) as error:
            if encoder == "gigatoken":
                raise
            why = error.what
            if isinstance(error, EncoderMismatchError):
                remedy = "nothing is lost: tokenizers encodes everything instead, only slower"
                warn("encoder-fallback", why, remedy=remedy, where=error.where)
            job.start_again("tokenizers")
            job.run()
    except PacktoolError:
        if not job.results:
            out.discard()  # nothing there that a resumed run could use
        raise
    return TokenizeResult(out.path, *assemble(out, job, options, why, clock))


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


def _identity(files: Sequence[CorpusFile] | None) -> list[tuple[str, int, int]] | None:
    """What must not change between an interrupted run and the one that goes on."""
    return None if files is None else [(file.name, file.bytes, file.modified) for file in files]


def _preview(output: Path, key: str, files: Sequence[CorpusFile], vocab_size: int) -> TokenizeResult:
    """What there is to read, and about what will be written: four bytes of text a token, archives a third of it."""
    text = sum(file.bytes * (3 if file.compression or file.format == "parquet" else 1) for file in files)
    figures = {
        "files": len(files),
        "blocks": len(blocks.plan(files)),
        "input_bytes": sum(file.bytes for file in files),
        "bytes": text // 4 * token_dtype(vocab_size).itemsize,
    }
    found = outputs.look(output, "tokenize", key)
    return TokenizeResult(output, {}, {}, Preview("tokenize", output, found, figures, estimated=True))


def _finished(out: outputs.Output) -> TokenizeResult:
    manifest = manifests.read(out.path)
    assert isinstance(manifest, StoreManifest)
    return TokenizeResult(out.path, manifest.counts, manifests.read_run(out.path), kept=True)
