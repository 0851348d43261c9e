"""Check manifests for contradictions: every value that follows from others must be the one that follows.

Names of files and directories follow from numbers, sizes from shapes, sums from shards. So a manifest can't make
packtool open, overwrite or remove anything but the files that packtool gives these names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from packtool.errors import DataError
from packtool.options.declare import declared
from packtool.places.npy import HEADER_BYTES, FileEntry
from packtool.plan import BATCH
from packtool.storage import names
from packtool.storage.schema import (
    FORMAT_VERSION,
    LOSS_VERSION,
    Bucket,
    ExportManifest,
    InputEntry,
    Manifest,
    PackedManifest,
    StoreManifest,
    TokenizerInfo,
    packed_version,
)


def require_consistent(manifest: Manifest, where: str) -> None:
    """Raise a DataError that names the first contradiction in a manifest, where there is one."""
    if isinstance(manifest, PackedManifest) and (what := manifest.ledger.unbalanced(manifest.documents)):
        raise DataError("ledger-unbalanced", what, remedy="do not use this dataset; make it again", where=where)
    for what in contradictions(manifest):
        remedy = "run the command that made it again, or copy it again"
        raise DataError("bad-manifest", f"contradicts itself: {what}", remedy=remedy, where=where)


def contradictions(manifest: Manifest) -> Iterator[str]:
    """Yield each contradiction between one part of a manifest and another."""
    yield from _tokenizer_files(manifest.tokenizer_files)
    if isinstance(manifest, StoreManifest | PackedManifest):
        yield from _tokenizer(manifest.tokenizer, manifest.dtype)
    if isinstance(manifest, PackedManifest) and manifest.batches is not None:
        yield from _file("batches", manifest.batches, names.BATCHES, BATCH)
    match manifest:
        case StoreManifest():
            yield from _store(manifest)
        case PackedManifest():
            yield from _packed(manifest)
        case ExportManifest():
            yield from _export(manifest)


def _tokenizer(info: TokenizerInfo, dtype: str) -> Iterator[str]:
    size = info.vocab_size
    ids = {"eos_id": info.eos_id, "bos_id": info.bos_id, **info.added_tokens}
    for name, value in ids.items():
        if value is not None and value >= size:
            yield f"the id of {name!r} is {value}, but vocab_size is {size}"
    if info.added_tokens.get(info.eos_token, info.eos_id) != info.eos_id:
        yield f"eos_id is {info.eos_id}, but added_tokens says {info.added_tokens[info.eos_token]}"
    yield from _same("dtype", dtype, names.token_dtype(size).str)


def _tokenizer_files(entries: Sequence[InputEntry]) -> Iterator[str]:
    found = [entry.name for entry in entries]
    known = len(set(found) & set(names.TOKENIZER_FILES))
    if found and (found[0] != names.TOKENIZER or known < len(found)):
        yield f"its tokenizer_files are {found}"


def _store(manifest: StoreManifest) -> Iterator[str]:
    counts, columns = manifest.counts, manifest.options.get("columns", [])
    if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
        yield f"options.columns is {columns!r}"
    documents = tokens = 0
    has_loss = manifest.has_loss  # looks at every shard
    for number, shard in enumerate(manifest.shards):
        place = f"shards[{number}]"
        yield from _same(f"{place}.first_document", shard.first_document, documents)
        held, ends = shard.tokens.shape, shard.offsets.shape
        if len(held) != 1 or len(ends) != 1 or not 1 < ends[0] <= held[0] + 1:
            yield f"{place} has {held} tokens and {ends} offsets"
            return
        files: _Files = {
            "tokens": (shard.tokens, np.dtype(manifest.dtype), held, True),
            "offsets": (shard.offsets, names.OFFSET, ends, True),
            "documents": (shard.documents, names.ORIGIN, (ends[0] - 1,), manifest.shards[0].documents is not None),
            "loss": (shard.loss or None, names.LOSS, held, has_loss),
        }
        yield from _files(place, number, files)
        if (shard.columns is None) != (manifest.shards[0].columns is None):
            yield f"{place}.columns is {'missing' if shard.columns is None else 'there'}"
        if shard.columns is not None:
            yield from _same(f"{place}.columns.name", shard.columns.name, names.shard_file("columns", number))
        documents += ends[0] - 1
        tokens += held[0]
    yield from _same("format_version", manifest.format_version, LOSS_VERSION if has_loss else FORMAT_VERSION)
    if counts.get("trained_tokens", 0) > tokens or (("trained_tokens" in counts) != has_loss and documents):
        yield f"counts.trained_tokens is {counts.get('trained_tokens')}"
    yield from _same("counts.documents", counts.get("documents"), documents)
    yield from _same("counts.tokens", counts.get("tokens"), tokens)
    rejected = sum(count for name, count in counts.items() if name.startswith("rejected_"))
    yield from _same("counts.rejected", counts.get("rejected", 0), rejected)
    if manifest.rejected is not None:
        yield from _same("rejected.name", manifest.rejected.name, names.REJECTED)
        if not rejected:
            yield "it names a file of rejected records, but counts none"


def _packed(manifest: PackedManifest) -> Iterator[str]:
    options, ledger, buckets = manifest.options, manifest.ledger, manifest.buckets
    if manifest.pad_id >= manifest.tokenizer.vocab_size:
        yield f"pad_id is {manifest.pad_id}, but vocab_size is {manifest.tokenizer.vocab_size}"
    yield from _same("options.pad_id", options.get("pad_id"), manifest.pad_id)
    yield from _same("options.segments", options.get("segments"), manifest.lengths is not None)
    yield from _same("documents", manifest.documents, sum(manifest.store_documents))
    yield from _same("store_documents", len(manifest.store_documents), len(manifest.inputs))
    yield from _same("report.name", manifest.report.name, names.REPORT)
    version = packed_version(index_only=manifest.index_only, has_loss=manifest.has_loss)
    yield from _same("format_version", manifest.format_version, version)
    if isinstance(manifest.stores, list):
        yield from _same("the number of stores", len(manifest.stores), len(manifest.inputs))
        yield from _same("options.segments", options.get("segments"), True)
    if manifest.lengths is not None:
        yield from _file("lengths", manifest.lengths, names.LENGTHS, np.dtype("<u4"), (manifest.documents,))
    yield from _choice(manifest)
    if isinstance(ledger.trained_stored, list):
        yield from _same("ledger.trained_stored", len(ledger.trained_stored), len(manifest.inputs))
    yield from _same("ledger.rows", ledger.rows, sum(bucket.rows for bucket in buckets))
    yield from _same("ledger.output", ledger.output, sum(bucket.rows * bucket.sequence_length for bucket in buckets))
    lengths = [bucket.sequence_length for bucket in buckets]
    if not buckets or len(set(lengths)) < len(lengths):
        yield f"its buckets have rows of {lengths} tokens"
        return
    alone = len(buckets) == 1 and not buckets[0].directory
    if alone:
        yield from _same("options.sequence_length", options.get("sequence_length", lengths[0]), lengths[0])
    for name in ("shard_tokens", *(("atom_size",) if "atom_size" in options else ())):
        if not isinstance(options.get(name), int) or isinstance(options[name], bool) or options[name] < 1:
            yield f"options.{name} is {options.get(name)!r}"
            return
    from packtool.options.pack import PackOptions  # which those need not load who read no rows

    rows_are_atoms = options.get("atom_size", lengths[0]) == lengths[0]
    if not rows_are_atoms and not declared(PackOptions)["atom_size"].taken(manifest.strategy):
        yield f"options.atom_size is {options['atom_size']}, but the atoms of {manifest.strategy} are rows"
        return
    for number, bucket in enumerate(buckets):
        place = f"buckets[{number}]"
        directory = "" if alone else names.bucket_directory(bucket.sequence_length)
        yield from _same(f"{place}.directory", bucket.directory, directory)
        yield from _bucket(place, bucket, manifest, max(1, options["shard_tokens"] // bucket.sequence_length))


def _choice(manifest: PackedManifest) -> Iterator[str]:
    choice, ledger = manifest.choice, manifest.ledger
    if choice is None:
        yield from _same("ledger.stored", ledger.stored, ledger.input)
        return
    yield from _same("choice.sources", [each.chosen_documents for each in choice.sources], manifest.store_documents)
    yield from _same("choice.documents", choice.documents is not None, manifest.lengths is not None)
    if choice.documents is not None:
        yield from _file("choice.documents", choice.documents, names.CHOSEN, names.OFFSET, (manifest.documents,))
    for number, source in enumerate(choice.sources):
        for what in ("documents", "tokens"):
            left_out = sum(getattr(each, what) for each in source.left_out.values())
            once = getattr(source, f"chosen_{what}") - getattr(source, f"repeated_{what}")
            yield from _same(f"choice.sources[{number}].{what}", getattr(source, what), left_out + once)
    text = sum(each.chosen_tokens for each in choice.sources) - manifest.documents
    yield from _same("choice.chosen_tokens", text, ledger.input)
    for name, value in choice.text()._asdict().items():
        yield from _same(f"ledger.{name}", getattr(ledger, name), value)


def _bucket(place: str, bucket: Bucket, manifest: PackedManifest, rows_in_shard: int) -> Iterator[str]:
    length = bucket.sequence_length
    if length % bucket.unit:
        yield f"{place}.unit is {bucket.unit}, which does not divide rows of {length}"
    yield from _same(f"{place}.rows", bucket.rows, -(-bucket.units * bucket.unit // length))
    sizes = [min(rows_in_shard, bucket.rows - first) for first in range(0, bucket.rows, rows_in_shard)]
    yield from _same(f"the number of {place}.shards", len(bucket.shards), len(sizes))
    for number, (shard, rows) in enumerate(zip(bucket.shards, sizes, strict=False)):
        files: _Files = {
            "tokens": (shard.tokens, np.dtype(manifest.dtype), (rows, length), not manifest.index_only),
            "loss": (shard.loss or None, names.LOSS, (rows, length), manifest.has_loss and not manifest.index_only),
            "segments": (shard.segments, names.SEGMENT, None, manifest.lengths is not None),
            "segment_offsets": (shard.segment_offsets, names.OFFSET, (rows + 1,), manifest.lengths is not None),
            "atoms": (shard.atoms, names.OFFSET, None, bucket.atom_units == 0),
        }
        yield from _files(f"{place}.shards[{number}]", number, files)


def _export(manifest: ExportManifest) -> Iterator[str]:
    yield from (
        f"{file.name!r} is not a file of an export" for file in manifest.files if not names.is_exported(file.name)
    )
    for name in ("sequences", "tokens"):
        yield from _same(name, getattr(manifest, name), sum(getattr(file, name) for file in manifest.files))


_Files = dict[str, tuple[FileEntry | None, np.dtype[Any], tuple[int, ...] | None, bool]]
"""Of each kind of file in a shard: what the manifest says, type and shape, and whether there has to be one."""


def _files(place: str, shard: int, files: _Files) -> Iterator[str]:
    for name, (entry, dtype, shape, expected) in files.items():
        if (entry is not None) != expected:
            yield f"{place}.{name} is {'there' if entry else 'missing'}"
        elif entry is not None:
            yield from _file(f"{place}.{name}", entry, names.shard_file(name, shard), dtype, shape)


def _file(
    place: str, entry: FileEntry, name: str, dtype: np.dtype[Any], shape: tuple[int, ...] | None = None
) -> Iterator[str]:
    """Check a file's entry against its expected type and shape; without a shape, one dimension."""
    yield from _same(f"{place}.name", entry.name, name)
    yield from _same(f"{place}.shape", entry.shape, (prod(entry.shape[:1]),) if shape is None else shape)
    yield from _same(f"{place}.bytes", entry.bytes, HEADER_BYTES + dtype.itemsize * prod(entry.shape))


def _same(place: str, value: object, expected: object) -> Iterator[str]:
    if value != expected:
        yield f"{place} is {value!r}, not {expected!r}"
