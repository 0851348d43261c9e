"""The types of manifests, and the values each field may take.

The limits are checked as a manifest is read; `check_manifest.py` then holds the values against each other. Unknown
fields are refused, so that nothing in a manifest goes unread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from packtool import __version__
from packtool.metrics.ledger import ChosenText, Ledger
from packtool.options.shared import DEFAULT_SEED
from packtool.places.npy import Count, Digest, FileEntry

FORMAT_VERSION = 3
INDEX_VERSION = 4
"""Of packed datasets without tokens, which earlier versions of packtool can't read."""
LOSS_VERSION = 5
"""Of stores and packed datasets that say which tokens train: read without that, all of them would."""

TOKEN_STORE = "packtool token store"
PACKED = "packtool packed dataset"
EXPORT = "packtool export"

NOT_DRAWN = "not_drawn"
"""Why documents are left out that a mixture could have drawn."""

Options = dict[str, Any]
Positive = Annotated[int, Meta(ge=1, le=(1 << 63) - 1)]
DtypeName = Annotated[str, Meta(pattern=r"^<u[24]\Z")]
Name = Annotated[str, Meta(pattern=r"^[a-z0-9_-]+\Z")]
Directory = Annotated[str, Meta(pattern=r"^(bucket-[0-9]{5,})?\Z")]


StoreName = Annotated[str, Meta(pattern=r"^[^\0]+\Z")]
"""A path or URL, relative to the dataset where that is possible."""


class TokenizerInfo(Struct, frozen=True, forbid_unknown_fields=True):
    """What later stages must know of the tokenizer.

    Attributes:
        sha256: of the tokenizer.json that was used.
        vocab_size: one more than the largest id it can produce, added tokens included.
        eos_id: id that ends every stored document.
        eos_token: its text.
        bos_id: id that begins every stored document, or None.
        added_tokens: texts and ids of its added tokens, so that later stages can name them.
    """

    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]
    vocab_size: Annotated[int, Meta(ge=1, le=1 << 32)]
    eos_id: Count
    eos_token: str
    bos_id: Count | None = None
    added_tokens: dict[str, Count] = {}


class InputEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """One file: relative name, bytes, xxh3-128 of its bytes."""

    name: str
    bytes: Count
    xxh3_128: Digest


class DatasetEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """An input dataset: bytes and xxh3-128 of its manifest. Its name is in `run.json`."""

    bytes: Count
    xxh3_128: Digest


class TokenShard(Struct, frozen=True, forbid_unknown_fields=True):
    """One shard of a token store: its files and the global number of its first document.

    Attributes:
        documents: where its documents came from; None with `--no-provenance`.
        columns: the scalars kept beside its tokens, where there are any.
        first_record: records of the input file that come before those of the shard, where it is a part of a file.
        loss: which of its tokens train; left out where all of them do.
    """

    tokens: FileEntry
    offsets: FileEntry
    first_document: Count
    documents: FileEntry | None = None
    first_record: Count = 0
    columns: InputEntry | None = None
    loss: FileEntry | UnsetType = UNSET

    @property
    def files(self) -> list[FileEntry | InputEntry]:
        """The files that it has."""
        entries = (self.tokens, self.offsets, self.documents, self.columns, self.loss or None)
        return [entry for entry in entries if entry is not None]


