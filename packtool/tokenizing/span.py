"""One span of a block: its documents read, filtered, encoded and added to the shards of the block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from packtool.corpus.discover import STDIN
from packtool.corpus.origins import origins
from packtool.corpus.read import SpanReader, records_before
from packtool.corpus.records import CorpusFile, RecordBatch, Reject, Span
from packtool.corpus.walk import shown
from packtool.engines import Worker
from packtool.errors import DataError
from packtool.plan import I64
from packtool.tokenizing.counts import SpanCounts, count_ids
from packtool.tokenizing.encode import Parts, encoded, joined, require_ids, stored, utf8_of
from packtool.tokenizing.rejects import RejectLog
from packtool.tokenizing.store_writer import ShardWriter
from packtool.tokenizing.verify import Verified

if TYPE_CHECKING:
    from packtool.tokenizing.block import Context

REMEDIES = {
    "bad-field": "name another field, or give --on-error skip or quarantine",
    "bad-ids": "name the field of ids and the tokenizer that made them, or give --on-error skip or quarantine",
    "bad-table-row": "fix the row, or give --on-error skip or quarantine",
    "missing-text": "name the field with --text-field, or give --on-error skip or quarantine",
    "damaged-file": "get the file again, or give --on-error skip or quarantine",
    "record-too-large": "raise --max-record-bytes, or give --on-error skip or quarantine",
}
_REMEDY = "fix the record, or give --on-error skip or quarantine"


def read_span(
    context: Context,
    span: Span,
    file: CorpusFile,
    encoder: Verified | None,
    writer: ShardWriter,
    log: RejectLog,
    worker: Worker,
) -> SpanCounts:
    counts = SpanCounts(span.file)
    salvage = context.on_error != "fail"
    reader = SpanReader(file, span, context.fields, limit=context.max_record_bytes, salvage=salvage)
    for batch in reader:
        if encoder is None:
            require_ids(batch, context.tokenizer)
        if batch.rejects:
            reader.require_unchanged()
            _reject(context, span, file, batch, counts, log)
        before = writer.tokens
        counts.read += len(batch.documents)
        parts, utf8 = _filtered(context, batch, encoder, counts)
        sources = None
        if context.provenance:
            sources = origins(span.file, counts.records, batch.numbers, batch.documents, utf8)
        done = 0
        for ids, lengths, ends in parts:
            for special, times in count_ids(ids, context.special_ids):
                counts.special[str(special)] = counts.special.get(str(special), 0) + times
            ended = slice(done, done + sum(ends))
            columns = [values[ended] for values in batch.columns]
            added, empty = writer.add(ids, lengths, ends, None if sources is None else sources[ended], columns)
            done += added + empty
            counts.documents += added
            counts.empty += empty
        counts.tokens += writer.tokens - before
        counts.records += batch.records
        counts.bytes += batch.bytes
        writer.close_full()
        worker.advance(batch.progress)
    counts.require_balance(_added(context))
    counts.digest = reader.digest
    if not span.whole and reader.pages is not None:
        counts.pages = reader.pages.packed()
    return counts


def _filtered(
    context: Context, batch: RecordBatch, encoder: Verified | None, counts: SpanCounts
) -> tuple[Iterable[Parts], list[bytes | None]]:
    """The ids of the documents that pass all filters, and their bytes; the others are counted and taken out."""
    filters = context.filters
    if encoder is not None and (kept := filters.kept(batch.documents)) is not None:
        gone = sorted(set(range(len(batch.documents))) - set(kept))
        dropped = [batch.documents[n] for n in gone]
        _, sizes = joined(_counted(encoded(dropped, utf8_of(dropped, ids=False), encoder), counts))
        counts.filtered.add(dropped, _stored_tokens(context, sizes))
        batch.keep(kept)
    utf8 = utf8_of(batch.documents, ids=encoder is None)
    found = stored(batch.documents) if encoder is None else encoded(batch.documents, utf8, encoder)
    parts = _counted(found, counts)
    if not filters.by_tokens:
        return parts, utf8
    ids, lengths = joined(parts)
    fits = filters.fit(_stored_tokens(context, lengths))
    counts.filtered.add(
        [document for document, fit in zip(batch.documents, fits, strict=True) if not fit],
        _stored_tokens(context, lengths)[~fits],
    )
    left = np.flatnonzero(fits).tolist()
    batch.keep(left)
    return [(ids[np.repeat(fits, lengths)], lengths[fits], [True] * len(left))], [utf8[n] for n in left]


def _stored_tokens(context: Context, lengths: I64) -> I64:
    """Tokens that documents of so many ids have in a store, where EOS and BOS are added."""
    return np.where(lengths > 0, lengths + _added(context), 0).astype(np.int64)


def _added(context: Context) -> int:
    """Tokens that a stored document has beside its own: EOS, and BOS if there is one."""
    return 1 + (context.tokenizer.bos_id is not None)


def _counted(parts: Iterable[Parts], counts: SpanCounts) -> Iterator[Parts]:
    """The same parts, their ids counted as they come from the encoder."""
    for part in parts:
        counts.encoded += len(part[0])
        yield part


def _reject(
    context: Context, span: Span, file: CorpusFile, batch: RecordBatch, counts: SpanCounts, log: RejectLog
) -> None:
    for reject in batch.rejects:
        if context.on_error == "fail":
            _fail(span, file, reject, counts.records)
        counts.rejected[reject.code] = counts.rejected.get(reject.code, 0) + 1
        counts.lost += reject.lost
        log.add(span.file, reject, counts.records)
        if context.max_errors is not None and log.count > context.max_errors:
            raise too_many(context.max_errors)


def _fail(span: Span, file: CorpusFile, reject: Reject, before: int) -> NoReturn:
    where = STDIN if file.name == STDIN else shown(file.location)
    if reject.record:
        where += f":{records_before(file, span) + before + reject.record}"
    remedy = REMEDIES.get(reject.code, _REMEDY)
    raise DataError(reject.code, reject.reason, remedy=remedy, where=where)


def too_many(limit: int) -> DataError:
    """The error for more bad records than allowed."""
    return DataError(
        "too-many-errors",
        f"more than {limit} records can't be used",
        remedy="look at them with --on-error quarantine and a higher --max-errors",
        where="--max-errors",
    )
