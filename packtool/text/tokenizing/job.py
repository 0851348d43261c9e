"""The blocks of a run of `tokenize`, and the token store that is made of them."""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import closing
from fractions import Fraction
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from packtool.engines import Engine, RunOptions
from packtool.errors import PacktoolError
from packtool.formats.names import REJECTED, TOKENIZER, token_dtype
from packtool.formats.schema import InputEntry, OtherFile, StoreManifest, TokenShard
from packtool.options.tokenize import TokenizeArguments
from packtool.outputs.output import Output
from packtool.outputs.pieces import Pieces
from packtool.outputs.tokenizer_files import write_tokenizer
from packtool.places.local import LocalPlace
from packtool.places.place import Place
from packtool.support.clock import Clock
from packtool.support.progress import Progress
from packtool.support.sizes import plural
from packtool.support.temporary import own_directory
from packtool.text.corpus import blocks as corpus_blocks
from packtool.text.corpus.file_bytes import file_digest
from packtool.text.corpus.find import Texts
from packtool.text.corpus.read import records_before
from packtool.text.corpus.records import CorpusFile, Span
from packtool.text.encoding.encoders import EncoderMismatchError, EncoderUnsuitableError
from packtool.text.tokenizing import block as tasks
from packtool.text.tokenizing.chat_counts import chat_counts, warn_of_conversations
from packtool.text.tokenizing.counts import SpanCounts
from packtool.text.tokenizing.fields_found import errors_of_names, layouts_of, warn_of_columns
from packtool.text.tokenizing.recipe import StoreRecipe
from packtool.text.tokenizing.rejects import RejectLog
from packtool.text.tokenizing.tokenizer import Tokenizer
from packtool.warnings import warn

log = logging.getLogger(__name__)
_NAMED = 5  # most special tokens that a warning names


def run_blocks(
    recipe: StoreRecipe, tokenizer: Tokenizer, texts: Texts, options: TokenizeArguments, output: Output, engine: Engine
) -> Blocks:
    """Tokenize the texts, block by block; blocks that an earlier run finished are kept.

    With ``--encoder auto`` another encoder goes on where the fast one is wrong, or refuses the tokenizer.

    Returns:
        The blocks, all of them done.

    Raises:
        PacktoolError: a record or file can't be used; the encoder that was named is wrong. Where no block was finished
            yet, nothing stays at the output.
    """
    try:
        files = texts.stored(output.scratch, from_anywhere=options.scheduler is not None)
    except BaseException:
        if texts.once:  # which is gone, so nothing could resume this
            output.discard()
        raise
    tokenizer_at = output.passing(engine, far=False).place
    tokenizer_at.write(TOKENIZER, tokenizer.data)
    work = tasks.Work(
        recipe=recipe,
        encoder=tokenizer.encoder,
        max_errors=options.most_errors,
        tokenizer_at=tokenizer_at,
        delivery=output.delivery(engine),
    )
    blocks = Blocks(work, files, engine, output)
    log.info("encoder %s: %s", blocks.work.encoder.encoder, blocks.work.encoder.why)
    try:
        blocks.run(fall_back=options.encoder == "auto", quiet=options.quiet)
    except PacktoolError:
        if not blocks.done:  # nothing that a resumed run could use
            output.discard()
        raise
    return blocks


