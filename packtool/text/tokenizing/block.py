"""One task of `tokenize`: read a block, span by span, filter, encode, and write its shards."""

from __future__ import annotations

import functools
import re
from contextlib import closing
from fractions import Fraction
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from packtool.engines import Worker
from packtool.errors import DataError
from packtool.formats.names import SCRATCH, TOKENIZER
from packtool.formats.schema import InputEntry, TokenShard
from packtool.outputs.delivery import Delivery
from packtool.places.npy import FileEntry
from packtool.places.place import Place
from packtool.planning.plan import I64, Mask
from packtool.support.sizes import plural
from packtool.text.conversations.chat import Chat, any_of
from packtool.text.corpus.file_bytes import file_digest
from packtool.text.corpus.read import SpanReader, records_before
from packtool.text.corpus.records import Block, CorpusFile, RecordBatch, Reject, Span
from packtool.text.encoding.encode import EncodedDocuments, encoded, require_ids, require_plain, stored, utf8_of
from packtool.text.encoding.encoder_choice import load_encoder
from packtool.text.encoding.encoders import EncoderRecipe
from packtool.text.encoding.verify import Verified
from packtool.text.tokenizing.counts import SpanCounts
from packtool.text.tokenizing.origins import origins
from packtool.text.tokenizing.rearranged import Rearranged
from packtool.text.tokenizing.recipe import StoreRecipe
from packtool.text.tokenizing.rejects import RejectLog
from packtool.text.tokenizing.store_writer import ShardWriter

if TYPE_CHECKING:
    from packtool.text.tokenizing.conversations import Conversations


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """All that the tasks of a run share."""

    recipe: StoreRecipe  # recipe of the store
    encoder: EncoderRecipe  # recipe of the encoder; the ids are the same from any
    max_errors: int | Fraction | None  # rejects after which a block gives up, a share of all records, or None
    tokenizer_at: Place  # place of the tokenizer.json that workers load
    delivery: Delivery  # delivery of finished blocks


class BlockTask(msgspec.Struct, frozen=True):
    """A block: its number, its spans, and the files that the spans are in."""

    number: int
    spans: Block
    files: tuple[CorpusFile, ...]


class BlockResult(msgspec.Struct):
    """The files and counts of a finished block."""

    encoder: str  # encoder that ran; "none" for ids
    checked: int  # texts that were cross-checked
    spans: list[SpanCounts]  # counts of each span
    shards: list[TokenShard]  # its shards
    rejected: InputEntry | None  # its file of rejected records

    @property
    def tokens(self) -> int:
        """How many it has written."""
        return sum(span.tokens for span in self.spans)

    @property
    def bytes(self) -> int:
        """How many it has read, uncompressed."""
        return sum(span.bytes for span in self.spans)

    def files(self) -> list[FileEntry | InputEntry]:
        """List its files, by their names in the output."""
        files: list[FileEntry | InputEntry] = []
        if self.rejected is not None:
            files.append(self.rejected)
        for shard in self.shards:
            files += shard.files
        return files


def run(work: Work, task: BlockTask, worker: Worker) -> BlockResult:
    """Run one task; running it again gives the same files."""
    with work.delivery.attempt(f"block-{task.number:05d}.") as attempt:
        result = Attempt(work, attempt, task.number, worker).result(task)
        work.delivery.deliver(attempt, result.files())
    return result


def prepare(work: Work) -> tuple[Verified | None, Conversations | None]:
    """Load the encoder, and what conversations need; they are kept for the next task, and shared with processes forked
    from this one. A corpus of ids needs neither."""
    recipe = work.recipe
    if recipe.fields.ids:
        return None, None
    return _loaded(work.tokenizer_at, TOKENIZER, recipe.tokenizer.sha256, work.encoder, recipe.chat)


@functools.lru_cache(maxsize=1)
def _loaded(
    place: Place, name: str, sha256: str, recipe: EncoderRecipe, chat: Chat | None
) -> tuple[Verified, Conversations | None]:
    del sha256  # part of the cache's key: another run in this process may use the same path
    data = place.read(name)
    encoder = load_encoder(recipe, data)
    if chat is None:
        return encoder, None
    from packtool.text.tokenizing.conversations import Conversations

    return encoder, Conversations(chat, data, encoder.reference)


