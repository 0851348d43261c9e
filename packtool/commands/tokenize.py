"""`tokenize`: from text files to a token store."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packtool import __version__
from packtool.clock import Clock
from packtool.commands.conversations import AUTO, chat_of, check_conversations, recorded_of
from packtool.commands.inputs import find_files, found_from_anywhere, warn_of_repeats
from packtool.commands.part import Part, engine_of, require_all
from packtool.commands.result import SeenFile, StoreResult, previewed
from packtool.conversations.chat import Chat
from packtool.corpus import blocks
from packtool.corpus.discover import STDIN, copy_stdin
from packtool.corpus.fields import Fields
from packtool.corpus.filters import Filters
from packtool.corpus.first import begin_with_conversation, begins_with_conversation
from packtool.corpus.python_records import copy_records
from packtool.corpus.read import SpanReader
from packtool.corpus.records import CorpusFile, Span
from packtool.engines import Engine
from packtool.errors import PacktoolError, UsageError
from packtool.options.check import given, refuse
from packtool.options.declare import flag, names_recorded
from packtool.options.kinds import names_files
from packtool.options.signature import takes
from packtool.options.tokenize import TokenizeArguments
from packtool.storage import manifest as manifests
from packtool.storage.claim import claim
from packtool.storage.names import OFFSET, ORIGIN, TOKENIZER, token_dtype
from packtool.storage.output import Output
from packtool.storage.pieces import Pieces
from packtool.storage.schema import StoreManifest
from packtool.storage.state import key_of
from packtool.tokenizing import block as tasks
from packtool.tokenizing import findings, load
from packtool.tokenizing.assemble import assemble
from packtool.tokenizing.encoder_choice import EncoderRecipe, settle
from packtool.tokenizing.encoders import EncoderMismatchError, EncoderUnsuitableError, reference_tokenizer
from packtool.tokenizing.job import Job
from packtool.warnings import warn

_SEEN_BYTES, _SEEN_FILES = 1 << 20, 1000
"""Of how many files a dry run looks at how many bytes, about."""
log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, repr=False)
class TokenizeResult(StoreResult):
    """What `tokenize` did."""


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
    inputs = [options.inputs] if isinstance(options.inputs, str | Path) else list(options.inputs)
    _check_options(inputs, options, "standard input" if records is None else "what a program yields")
    with engine_of(options, "tokenize") as engine:
        return _tokenize(inputs, records, options, engine)


def _tokenize(inputs: Sequence[Path | str], records: Any, options: TokenizeArguments, engine: Engine) -> TokenizeResult:
    clock = Clock()
    filters = Filters(options.min_words, options.min_chars, options.max_chars, options.min_tokens, options.max_tokens)
    found = [
        None if str(each) == STDIN else find_files(each, options.format, options.include, options.exclude)
        for each in inputs
    ]
    chats, records = _hold_conversations(options, [file for files in found for file in files or ()], records)
    check_conversations(options, chats=chats)
    fields = _fields(options, chats=chats)
    loaded = load.load(
        options.tokenizer,
        revision=options.revision,
        eos_token=options.eos_token,
        bos=options.bos,
        bos_token=options.bos_token,
        chats=chats,
        kept=findings.directory(),
    )
    as_text = options.special_tokens == "text"
    size = sum(file.bytes for files in found for file in files or ())
    best = settle(loaded, options.encoder, special_as_text=as_text, kept=findings.directory(), size=size)
    recorded = {name: getattr(options, name) for name in names_recorded(TokenizeArguments)}
    chat = None
    if chats:
        chat, loaded = chat_of(options, loaded)
        recorded |= recorded_of(options, chat)
    identity = [
        None if files is None else [(file.name, file.bytes, file.modified) for file in files] for files in found
    ]
    key = key_of(__version__, recorded, loaded.info, identity)
    if options.dry_run:
        return _preview(options, key, [file for files in found for file in files or ()], loaded, filters, fields, chat)
    # What was named, and what it led to, perhaps through links.
    read = [*map(str, inputs), *(file.location for files in found for file in files or ())]
    read = [each for each in read if each != STDIN]
    with claim(options.output, "tokenize", options, key=key, inputs=read, share=engine.share) as out:
        if out.finished:
            return _finished(out)
        try:
            received = [] if records is None else [copy_records(records, out.scratch, fields)]
        except BaseException:
            out.discard()
            raise
        files = [file for group in found for file in group or received or [copy_stdin(out.scratch, options.format)]]
        warn_of_repeats(files)
        if options.scheduler is not None:
            files = list(map(found_from_anywhere, files))
        fallback, share = Pieces(out, "fallback", str), engine.share
        given_up = fallback.recorded([0]).get(0)
        recipe = best if given_up else _encoder(best, options, files, len(loaded.data))
        job = _job(out, files, loaded, recipe, fields, filters, chat, options, engine)
        if given_up:
            job.start_again(given_up)
        log.info("encoder %s: %s", job.context.recipe.encoder, job.context.recipe.why)
        try:
            _run(job, fallback, options.encoder)
        except PacktoolError:
            if share is None and not job.results():
                out.discard()  # nothing there that a resumed run could use
            raise
        if share is not None and not share.merges:
            return TokenizeResult(path=out.shown, part=Part(str(share), job.pieces_here, job.pieces))
        if share is not None:
            require_all(str(out.place), job.missing(), job.pieces, out.tasks)
        counts, run = assemble(out, job, recorded, loaded.files, clock)
        return TokenizeResult(path=out.shown, counts=counts, run=run)


def _encoder(
    best: EncoderRecipe, options: TokenizeArguments, files: Sequence[CorpusFile], tokenizer: int
) -> EncoderRecipe:
    """Choose the best encoder, or the reference where there is too little input."""
    if options.encoder != "auto" or any(file.compression or file.format == "parquet" for file in files):
        return best
    return best.if_small(sum(file.bytes for file in files), tokenizer)


def _job(
    out: Output,
    files: list[CorpusFile],
    loaded: load.LoadedTokenizer,
    recipe: EncoderRecipe,
    fields: Fields,
    filters: Filters,
    chat: Chat | None,
    options: TokenizeArguments,
    engine: Engine,
) -> Job:
    """List the blocks to tokenize, and make the job they have in common."""
    out.share(out.scratch / TOKENIZER, loaded.data)
    special: set[int] = set()
    if options.special_tokens == "token" and options.ids_field is None:
        known = loaded.info.added_tokens
        special = {known[text] for text in loaded.special if text in known}
    context = tasks.Context(
        scratch=str(out.scratch.absolute()),
        tokenizer=loaded.info,
        recipe=recipe,
        fields=fields,
        filters=filters,
        on_error=options.on_error,
        max_errors=options.max_errors,
        max_record_bytes=options.record_bytes,
        provenance=options.provenance,
        special_ids=tuple(sorted(special)),
        delivery=out.delivery(engine),
        chat=chat,
    )
    return Job(context, files, engine, out, quiet=options.quiet)


def _run(job: Job, fallback: Pieces[str], encoder: str) -> None:
    """Do what is to do, with the slower encoder if need be."""
    try:
        job.run()
    except (EncoderMismatchError, EncoderUnsuitableError) as error:
        if encoder != "auto":
            raise
        if isinstance(error, EncoderMismatchError):
            remedy = "nothing is lost: tokenizers encodes everything instead, only slower"
            warn("encoder-fallback", error.what, remedy=remedy, where=error.where)
        fallback.record(0, error.what)  # for tasks that begin later, and for a resumed run
        job.start_again(error.what)
        job.run()


def _hold_conversations(options: TokenizeArguments, files: Sequence[CorpusFile], records: Any) -> tuple[bool, Any]:
    """Tell whether the input holds conversations, as given or, where no field is, by its first record; return that,
    and a program's records."""
    if options.conversations is not None or options.ids_field is not None or given(options, ["text_field"]):
        return options.conversations is not None, records
    if records is not None:
        return begin_with_conversation(records, options.text_field)
    return begins_with_conversation(files, options.text_field), None


