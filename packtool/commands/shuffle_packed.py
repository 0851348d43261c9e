"""`shuffle` of a packed dataset: permute its atoms, then write the rows, or the order alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from packtool import __version__
from packtool.commands.count_rows import source_mix
from packtool.commands.dataset_job import DatasetJob, DatasetResult
from packtool.commands.document_origins import stores_of
from packtool.commands.write_corpus import copied_choice, index_fields
from packtool.errors import UsageError
from packtool.metrics.ledger import require_counted
from packtool.metrics.mixing import BatchMix
from packtool.metrics.tally import Tally
from packtool.packing.strategy import require_fit
from packtool.places.place import MappedFile
from packtool.report.packed import read_report, report_of_rows
from packtool.report.schema import PackedReport
from packtool.shuffling.atom import AtomShuffle
from packtool.shuffling.balance import dealt_order, pairs_of
from packtool.shuffling.bucket import batches
from packtool.storage import manifest as manifests
from packtool.storage.files import NpyWriter, write_array
from packtool.storage.names import BATCHES, LENGTHS, ORDER_FILE
from packtool.storage.packed import PackedDataset
from packtool.storage.schema import OrderManifest, PackedManifest, Shuffle, listed
from packtool.storage.segment_table import no_segments
from packtool.storage.tokenizer_files import copy_tokenizer
from packtool.writing.input_check import InputCheck
from packtool.writing.planning import ORDER_REST_BYTES, REST_BYTES
from packtool.writing.shards import BucketJob, ShardForm
from packtool.writing.source import PackedSource
from packtool.writing.stored_plan import StoredPlan, stored_atom_size, stored_plans, stored_shuffles
from packtool.writing.two_passes import order_parts


def require_atoms(dataset: PackedDataset, atom_size: int | None) -> None:
    """Make sure that the dataset still has its atoms, or can have others.

    Raises:
        UsageError: naming the command that can do it.
    """
    manifest, where = dataset.manifest, str(dataset.place)
    if manifest.shuffle is not None and manifest.shuffle.method == "partial":
        raise UsageError(
            "partial-shuffled",
            "made by the partial shuffle: its rows continue each other from batch to batch, which no other order keeps",
            remedy="make another epoch from the token store, with packtool shuffle STORE --method partial --epoch N",
            where=where,
        )
    stored = stored_atom_size(dataset)
    if atom_size is None or atom_size == stored:
        return
    if stored is None:
        what = "rows of several lengths move one by one"
        raise UsageError("atoms-fixed", what, remedy="leave --atom-size out", where="--atom-size")
    if manifest.strategy != "concat":
        raise UsageError(
            "atoms-fixed",
            f"packed with --strategy {manifest.strategy} in atoms of {stored} tokens, which are whole pieces of text",
            remedy="leave --atom-size out, or pack again with packtool pack --atom-size",
            where="--atom-size",
        )
    require_fit(atom_size, dataset.buckets[0].sequence_length)
    if manifest.shuffle is not None:
        raise UsageError(
            "atoms-fixed",
            f"shuffled already in atoms of {stored} tokens; others need the stream in corpus order",
            remedy="shuffle what packtool pack --no-shuffle writes, or pack again with packtool pack --atom-size",
            where="--atom-size",
        )


def with_batches(
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


def write_order(
    job: DatasetJob, dataset: PackedDataset, record: Shuffle, table: npt.NDArray[Any] | None
) -> DatasetResult:
    """Write the order of each bucket."""
    plans = stored_plans(dataset, record.atom_size)
    if record.ranks is not None:
        _require_rows(dataset, plans)
    atoms = sum(plan.movable_atoms for plan in plans)
    place = job.begin(record, "order", figures=lambda: {"atoms": atoms, "bytes": 8 * atoms + ORDER_REST_BYTES})
    if isinstance(place, DatasetResult):
        return place
    entries = []
    shuffles = stored_shuffles(plans, dataset.manifest.shuffle, seed=record.seed, epoch=record.epoch)
    for plan, shuffle in zip(plans, shuffles, strict=True):
        directory = plan.bucket.entry.directory
        (place.staged / directory).mkdir(exist_ok=True)
        with NpyWriter(place.staged / directory / ORDER_FILE, "<i8", (shuffle.atoms,)) as out:
            parts = order_parts(shuffle, job.budget.memory, place.scratch)
            if record.ranks is not None and record.global_batch is not None:
                segments = plan.segments
                parts = dealt_order(parts, lambda rows: pairs_of(segments(rows)), record.ranks, record.global_batch)  # noqa: B023
            for part in parts:
                out.write(part)
            entry = out.close()
            entries.append(msgspec.structs.replace(entry, name=str(Path(directory, entry.name))))
    if job.options.check_input:  # beside the numbers in the manifest, an order is made of the lists of atoms alone
        with InputCheck(dict(enumerate(dataset.atom_files()))) as check:
            check.require_sound()
    manifest = OrderManifest(
        base=manifests.input_entry(dataset.place),
        shuffle=record,
        orders=entries,
        batches=None if table is None else write_array(place.staged / BATCHES, table),
    )
    run = {**job.facts(), **_counted(table)}
    place.finish(manifest, run)
    return DatasetResult(path=place.shown, run=run)


def _require_rows(dataset: PackedDataset, plans: Sequence[StoredPlan]) -> None:
    """Require whole rows that move one by one, since only these can be dealt, and segments, which tell their cost."""
    where = str(dataset.place)
    if len(plans) > 1 or any(plan.unit != plan.sequence_length or plan.movable_atoms < plan.rows - 1 for plan in plans):
        what = "its rows do not move one by one, so an order can't deal them to ranks"
        raise UsageError("atoms-fixed", what, remedy='read it with Loader(balance="step")', where=where)
    if not dataset.has_segments:
        raise no_segments(dataset.place)


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
        record: how they come into their order, which they have already without `reorder`.
        table: of batches.
        reorder: put them into the order of `record`.
    """
    base, index_only = dataset.manifest, job.options.index_only
    index_of = stores_of(dataset, job.stores) if index_only else None  # where the tokens are that are not written
    if index_only and not dataset.has_segments:
        raise no_segments(dataset.place)
    tokens = sum(bucket.rows * bucket.sequence_length for bucket in dataset.buckets)
    figures = {
        "rows": base.ledger.rows,
        "tokens": tokens,
        "bytes": _bytes_written(dataset, index_only=index_only),
    }
    place = job.begin(record, figures=lambda: figures)
    if isinstance(place, DatasetResult):
        return place
    atom_size = record.atom_size if reorder and record is not None else None
    plans = stored_plans(dataset, atom_size)
    lengths = dataset.lengths() if dataset.has_segments else None
    form = ShardForm(lengths, base.options["shard_tokens"], lengths is not None, with_tokens=not index_only)
    shuffles: Sequence[AtomShuffle | None] = [None] * len(plans)
    if reorder and record is not None:
        shuffles = stored_shuffles(plans, base.shuffle, seed=record.seed, epoch=record.epoch)
    tasks = [
        BucketJob(plan.bucket.entry.directory, PackedSource(plan, base.pad_id), shuffle)
        for plan, shuffle in zip(plans, shuffles, strict=True)
    ]
    written = job.write(place, form, tasks, _files_read(dataset, index_only=index_only))
    if isinstance(written, DatasetResult):
        return written
    buckets, tallies = written.buckets, written.tallies
    if tallies:  # a shuffle moves tokens, and changes none of their accounts
        remedy, where = "run packtool verify on it, and make it again", str(dataset.place)
        has_loss = any(tally.trained for tally in tallies)  # what trains is not counted where no tokens are written
        require_counted(base.ledger, tallies, has_loss=has_loss, remedy=remedy, where=where)
    options = base.options if atom_size is None else {**base.options, "atom_size": atom_size}
    manifest = msgspec.structs.replace(base, packtool_version=__version__, options=options, shuffle=record)
    mix = source_mix(place, buckets, dataset.dtype, base.store_documents, record)
    report = _report(dataset, manifest, plans, tallies, mix)
    stores = manifests.input_names(dataset.place, base.inputs)  # as in the manifest
    run = {**job.facts(), "inputs": stores, **_counted(table)}
    place.finish(
        msgspec.structs.replace(
            manifest,
            lengths=None if lengths is None else write_array(place.staged / LENGTHS, np.asarray(lengths)),
            choice=copied_choice(dataset, place),
            report=manifests.write_report(place.staged, report),
            buckets=buckets,
            batches=None if table is None else write_array(place.staged / BATCHES, table),
            tokenizer_files=copy_tokenizer(dataset.place, base.tokenizer_files, place.staged),
            **index_fields(index_of, place, has_loss=base.has_loss),
        ),
        run,
    )
    return DatasetResult(path=place.shown, report=report, run=run)


def _bytes_written(dataset: PackedDataset, *, index_only: bool) -> int:
    """Estimate how many bytes the rows of a dataset take, with or without their tokens."""
    held = sum(file.bytes for file in listed(dataset.manifest)) + REST_BYTES
    shards = [shard for bucket in dataset.buckets for shard in bucket.entry.shards]
    held -= sum(entry.bytes for shard in shards for entry in (shard.tokens, shard.loss) if entry)
    tokens = sum(bucket.rows * bucket.sequence_length for bucket in dataset.buckets)
    return held if index_only else held + tokens * (dataset.dtype.itemsize + dataset.manifest.has_loss)


def _files_read(dataset: PackedDataset, *, index_only: bool) -> Iterator[MappedFile]:
    """List the files that rows depend on; tokens only if they are written."""
    return (file for file in dataset.files() if not index_only or not file.entry.name.startswith(("tokens", "loss")))


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

    Without segments nothing can be counted anew, but where whole rows moved the counts are what they were.
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
