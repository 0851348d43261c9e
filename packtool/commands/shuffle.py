"""`shuffle`: reorder the rows of a packed dataset, or write a token store's in the order of the partial shuffle.

The atoms of a packed dataset are permuted. The partial shuffle cuts the stream of a store into lanes and rotates each
of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy.typing as npt

from packtool.choosing.chosen import EVERYTHING
from packtool.commands.corpus_rows import RowRecipe, write_corpus
from packtool.commands.dataset_job import DatasetJob, DatasetResult, dataset_job
from packtool.commands.stored_rows import write_rows
from packtool.errors import UsageError
from packtool.formats import manifest as manifests
from packtool.formats.known import KnownDataset, KnownRows, Lookup, known_by, require_columns
from packtool.formats.packed import PackedDataset
from packtool.formats.schema import Manifest, PackedManifest, Shuffle, StoreManifest
from packtool.formats.segment_table import no_segments
from packtool.formats.token_store import Corpus
from packtool.options.check import check_taken
from packtool.options.kinds import parse_kept
from packtool.options.shared import DEFAULT_SEED, SHARD_TOKENS
from packtool.options.shuffle import ShuffleArguments
from packtool.options.signature import takes
from packtool.places.typed import place_of
from packtool.planning import packing, shuffling
from packtool.planning.shuffling import Method, partial
from packtool.planning.shuffling.bucket import batches, require_whole_rows
from packtool.rows.stored_plan import stored_atom_size
from packtool.rows.stored_tokens import open_packed
from packtool.warnings import warn


@takes(ShuffleArguments)
def shuffle(options: ShuffleArguments) -> DatasetResult:
    """Write the rows of a dataset in another order.

    The result depends on the corpus, the options of `pack`, seed and epoch alone. A dataset that was shuffled before
    gives the same rows as the dataset in corpus order, and as `pack` with that seed.

    Raises:
        UsageError: options that make no sense, or that this dataset can't do.
        DataError: the source is missing, unfinished or damaged, or the disk is full.
    """
    method = check(options)
    with dataset_job("shuffle", options, options.source, options.store) as job:
        [source] = job.inputs
        manifest = manifests.read(source)
        _require_source(options, method, known_by(source, manifest))
        record = Shuffle(
            method=method.name,
            atom_size=options.atom_size,
            seed=_seed(options.seed, manifest),
            epoch=options.epoch,
            batch_size=options.batch_size,
            rotate=options.rotate if method.source == "store" else None,
        )
        if method.source == "store":
            assert options.sequence_length is not None
            return _write_partial(job, record, options.sequence_length, options.remainder or "drop")
        dataset = PackedDataset(source)
        if dataset.manifest.index_only or options.index_only:
            dataset = open_packed(source, job.stores)
        if options.atom_size is None:
            record = msgspec.structs.replace(record, atom_size=dataset.manifest.options.get("atom_size"))
        table = None
        if options.batch_tokens is not None:
            record, table = _with_batches(dataset, record, options.batch_tokens, keep_rest=options.remainder != "drop")
        _warn_of_same_order(dataset, record)
        return write_rows(job, dataset, record, table)


def check(options: ShuffleArguments) -> Method:
    """Check that options make sense together; return the method."""
    method = shuffling.method(options.method)
    check_taken(options, "--method", method.name)
    if not options.rotate and (options.epoch or options.seed is not None):
        what, remedy = "lanes that are not rotated are the same for every seed and epoch", "leave one of the two out"
        raise UsageError("option-not-taken", what, remedy=remedy, where="--no-rotate")
    return method


def makes(options: ShuffleArguments, look: Lookup) -> KnownDataset:
    """Check what is needed of the source; return what is known of the dataset that is made of it."""
    method, source = check(options), look(options.source)
    _require_source(options, method, source)
    rows = source.rows
    if method.source == "store":
        rows = KnownRows(
            strategy="concat",
            lengths=[options.sequence_length or 0],
            filled=[options.sequence_length or 0],
            atom_size=options.sequence_length,
            multiple=1,
            shuffled=method.name,
            holdout=None,
            segments=True,
            index_only=options.index_only,
        )
    elif rows is not None:
        rows = replace(rows, shuffled=method.name, index_only=options.index_only)
    return replace(source, place=place_of(options.output), kind=PackedManifest, rows=rows)


def _require_source(options: ShuffleArguments, method: Method, source: KnownDataset) -> None:
    """Require of the source what the method needs, as far as it is known before it is opened."""
    _require_kind(method, source)
    if source.rows is not None:
        if options.index_only and not source.rows.segments:
            raise no_segments(source.place)
        _require_rows(source.rows, options, str(source.place))
        return
    if source.conversations:
        what = f"the partial shuffle cuts documents wherever a row ends, and {source.place} holds conversations"
        remedy = "pack them, as with `packtool pack STORE --strategy bfd`: the rows come out shuffled"
        raise UsageError("conversations-cut", what, remedy=remedy, where="--method")
    require_columns([source], parse_kept(options.keep))


def _seed(given: int | None, manifest: Manifest) -> int:
    """Return the seed given, else the dataset's own: an epoch is another order of the same seed."""
    if given is not None:
        return given
    return manifest.seed if isinstance(manifest, PackedManifest) else DEFAULT_SEED


