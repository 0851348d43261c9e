"""Write the rows of a packed dataset again: in another order, with or without their tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from packtool.commands.count_rows import rows_without_target, source_mix
from packtool.commands.dataset_job import DatasetJob, DatasetResult, with_documents
from packtool.commands.document_origins import stores_of
from packtool.formats import manifest as manifests
from packtool.formats.names import BATCHES, LENGTHS, REPORT
from packtool.formats.packed import PackedDataset
from packtool.formats.schema import FORMAT_VERSION, Bucket, KeptColumn, Options, PackedManifest, Shuffle
from packtool.formats.segment_table import no_segments
from packtool.outputs.output import Output
from packtool.outputs.tokenizer_files import copy_tokenizer
from packtool.places.npy import FileEntry
from packtool.places.place import MappedFile, Place
from packtool.planning import packing
from packtool.planning.metrics.ledger import require_counted
from packtool.planning.metrics.mixing import BatchShares
from packtool.planning.metrics.tally import Tally
from packtool.planning.packing.strategy import draws
from packtool.planning.plan import I64
from packtool.planning.shuffling.atom import AtomShuffle
from packtool.report.dataset_report import counted_report, packed_sources, read_report
from packtool.report.types import PackedReport
from packtool.rows.stored_plan import StoredPlan, stored_plans, stored_shuffles
from packtool.rows.stored_tokens import names_for, store_places
from packtool.rows.unit_source import PackedSource
from packtool.support.version import __version__
from packtool.writing.shards import Shards, write_shards


def write_rows(
    job: DatasetJob, dataset: PackedDataset, order: Shuffle | None, table: npt.NDArray[Any] | None
) -> DatasetResult:
    """Write the rows of each bucket, and all that goes with them.

    Args:
        order: the order that the rows are put into; None if they keep theirs.
        table: of batches.
    """
    base = dataset.manifest
    index_of = None  # where the tokens are that are not written
    if job.options.index_only:
        index_of = stores_of(dataset, job.stores)
        if not dataset.has_segments:
            raise no_segments(dataset.place)
        names_for(index_of, str(job.options.output))  # raises what naming them in the manifest would
    key = job.key(order or base.shuffle)
    with job.open_output(key) as output:
        if output.preview:
            known = {"rows": base.ledger.rows, "tokens": base.ledger.output}
            return DatasetResult.previewed(output, job.options, known)
        if output.finished:
            return job.kept(output)
        return _write(job, output, dataset, order, table, index_of)


def _write(
    job: DatasetJob,
    output: Output,
    dataset: PackedDataset,
    order: Shuffle | None,
    table: npt.NDArray[Any] | None,
    index_of: Sequence[Place] | None,
) -> DatasetResult:
    """Write the rows into a claimed output.

    Args:
        order, table: as in `write_rows`.
        index_of: the stores that keep the tokens, for a dataset of an index only; None to write the tokens.
    """
    base = dataset.manifest
    record, atom_size = base.shuffle, None
    if order is not None:
        record, atom_size = order, order.atom_size
    plans = stored_plans(dataset, atom_size)
    lengths = dataset.lengths() if dataset.has_segments else None
    buckets, tallies = _write_shards(job, output, dataset, plans, order, with_tokens=index_of is None)
    if tallies:  # a shuffle moves tokens, and changes none of their accounts
        remedy, where = "run packtool verify on it, and make it again", str(dataset.place)
        require_counted(base.ledger, tallies, has_loss=_has_loss(tallies), remedy=remedy, where=where)
    manifest = msgspec.structs.replace(
        base,
        format_version=FORMAT_VERSION,
        packtool_version=__version__,
        options=_options(base, record, order),
        shuffle=record,
    )
    mix = source_mix(output, buckets, base.store_documents, record)
    report = _report(dataset, manifest, plans, tallies, mix, moved=order is not None)
    stores = None
    if index_of is not None:
        stores = names_for(index_of, str(output.place))
    manifest = msgspec.structs.replace(
        manifest,
        lengths=_array(output, LENGTHS, lengths),
        choice=with_documents(base.choice, _documents(dataset), output),
        report=output.file(REPORT, manifests.encode(report)),
        buckets=buckets,
        batches=_array(output, BATCHES, table),
        tokenizer_files=copy_tokenizer(dataset.place, base.tokenizer_files, output),
        stores=stores,
        columns=_columns(dataset, output),
    )
    if base.index_only:
        store_places(dataset, job.stores)  # once more: the stores that the rows were gathered from may be others by now
    facts: dict[str, Any] = {"inputs": manifests.input_names(dataset.place, base.inputs)}  # as in the manifest
    if table is not None:
        facts["batches"] = len(table)
    return job.finish(output, manifest, report, facts)


def _write_shards(
    job: DatasetJob,
    output: Output,
    dataset: PackedDataset,
    plans: Sequence[StoredPlan],
    order: Shuffle | None,
    *,
    with_tokens: bool,
) -> tuple[list[Bucket], list[Tally]]:
    """Write the shards of each plan's rows; return what they are, and what was counted in them."""
    base = dataset.manifest
    shuffles: Sequence[AtomShuffle | None] = [None] * len(plans)
    if order is not None:
        shuffles = stored_shuffles(plans, base.shuffle, seed=order.seed, epoch=order.epoch)
    shards = Shards(
        lengths=dataset.lengths() if dataset.has_segments else None,
        shard_tokens=base.options["shard_tokens"],
        multiple=base.multiple,
        with_segments=dataset.has_segments,
        with_tokens=with_tokens,
    )
    return write_shards(
        output,
        [PackedSource(plan, base.pad_id) for plan in plans],
        shuffles,
        shards,
        job.budget,
        by_length=any(plan.bucket.shards.entry.directory for plan in plans),
        checked=job.checked(_files_read(dataset, tokens=with_tokens)),
        label=job.command,
        quiet=job.options.quiet,
    )


