"""Assemble finished blocks to a token store: final names, joined rejects, manifest."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import xxhash
from msgspec import UNSET

from packtool.clock import Clock
from packtool.places.local import sync_directory
from packtool.places.npy import FileEntry
from packtool.places.place import Place
from packtool.sizes import plural
from packtool.storage.names import REJECTED, TOKENIZER, shard_file, token_dtype
from packtool.storage.output import Output
from packtool.storage.schema import FORMAT_VERSION, LOSS_VERSION, InputEntry, StoreManifest, TokenShard
from packtool.storage.tokenizer_files import write_tokenizer
from packtool.tokenizing.counts import SpanCounts
from packtool.tokenizing.job import Job
from packtool.tokenizing.rejects import RejectLog
from packtool.warnings import warn


def assemble(
    out: Output, job: Job, options: dict[str, Any], tokenizer: Mapping[str, bytes], clock: Clock
) -> tuple[dict[str, int], dict[str, Any]]:
    """Give shards their final names, join the rejects, write the manifest.

    Doing it again after it was interrupted gives the same store.

    Args:
        out: the output.
        job: with all blocks done.
        options: for the manifest.
        tokenizer: its files.
        clock: of the run.

    Returns:
        The manifest's counts, and the facts in `run.json`.
    """
    shards: list[TokenShard] = []
    documents = 0
    per_file: dict[int, SpanCounts] = {}
    with RejectLog(out.staged) as rejected:
        for directory, result in job.in_order():
            if result.rejected is not None:
                out.have(directory, [result.rejected])
                before = {number: counts.records for number, counts in per_file.items()}
                rejected.join(directory, [file.name for file in job.files], before)
            first = result.spans[0].file
            first_record = per_file[first].records if first in per_file else 0
            for span in result.spans:
                per_file.setdefault(span.file, SpanCounts(span.file)).add(span)
            for shard in result.shards:
                files: dict[str, Any] = {
                    name: _place(out, directory, len(shards), entry)
                    for name, entry in msgspec.structs.asdict(shard).items()
                    if isinstance(entry, FileEntry | InputEntry)
                }
                placed = {"first_document": documents, "first_record": first_record, **files}
                shards.append(msgspec.structs.replace(shard, **placed))
                documents += shard.offsets.shape[0] - 1
    sync_directory(out.staged)
    total = SpanCounts(-1)
    for counts in per_file.values():
        total.add(counts)
    digests = {n: counts.digest for n, counts in per_file.items()} | {n: f.digest for n, f in job.digests().items()}
    inputs = [InputEntry(file.name, file.bytes, digests[number]) for number, file in enumerate(job.files)]
    trained = {"trained_tokens": total.trained} if job.context.chat is not None else {}
    manifest = StoreManifest(
        format_version=LOSS_VERSION if any(shard.loss is not UNSET for shard in shards) else FORMAT_VERSION,
        options=options,
        inputs=inputs,
        tokenizer=job.context.tokenizer,
        dtype=token_dtype(job.context.tokenizer.vocab_size).str,
        counts=total.flat() | trained,
        rejected=rejected.entry(),
        shards=shards,
        tokenizer_files=_place_tokenizer(out, tokenizer),
    )
    run = {
        "written": clock.seconds(),
        "workers": job.engine.workers,
        "encoder": ", ".join(sorted({result.encoder for _, result in job.in_order()})) or job.context.recipe.encoder,
        "encoder_why": job.context.recipe.why,
        "texts_checked": sum(result.checked for _, result in job.in_order()),
        "text_bytes": total.bytes,
        "this_run": job.done_now(),
        "machine": {"system": platform.platform(), "python": platform.python_version(), "cpus": os.cpu_count()},
        "files": [{"name": job.files[n].name, **counts.flat()} for n, counts in sorted(per_file.items())],
    }
    out.finish(manifest, run)
    _warn(out.place, manifest)
    _warn_of_special(str(out.place), total.special, manifest.tokenizer.added_tokens, chats=job.context.chat is not None)
    return manifest.counts, run


def _warn(place: Place, manifest: StoreManifest) -> None:
    counts = manifest.counts
    if counts["rejected"]:
        kept = manifest.rejected is not None
        remedy = f"see {place.where(REJECTED)}" if kept else "use --on-error quarantine to see which, with the reasons"
        what = f"{plural(counts['rejected'], 'record')} could not be used"
        if counts.get("lost_bytes"):
            what += f", and {counts['lost_bytes']:,} bytes of files are lost with all records in them"
        warn("records-rejected", what, remedy=remedy, where=str(place))
    if not counts["documents"]:
        warn("no-documents", "no document is left", remedy="check the input and the filters", where=str(place))


def _warn_of_special(place: str, counts: Mapping[str, int], tokens: Mapping[str, int], *, chats: bool) -> None:
    """Warn of texts that hold special tokens: perhaps from other corpora, perhaps from somebody who wants to end a
    document."""
    if not counts:
        return
    names = {number: text for text, number in tokens.items()}
    most = sorted(counts.items(), key=lambda item: (-item[1], int(item[0])))
    listed = ", ".join(f"{names[int(number)]} ({times:,})" for number, times in most[:5])
    what = f"texts hold special tokens, which are encoded as such: {listed}{', …' * (len(most) > 5)}"
    remedy = "give --special-tokens text to encode them as plain text"
    if chats:
        what = what.replace("texts hold special tokens", "messages spell special tokens", 1)
        remedy = "clean the messages: what they spell can't be told from what the chat template writes"
    warn("special-tokens", what, remedy=remedy, where=place)


def _place_tokenizer(out: Output, files: Mapping[str, bytes]) -> list[InputEntry]:
    """Give the tokenizer.json that workers share its final name, and write what else belongs to it."""
    others = {name: data for name, data in files.items() if name != TOKENIZER}
    shared = InputEntry(TOKENIZER, len(files[TOKENIZER]), xxhash.xxh3_128_hexdigest(files[TOKENIZER]))
    out.rename(out.scratch, shared, out.staged / TOKENIZER)
    return [shared, *write_tokenizer(out.staged, others)]


def _place(out: Output, directory: Path, number: int, entry: FileEntry | InputEntry) -> FileEntry | InputEntry:
    """Give one file of a shard its final name."""
    kind = entry.name.partition("-")[0]
    name = shard_file(kind, number)
    out.rename(directory, entry, out.staged / name)
    return msgspec.structs.replace(entry, name=name)