class Blocks:
    """The blocks of a run: blocks that an earlier run finished, and blocks still to do.

    Args:
        output: the place of the blocks' files and records.
        engine: runs the blocks.
    """

    def __init__(self, work: tasks.Work, files: list[CorpusFile], engine: Engine, output: Output) -> None:
        self.work = work  # what the tasks share; another encoder may take over in it
        part, parts = 1, 1
        if work.recipe.part is not None:
            part, parts, _ = work.recipe.part
        self.files, self._plan, self._sizes = corpus_blocks.part_of(files, part, parts)
        """The files of the corpus that are read, in order, and the blocks and bytes of them."""
        self.first: Span | None = next(chain.from_iterable(self._plan), None)  # the span that they begin with, if any
        self.engine = engine
        self._output = output
        self._kept = Pieces(output, "block", tasks.BlockResult, tasks.BlockResult.files)
        self.done = self._kept.found(range(len(self._plan)), engine)  # results of the finished blocks, by number
        self.earlier = frozenset(self.done)  # numbers of blocks that an earlier run had done
        # An earlier run may have found the fast encoder wrong: this one must not begin with it again.
        self._fallback = Pieces(output, "fallback", str)
        fallback = self._fallback.recorded([0])
        if fallback:
            self._use_reference(fallback[0])

    def in_order(self) -> list[tasks.BlockResult]:
        """List what came of the blocks, in the order of their texts."""
        return [self.done[number] for number in sorted(self.done)]

    def run(self, *, fall_back: bool, quiet: bool) -> None:
        """Run the blocks that are not done.

        Args:
            fall_back: go on with another encoder where one is wrong, or refuses the tokenizer.
        """
        while True:
            try:
                self._run(quiet=quiet)
            except EncoderMismatchError as error:
                if not fall_back:
                    raise
                remedy = "nothing is lost: tokenizers encodes everything instead, only slower"
                warn("encoder-fallback", error.what, remedy=remedy, where=error.where)
                # The record comes first: a run that is killed now must not resume with the encoder that was wrong.
                self._fallback.record(0, error.what)
                self._use_reference(error.what)
            except EncoderUnsuitableError as error:
                if not fall_back:
                    raise
                self.work = msgspec.structs.replace(self.work, encoder=self.work.encoder.fallback(error))
            else:
                return

    def _use_reference(self, why: str) -> None:
        """Let the reference encode, and do again what any other encoder did."""
        encoder = self.work.encoder.instead(why)
        for number, result in list(self.done.items()):
            if result.encoder != encoder.encoder:
                self._kept.forget(number)
                del self.done[number]
        self.earlier = self.earlier & self.done.keys()
        self.work = msgspec.structs.replace(self.work, encoder=encoder)

    def _run(self, *, quiet: bool) -> None:
        before = dict(self.done)
        todo: dict[int, tasks.BlockTask] = {}
        every = begun = 0  # bytes, for progress
        for number, spans in enumerate(self._plan):
            todo[number] = tasks.BlockTask(number, spans, tuple(self.files[span.file] for span in spans))
            every += self._sizes[number]
            if number in before:
                begun += self._sizes[number]
        with Progress(every, "tokenize", initial=begun, quiet=quiet) as progress:
            options = RunOptions(
                on_advance=progress.advance, prepare=partial(tasks.prepare, self.work), work=self._shared
            )
            for number, result in self._kept.run(
                partial(tasks.run, self.work),
                todo,
                self.engine.processes,
                done=before,
                options=options,
            ):
                if number not in before:
                    self.done[number] = result
                    progress.add_tokens(result.tokens)
                    self._limit_errors()
        self._limit_errors()

    @property
    def _shared(self) -> Path | None:
        """A directory that workers have to see; None where the store has all that they need."""
        return self._output.scratch if isinstance(self.work.tokenizer_at, LocalPlace) else None

    def _limit_errors(self) -> None:
        """Stop a run that has more bad records than it may; each task knows only the records of its own block."""
        limit = self.work.max_errors
        if limit is None:
            return
        spans: list[SpanCounts] = []
        records = rejects = lost = 0
        for result in self.in_order():
            spans += result.spans
        for span in spans:
            records += span.read + span.rejects
            rejects += span.rejects
            lost += span.lost
        most: int | Fraction = limit
        if isinstance(limit, Fraction):
            if len(self.done) < len(self._plan):
                return  # a share is one of all records
            most = limit * records
            # Nobody knows how many records the bytes hold that can't be read.
            size = sum(file.bytes for file in self.files)
            if lost > limit * size:
                worst = max(spans, key=lambda span: span.lost)
                what = f"{lost:,} of {size:,} bytes of the files can't be read"
                raise tasks.too_many(limit, self.files[worst.file].shown, what)
        if rejects > most:
            worst = max(spans, key=lambda span: span.rejects)
            reasons = ", ".join(f"{count} {code}" for code, count in sorted(worst.rejected.items()))
            raise tasks.too_many(limit, self.files[worst.file].shown, f"here {reasons}")


