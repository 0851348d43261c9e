"""`tokenize`: turn text files into a token store."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from packtool.commands.result import StoreResult
from packtool.engines import Engine, engine_for
from packtool.formats.known import IDS, TEXTS, KnownDataset, Lookup
from packtool.formats.schema import StoreManifest
from packtool.options.signature import takes
from packtool.options.tokenize import TokenizeArguments
from packtool.outputs.claim import open_output
from packtool.outputs.output import Output
from packtool.places.typed import place_of
from packtool.places.url import is_remote
from packtool.support.clock import Clock
from packtool.support.sizes import show_bytes
from packtool.support.temporary import discard_runs
from packtool.text.corpus.blocks import plan
from packtool.text.corpus.find import Texts, find_texts
from packtool.text.corpus.formats import FORMATS
from packtool.text.corpus.once import STDIN
from packtool.text.corpus.read_fields import recorded_lines
from packtool.text.corpus.records import shown
from packtool.text.tokenizing.fields_found import layouts_of, warn_of_columns
from packtool.text.tokenizing.job import finish, run_blocks
from packtool.text.tokenizing.recipe import StoreRecipe
from packtool.text.tokenizing.tokenizer import Tokenizer, load
from packtool.warnings import PacktoolWarning

if TYPE_CHECKING:
    from packtool.text.tokenizing.estimate import Estimate

_MOST_TEXT = 1 << 25  # bytes of the largest text file, which is one document, that a dry run reads


@dataclass(frozen=True, kw_only=True, repr=False)
class TokenizeResult(StoreResult):
    """The result of `tokenize`."""

    @property
    def read(self) -> list[str]:
        """What was read of records and what was not: a line for each layout of conversations, else one.

        >>> TokenizeResult(path="store", run={"read": "text", "not_read": ["id"]}).read
        ['read: text; not read: id']
        """
        return recorded_lines(self.run)


@takes(TokenizeArguments)
def tokenize(options: TokenizeArguments) -> TokenizeResult:
    """Tokenize text files, or records that a program has, into a token store.

    A string or a list of strings names files. A table of pandas, polars, pyarrow or DuckDB is read as a file of Arrow.
    Any other iterable gives the records themselves: texts, mappings with the fields, a `Dataset` or `IterableDataset`
    of Hugging Face. Records are read once, in order, and numbered from 1.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     tokenize([{"text": "one"}, {"text": "two"}], f"{place}/store").counts["documents"]
    2

    Raises:
        PacktoolError: options, tokenizer, inputs or output can't be used.
    """
    with engine_for(options.scheduler, options.workers, "tokenize", at_end=discard_runs) as engine:
        return tokenized(options, engine)


def makes(options: TokenizeArguments, look: Lookup) -> KnownDataset:
    """Check the files and the tokenizer; return what is known of the store that is made with them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PacktoolWarning)  # tokenizing says it
        texts = find_texts(options, streams=False)
        tokenizer = load(options, texts.kind, texts.most_bytes)
        recipe = StoreRecipe.of(options, texts, tokenizer)
    hashed = TEXTS
    if options.ids_field is not None:
        hashed = IDS
    return KnownDataset(
        place=place_of(options.output),
        kind=StoreManifest,
        tokenizer=tokenizer.info,
        columns=texts.fields.columns,
        has_origins=options.provenance,
        hashed=hashed,
        conversations=tokenizer.chat is not None,
        masked=tokenizer.chat is not None and options.train_on != "all",
        part=recipe.part,
    )


def tokenized(options: TokenizeArguments, engine: Engine, *, called: str = "") -> TokenizeResult:
    """Tokenize with an engine that the caller has; `called` is what warnings call the store, "" for its place."""
    clock = Clock()
    texts = find_texts(options)
    tokenizer = load(options, texts.kind, texts.most_bytes)
    recipe = StoreRecipe.of(options, texts, tokenizer)
    if not options.dry_run or STDIN in options.names:
        texts.begin()  # a pipe that can't be read is refused before anything is made
    place = place_of(options.output)
    with open_output(place, "tokenize", options, key=recipe.key, inputs=texts.locations) as out:
        if out.preview:
            return _preview(out, options, recipe, tokenizer, texts, engine)
        if out.finished:
            return TokenizeResult.kept_at(out)
        # Every block is read, filtered, encoded and written by one task: `Attempt.take` in tokenizing/block.py.
        blocks = run_blocks(recipe, tokenizer, texts, options, out, engine)
        counts, run = finish(out, recipe, tokenizer, blocks, clock, called or str(place))
        return TokenizeResult(path=place.shown, counts=counts, run=run)


def _preview(
    out: Output, options: TokenizeArguments, recipe: StoreRecipe, tokenizer: Tokenizer, texts: Texts, engine: Engine
) -> TokenizeResult:
    """Say what would be read, and estimate what would be written, from some places of the files."""
    known = {"files": len(texts.files), "bytes": sum(file.bytes for file in texts.files)}
    read = texts.read_fields.shown()
    written, workers = {}, 1
    sample: Estimate | None = None
    unknown = _not_estimated(options, texts)
    if not unknown and out.preview != "finished":
        from packtool.text.tokenizing.estimate import looked_at  # only a dry run needs it

        # It copies nothing here: inputs that can be read only once are not estimated.
        files = texts.stored(Path(), from_anywhere=False)
        sample, unknown = looked_at(recipe, tokenizer, files, fall_back=options.encoder == "auto")
    if sample is not None:
        layouts = layouts_of(recipe, sample.counts)
        if len(layouts) > 1:
            read = "\n".join(layout.shown() for layout in layouts)  # of the records that were looked at
        warn_of_columns(sample.counts, files)
        written = {"tokens": sample.tokens, "documents": sample.documents, "bytes": sample.bytes}
        workers = min(engine.workers, max(1, len(plan(files))))  # a worker without a block does nothing
    return TokenizeResult.previewed(
        out, options, known, texts.files, written=written, unknown=unknown, estimate=sample, workers=workers, read=read
    )


def _not_estimated(options: TokenizeArguments, texts: Texts) -> str:
    """Say why nothing is known of what the texts will become; "" where they can be looked at."""
    if options.part is not None:
        return "a dry run estimates all parts together; leave --part out"
    if texts.once:
        return "standard input, a pipe, or what a program gives, can be read only once"
    if any(is_remote(file.location) for file in texts.files):
        return "files at URLs are not fetched in a dry run; look at some of them on this machine"
    for file in texts.files:
        if FORMATS[file.format].whole and not file.separator and file.bytes > _MOST_TEXT:
            return f"{shown(file.location)} is one document of {show_bytes(file.bytes)}, which is not read in part"
    return ""