def _has_loss(tallies: Sequence[Tally]) -> bool:
    """Return whether it was counted which tokens train; it is not where no tokens are written."""
    return any(tally.trained for tally in tallies)


def _files_read(dataset: PackedDataset, *, tokens: bool) -> Iterator[MappedFile]:
    """Yield the files of a dataset that are read to write its rows again, with or without their tokens."""
    for file in dataset.files():
        if tokens or not file.entry.name.startswith(("tokens", "loss")):
            yield file


def _options(base: PackedManifest, record: Shuffle | None, order: Shuffle | None) -> Options:
    """Return the options of the rows in their new order.

    Args:
        record: the order that the rows are in.
        order: the order that the rows are put into now; None if they keep theirs.
    """
    options = dict(base.options)
    if order is not None and order.atom_size is not None:
        options["atom_size"] = order.atom_size
    drawn = draws(packing.strategy(base.strategy), mixed="mix_rows" in options, reordered="epoch" in options)
    if record is not None and not drawn:
        options.pop("seed", None)  # The shuffle records the seed now.
    return options


def _documents(dataset: PackedDataset) -> I64 | None:
    """Return the documents that were chosen of all stores, one store after the other; None if all were chosen."""
    chosen = dataset.chosen()
    if chosen is None:
        return None
    return np.concatenate(chosen)


def _columns(dataset: PackedDataset, output: Output) -> list[KeptColumn]:
    """Write the columns that were kept of the documents, as they are, and return their entries for the manifest."""
    columns = dataset.columns
    for name, entry in columns.entries.items():
        output.array(entry.values.name, np.asarray(columns.values(name)))
        if entry.categories is not None:
            output.file(entry.categories.name, dataset.place.checked(entry.categories))
    return dataset.manifest.columns


def _array(output: Output, name: str, array: npt.ArrayLike | None) -> FileEntry | None:
    """Write an array that may not be there."""
    if array is None:
        return None
    return output.array(name, np.asarray(array))


def _report(
    dataset: PackedDataset,
    manifest: PackedManifest,
    plans: Sequence[StoredPlan],
    tallies: Sequence[Tally],
    mix: Sequence[BatchShares],
    *,
    moved: bool,
) -> PackedReport:
    """Make the report of the shuffled rows.

    Without segments nothing can be counted again, but where whole rows moved the counts are what they were.

    Args:
        moved: the rows, or parts of them, have another order than before.
    """
    before = read_report(dataset.place, manifest)  # the manifest still has the one of the source
    whole = not moved or all(plan.unit == plan.sequence_length for plan in plans)
    if whole and not tallies:
        return before
    sources, trained = before.sources, manifest.ledger.trained_stored
    without_target: int | msgspec.UnsetType = msgspec.UNSET
    if tallies and (_has_loss(tallies) or not manifest.has_loss):
        without_target = rows_without_target(tallies)
    elif whole:
        without_target = before.rows_without_target
    if tallies:
        lengths = tallies[0].lengths
        sources = packed_sources(manifest.inputs, manifest.store_documents, lengths, manifest.choice, trained=trained)
    report = msgspec.structs.replace(
        before,
        sources=sources,
        source_mix=list(mix),
        neighbours=before.neighbours if whole else None,
        rows_without_target=without_target,
    )
    return counted_report(report, tallies)
