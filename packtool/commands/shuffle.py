"""`shuffle`: reorder the rows of a packed dataset, or write those of a token store in the order of the partial shuffle.

The atoms of a packed dataset are permuted, and its rows are written, or the order alone. The partial shuffle cuts the
stream of a store into lanes and rotates each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from packtool import __version__, shuffling
from packtool.commands.count_rows import source_mix
from packtool.commands.dataset_job import (
    DatasetJob,
    DatasetResult,
    dataset_job,
    index_fields,
    index_names,
    with_documents,
    write_corpus,
)
from packtool.commands.document_origins import stores_of
from packtool.commands.order import write_order
from packtool.errors import UsageError
from packtool.metrics.ledger import require_counted
from packtool.metrics.mixing import BatchMix
from packtool.metrics.tally import Tally
from packtool.options.check import check_ranks, check_taken
from packtool.options.pack import PackArguments
from packtool.options.shared import DEFAULT_SEED
from packtool.options.shuffle import ShuffleArguments
from packtool.options.signature import takes
from packtool.packing import strategy
from packtool.packing.strategy import draws, require_fit
from packtool.report.packed import read_report, report_of_rows
from packtool.report.schema import PackedReport
from packtool.shuffling import Method, partial
from packtool.shuffling.atom import AtomShuffle
from packtool.shuffling.bucket import batches
from packtool.storage import manifest as manifests
from packtool.storage.files import write_array
from packtool.storage.names import BATCHES, LENGTHS
from packtool.storage.packed import PackedDataset
from packtool.storage.schema import Manifest, PackedManifest, Shuffle, StoreManifest
from packtool.storage.segment_table import no_segments
from packtool.storage.token_store import Corpus
from packtool.storage.tokenizer_files import copy_tokenizer
from packtool.writing.shards import BucketJob, ShardForm
from packtool.writing.source import PackedSource
from packtool.writing.stored_plan import StoredPlan, stored_atom_size, stored_plans, stored_shuffles
from packtool.writing.stored_tokens import open_packed


@takes(ShuffleArguments)
def shuffle(options: ShuffleArguments) -> DatasetResult:
    """Write the rows of a dataset in another order.

    The result depends on the corpus, the options of `pack`, seed and epoch only: a dataset that is shuffled already
    gives the same rows as one in corpus order, and both the same as `pack` with that seed.

    Raises:
        UsageError: options that make no sense, or that this dataset can't do.
        DataError: the source is missing, unfinished or damaged, or the disk is full.
    """
    method = shuffling.method(options.method)
    check_taken(options, "--method", method.name)
    if not options.order_only and (options.ranks, options.global_batch) != (None, None):
        what, remedy = "only an order is dealt to ranks", 'add --order-only, or read with Loader(balance="step")'
        raise UsageError("option-not-taken", what, remedy=remedy, where="--ranks")
    check_ranks(options.ranks, options.global_batch, "deal rows to ranks")
    if options.order_only and method.source == "store":
        what = f"has no effect with --method {method.name}, whose epochs are rotations of lanes"
        remedy = "leave it out, or read any epoch of the rows of one with packtool.open(ROWS).epoch(N)"
        raise UsageError("option-not-taken", what, remedy=remedy, where="--order-only")
    with dataset_job("shuffle", options, options.source, options.store) as job:
        [source] = job.inputs
        manifest = manifests.read(source)
        _require_kind(method, manifest, str(source))
        record = Shuffle(
            method=method.name,
            atom_size=options.atom_size,
            seed=_seed(options.seed, manifest),
            epoch=options.epoch,
            batch_size=options.batch_size,
            ranks=options.ranks,
            global_batch=options.global_batch,
        )
        if method.source == "store":
            assert options.sequence_length is not None
            return _write_partial(job, record, options.sequence_length, options.remainder or "drop")
        dataset = PackedDataset(source)
        if not options.order_only and (dataset.manifest.index_only or options.index_only):
            dataset = open_packed(source, job.stores)
        _require_atoms(dataset, options.atom_size)
        if options.atom_size is None:
            record = msgspec.structs.replace(record, atom_size=dataset.manifest.options.get("atom_size"))
        table = None
        if options.batch_tokens is not None:
            record, table = _with_batches(dataset, record, options.batch_tokens, keep_rest=options.remainder != "drop")
        if options.order_only:
            return write_order(job, dataset, record, table)
        return write_rows(job, dataset, record, table)


def _seed(given: int | None, manifest: Manifest) -> int:
    """Return the seed given, else the dataset's own: an epoch is another order of the same seed."""
    if given is not None:
        return given
    return manifest.seed if isinstance(manifest, PackedManifest) else DEFAULT_SEED


