"""`shuffle` of a token store: rows of a rotated stream, in the order in which batches read them."""

from __future__ import annotations

from packtool.commands.pack_options import DEFAULT_SHARD_TOKENS
from packtool.commands.shuffle_job import Job, ShuffleResult
from packtool.metrics.ledger import balance
from packtool.progress import Progress
from packtool.report.packed import report_of_rows
from packtool.shuffling import partial
from packtool.storage import manifest as manifests
from packtool.storage.files import write_array
from packtool.storage.manifest import PackedManifest, Shuffle
from packtool.storage.packed import LENGTHS
from packtool.storage.token_store import Corpus
from packtool.writing.assemble import RowWriter, bucket_entry
from packtool.writing.gather import Gatherer
from packtool.writing.layout import Layout


def write_partial(job: Job, record: Shuffle, sequence_length: int) -> ShuffleResult:
    """Write the rows of one epoch.

    Raises:
        UsageError: there are fewer than batch size × sequence length tokens.
    """
    assert record.batch_size is not None
    corpus = Corpus([job.source])
    lengths = corpus.lengths()
    plan = partial.plan(
        lengths,
        sequence_length=sequence_length,
        batch_size=record.batch_size,
        seed=record.seed,
        epoch=record.epoch,
    )
    pad_id = corpus.tokenizer.eos_id
    options = {
        "sequence_length": sequence_length,
        "remainder": "drop",
        "pad_id": pad_id,
        "shard_tokens": DEFAULT_SHARD_TOKENS,
        "segments": True,
    }
    tokens = plan.rows * sequence_length
    figures = {"rows": plan.rows, "tokens": tokens, "bytes": tokens * corpus.dtype.itemsize}
    place = job.begin(record, options, figures=figures)
    if isinstance(place, ShuffleResult):
        return place
    gather = Gatherer(
        corpus.shards,
        corpus.locate,
        dtype=corpus.dtype,
        pad_id=pad_id,
        eos_id=corpus.tokenizer.eos_id,
        longest_fill=1,
    )
    layout = Layout(plan)
    with Progress(figures["bytes"], "shuffle", quiet=job.quiet) as bar:
        writer = RowWriter(
            directory=place.path,
            dtype=corpus.dtype,
            shard_tokens=DEFAULT_SHARD_TOKENS,
            lengths=lengths,
            with_segments=True,
            workers=job.workers,
            progress=bar.advance,
            notes=place.work / "shards",
        )
        shards, tally = writer.write(layout, lambda a, b, rows: gather(rows or layout.segments(a, b)))
    assert tally is not None
    ledger = balance(corpus.tokens, corpus.documents, [plan], [tally.accounts()])
    report = report_of_rows([tally], ledger, strategy="concat", options=options, shuffle=record)
    manifest = PackedManifest(
        strategy="concat",
        options=options,
        shuffle=record,
        inputs=[manifests.input_entry(job.source)],
        store_documents=[corpus.documents],
        tokenizer=corpus.tokenizer,
        dtype=corpus.dtype.str,
        pad_id=pad_id,
        documents=corpus.documents,
        ledger=ledger,
        lengths=write_array(place.path / LENGTHS, lengths),
        report=manifests.write_report(place.path, report),
        buckets=[bucket_entry("", plan, shards)],
    )
    run = job.facts()
    place.finish(manifest, run)
    return ShuffleResult(place.path, report, run)