class StoreManifest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Manifest of a token store.

    Attributes:
        counts: documents, tokens, and whatever was left out, by reason.
        rejected: the file of rejected records, where there is one.
        tokenizer_files: the tokenizer.json and what lay beside it; none where only ids were imported.
    """

    format: str = TOKEN_STORE
    format_version: int = FORMAT_VERSION
    packtool_version: str = __version__
    options: Options
    inputs: list[InputEntry]
    tokenizer: TokenizerInfo
    dtype: DtypeName
    counts: dict[Name, Count]
    rejected: InputEntry | None = None
    shards: list[TokenShard]
    tokenizer_files: list[InputEntry] = []

    @property
    def has_loss(self) -> bool:
        """Whether it says which tokens train."""
        return any(shard.loss is not UNSET for shard in self.shards)

    @property
    def conversations(self) -> bool:
        """Whether its documents are conversations."""
        return "conversations" in self.options


class PackedShard(Struct, frozen=True, forbid_unknown_fields=True):
    """One shard of rows.

    Attributes:
        tokens: None with `--index-only`.
        segments, segment_offsets: None with `--no-segments`.
        atoms: None where atoms are uniform.
        loss: which tokens train; left out where all of them do, and with `--index-only`.
    """

    tokens: FileEntry | None
    segments: FileEntry | None = None
    segment_offsets: FileEntry | None = None
    atoms: FileEntry | None = None
    loss: FileEntry | UnsetType = UNSET

    @property
    def files(self) -> list[FileEntry]:
        """The files that it has."""
        entries = (self.tokens, self.loss or None, self.segments, self.segment_offsets, self.atoms)
        return [entry for entry in entries if entry is not None]

    @property
    def rows(self) -> int:
        """Rows in the shard."""
        if self.tokens is not None:
            return self.tokens.shape[0]
        return 0 if self.segment_offsets is None else self.segment_offsets.shape[0] - 1


class Bucket(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rows of one length. A dataset of a single length has one bucket, in the dataset's own directory.

    Attributes:
        directory: relative to the manifest; "" for the dataset's own.
        unit: tokens in a unit (the smaller of atom size and sequence length).
        units: units that hold anything; what the last row has beyond them is padding.
        atom_units: units in an atom, where atoms are uniform; 0 where `atoms` files list them.
        last_atom_stays: the last atom is incomplete, and every shuffle leaves it last.
    """

    directory: Directory
    sequence_length: Positive
    rows: Count
    unit: Positive
    units: Count
    atom_units: Count
    last_atom_stays: bool
    shards: list[PackedShard]