def _require_kind(method: Method, manifest: Manifest, where: str) -> None:
    described = manifests.describe(manifest)
    if method.source == "store":
        if not isinstance(manifest, StoreManifest):
            what = f"{described}, where --method {method.name} needs a token store"
            remedy = "give the token store itself, or shuffle its rows with --method atom"
            raise UsageError("not-a-store", what, remedy=remedy, where=where)
    elif not isinstance(manifest, PackedManifest):
        what = f"{described}, where --method {method.name} needs a packed dataset"
        remedy = "give what packtool pack wrote (it shuffles too); a token store takes --method partial"
        raise UsageError("not-packed", what, remedy=remedy, where=where)


def _require_atoms(dataset: PackedDataset, atom_size: int | None) -> None:
    """Make sure that the dataset still has its atoms, or can have others.

    Raises:
        UsageError: naming the command that can do it.
    """
    manifest = dataset.manifest
    if manifest.shuffle is not None and manifest.shuffle.method == "partial":
        raise UsageError(
            "partial-shuffled",
            "made by the partial shuffle: its rows continue each other from batch to batch, which no other order keeps",
            remedy="make another epoch from the token store, with packtool shuffle STORE --method partial --epoch N",
            where=str(dataset.place),
        )
    stored = stored_atom_size(dataset)
    if atom_size is None or atom_size == stored:
        return
    if stored is None:
        what, remedy = "rows of several lengths move one by one", "leave --atom-size out"
    elif manifest.strategy != "concat":
        what = f"packed with --strategy {manifest.strategy} in atoms of {stored} tokens, which are whole pieces of text"
        remedy = "leave --atom-size out, or pack again with packtool pack --atom-size"
    elif manifest.shuffle is not None:
        what = f"shuffled already in atoms of {stored} tokens; others need the stream in corpus order"
        remedy = "shuffle what packtool pack --no-shuffle writes, or pack again with packtool pack --atom-size"
    else:
        require_fit(atom_size, dataset.buckets[0].sequence_length)
        return
    raise UsageError("atoms-fixed", what, remedy=remedy, where="--atom-size")


def _with_batches(
    dataset: PackedDataset, record: Shuffle, batch_tokens: int, *, keep_rest: bool
) -> tuple[Shuffle, npt.NDArray[Any]]:
    """Make the batches of the bucket shuffle, and add the rows they leave out to its record."""
    if stored_atom_size(dataset) is not None:
        raise UsageError(
            "one-bucket",
            "all its rows have one length, so every batch has the same number of tokens anyway",
            remedy="give --method atom",
            where=str(dataset.place),
        )
    sizes = [(bucket.sequence_length, bucket.rows) for bucket in dataset.buckets]
    table = batches(sizes, batch_tokens, keep_rest=keep_rest, seed=record.seed, epoch=record.epoch)
    record = msgspec.structs.replace(record, batch_tokens=batch_tokens)
    if not keep_rest:
        rows = sum(rows for _, rows in sizes) - int(table["rows"].sum())
        tokens = sum(length * rows for length, rows in sizes) - int((table["rows"] * table["bucket"]).sum())
        record = msgspec.structs.replace(record, unbatched_rows=rows, unbatched_tokens=tokens)
    return record, table


