"""Which files belong to a dataset: what its manifest lists, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from packtool.places.npy import FileEntry
from packtool.storage.schema import (
    ExportedFile,
    ExportManifest,
    InputEntry,
    Manifest,
    OrderManifest,
    PackedManifest,
    StoreManifest,
)


def listed(manifest: Manifest) -> Iterator[InputEntry]:
    """Yield every file that a manifest lists, by its name relative to the manifest."""
    beside: list[FileEntry | InputEntry | ExportedFile | None]
    if isinstance(manifest, StoreManifest):
        beside = [file for shard in manifest.shards for file in shard.files]
        beside += [manifest.rejected, *manifest.tokenizer_files]
    elif isinstance(manifest, ExportManifest):
        beside = [*manifest.files, *manifest.tokenizer_files]
    elif isinstance(manifest, OrderManifest):
        beside = [manifest.batches, *manifest.orders]
    else:
        chosen = manifest.choice.documents if manifest.choice else None
        beside = [manifest.batches, manifest.report, manifest.lengths, chosen, *manifest.tokenizer_files]
    for file in beside:
        if file is not None:
            yield InputEntry(file.name, file.bytes, file.xxh3_128)
    for bucket in manifest.buckets if isinstance(manifest, PackedManifest) else ():
        for entry in (entry for shard in bucket.shards for entry in shard.files):
            name = f"{bucket.directory}/{entry.name}" if bucket.directory else entry.name
            yield InputEntry(name, entry.bytes, entry.xxh3_128)