def finish(
    output: Output, recipe: StoreRecipe, tokenizer: Tokenizer, blocks: Blocks, clock: Clock, called: str
) -> tuple[dict[str, int], dict[str, Any]]:
    """Make a token store of blocks that are all done: join what they rejected, and write the manifest.

    Doing it again after it was interrupted gives the same store.

    Args:
        clock: of the run.
        called: what warnings call the store.

    Returns:
        The manifest's counts, and the facts in `run.json`.
    """
    shards, per_file, rejected = _joined(output, blocks)
    total = SpanCounts(-1)
    for counts in per_file:
        total.add(counts)
    files = list(zip(blocks.files, per_file, strict=True))
    for error in errors_of_names(recipe, total, blocks.files):
        if recipe.part is None:
            output.discard()
            raise error
        remedy = f"{error.remedy}, unless another part has it"
        warn("column-empty", f"in this part, {error.what}", remedy=remedy)
    facts = _facts(blocks, total)
    options = recipe.options
    of_chats: dict[str, int] = {}
    if recipe.chat is not None:
        of_chats = chat_counts(total, recipe.chat)
        facts["ends"] = dict(sorted(total.ends.items()))
        options = options | {"layouts": msgspec.to_builtins(layouts_of(recipe, total))}
    for name in ("read", "not_read", "layouts"):
        if name in options:
            facts[name] = options[name]
    tokenizer_files = write_tokenizer(output, tokenizer.files)
    manifest = StoreManifest(
        options=options,
        inputs=[InputEntry(file.name, file.bytes, counts.digest) for file, counts in files],
        tokenizer=recipe.tokenizer,
        dtype=token_dtype(recipe.tokenizer.vocab_size).str,
        counts=total.flat() | of_chats | _oddities(total),
        rejected=rejected,
        shards=shards,
        tokenizer_files=tokenizer_files,
    )
    run = {
        "written": clock.seconds(),
        "workers": blocks.engine.workers,
        **facts,
        "machine": {"system": platform.platform(), "python": platform.python_version(), "cpus": os.cpu_count()},
        "files": [{"name": file.name, **counts.flat()} for file, counts in files],
    }
    output.finish(manifest, run)
    _warn(output.place, called, manifest, total.special)
    warn_of_columns(total, blocks.files)
    _warn_of_separator(files)
    if recipe.chat is not None:
        warn_of_conversations(called, total, recipe.chat)
    return manifest.counts, run


def _warn_of_separator(files: Sequence[tuple[CorpusFile, SpanCounts]]) -> None:
    """Warn of a separator that divides no file."""
    documents = [counts.read for file, counts in files if file.separator]
    if documents and max(documents) == 1:
        what = f"it stands between the documents of no file: each of {plural(len(documents), 'file')} is one document"
        warn("matched-nothing", what, remedy=r"check it: \n is a newline and \t a tab", where="--separator")


def _joined(output: Output, blocks: Blocks) -> tuple[list[TokenShard], list[SpanCounts], OtherFile | None]:
    """Join the blocks: return their shards, numbered over the whole store, what each file holds, and the rejects."""
    shards: list[TokenShard] = []
    documents = 0
    per_file = list(map(SpanCounts, range(len(blocks.files))))
    # A part may begin inside a file: what lies before it there counts for the numbers of records alone.
    skipped = 0
    if blocks.first is not None and blocks.first.start:
        skipped = records_before(blocks.files[0], blocks.first)
        per_file[0].records = skipped
        per_file[0].digest = file_digest(blocks.files[0])
    names = [file.name for file in blocks.files]
    with own_directory(output.scratch, "rejected.") as attempt:
        with closing(RejectLog(attempt / REJECTED)) as rejects:
            for result in blocks.in_order():
                # A block counts records from its own begin: add the records of the same file in earlier blocks.
                first_record = per_file[result.spans[0].file].records
                if result.rejected is not None:
                    before = [counts.records for counts in per_file]
                    rejects.join(output.place.blocks(result.rejected.name), names, before)
                for span in result.spans:
                    per_file[span.file].add(span)
                for shard in result.shards:
                    shards.append(msgspec.structs.replace(shard, first_document=documents, first_record=first_record))
                    documents += shard.offsets.shape[0] - 1
        if skipped:
            per_file[0].records -= skipped
        entry = rejects.entry(REJECTED)
        if entry is None:
            return shards, per_file, None
        output.put(REJECTED, attempt / REJECTED, entry.xxh3_128)
        return shards, per_file, OtherFile(*msgspec.structs.astuple(entry))