def write_rows(
    job: DatasetJob,
    dataset: PackedDataset,
    record: Shuffle | None,
    table: npt.NDArray[Any] | None,
    *,
    reorder: bool = True,
) -> DatasetResult:
    """Write the rows of each bucket, and all that goes with them.

    Args:
        record: the order of the rows.
        table: of batches.
        reorder: put the rows into that order; else they are in it already.
    """
    base, index_only = dataset.manifest, job.options.index_only
    index_of = stores_of(dataset, job.stores) if index_only else None  # where the tokens are that are not written
    if index_only and not dataset.has_segments:
        raise no_segments(dataset.place)
    if index_of is not None:
        index_names(index_of, job.options.output)
    output = job.begin(record, known={"rows": base.ledger.rows, "tokens": base.ledger.output})
    if isinstance(output, DatasetResult):
        return output
    atom_size = record.atom_size if reorder and record is not None else None
    plans = stored_plans(dataset, atom_size)
    shuffles: Sequence[AtomShuffle | None] = [None] * len(plans)
    if reorder and record is not None:
        shuffles = stored_shuffles(plans, base.shuffle, seed=record.seed, epoch=record.epoch)
    lengths = dataset.lengths() if dataset.has_segments else None
    written = job.write(
        output,
        ShardForm(lengths, base.options["shard_tokens"], lengths is not None, with_tokens=not index_only),
        [
            BucketJob(plan.bucket.entry.directory, PackedSource(plan, base.pad_id), shuffle)
            for plan, shuffle in zip(plans, shuffles, strict=True)
        ],
        (file for file in dataset.files() if not index_only or not file.entry.name.startswith(("tokens", "loss"))),
    )
    buckets, tallies = written.buckets, written.tallies
    if tallies:  # a shuffle moves tokens, and changes none of their accounts
        remedy, where = "run packtool verify on it, and make it again", str(dataset.place)
        has_loss = any(tally.trained for tally in tallies)  # what trains is not counted where no tokens are written
        require_counted(base.ledger, tallies, has_loss=has_loss, remedy=remedy, where=where)
    options = base.options if atom_size is None else {**base.options, "atom_size": atom_size}
    if record is not None and not draws(strategy(base.strategy), options):  # it was for epochs, and the order has one
        options = {name: value for name, value in options.items() if name != "seed"}
    manifest = msgspec.structs.replace(base, packtool_version=__version__, options=options, shuffle=record)
    mix = source_mix(output, buckets, dataset.dtype, base.store_documents, record)
    report = _report(dataset, manifest, plans, tallies, mix)
    chosen = dataset.chosen()
    manifest = msgspec.structs.replace(
        manifest,
        lengths=None if lengths is None else write_array(output.staged / LENGTHS, np.asarray(lengths)),
        choice=with_documents(base.choice, None if chosen is None else np.concatenate(chosen), output),
        report=manifests.write_report(output.staged, report),
        buckets=buckets,
        batches=None if table is None else write_array(output.staged / BATCHES, table),
        tokenizer_files=copy_tokenizer(dataset.place, base.tokenizer_files, output.staged),
        **index_fields(index_of, output, has_loss=base.has_loss),
    )
    stores = manifests.input_names(dataset.place, base.inputs)  # as in the manifest
    return job.finish(output, manifest, report, {"inputs": stores, **_counted(table)})


def _counted(table: npt.NDArray[Any] | None) -> dict[str, int]:
    """Count the batches, if there are any."""
    return {} if table is None else {"batches": len(table)}


def _report(
    dataset: PackedDataset,
    manifest: PackedManifest,
    plans: Sequence[StoredPlan],
    tallies: Sequence[Tally],
    mix: Sequence[BatchMix],
) -> PackedReport:
    """Make the report of the shuffled rows.

    Without segments nothing can be counted again, but where whole rows moved the counts are what they were.
    """
    before = read_report(dataset.place, manifest)  # the manifest still has the one of the source
    if not tallies and all(plan.unit == plan.sequence_length for plan in plans):
        return msgspec.structs.replace(before, options=msgspec.to_builtins(manifest.options), shuffle=manifest.shuffle)
    return report_of_rows(
        tallies,
        manifest.ledger,
        strategy=manifest.strategy,
        options=manifest.options,
        shuffle=manifest.shuffle,
        sources=before.sources,
        source_mix=mix,
    )


def _write_partial(job: DatasetJob, record: Shuffle, sequence_length: int, remainder: str) -> DatasetResult:
    """Write the rows of one epoch.

    Raises:
        UsageError: there are too few tokens for one batch.
    """
    assert record.batch_size is not None
    corpus, short_rows, lanes = Corpus(job.inputs), remainder == "pad", record.batch_size
    partial.lane_tokens(corpus.tokens, lanes, 1 if short_rows else sequence_length)  # raises what the plan would
    options = {
        "sequence_length": sequence_length,
        "remainder": remainder,
        "pad_id": corpus.tokenizer.eos_id,
        "shard_tokens": PackArguments.shard_tokens,
        "segments": True,
    }
    output = job.begin(record, options, known={"documents": corpus.documents, "tokens": corpus.tokens})
    if isinstance(output, DatasetResult):
        return output
    with job.budget.arrays_for(corpus.documents, output.scratch) as arrays:
        corpus.work_in(arrays)
        plan = partial.plan(
            corpus.lengths(),
            sequence_length=sequence_length,
            batch_size=lanes,
            seed=record.seed,
            epoch=record.epoch,
            short_rows=short_rows,
            arrays=arrays,
        )
        return write_corpus(job, output, corpus, [plan], [None], strategy="concat", options=options, order=record)