def _fields(options: TokenizeArguments, *, chats: bool) -> Fields:
    """List the fields to read of a record; the id first of what is kept."""
    columns = dict.fromkeys([*([options.id_field] if options.id_field else []), *options.columns])
    text = options.ids_field or options.text_field
    if chats:
        text = options.conversations if options.conversations not in (None, AUTO) else ""
    return Fields(text, options.ids_field is not None, tuple(columns), options.id_field or "", chats)


def _check_options(inputs: Sequence[Path | str], options: TokenizeArguments, stream: str) -> None:
    if options.max_errors is not None and options.on_error == "fail":
        remedy = "give --on-error skip or quarantine with it"
        raise UsageError("bad-option", "has no effect while --on-error is fail", remedy=remedy, where="--max-errors")
    if options.ids_field is not None:
        for name in ("min_words", "min_chars", "max_chars"):
            if getattr(options, name) is not None:
                what, remedy = "has no effect on token ids", "give --min-tokens or --max-tokens"
                raise UsageError("bad-option", what, remedy=remedy, where=flag(name))
    for each in given(options, ["ids_field", "conversations"]):
        refuse(options, ["text_field"], f"has no effect beside {each.flag}", "leave one of the two out")
    for name in ("id_field", "ids_field", "text_field", "columns", "conversations"):
        named = getattr(options, name)
        if "" in (named if name == "columns" else [named]):
            raise UsageError("bad-option", "an empty name", remedy="give the name of a field", where=flag(name))
    if not inputs:
        remedy = "name files, directories, globs or URLs, or - for standard input"
        raise UsageError("no-input", "no input is named", remedy=remedy)
    stdin = sum(str(each) == STDIN for each in inputs)
    if stdin > 1:
        raise UsageError("stdin-twice", "standard input is named twice", remedy="name it once", where=STDIN)
    if stdin and options.task is not None:
        remedy = "write it to a file first"
        raise UsageError("stdin-no-resume", f"{stream} can't be shared out", remedy=remedy, where="--task")
    if stdin and options.resume:
        remedy = "write it to a file first, or give --overwrite"
        raise UsageError("stdin-no-resume", f"{stream} can't be resumed", remedy=remedy, where="--resume")