class Shuffle(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How the rows came into their order.

    Attributes:
        method: atom, partial or bucket (docs/shuffling.md).
        atom_size: tokens in an atom; None where atoms are rows.
        seed: of every random choice.
        epoch: which order of that seed, from 0.
        batch_size: rows in a batch, for ``partial``.
        batch_tokens: tokens in a batch, for ``bucket``.
        unbatched_rows, unbatched_tokens: what ``bucket`` with ``--remainder drop`` leaves out of every batch: rows of
            the dataset, and the tokens they hold, padding included.
        ranks, global_batch: that the rows of each global batch were dealt to.
    """

    method: Name
    atom_size: Positive | None
    seed: Annotated[int, Meta(ge=0)]
    epoch: Annotated[int, Meta(ge=0, le=(1 << 32) - 1)]
    batch_size: Positive | None = None
    batch_tokens: Positive | None = None
    unbatched_rows: Count | None = None
    unbatched_tokens: Count | None = None
    ranks: Positive | None = None
    global_batch: Positive | None = None


class LeftOut(Struct, frozen=True, forbid_unknown_fields=True):
    """Counts of documents and tokens that were not packed.

    Attributes:
        documents: documents that were left out.
        tokens: their tokens, EOS included.
    """

    documents: Count
    tokens: Count


class ChosenSource(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The choice from one store: each document is left out for one reason, or packed.

    Attributes:
        documents, tokens: of the store; EOS included.
        left_out: by the first reason that holds, in the order of their names here: excluded, too_short, too_long,
            duplicates, other_side, other_shard, not_sampled, and not_drawn by a weight below 1. Without those that took
            nothing.
        asked: the epochs or the share that it was given, as a number.
        epochs: what that makes of the documents that were left to draw from, as a fraction.
        chosen_documents, chosen_tokens: packed, as often as they are.
        repeated_documents, repeated_tokens: those of them that an earlier pass has.
    """

    documents: Count
    tokens: Count
    left_out: dict[Name, LeftOut]
    asked: str
    epochs: Annotated[str, Meta(pattern=r"^[0-9]+(/[1-9][0-9]*)?\Z")]
    chosen_documents: Count
    chosen_tokens: Count
    repeated_documents: Count
    repeated_tokens: Count

    @property
    def available_tokens(self) -> int:
        """Tokens that were left to draw from."""
        return self.tokens - sum(each.tokens for reason, each in self.left_out.items() if reason != NOT_DRAWN)


class Choice(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which documents of the stores were packed.

    Attributes:
        options: how they were chosen.
        sources: what was chosen of each store.
        documents: the file of the stored document behind each document; None with `--no-segments`.
    """

    options: Options
    sources: list[ChosenSource]
    documents: FileEntry | None

    def text(self) -> ChosenText:
        """Return the text tokens of the stores, and those left out or packed again, without EOS."""
        left_out = [each for source in self.sources for each in source.left_out.values()]
        return ChosenText(
            stored=sum(source.tokens - source.documents for source in self.sources),
            left_out=sum(each.tokens - each.documents for each in left_out),
            packed_again=sum(source.repeated_tokens - source.repeated_documents for source in self.sources),
        )


class PackedManifest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Manifest of a packed dataset.

    Attributes:
        strategy: its registered name.
        options: what the strategy was given; with the inputs, all that the rows depend on.
        shuffle: how the rows were ordered; None for corpus order.
        inputs: the token stores, in order, by the digests of their manifests.
        store_documents: documents in each of them. Documents are numbered through, so their source follows from this.
        documents: their sum.
        choice: which documents of the stores were packed; None for each of them once.
        lengths: the file of document lengths; None with `--no-segments`.
        batches: the file of batches that the ``bucket`` shuffle made.
        tokenizer_files: as the stores have them.
        stores: where the token stores lie from here, in the order of `inputs`, for a dataset whose rows are gathered
            from them; left out where its shards have tokens.
    """

    format: str = PACKED
    format_version: int = FORMAT_VERSION
    packtool_version: str = __version__
    strategy: Name
    options: Options
    shuffle: Shuffle | None
    inputs: list[DatasetEntry]
    store_documents: list[Count]
    tokenizer: TokenizerInfo
    dtype: DtypeName
    pad_id: Count
    documents: Count
    choice: Choice | None = None
    ledger: Ledger
    lengths: FileEntry | None
    report: InputEntry
    buckets: list[Bucket]
    batches: FileEntry | None = None
    tokenizer_files: list[InputEntry] = []
    stores: list[StoreName] | UnsetType = UNSET

    @property
    def index_only(self) -> bool:
        """Whether its rows are gathered from the token stores."""
        return self.stores is not UNSET

    @property
    def has_loss(self) -> bool:
        """Whether it says which tokens train; else all of them do."""
        return self.ledger.trained is not UNSET

    @property
    def seed(self) -> int:
        """Of its order, or else what it was packed with: epochs are orders of one seed."""
        packed: Any = self.options.get("seed", DEFAULT_SEED)
        return int(packed) if self.shuffle is None else self.shuffle.seed


class ExportedFile(InputEntry, frozen=True, forbid_unknown_fields=True):
    """One file in the format of another tool, and the sequences and tokens in it."""

    sequences: Count = 0
    tokens: Count = 0


class ExportManifest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Manifest of an export: the documents of a token store or the rows of a packed dataset, for another tool.

    Attributes:
        exported_as: the format.
        input: what was exported, by the digest of its manifest.
        dtype: of the ids in the files.
        sequence_lengths: the lengths of its rows; none for documents.
        sequences, tokens, padding: in all files.
        lost: what of the input the format does not keep, in words.
        choice: which documents of a store were exported; left out for all of them.
        tokenizer_files: as the input has them.
    """

    format: str = EXPORT
    format_version: int = FORMAT_VERSION
    packtool_version: str = __version__
    exported_as: str
    input: DatasetEntry
    tokenizer: TokenizerInfo
    dtype: str
    sequence_lengths: list[Count]
    sequences: Count
    tokens: Count
    padding: Count
    lost: list[str]
    files: list[ExportedFile]
    tokenizer_files: list[InputEntry] = []
    choice: Choice | UnsetType = UNSET


def packed_version(*, index_only: bool, has_loss: bool) -> int:
    """Return the format version of a packed dataset: the first one that knows all its features."""
    return LOSS_VERSION if has_loss else INDEX_VERSION if index_only else FORMAT_VERSION


Manifest = StoreManifest | PackedManifest | ExportManifest


def listed(manifest: Manifest) -> Iterator[InputEntry]:
    """Yield every file that a manifest lists, by its name relative to the manifest."""
    beside: list[FileEntry | InputEntry | None]
    if isinstance(manifest, StoreManifest):
        beside = [file for shard in manifest.shards for file in shard.files]
        beside += [manifest.rejected, *manifest.tokenizer_files]
    elif isinstance(manifest, ExportManifest):
        beside = [*manifest.files, *manifest.tokenizer_files]
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
