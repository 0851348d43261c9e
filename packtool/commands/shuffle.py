"""`shuffle`: another order of a packed dataset, or the partial shuffle of a token store."""

from __future__ import annotations

from pathlib import Path

import msgspec

from packtool import shuffling
from packtool.clock import Clock
from packtool.commands.dataset_job import DatasetJob, DatasetResult
from packtool.commands.shuffle_packed import require_atoms, with_batches, write_order, write_rows
from packtool.commands.shuffle_store import write_partial
from packtool.errors import UsageError
from packtool.executor import available_cpus
from packtool.packing.options import LARGEST_ROW
from packtool.shuffling import Method
from packtool.sizes import parse_bytes
from packtool.storage import manifest as manifests
from packtool.storage.manifest import Manifest, PackedManifest, Shuffle, StoreManifest
from packtool.storage.packed import PackedDataset
from packtool.writing.memory import Budget

DEFAULT_SEED = 42


def shuffle(
    source: Path | str,
    output: Path | str,
    *,
    method: str = "atom",
    atom_size: int | None = None,
    batch_size: int | None = None,
    batch_tokens: int | None = None,
    remainder: str | None = None,
    sequence_length: int | None = None,
    seed: int = DEFAULT_SEED,
    epoch: int = 0,
    order_only: bool = False,
    memory: str | int = "1GiB",
    workers: int | None = None,
    overwrite: bool = False,
    resume: bool = False,
    dry_run: bool = False,
    quiet: bool = True,
) -> DatasetResult:
    """Write the rows of a dataset in another order.

    The result depends on the corpus, the options of `pack`, seed and epoch only: a dataset that is shuffled already
    gives the same rows as one in corpus order, and both the same as `pack` with that seed.

    Args:
        source: a packed dataset; for ``partial`` a token store.
        output: directory to write.
        method: a name from `packtool.shuffling.METHODS`.
        atom_size: ``atom``: tokens that move together; other than when packed only for ``concat`` in corpus order.
        batch_size: ``partial``: rows in a batch.
        batch_tokens: ``bucket``: tokens in a batch; a multiple of every row length.
        remainder: ``bucket``: rows of a bucket that fill no batch make a smaller one (``pad``, the default, although
            nothing is padded), or are in no batch (``drop``, counted).
        sequence_length: ``partial``: tokens in a row.
        seed: of every random choice, from 0.
        epoch: another order from the same seed, independent of the others.
        order_only: write the order, to be followed by ``packtool.open(source, order=output)``, and no tokens.
        memory: memory for tokens, in bytes or such as ``1GiB``.
        workers: threads; default one for each CPU. The output does not depend on it.
        overwrite: replace what packtool left in the output.
        resume: keep what an earlier run with the same options and source finished; do the rest.
        dry_run: check the options, and write nothing.
        quiet: no progress bar.

    Raises:
        UsageError: options that make no sense, or that this dataset can't do.
        DataError: the source is missing, unfinished or damaged, or the disk is full.
    """
    chosen = shuffling.method(method)
    options = {
        "atom_size": atom_size,
        "batch_size": batch_size,
        "batch_tokens": batch_tokens,
        "remainder": remainder,
        "sequence_length": sequence_length,
        "order_only": order_only or None,
    }
    shuffling.check(chosen, {name for name, value in options.items() if value is not None})
    _within("--seed", seed, 0, (1 << 64) - 1)
    _within("--epoch", epoch, 0, (1 << 32) - 1)
    for option, value in (("atom-size", atom_size), ("sequence-length", sequence_length), ("batch-size", batch_size)):
        _within(f"--{option}", 1 if value is None else value, 1, LARGEST_ROW)
    if remainder not in (None, "pad", "drop"):
        what = f"{remainder!r} is neither pad nor drop"
        raise UsageError("bad-option", what, remedy="give one of them", where="--remainder")
    job = DatasetJob(
        command="shuffle",
        inputs=[Path(source)],
        output=Path(output),
        budget=Budget(memory=parse_bytes(memory), workers=workers or available_cpus()),
        overwrite=overwrite,
        resume=resume,
        dry_run=dry_run,
        quiet=quiet,
        clock=Clock(),
    )
    _require_kind(chosen, manifests.read(Path(source)), str(source))
    record = Shuffle(method=method, atom_size=atom_size, seed=seed, epoch=epoch, batch_size=batch_size)
    if chosen.source == "store":
        assert sequence_length is not None
        return write_partial(job, record, sequence_length)
    dataset = PackedDataset(source)
    require_atoms(dataset, atom_size)
    if atom_size is None:
        record = msgspec.structs.replace(record, atom_size=dataset.manifest.options.get("atom_size"))
    table = None
    if batch_tokens is not None:
        record, table = with_batches(dataset, record, batch_tokens, keep_rest=remainder != "drop")
    return write_order(job, dataset, record, table) if order_only else write_rows(job, dataset, record, table)


def _within(option: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        what = f"{value} is out of range"
        raise UsageError("bad-option", what, remedy=f"give a number from {low} to {high}", where=option)


def _require_kind(chosen: Method, manifest: Manifest, where: str) -> None:
    found = manifests.called(manifest)
    if chosen.source == "store" and not isinstance(manifest, StoreManifest):
        raise UsageError(
            "not-a-store",
            f"{found}, where --method {chosen.name} needs a token store",
            remedy="give the token store itself, or shuffle its rows with --method atom",
            where=where,
        )
    if chosen.source == "packed" and not isinstance(manifest, PackedManifest):
        raise UsageError(
            "not-packed",
            f"{found}, where --method {chosen.name} needs a packed dataset",
            remedy="give what packtool pack wrote (it shuffles too); a token store takes --method partial",
            where=where,
        )
