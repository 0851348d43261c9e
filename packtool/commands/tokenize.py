"""`tokenize`: turn text files into a token store."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from packtool.commands.result import StoreResult
from packtool.commands.tokenize_options import Source, resolve
from packtool.engines import Engine, engine_for
from packtool.errors import PacktoolError
from packtool.formats import manifest as manifests
from packtool.formats.names import TOKENIZER
from packtool.formats.schema import StoreManifest
from packtool.options.kinds import names_files
from packtool.options.signature import takes
from packtool.options.tokenize import TokenizeArguments
from packtool.outputs.claim import claim
from packtool.outputs.output import Output
from packtool.places.typed import place_of
from packtool.support.clock import Clock
from packtool.support.temporary import discard_runs
from packtool.text.corpus.discover import STDIN, copy_stdin
from packtool.text.corpus.find import found_from_anywhere, warn_of_repeats
from packtool.text.corpus.python_records import copy_records
from packtool.text.corpus.records import CorpusFile
from packtool.text.encoding.encoders import EncoderMismatchError, EncoderUnsuitableError
from packtool.text.tokenizing.block import Context
from packtool.text.tokenizing.job import Job
from packtool.warnings import warn

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, repr=False)
class TokenizeResult(StoreResult):
    """The result of `tokenize`."""


@takes(TokenizeArguments)
def tokenize(options: TokenizeArguments) -> TokenizeResult:
    """Tokenize text files, or records that a program has, into a token store.

    A string or a list of strings names files. Any other iterable gives the records themselves: an iterator of texts,
    mappings with the fields, a `Dataset` or `IterableDataset` of Hugging Face. They are read once, in order, and
    numbered from 1.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     tokenize([{"text": "one"}, {"text": "two"}], f"{place}/store").counts["documents"]
    2

    Raises:
        PacktoolError: whatever is wrong with options, tokenizer, inputs or output.
    """
    records: Any = None if names_files(options.inputs) else options.inputs
    if records is not None:
        options = replace(options, inputs=STDIN)
    place = place_of(options.output)
    with engine_for(options.scheduler, options.workers, "tokenize", at_end=discard_runs) as engine:
        clock, source = Clock(), resolve(options, records)
        if options.dry_run:
            known = {"files": len(source.files), "bytes": sum(file.bytes for file in source.files)}
            return TokenizeResult.previewed("tokenize", options, place, source.key, known, source.files)
        with claim(place, "tokenize", options, key=source.key, inputs=source.locations) as out:
            if out.finished:
                counts = manifests.read_as(out.place, StoreManifest).counts
                return TokenizeResult(path=out.place.shown, counts=counts, run=manifests.read_run(out.place), kept=True)
            job = _job(source, _files(source, options, out), options, out, engine)
            log.info("encoder %s: %s", job.context.recipe.encoder, job.context.recipe.why)
            _run(job, out, options.encoder)
            counts, run = job.assemble(source.recorded, source.tokenizer.found.files, clock)
            return TokenizeResult(path=out.place.shown, counts=counts, run=run)


def _files(source: Source, options: TokenizeArguments, out: Output) -> list[CorpusFile]:
    """List the files to read, visible to all workers; copy standard input and records first."""
    copied: list[CorpusFile] = []
    if None in source.found:
        try:
            if source.records is None:
                copied = [copy_stdin(out.scratch, options.format)]
            else:
                copied = [copy_records(source.records, out.scratch, source.settings.fields)]
        except BaseException:
            out.discard()  # nothing can resume it
            raise
    files = [file for files in source.found for file in (copied if files is None else files)]
    warn_of_repeats(files)
    return files if options.scheduler is None else list(map(found_from_anywhere, files))


def _job(source: Source, files: list[CorpusFile], options: TokenizeArguments, out: Output, engine: Engine) -> Job:
    """Divide the input into blocks, and put the tokenizer where workers find it."""
    tokenizer_at = out.passing(engine, far=False).place
    tokenizer_at.write(TOKENIZER, source.tokenizer.found.data)
    settings = msgspec.structs.asdict(source.settings)
    context = Context(**settings, tokenizer_at=tokenizer_at, delivery=out.delivery(engine))
    return Job(context, files, engine, out, quiet=options.quiet)


def _run(job: Job, out: Output, encoder: str) -> None:
    """Run all blocks, and fall back to another encoder if the fast one is wrong, or refuses the tokenizer."""
    try:
        while True:
            try:
                return job.run()
            except (EncoderMismatchError, EncoderUnsuitableError) as error:
                if encoder != "auto":
                    raise
                if isinstance(error, EncoderMismatchError):
                    remedy = "nothing is lost: tokenizers encodes everything instead, only slower"
                    warn("encoder-fallback", error.what, remedy=remedy, where=error.where)
                job.fall_back(error)
    except PacktoolError:
        if not job.encoders:
            out.discard()  # nothing there that a resumed run could use
        raise
