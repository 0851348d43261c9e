"""`stats` of text files: lengths in words, characters and tokens. Writes nothing but a copy of standard input."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from packtool.engines import Engine, Worker
from packtool.errors import UsageError
from packtool.formats.schema import TokenizerInfo
from packtool.options.stats import StatsArguments
from packtool.planning.plan import I64
from packtool.support.progress import Progress
from packtool.support.temporary import temporary_directory
from packtool.text.corpus import blocks
from packtool.text.corpus.discover import STDIN, copy_stdin
from packtool.text.corpus.filters import size
from packtool.text.corpus.find import find_files, found_from_anywhere
from packtool.text.corpus.first import held_by
from packtool.text.corpus.read import SpanReader
from packtool.text.corpus.records import CorpusFile, Fields
from packtool.text.encoding.encode import encoded, utf8_of
from packtool.text.encoding.encoder_choice import choose, load_encoder
from packtool.text.encoding.encoders import EncoderMismatchError, EncoderRecipe, EncoderUnsuitableError
from packtool.text.encoding.load import find, info_of
from packtool.text.encoding.verify import Verified
from packtool.text.tokenizing.block import BlockTask
from packtool.warnings import warn


class CorpusLengths(msgspec.Struct):
    """The lengths of a corpus's documents, in their order.

    Attributes:
        words, characters: of every document.
        tokens: of every document that has any, EOS included; None without a tokenizer.
        tokenizer: that they were counted with.
        counts: files, bytes (as they lie there), documents, empty documents, and rejected records by reason.
    """

    words: I64
    characters: I64
    tokens: I64 | None
    tokenizer: TokenizerInfo | None
    counts: dict[str, int]


class _Context(msgspec.Struct, frozen=True):
    text_field: str
    tokenizer: str = ""
    recipe: EncoderRecipe | None = None


class _Measured(msgspec.Struct):
    words: I64
    characters: I64
    tokens: I64
    rejected: dict[str, int]


def corpus_lengths(location: str, options: StatsArguments, engine: Engine, *, tokens: bool) -> CorpusLengths:
    """Read text files and measure every document.

    Args:
        location: file, directory, glob, URL, or "-" for standard input.
        tokens: count tokens even if no tokenizer is named.

    Raises:
        DataError: nothing there, or it can't be read. Records that can't be used are counted, with a warning.
        UsageError: no EOS is known for the tokenizer.
    """
    with temporary_directory() as folder:
        files = [copy_stdin(folder, options.format)] if location == STDIN else find_files(location, options.format)
        if options.text_field is None and held_by(files, "text").chats:
            raise UsageError(
                "not-tokenized",
                "holds conversations, whose lengths depend on a chat template",
                remedy="tokenize them, and give stats the store; packtool info counts them",
                where=location,
            )
        context, info = _Context(options.text_field or "text"), None
        if tokens or options.tokenizer is not None:
            found = find(options.tokenizer)
            info = info_of(found, eos_token=options.eos_token)
            (folder / "tokenizer.json").write_bytes(found.data)
            context = _Context(context.text_field, str(folder / "tokenizer.json"), choose(found))
        if not engine.shares_memory:
            files = list(map(found_from_anywhere, files))
        engine = engine.processes
        measured = None
        while measured is None:
            try:
                measured = _run(context, files, engine, folder, quiet=options.quiet)
            except (EncoderMismatchError, EncoderUnsuitableError) as error:
                if isinstance(error, EncoderMismatchError):
                    remedy = "the ids are the same, but tokenizers is slower"
                    warn("encoder-fallback", error.what, remedy=remedy, where=location)
                assert context.recipe is not None
                context = msgspec.structs.replace(context, recipe=context.recipe.fallback(error))
    return _join(measured, files, info, location)


def _run(
    context: _Context, files: Sequence[CorpusFile], engine: Engine, folder: Path, *, quiet: bool
) -> list[_Measured]:
    plan = blocks.plan(files)
    tasks = []
    for number, block in enumerate(plan):
        tasks.append(BlockTask(number, block, tuple(files[span.file] for span in block)))
    function = functools.partial(_measure, context)
    with (
        Progress(sum(file.bytes for file in files), "stats", quiet=quiet) as progress,
        closing(engine.run(function, tasks, work=folder, on_advance=progress.advance)) as results,
    ):
        measured = dict(results)
    return [measured[number] for number in range(len(tasks))]


def _measure(context: _Context, task: BlockTask, worker: Worker) -> _Measured:
    encoder = None
    if context.recipe is not None:
        encoder = _encoder(context.tokenizer, context.recipe)
    sizes = [np.empty((0, 2), np.int64)]
    tokens: list[int] = []
    rejected: Counter[str] = Counter()
    for span, file in zip(task.spans, task.files, strict=True):
        for batch in SpanReader(file, span, Fields(context.text_field)):
            sizes.append(np.array(list(map(size, batch.documents)), np.int64).reshape(-1, 2))
            if encoder is not None:
                utf8 = utf8_of(batch.documents, ids=False)
                tokens += encoded(batch.documents, utf8, encoder).lengths.tolist()
            rejected.update(reject.code for reject in batch.rejects)
            worker.advance(batch.progress)
    words, characters = np.concatenate(sizes).T
    return _Measured(words, characters, np.array(tokens, np.int64), rejected)


@functools.lru_cache(maxsize=1)
def _encoder(path: str, recipe: EncoderRecipe) -> Verified:
    return load_encoder(recipe, Path(path).read_bytes())


def _join(
    measured: Sequence[_Measured], files: Sequence[CorpusFile], info: TokenizerInfo | None, location: str
) -> CorpusLengths:
    def column(name: str) -> Any:
        return np.concatenate([np.empty(0, np.int64), *(getattr(part, name) for part in measured)])

    characters = column("characters")
    empty = int(np.count_nonzero(characters == 0))
    tokens = None
    if info is not None:
        own = column("tokens")
        tokens = own[own > 0] + 1
        empty = len(own) - len(tokens)
    rejected: Counter[str] = Counter()
    for part in measured:
        rejected.update(part.rejected)
    total = rejected.total()
    if total:
        remedy = "packtool tokenize tells where the first one is"
        warn("records-rejected", f"{total:,} records can't be used and are left out", remedy=remedy, where=location)
    counts = {
        "files": len(files),
        "bytes": sum(file.bytes for file in files),
        "documents": len(characters) - empty,
        "empty": empty,
        "rejected": total,
        **{f"rejected_{code.replace('-', '_')}": rejected[code] for code in sorted(rejected)},
    }
    return CorpusLengths(
        words=column("words"),
        characters=characters,
        tokens=tokens,
        tokenizer=info,
        counts=counts,
    )
