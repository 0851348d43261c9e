"""One task of `tokenize`: read a block, filter, encode, write its shards and a record that it is finished."""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Container
from pathlib import Path

import msgspec

from packtool.corpus.fields import Fields
from packtool.corpus.filters import Filters
from packtool.corpus.pages import Packed, Pages
from packtool.corpus.read import file_digest
from packtool.corpus.records import Block, CorpusFile
from packtool.engines import Worker
from packtool.places import transfer
from packtool.places.url import is_remote
from packtool.storage.files import FileEntry, sync_directory, write_shared
from packtool.storage.manifest import InputEntry, TokenizerInfo
from packtool.storage.uploads import Destination
from packtool.tokenizing.choose import EncoderRecipe, load_encoder
from packtool.tokenizing.counts import SpanCounts
from packtool.tokenizing.rejects import RejectLog
from packtool.tokenizing.span import read_span
from packtool.tokenizing.store_writer import ShardWriter, WrittenShard
from packtool.tokenizing.verify import Verified


class Context(msgspec.Struct, frozen=True):
    """What all tasks of a run have in common.

    Attributes:
        work: directory for finished blocks; it holds tokenizer.json.
        tokenizer: ids and vocabulary size.
        recipe: of the encoder.
        fields: what to read of a record.
        filters: which documents to keep.
        on_error: fail, skip or quarantine.
        max_errors: rejects after which a block gives up, or None.
        max_record_bytes: limit of a record, uncompressed.
        provenance: keep where documents came from.
        special_ids: of the special tokens to count in texts, ascending.
        destination: where workers that do not share the directory send what they finish, and find the tokenizer.
    """

    work: str
    tokenizer: TokenizerInfo
    recipe: EncoderRecipe
    fields: Fields
    filters: Filters
    on_error: str
    max_errors: int | None
    max_record_bytes: int
    provenance: bool
    special_ids: tuple[int, ...] = ()
    destination: Destination | None = None


class Task(msgspec.Struct, frozen=True):
    """One block: its number and spans, and the file of each. Without spans: hash the file of this number, which several
    blocks share."""

    number: int
    spans: Block
    files: tuple[CorpusFile, ...]


class FileDigest(msgspec.Struct, frozen=True):
    """A file that several blocks share: its xxh3-128, and all its pages as they were read for it."""

    digest: str
    pages: Packed


class BlockResult(msgspec.Struct):
    """What a finished block left behind.

    Attributes:
        encoder: which one ran.
        checked: texts that were cross-checked.
        spans: what each held.
        shards, rejected: its files.
    """

    encoder: str
    checked: int
    spans: list[SpanCounts]
    shards: list[WrittenShard]
    rejected: InputEntry | None

    def files(self) -> list[FileEntry | InputEntry]:
        """Its files, relative to its directory."""
        found: list[FileEntry | InputEntry | None] = [self.rejected]
        for shard in self.shards:
            found += [shard.tokens, shard.offsets, shard.documents, shard.columns]
        return [entry for entry in found if entry is not None]


def block_directory(work: Path, number: int) -> Path:
    """Where a block's shards and rejects lie until the store is assembled."""
    return work / f"block-{number:06d}"


def block_record(work: Path, number: int) -> Path:
    """The file whose presence says that a block is finished."""
    return work / f"block-{number:06d}.json"


def digest_record(work: Path, number: int) -> Path:
    """The file that says what a file that several blocks share was found to be."""
    return work / f"digest-{number:05d}.json"


def forget(work: Path, numbers: Container[int]) -> None:
    """Leave nothing of the blocks that are to be done, or done again."""
    for entry in list(work.glob("block-*")):
        if int(entry.name.removeprefix("block-")[:6]) in numbers:
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink()


def run(context: Context, task: Task, worker: Worker) -> BlockResult | FileDigest:
    """Run one task; running it again gives the same files. The digest alone where the task has no spans."""
    work, destination = Path(context.work), context.destination
    if not task.spans:
        pages = Pages()
        digest = FileDigest(file_digest(task.files[0], pages), pages.packed())
        _record(context, digest_record(work, task.number), digest)
        return digest
    directory = block_directory(work, task.number)
    # On a cluster, a task whose worker was taken for dead runs twice at once: each time in a directory of its own.
    attempt = Path(tempfile.mkdtemp(prefix=f"{directory.name}.", dir=work if destination is None else None))
    try:
        result = _block(context, task, attempt, worker)
        if destination is not None:
            destination.deliver(attempt, result.files(), directory)
        else:
            _move(attempt, directory)
    finally:
        if destination is not None:
            shutil.rmtree(attempt, ignore_errors=True)
    _record(context, block_record(work, task.number), result)
    return result


def _block(context: Context, task: Task, attempt: Path, worker: Worker) -> BlockResult:
    """A block, its files in a directory of this attempt."""
    encoder = prepare(context)
    if encoder is not None:
        encoder.restart()
    info = context.tokenizer
    with RejectLog(attempt, keep=context.on_error == "quarantine") as log:
        writer = ShardWriter(
            attempt,
            info.vocab_size,
            info.eos_id,
            info.bos_id,
            provenance=context.provenance,
            columns=context.fields.columns,
        )
        counts = [
            read_span(context, span, file, encoder, writer, log, worker)
            for span, file in zip(task.spans, task.files, strict=True)
        ]
        writer.close()
    facts = ("none", 0) if encoder is None else (encoder.name, encoder.checked)
    return BlockResult(*facts, counts, writer.shards, log.entry())


def _move(attempt: Path, directory: Path) -> None:
    """Make an attempt the block."""
    sync_directory(attempt)
    try:
        attempt.rename(directory)
    except OSError:
        if not directory.exists():
            raise
        shutil.rmtree(attempt)  # the same files are there already


def _record(context: Context, path: Path, result: BlockResult | FileDigest) -> None:
    """Say that a piece is finished; where it is sent elsewhere, there."""
    data = msgspec.json.encode(result)
    if context.destination is None:
        write_shared(path, data)
    else:
        transfer.write(context.destination.of(path), data)


def prepare(context: Context) -> Verified | None:
    """Load the encoder; it is kept for the next task, and shared with processes forked from this one. Ids need none."""
    if context.fields.ids:
        return None
    file = Path(context.work) / "tokenizer.json"
    place = str(file) if context.destination is None else context.destination.of(file)
    return _encoder(place, context.tokenizer.sha256, context.recipe)


@functools.lru_cache(maxsize=1)
def _encoder(place: str, sha256: str, recipe: EncoderRecipe) -> Verified:
    del sha256  # part of the cache's key: another run in this process may use the same path
    return load_encoder(recipe, transfer.read(place) if is_remote(place) else Path(place).read_bytes())
