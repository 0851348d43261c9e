"""The partial shuffle of a token store: rows of a rotated stream, or new rotations of rows that it made before."""

from __future__ import annotations

import numpy as np

from packtool.arrays import IN_MEMORY, Arrays
from packtool.commands.dataset_job import DatasetJob, DatasetResult
from packtool.commands.write_corpus import write_corpus
from packtool.errors import UsageError
from packtool.options.pack import PackArguments
from packtool.shuffling import partial
from packtool.storage import manifest as manifests
from packtool.storage.files import write_array
from packtool.storage.names import ORDER_FILE
from packtool.storage.packed import PackedDataset
from packtool.storage.schema import OrderManifest, Shuffle
from packtool.storage.token_store import Corpus
from packtool.writing.planning import bytes_of_plans
from packtool.writing.stored_plan import lane_of


def write_partial(job: DatasetJob, record: Shuffle, sequence_length: int, remainder: str) -> DatasetResult:
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

    def plan(arrays: Arrays = IN_MEMORY) -> partial.PartialPlan:
        return partial.plan(
            corpus.lengths(),
            sequence_length=sequence_length,
            batch_size=lanes,
            seed=record.seed,
            epoch=record.epoch,
            short_rows=short_rows,
            arrays=arrays,
        )

    def figures() -> dict[str, int]:
        kept, planned = corpus.stores[0].manifest.tokenizer_files, plan()
        size = bytes_of_plans(
            [planned],
            0 if job.options.index_only else corpus.dtype.itemsize + corpus.has_loss,
            corpus.documents,
            kept,
            segments=True,
        )
        return {"rows": planned.rows, "tokens": planned.rows * sequence_length, "bytes": size}

    output = job.begin(record, options, figures=figures)
    if isinstance(output, DatasetResult):
        return output
    with job.budget.arrays_for(corpus.documents, output.scratch) as arrays:
        if arrays is not IN_MEMORY:
            corpus.work_in(arrays)
        return write_corpus(
            job,
            output,
            corpus,
            [plan(arrays)],
            [None],
            strategy="concat",
            multi_bucket=False,
            options=options,
            record=record,
        )


def write_rotation(job: DatasetJob, dataset: PackedDataset, record: Shuffle, sequence_length: int) -> DatasetResult:
    """Write how one epoch rotates the lanes of a dataset that this shuffle made: a number for each.

    Raises:
        UsageError: the dataset has other rows or batches.
    """
    stored, rows = dataset.manifest.shuffle, dataset.buckets[0].sequence_length
    assert stored is not None
    assert record.batch_size is not None
    lanes = record.batch_size
    for recorded, given, where in (
        (stored.batch_size, lanes, "--batch-size"),
        (rows, sequence_length, "--sequence-length"),
    ):
        if recorded != given:
            what = f"{given}, but the dataset was made with {recorded}"
            raise UsageError("bad-option", what, remedy="give the same, or shuffle the token store anew", where=where)
    figures = {"lanes": lanes, "bytes": 8 * lanes}
    place = job.begin(record, "order", figures=lambda: figures)
    if isinstance(place, DatasetResult):
        return place
    drawn = partial.rotations(lanes, lane_of(dataset.manifest), seed=record.seed, epoch=record.epoch)
    place.finish(
        OrderManifest(
            base=manifests.input_entry(dataset.place),
            shuffle=record,
            orders=[write_array(place.staged / ORDER_FILE, drawn.astype(np.dtype("<i8")))],
        ),
        job.facts(),
    )
    return DatasetResult(path=place.shown, run=job.facts())
