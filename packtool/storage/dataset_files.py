"""Which files belong to a dataset: what its manifest lists, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from packtool.places.npy import FileEntry
from packtool.storage.schema import ExportedFile, ExportManifest, InputEntry, Manifest, PackedManifest, StoreManifest


def listed(manifest: Manifest) -> Iterator[InputEntry]:
    """Yield every file that a manifest lists, in its order, by its name relative to the manifest."""
    for directory, entry in _entries(manifest):
        if entry is not None:
            name = f"{directory}/{entry.name}" if directory else entry.name
            yield InputEntry(name, entry.bytes, entry.xxh3_128)


def _entries(manifest: Manifest) -> Iterator[tuple[str, FileEntry | InputEntry | ExportedFile | None]]:
    if isinstance(manifest, StoreManifest):
        for store_shard in manifest.shards:
            yield "", store_shard.tokens
            yield "", store_shard.offsets
            yield "", store_shard.documents
            yield "", store_shard.columns
            yield "", store_shard.loss or None
        yield "", manifest.rejected
        yield from (("", file) for file in manifest.tokenizer_files)
        return
    if isinstance(manifest, ExportManifest):
        for file in manifest.files:
            yield "", file
        yield from (("", file) for file in manifest.tokenizer_files)
        return
    yield "", manifest.batches
    if not isinstance(manifest, PackedManifest):
        for order in manifest.orders:
            yield "", order
        return
    yield "", manifest.report
    yield "", manifest.lengths
    yield "", manifest.choice.documents if manifest.choice else None
    yield from (("", file) for file in manifest.tokenizer_files)
    for bucket in manifest.buckets:
        for shard in bucket.shards:
            for entry in (shard.tokens, shard.loss or None, shard.segments, shard.segment_offsets, shard.atoms):
                yield bucket.directory, entry
