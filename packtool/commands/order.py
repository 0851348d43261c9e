"""Write an order as plain arrays, for readers without packtool; with it, `dataset.epoch(n)` computes the same order.

Files are whole or not there, and `run.json` comes last; a lock keeps other runs out meanwhile. There is no manifest: an
order is not a dataset.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from packtool.commands.dataset_job import DatasetJob, DatasetResult
from packtool.errors import DataError, UsageError
from packtool.formats import manifest as manifests
from packtool.formats.files import NpyWriter, write_array, write_bytes
from packtool.formats.names import BATCHES, LOCK, ORDER_FILE, UNFINISHED
from packtool.formats.packed import PackedDataset
from packtool.formats.schema import Shuffle
from packtool.formats.segment_table import no_segments
from packtool.outputs import lock
from packtool.outputs.claim import key_of, require_apart
from packtool.outputs.output import State
from packtool.places.local import PARTIAL, LocalPlace
from packtool.places.typed import place_of
from packtool.planning.shuffling.balance import dealt_order, pairs_of
from packtool.support.temporary import temporary_directory
from packtool.support.version import __version__
from packtool.writing.input_check import InputCheck
from packtool.writing.stored_plan import StoredPlan, stored_plans, stored_shuffles
from packtool.writing.two_passes import order_parts

_OURS = re.compile(rf"((bucket-\d{{5,}}/)?{ORDER_FILE}|{BATCHES}|{manifests.RUN})({re.escape(PARTIAL)})?")


def write_order(
    job: DatasetJob, dataset: PackedDataset, record: Shuffle, table: npt.NDArray[Any] | None
) -> DatasetResult:
    """Write the order of the rows of each length, and the batches where there are any.

    Args:
        record: how the rows are shuffled; where it names ranks, the rows of each global batch are dealt to them.
        table: of batches.

    Raises:
        UsageError: the output is a URL, or holds anything but an order that may be replaced.
    """
    plans = stored_plans(dataset, record.atom_size)
    if record.ranks is not None:
        _require_rows(dataset, plans)
    key, output = key_of(__version__, record, "order", job.input_entries()), place_of(job.options.output)
    if job.options.dry_run:
        known = {"rows": dataset.manifest.ledger.rows, "tokens": dataset.manifest.ledger.output}
        return DatasetResult.previewed(job.command, job.options, output, key, known)
    require_apart(output, job.options, map(str, job.inputs))
    if not isinstance(output, LocalPlace):
        what, remedy = "an order is written to a directory of this machine", "give one, and copy the files from there"
        raise UsageError("unsupported-store", what, remedy=remedy, where=str(output))
    try:
        with lock.held(output.path / UNFINISHED, job.command, str(output)):
            if _is_there(job, output, State(job.command, key)):
                return DatasetResult(path=output.path, run=manifests.read_run(output), kept=True)
            _write(job, output.path, dataset, plans, record, table)
            facts = {"command": job.command, "key": key, "written": job.clock.seconds()}
            write_bytes(output.path / manifests.RUN, manifests.encode(facts))
    except OSError as error:
        what, where = f"can't be written ({error.strerror})", str(output)
        raise DataError("output-not-writable", what, remedy="choose another", where=where) from None
    return DatasetResult(path=output.path, run=facts)


def _write(
    job: DatasetJob,
    path: Path,
    dataset: PackedDataset,
    plans: Sequence[StoredPlan],
    record: Shuffle,
    table: npt.NDArray[Any] | None,
) -> None:
    shuffles = stored_shuffles(plans, dataset.manifest.shuffle, seed=record.seed, epoch=record.epoch)
    for plan, shuffle in zip(plans, shuffles, strict=True):
        directory = path / plan.bucket.entry.directory
        directory.mkdir(parents=True, exist_ok=True)
        with (
            temporary_directory() as scratch,
            NpyWriter(directory / ORDER_FILE, "<i8", (shuffle.atoms,)) as out,
        ):
            parts = order_parts(shuffle, job.budget.memory, scratch)
            if record.ranks is not None and record.global_batch is not None:
                segments, multiple = plan.segments, dataset.manifest.multiple
                parts = dealt_order(
                    parts,
                    lambda rows: pairs_of(segments(rows), multiple),  # noqa: B023
                    record.ranks,
                    record.global_batch,
                )
            for part in parts:
                out.write(part)
            out.close()
    if table is not None:
        write_array(path / BATCHES, table)
    if job.options.check_input:  # apart from numbers in the manifest, an order is made of the lists of atoms alone
        with InputCheck(dataset.atom_files()) as check:
            check.require_sound()


def _is_there(job: DatasetJob, output: LocalPlace, state: State) -> bool:
    """Return whether an earlier run wrote this order; remove another one where that was asked for.

    Raises:
        UsageError: anything else is there.
    """
    names = set(output.names()) - {f"{UNFINISHED}/{LOCK}"}
    for name in sorted(names):
        if not _OURS.fullmatch(name):
            what, remedy = f"holds {name}, which is not a file of an order", "move it away, or choose another output"
            raise UsageError("output-has-other-files", what, remedy=remedy, where=str(output))
    if not names:
        return False
    if job.options.resume and manifests.RUN in names:
        written = manifests.read_run(output)
        if state.same(State(str(written.get("command")), str(written.get("key")))):
            return True
        what, remedy = "an order made with other options or inputs", "give --overwrite to replace it"
        raise UsageError("resume-differs", what, remedy=remedy, where=str(output))
    if not job.options.resume and not job.options.overwrite:
        what, remedy = "holds an order already", "give --overwrite to replace it"
        raise UsageError("output-not-empty", what, remedy=remedy, where=str(output))
    for name in (manifests.RUN, *names):
        (output.path / name).unlink(missing_ok=True)
    return False


def _require_rows(dataset: PackedDataset, plans: Sequence[StoredPlan]) -> None:
    """Require whole rows that move one by one, since only these can be dealt, and segments, which tell their cost."""
    where = str(dataset.place)
    if len(plans) > 1 or any(plan.unit != plan.sequence_length or plan.movable_atoms < plan.rows - 1 for plan in plans):
        what = "its rows do not move one by one, so an order can't deal them to ranks"
        raise UsageError("atoms-fixed", what, remedy='read it with Loader(balance="step")', where=where)
    if not dataset.has_segments:
        raise no_segments(dataset.place)
