"""`shuffle`: reorder a packed dataset, or apply the partial shuffle to a token store."""

from __future__ import annotations

import msgspec

from packtool import shuffling
from packtool.commands.dataset_job import DatasetJob, DatasetResult, dataset_job
from packtool.commands.shuffle_packed import require_atoms, with_batches, write_order, write_rows
from packtool.commands.shuffle_store import write_partial, write_rotation
from packtool.errors import UsageError
from packtool.options.check import check_ranks, check_taken
from packtool.options.shared import DEFAULT_SEED
from packtool.options.shuffle import ShuffleArguments
from packtool.options.signature import takes
from packtool.shuffling import Method
from packtool.storage import manifest as manifests
from packtool.storage.packed import PackedDataset
from packtool.storage.schema import Manifest, PackedManifest, Shuffle, StoreManifest
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
    chosen = shuffling.method(options.method)
    check_taken(options, "--method", chosen.name)
    with dataset_job("shuffle", options, options.source, options.store) as job:
        return _shuffled(job, chosen, options)


def _shuffled(job: DatasetJob, chosen: Method, options: ShuffleArguments) -> DatasetResult:
    [source] = job.inputs
    manifest = manifests.read(source)
    _require_kind(chosen, manifest, str(source), order_only=options.order_only)
    record = Shuffle(
        method=chosen.name,
        atom_size=options.atom_size,
        seed=_seed(options.seed, manifest),
        epoch=options.epoch,
        batch_size=options.batch_size,
        ranks=options.ranks,
        global_batch=options.global_batch,
    )
    if not options.order_only and (options.ranks, options.global_batch) != (None, None):
        what, remedy = "only an order is dealt to ranks", 'add --order-only, or read with Loader(balance="step")'
        raise UsageError("option-not-taken", what, remedy=remedy, where="--ranks")
    check_ranks(options.ranks, options.global_batch, "deal rows to ranks")
    if chosen.source == "store":
        assert options.sequence_length is not None
        if options.order_only:
            return write_rotation(job, PackedDataset(source), record, options.sequence_length)
        return write_partial(job, record, options.sequence_length, options.remainder or "drop")
    dataset = PackedDataset(source)
    if not options.order_only and (dataset.manifest.index_only or options.index_only):
        dataset = open_packed(source, job.stores)
    require_atoms(dataset, options.atom_size)
    if options.atom_size is None:
        record = msgspec.structs.replace(record, atom_size=dataset.manifest.options.get("atom_size"))
    table = None
    if options.batch_tokens is not None:
        record, table = with_batches(dataset, record, options.batch_tokens, keep_rest=options.remainder != "drop")
    if options.order_only:
        return write_order(job, dataset, record, table)
    return write_rows(job, dataset, record, table)


def _seed(given: int | None, manifest: Manifest) -> int:
    """Return the seed given, else the dataset's own: an epoch is another order of the same seed."""
    if given is not None:
        return given
    return manifest.seed if isinstance(manifest, PackedManifest) else DEFAULT_SEED


def _require_kind(chosen: Method, manifest: Manifest, where: str, *, order_only: bool) -> None:
    described = manifests.describe(manifest)
    if chosen.source == "store" and order_only:
        shuffle = manifest.shuffle if isinstance(manifest, PackedManifest) else None
        if shuffle is None or shuffle.method != chosen.name:
            raise UsageError(
                "not-packed",
                f"{described}, where --order-only of --method {chosen.name} needs rows that this method wrote",
                remedy=f"write one epoch with packtool shuffle STORE --method {chosen.name}, then give it here",
                where=where,
            )
        return
    if chosen.source == "store" and not isinstance(manifest, StoreManifest):
        raise UsageError(
            "not-a-store",
            f"{described}, where --method {chosen.name} needs a token store",
            remedy="give the token store itself, or shuffle its rows with --method atom",
            where=where,
        )
    if chosen.source == "packed" and not isinstance(manifest, PackedManifest):
        raise UsageError(
            "not-packed",
            f"{described}, where --method {chosen.name} needs a packed dataset",
            remedy="give what packtool pack wrote (it shuffles too); a token store takes --method partial",
            where=where,
        )
