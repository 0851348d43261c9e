"""Write the rows of a packed dataset again: in another order, with or without their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from packtool.commands.count_rows import source_mix
from packtool.commands.dataset_job import (
    DatasetJob,
    DatasetResult,
    index_fields,
    index_names,
    with_documents,
)
from packtool.commands.document_origins import stores_of
from packtool.formats import manifest as manifests
from packtool.formats.names import BATCHES, LENGTHS, REPORT
from packtool.formats.packed import PackedDataset
from packtool.formats.schema import PackedManifest, Shuffle
from packtool.formats.segment_table import no_segments
from packtool.outputs.output import Output
from packtool.outputs.tokenizer_files import copy_tokenizer
from packtool.places.place import Place
from packtool.planning import packing
from packtool.planning.metrics.ledger import require_counted
from packtool.planning.metrics.mixing import BatchMix
from packtool.planning.metrics.tally import Tally
from packtool.planning.packing.strategy import draws
from packtool.planning.shuffling.atom import AtomShuffle
from packtool.report.packed import read_report, report_of_rows
from packtool.report.schema import PackedReport
from packtool.support.version import __version__
from packtool.writing.shards import write_shards
from packtool.writing.source import PackedSource
from packtool.writing.stored_plan import StoredPlan, stored_plans, stored_shuffles


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
    key = job.key(record)
    with job.open_output(key) as output:
        if output.preview:
            return job.previewed(output, {"rows": base.ledger.rows, "tokens": base.ledger.output})
        if output.finished:
            return job.kept(output)
        return _write(job, output, dataset, record, table, index_of, reorder=reorder)


def _write(
    job: DatasetJob,
    output: Output,
    dataset: PackedDataset,
    record: Shuffle | None,
    table: npt.NDArray[Any] | None,
    index_of: Sequence[Place] | None,
    *,
    reorder: bool,
) -> DatasetResult:
    """Write the rows into a claimed output.

    Args:
        record, table, reorder: as in `write_rows`.
        index_of: the stores that keep the tokens; None to write them.
    """
    base = dataset.manifest
    atom_size = record.atom_size if reorder and record is not None else None
    plans = stored_plans(dataset, atom_size)
    shuffles: Sequence[AtomShuffle | None] = [None] * len(plans)
    if reorder and record is not None:
        shuffles = stored_shuffles(plans, base.shuffle, seed=record.seed, epoch=record.epoch)
    lengths = dataset.lengths() if dataset.has_segments else None
    buckets, tallies = write_shards(
        output,
        [PackedSource(plan, base.pad_id) for plan in plans],
        shuffles,
        lengths,
        job.budget,
        by_length=any(plan.bucket.entry.directory for plan in plans),
        shard_tokens=base.options["shard_tokens"],
        multiple=base.multiple,
        with_segments=lengths is not None,
        with_tokens=index_of is None,
        checked=job.checked(
            file for file in dataset.files() if index_of is None or not file.entry.name.startswith(("tokens", "loss"))
        ),
        label=job.command,
        quiet=job.options.quiet,
    )
    if tallies:  # a shuffle moves tokens, and changes none of their accounts
        remedy, where = "run packtool verify on it, and make it again", str(dataset.place)
        has_loss = any(tally.trained for tally in tallies)  # what trains is not counted where no tokens are written
        require_counted(base.ledger, tallies, has_loss=has_loss, remedy=remedy, where=where)
    options = base.options if atom_size is None else {**base.options, "atom_size": atom_size}
    drawn = draws(packing.strategy(base.strategy), mixed="mix_rows" in options, reordered="epoch" in options)
    if record is not None and not drawn:
        # It was the seed of epochs to come; now the order has one.
        options = {name: value for name, value in options.items() if name != "seed"}
    manifest = msgspec.structs.replace(base, packtool_version=__version__, options=options, shuffle=record)
    mix = source_mix(output, buckets, dataset.dtype, base.store_documents, record)
    report = _report(dataset, manifest, plans, tallies, mix)
    chosen = dataset.chosen()
    manifest = msgspec.structs.replace(
        manifest,
        lengths=None if lengths is None else output.array(LENGTHS, np.asarray(lengths)),
        choice=with_documents(base.choice, None if chosen is None else np.concatenate(chosen), output),
        report=output.file(REPORT, manifests.encode(report)),
        buckets=buckets,
        batches=None if table is None else output.array(BATCHES, table),
        tokenizer_files=copy_tokenizer(dataset.place, base.tokenizer_files, output),
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
        stages=before.stages,
    )
