"""Write an order as plain arrays, for readers without packtool; with it, `dataset.epoch(n)` computes the same order.

An order is written as datasets are, but it is none, and has no manifest: its last file is `run.json`, which lists the
others.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from packtool.commands.dataset_job import DatasetJob, DatasetResult
from packtool.errors import UsageError
from packtool.formats import manifest as manifests
from packtool.formats.files import NpyWriter
from packtool.formats.names import BATCHES, ORDER_FILE
from packtool.formats.packed import PackedDataset
from packtool.formats.schema import InputEntry, OrderRecord, Shuffle
from packtool.outputs.claim import key_of, open_output
from packtool.outputs.output import Output
from packtool.places.local import LocalPlace
from packtool.places.npy import FileEntry
from packtool.places.typed import place_of
from packtool.planning.shuffling.atom import AtomShuffle
from packtool.support.temporary import own_directory
from packtool.support.version import __version__
from packtool.writing.input_check import InputCheck
from packtool.writing.stored_plan import StoredPlan, stored_plans, stored_shuffles
from packtool.writing.two_passes import order_parts


def write_order(
    job: DatasetJob, dataset: PackedDataset, record: Shuffle, table: npt.NDArray[Any] | None
) -> DatasetResult:
    """Write the order of the rows of each length, and the batches where there are any.

    Args:
        record: how the rows are shuffled.
        table: of batches.

    Raises:
        UsageError: the output is a URL, or holds anything but an order that may be replaced.
    """
    plans = stored_plans(dataset, record.atom_size)
    key, place = key_of(__version__, record, "order", job.input_entries()), place_of(job.options.output)
    rows = dataset.manifest.ledger.rows
    if not isinstance(place, LocalPlace) and not job.options.dry_run:
        what, remedy = "an order is written to a directory of this machine", "give one, and copy the files from there"
        raise UsageError("unsupported-store", what, remedy=remedy, where=str(place))
    with open_output(place, job.command, job.options, key=key, inputs=map(str, job.inputs)) as output:
        if output.preview:
            return job.previewed(output, {"rows": rows, "tokens": dataset.manifest.ledger.output})
        if output.finished:
            return DatasetResult(path=place.shown, run=manifests.read_run(place), kept=True)
        files = _write(job, output, dataset, plans, record, table)
        order = OrderRecord(rows=rows, epoch=record.epoch, files=files)
        facts = {"written": job.clock.seconds()}
        output.finish_order(order, facts)
    return DatasetResult(path=place.shown, run=facts)


def _write(
    job: DatasetJob,
    output: Output,
    dataset: PackedDataset,
    plans: Sequence[StoredPlan],
    record: Shuffle,
    table: npt.NDArray[Any] | None,
) -> list[InputEntry]:
    """Write all files but the last one; return their entries."""
    shuffles = stored_shuffles(plans, dataset.manifest.shuffle, seed=record.seed, epoch=record.epoch)
    files = []
    for plan, shuffle in zip(plans, shuffles, strict=True):
        directory = plan.bucket.entry.directory
        name = f"{directory}/{ORDER_FILE}" if directory else ORDER_FILE
        with own_directory(output.scratch, "order.") as attempt:
            entry = _write_one(job, shuffle, attempt)
            output.put(name, attempt / ORDER_FILE, entry.xxh3_128)
        files.append(InputEntry(name, entry.bytes, entry.xxh3_128))
    if table is not None:
        entry = output.array(BATCHES, table)
        files.append(InputEntry(BATCHES, entry.bytes, entry.xxh3_128))
    if job.options.check_input:  # apart from numbers in the manifest, an order is made of the lists of atoms alone
        with InputCheck(dataset.atom_files()) as check:
            check.require_sound()
    return files


def _write_one(job: DatasetJob, shuffle: AtomShuffle, attempt: Path) -> FileEntry:
    """Write the order of the rows of one length to a directory, which holds its partitions on the way, too."""
    with NpyWriter(attempt / ORDER_FILE, "<i8", (shuffle.atoms,)) as out:
        parts = order_parts(shuffle, job.budget.memory, attempt)
        for part in parts:
            out.write(part)
        return out.close()