def _require_kind(method: Method, source: KnownDataset) -> None:
    described, where = manifests.described(source.kind), str(source.place)
    if method.source == "store":
        if source.kind is not StoreManifest:
            what = f"{described}, where --method={method.name} needs a token store"
            remedy = "give the token store itself, or shuffle its rows with --method=atom"
            raise UsageError("not-a-store", what, remedy=remedy, where=where)
    elif source.kind is not PackedManifest:
        what = f"{described}, where --method={method.name} needs a packed dataset"
        remedy = "give what packtool pack wrote (it shuffles too); a token store takes --method=partial"
        raise UsageError("not-packed", what, remedy=remedy, where=where)


def _require_rows(rows: KnownRows, options: ShuffleArguments, where: str) -> None:
    """Make sure that rows still have their atoms, or can have others; and that batches are whole rows."""
    if rows.shuffled == "partial":
        raise UsageError(
            "partial-shuffled",
            "made by the partial shuffle: its rows continue each other from batch to batch, which no other order keeps",
            remedy="make another epoch from the token store, with `packtool shuffle STORE --method partial --epoch N`",
            where=where,
        )
    if rows.lengths is None:
        return
    if options.atom_size is not None and options.atom_size != rows.atom_size:
        _require_atoms(rows, options.atom_size, rows.lengths)
    if options.batch_tokens is not None:
        if rows.atom_size is not None:
            what = "all its rows have one length, so every batch has the same number of tokens anyway"
            raise UsageError("one-bucket", what, remedy="give --method=atom", where=where)
        require_whole_rows(rows.lengths, options.batch_tokens)


def _require_atoms(rows: KnownRows, atom_size: int, lengths: Sequence[int]) -> None:
    """Refuse other atoms than rows have, where they can't have these."""
    stored = rows.atom_size
    if stored is None:
        what, remedy = "rows of several lengths move one by one", "leave --atom-size out"
    elif rows.strategy != "concat":
        what = f"packed with --strategy={rows.strategy} in atoms of {stored} tokens, which are whole pieces of text"
        remedy = "leave --atom-size out, or pack again with --atom-size"
    elif rows.shuffled is not None:
        what = f"shuffled already in atoms of {stored} tokens; others need the stream in corpus order"
        remedy = "shuffle what was packed with --no-shuffle, or pack again with --atom-size"
    elif atom_size % rows.multiple:
        what = f"documents begin at multiples of {rows.multiple}, but {atom_size} is not one"
        remedy = "give a multiple of it, or pack again with another --document-multiple"
    else:
        packing.require_fit(atom_size, lengths[0])
        return
    raise UsageError("atoms-fixed", what, remedy=remedy, where="--atom-size")


def _warn_of_same_order(dataset: PackedDataset, record: Shuffle) -> None:
    """Warn where the rows are in the wanted order already."""
    stored, present = stored_atom_size(dataset), dataset.manifest.shuffle
    if present is None:
        return
    wanted = msgspec.structs.replace(record, atom_size=record.atom_size or stored)
    if wanted == msgspec.structs.replace(present, atom_size=present.atom_size or stored):
        what = f"its rows are in this order already: epoch {record.epoch} of seed {record.seed}"
        remedy = f"give --epoch={record.epoch + 1}, or another --seed, for another order"
        warn("order-unchanged", what, remedy=remedy, where=str(dataset.place))


def _with_batches(
    dataset: PackedDataset, record: Shuffle, batch_tokens: int, *, keep_rest: bool
) -> tuple[Shuffle, npt.NDArray[Any]]:
    """Make the batches of the bucket shuffle, and add the rows they leave out to its record."""
    sizes = [(bucket.sequence_length, bucket.rows) for bucket in dataset.buckets]
    table = batches(sizes, batch_tokens, keep_rest=keep_rest, seed=record.seed, epoch=record.epoch)
    record = msgspec.structs.replace(record, batch_tokens=batch_tokens)
    if not keep_rest:
        rows = sum(rows for _, rows in sizes) - int(table["rows"].sum())
        tokens = sum(length * rows for length, rows in sizes) - int((table["rows"] * table["bucket"]).sum())
        record = msgspec.structs.replace(record, unbatched_rows=rows, unbatched_tokens=tokens)
    return record, table


def _write_partial(job: DatasetJob, record: Shuffle, sequence_length: int, remainder: str) -> DatasetResult:
    """Write the rows of one epoch."""
    assert record.batch_size is not None
    assert isinstance(job.options, ShuffleArguments)
    corpus, short_rows, lanes = Corpus(job.inputs), remainder == "pad", record.batch_size
    kept = parse_kept(job.options.keep)
    partial.lane_tokens(corpus.tokens, lanes, 1 if short_rows else sequence_length)  # raises what the plan would
    options = {
        "sequence_length": sequence_length,
        "remainder": remainder,
        "pad_id": corpus.tokenizer.eos_id,
        "shard_tokens": SHARD_TOKENS,
        "segments": True,
    }
    key = job.key(record, options, *kept)
    with job.open_output(key) as output:
        if output.preview:
            known = {"documents": corpus.documents, "tokens": corpus.tokens}
            return DatasetResult.previewed(output, job.options, known)
        if output.finished:
            return job.kept(output)
        with job.budget.arrays_for(corpus.documents, output.scratch) as arrays:
            corpus.work_in(arrays)
            plan = partial.plan(
                corpus.lengths(),
                sequence_length=sequence_length,
                batch_size=lanes,
                seed=record.seed,
                epoch=record.epoch,
                short_rows=short_rows,
                rotate=job.options.rotate,
                arrays=arrays,
            )
            recipe = RowRecipe(strategy=packing.strategy("concat"), options=options, order=record, kept=kept)
            return write_corpus(job, output, corpus, [plan], [None], recipe, EVERYTHING, {})