class Attempt:
    """One attempt at a block: what its spans are encoded with, and where documents and rejects of theirs go.

    Args:
        directory: for its files.
        number: of the block.
        worker: is told how far it is.
    """

    def __init__(self, work: Work, directory: Path, number: int, worker: Worker) -> None:
        self.recipe = work.recipe
        self.max_errors = work.max_errors
        self.encoder, self.conversations = prepare(work)
        self._checked_before = 0  # texts that were compared in the blocks before this one
        if self.encoder is not None:
            self._checked_before = self.encoder.checked
        self.writer = ShardWriter(directory, number, work.recipe.tokenizer, work.recipe.fields.columns)
        self.reject_file = f"rejected-{number:05d}.jsonl"
        self.reject_log = RejectLog(directory / self.reject_file)
        self.reject_count = 0
        self.worker = worker
        self._added = 1 + (work.recipe.tokenizer.bos_id is not None)  # EOS, and BOS if there is one

    def result(self, task: BlockTask) -> BlockResult:
        """Tokenize a block."""
        with closing(self.reject_log):
            counts = [self.span(span, file) for span, file in zip(task.spans, task.files, strict=True)]
            self.writer.close()
        encoder, checked = "none", 0
        if self.encoder is not None:
            encoder, checked = self.encoder.recipe.encoder, self.encoder.checked - self._checked_before
        rejected = self.reject_log.entry(f"{SCRATCH}/{self.reject_file}")
        return BlockResult(encoder, checked, counts, self.writer.shards, rejected)

    def span(self, span: Span, file: CorpusFile) -> SpanCounts:
        """Tokenize a span of a file, batch by batch."""
        counts = SpanCounts(span.file)
        reader = SpanReader(file, span, self.recipe.fields, limit=self.recipe.max_record_bytes)
        for batch in reader:
            self.take(span, file, batch, counts, reader)
            self.worker.advance(batch.progress)
        counts.special = {number: times for number, times in counts.special.items() if times}
        if self.conversations is not None:
            counts.special = self.conversations.spelled(self.recipe.tokenizer.added_tokens)
        counts.require_balance(self._added)
        counts.digest = reader.digest
        if span.start == 0 and not counts.digest:
            counts.digest = file_digest(file)  # it is read in parts, or in an order of its own
        return counts

    def take(self, span: Span, file: CorpusFile, batch: RecordBatch, counts: SpanCounts, reader: SpanReader) -> None:
        """Tokenize a batch that `reader` read of a span: check or render it, filter and encode it, write it.

        Raises:
            DataError: a record can't be used, and such records are not to be skipped.
        """
        if self.encoder is None:
            require_ids(batch, self.recipe.tokenizer)
        if self.recipe.refused:
            require_plain(batch, self._refused)
        if self.conversations is not None:
            self.conversations.render(batch)
        if batch.rejects:
            reader.require_unchanged()
            self._reject(span, file, batch, counts)
        counts.found |= dict.fromkeys(set(self.recipe.fields.optional) - batch.missing, 1)
        documents, utf8 = self._filtered(batch, counts)
        self._write(batch, documents, utf8, counts)

    def _filtered(self, batch: RecordBatch, counts: SpanCounts) -> tuple[EncodedDocuments, list[bytes]]:
        """Return the ids of the documents that pass all filters, and their bytes; count and remove the others."""
        filters = self.recipe.filters
        counts.read += len(batch.documents)
        if self.encoder is not None:
            self._keep(batch, counts, filters.of_texts(batch.documents), None)
        utf8 = utf8_of(batch.documents, ids=self.encoder is None)
        moved = None
        if self.recipe.fim is not None:
            moved = Rearranged(batch.documents, utf8, self.recipe.fim)
        documents = self._encoded(batch, utf8, moved, counts)
        fits = np.ones(len(utf8), np.bool_)
        if filters.need_tokens:
            # A document without ids is not stored, so it has neither EOS nor BOS.
            tokens = np.where(documents.lengths > 0, documents.lengths + self._added, 0).astype(np.int64)
            fits = filters.of_tokens(tokens)
            self._keep(batch, counts, fits, tokens)
            documents, utf8 = documents.of(fits), list(compress(utf8, fits))
        if moved is not None:
            moved.count(counts, fits, self.recipe.special_ids)
        return documents, utf8

    def _encoded(
        self, batch: RecordBatch, utf8: list[bytes], moved: Rearranged | None, counts: SpanCounts
    ) -> EncodedDocuments:
        """Return the ids of the documents of a batch, and count them.

        Args:
            moved: the documents as they are rearranged, if they are.
        """
        if self.encoder is None:
            documents = stored(batch.documents)
        elif moved is not None:
            return moved.encoded(self.encoder, counts)  # counts sentinels apart from ids of the text
        else:
            documents = encoded(batch.documents, utf8, self.encoder)
            if self.conversations is None:
                documents, ended = documents.without_eos(self.recipe.tokenizer.eos_id)
                documents, begun = documents.without_bos(self.recipe.tokenizer.bos_id)
                counts.own_eos += ended
                counts.own_bos += begun
        if self.conversations is not None:
            documents = self.conversations.masked(batch, utf8, documents, self.recipe.tokenizer.eos_id)
        counts.encoded += len(documents.ids)
        return documents

    def _write(self, batch: RecordBatch, documents: EncodedDocuments, utf8: list[bytes], counts: SpanCounts) -> None:
        """Write the documents of a batch, with their origins and columns, and count them."""
        tokens_before, trained_before = self.writer.tokens, self.writer.trained
        counts.count_special(documents.ids, self.recipe.special_ids, self.recipe.tokenizer.vocab_size)
        self._count_gaps(batch, documents, counts)
        sources = None
        if self.recipe.provenance:
            sources = origins(counts.file, counts.records, batch.numbers, utf8)
        kept = self.writer.add(documents, sources, batch.columns)
        if self.conversations is not None:
            self.conversations.count(batch, documents, counts)
        for name, values in zip(self.recipe.fields.columns, batch.columns, strict=True):
            counts.filled[name] = counts.filled.get(name, 0) + len(values) - values.count(None)
        counts.documents += int(kept.sum())
        counts.empty += int((~kept).sum())
        counts.tokens += self.writer.tokens - tokens_before
        counts.trained += self.writer.trained - trained_before
        counts.records += batch.records
        counts.bytes += batch.bytes

    def _count_gaps(self, batch: RecordBatch, documents: EncodedDocuments, counts: SpanCounts) -> None:
        """Count what the tokenizer has no token for."""
        alphabet = self.recipe.alphabet
        if alphabet is None or self.encoder is None:
            return
        if alphabet.unknown is not None:
            counts.unknown += int((documents.ids == alphabet.unknown).sum())
        if not alphabet.whole:
            normalizer = self.encoder.reference.tokenizer.normalizer
            for text in batch.documents:
                plain = self._added_tokens.sub("", text)
                counts.vanished += alphabet.count_lost(plain if normalizer is None else normalizer.normalize_str(plain))

    @functools.cached_property
    def _added_tokens(self) -> re.Pattern[str]:
        """A pattern of the added tokens, whose texts are not normalized."""
        return any_of(self.recipe.tokenizer.added_tokens)

    @functools.cached_property
    def _refused(self) -> re.Pattern[str]:
        """A pattern of the special tokens that no text may spell."""
        return any_of(self.recipe.refused)

    @staticmethod
    def _keep(batch: RecordBatch, counts: SpanCounts, fits: Mask, tokens: I64 | None) -> None:
        """Count and remove the documents of a batch that do not fit.

        Args:
            tokens: of each document, where they are known.
        """
        if fits.all():
            return
        gone = list(compress(batch.documents, ~fits))
        counts.filtered.add(gone, None if tokens is None else tokens[~fits])
        batch.keep(np.flatnonzero(fits).tolist())

    def _reject(self, span: Span, file: CorpusFile, batch: RecordBatch, counts: SpanCounts) -> None:
        """Count and log the rejects of a batch."""
        most = None if isinstance(self.max_errors, Fraction) else self.max_errors
        for reject in batch.rejects:
            fault = reject.fault
            if self.recipe.on_error == "fail":
                more = ""
                if fault.alone:
                    more = ", or give --on-error=skip, or quarantine"
                raise fault.at(_place(span, file, reject, counts.records), more)
            counts.rejected[fault.code] = counts.rejected.get(fault.code, 0) + 1
            counts.lost += reject.lost
            if self.recipe.on_error == "quarantine":
                self.reject_log.add(span.file, reject, counts.records)
            self.reject_count += 1
            if most is not None and self.reject_count > most:
                raise too_many(most, _place(span, file, reject, counts.records), f"the last: {fault.what}")


def _place(span: Span, file: CorpusFile, reject: Reject, before: int) -> str:
    """Name the file and, if it is about one, the record of a reject, with `before` records before its batch."""
    where = file.shown
    return f"{where}:{records_before(file, span) + before + reject.record}" if reject.record else where


def too_many(limit: int | Fraction, where: str, example: str) -> DataError:
    """Return the error for more bad records than allowed, by their number or their share of all.

    Args:
        where: one of them is.
        example: what is wrong with it.
    """
    allowed = f"{float(100 * limit):g}% of all records" if isinstance(limit, Fraction) else plural(limit, "record")
    what = f"more than {allowed} can't be used; {example}"
    remedy = "look at them with --on-error=quarantine and a higher --max-errors"
    return DataError("too-many-errors", what, remedy=remedy, where=where)