def _facts(blocks: Blocks, total: SpanCounts) -> dict[str, Any]:
    """Return the facts about encoding for `run.json`; `this_run` leaves out the blocks of earlier runs."""
    encoders: set[str] = set()
    bytes_now = tokens_now = 0
    for number, result in blocks.done.items():
        encoders.add(result.encoder)
        if number not in blocks.earlier:
            bytes_now += result.bytes
            tokens_now += result.tokens
    return {
        "encoder": ", ".join(sorted(encoders)) or blocks.work.encoder.encoder,
        "encoder_why": blocks.work.encoder.why,
        "texts_checked": sum(result.checked for result in blocks.done.values()),
        "text_bytes": total.bytes,
        "this_run": {"text_bytes": bytes_now, "tokens": tokens_now},
    }


def _oddities(total: SpanCounts) -> dict[str, int]:
    """Return the counts of what few corpora have, where there is any."""
    found = {
        "own_eos": total.own_eos,
        "own_bos": total.own_bos,
        "unknown_tokens": total.unknown,
        "vanished_characters": total.vanished,
    }
    return {name: count for name, count in found.items() if count}


def _warn(place: Place, called: str, manifest: StoreManifest, special: Mapping[str, int]) -> None:
    """Warn of what was lost, and of texts that hold special tokens, which were counted by id: perhaps from other
    corpora, perhaps from somebody who wants to end a document."""
    counts = manifest.counts
    if counts["rejected"]:
        remedy = "tokenize with --on-error=quarantine to see which, with the reasons"
        if manifest.rejected is not None:
            remedy = f"see {place.where(REJECTED)}"
        what = f"{plural(counts['rejected'], 'record')} could not be used"
        damaged = counts.get("rejected_damaged_file")
        if damaged:  # how much that was, an archive that ends early does not say
            what += f", of which {damaged:,} {'is' if damaged == 1 else 'are'} all that follows the damage in a file"
        if counts.get("lost_bytes"):
            what += f", and {counts['lost_bytes']:,} bytes of files are lost with all records in them"
        warn("records-rejected", what, remedy=remedy, where=called)
    gaps = []
    unknown = counts.get("unknown_tokens")
    if unknown:
        gaps.append(f"{plural(unknown, 'unknown token')} stand for what the tokenizer has no token for")
    vanished = counts.get("vanished_characters")
    if vanished:
        gaps.append(f"{plural(vanished, 'character')} vanished, which the tokenizer has no token for")
    for what in gaps:
        warn("no-token", what, remedy="take a tokenizer that was trained on such text", where=called)
    if not manifest.inputs:
        what = "no file, or part of one, falls to this part of the inputs"
        remedy = "nothing is lost; make no more parts than there are files that can't be divided, as compressed ones"
        warn("no-documents", what, remedy=remedy, where=called)
    elif not counts["documents"]:
        warn("no-documents", "no document is left", remedy="check the input and the filters", where=called)
    if special:
        names = {number: text for text, number in manifest.tokenizer.added_tokens.items()}
        most = sorted(special.items(), key=lambda item: (-item[1], int(item[0])))
        named = ", ".join(f"{names[int(number)]} ({times:,})" for number, times in most[:_NAMED])
        if len(most) > _NAMED:
            named += ", …"
        hold, remedy = "texts hold", "give --special-tokens=text to encode them as plain text"
        if manifest.conversations:
            hold = "messages spell"
            remedy = "give --special-tokens=text to encode them as plain text, or clean the messages"
        what = f"{hold} special tokens, which are encoded as such: {named}"
        warn("special-tokens", what, remedy=remedy, where=called)
