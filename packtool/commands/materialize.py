"""`materialize`: write the tokens of an index-only dataset, or drop tokens that its stores still hold."""

from __future__ import annotations

from dataclasses import replace

from packtool.commands.dataset_job import DatasetResult, dataset_job
from packtool.commands.stored_rows import write_rows
from packtool.formats.known import KnownDataset, Lookup
from packtool.formats.schema import PackedManifest
from packtool.formats.segment_table import no_segments
from packtool.options.shuffle import MaterializeArguments
from packtool.options.signature import takes
from packtool.places.typed import place_of
from packtool.rows.stored_tokens import open_packed


def makes(options: MaterializeArguments, look: Lookup) -> KnownDataset:
    """Check what is needed of the source; return what is known of the dataset that is made of it."""
    source = look(options.source)
    source.require_kind(PackedManifest)
    assert source.rows is not None
    if options.index_only and not source.rows.segments:
        raise no_segments(source.place)
    rows = replace(source.rows, index_only=options.index_only)
    return replace(source, place=place_of(options.output), rows=rows)


@takes(MaterializeArguments)
def materialize(options: MaterializeArguments) -> DatasetResult:
    """Write the rows of a packed dataset with their tokens, or without them, in the order they have.

    Either way the files equal, byte for byte, the files that `pack` would have written.

    Raises:
        UsageError: not a packed dataset; a dataset without tokens that lacks its segments or its stores.
        DataError: the dataset or a store is missing, has changed, or is damaged; the disk is full.
    """
    with dataset_job("materialize", options, options.source, options.store) as job:
        dataset = open_packed(job.inputs[0], job.stores)
        return write_rows(job, dataset, None, dataset.batches())