def _seen(file: CorpusFile, fields: Fields, *, look: bool) -> SeenFile:
    """Describe a file, with the documents in its first bytes."""
    known = (file.name, file.format, file.compression, file.bytes)
    if not look:
        return SeenFile(*known, 0, whole=False, problem=file.problem)
    documents = size = 0
    problem = ""
    for batch in SpanReader(file, Span(0), fields, salvage=False):
        if size >= _SEEN_BYTES:
            return SeenFile(*known, documents, whole=False, problem=problem)
        documents += len(batch.documents)
        size += batch.bytes
        if batch.rejects and not problem:
            place = f"{batch.rejects[0].record}: " if batch.rejects[0].record else ""
            problem = f"{place}{batch.rejects[0].reason}"
    return SeenFile(*known, documents, whole=True, problem=problem)


def _preview(
    options: TokenizeArguments,
    key: str,
    files: Sequence[CorpusFile],
    loaded: load.LoadedTokenizer,
    filters: Filters,
    fields: Fields,
    chat: Chat | None,
) -> TokenizeResult:
    """Preview what there is to read, and estimate from samples what will be written."""
    from packtool.tokenizing.estimate import estimate

    tokenizer, renderer = None if fields.ids else reference_tokenizer(loaded.data), None
    if chat is not None:
        from packtool.conversations.renderer import Renderer

        renderer = Renderer(chat)
    documents, tokens = estimate(files, tokenizer, fields, filters, renderer)
    figures = {
        "files": len(files),
        "blocks": len(blocks.plan(files)),
        "input_bytes": sum(file.bytes for file in files),
        "documents": documents,
        "tokens": tokens,
        "bytes": tokens * token_dtype(loaded.info.vocab_size).itemsize
        + documents * (OFFSET.itemsize + ORIGIN.itemsize * options.provenance)
        + sum(map(len, loaded.files.values())),
    }
    seen = [_seen(file, fields, look=number < _SEEN_FILES) for number, file in enumerate(files)]
    estimated = ("documents", "tokens", "bytes")
    return TokenizeResult(**previewed("tokenize", options, options.output, key, figures, estimated, seen))


def _finished(out: Output) -> TokenizeResult:
    counts = manifests.read_as(out.place, StoreManifest).counts
    return TokenizeResult(path=out.shown, counts=counts, run=manifests.read_run(out.place), kept=True)
