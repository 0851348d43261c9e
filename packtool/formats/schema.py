"""The types of manifests, and the values each field may take.

Limits, and what readers rely on beyond them, are checked as a manifest is read. Names of files have patterns, so that a
manifest can't make packtool touch anything but files of the kinds that it writes, in their place. Unknown fields are
refused, so that nothing in a manifest goes unread. Every field is written: what is absent is null.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, Struct

from packtool.formats import names
from packtool.options.shared import DEFAULT_SEED
from packtool.places.npy import Digest, FileEntry, NonNegative
from packtool.planning.metrics.ledger import ChosenText, Ledger
from packtool.support.version import __version__

FORMAT_VERSION = 7
"""The version of all formats. It counts on when a field comes, goes or changes its meaning."""
FIRST_VERSION = 7
"""The first version that is read: those before were never in a release."""

TOKEN_STORE = "packtool token store"
PACKED = "packtool packed dataset"
EXPORT = "packtool export"

NOT_DRAWN = "not_drawn"
"""The reason for leaving out documents that a mixture could have drawn."""

Options = dict[str, Any]
Positive = Annotated[int, Meta(ge=1, le=(1 << 63) - 1)]
DtypeName = Annotated[str, Meta(pattern=r"^<u[24]\Z")]
Name = Annotated[str, Meta(pattern=r"^[a-z0-9_-]+\Z")]
Directory = Annotated[str, Meta(pattern=r"^(bucket-[0-9]{5,})?\Z")]


StoreName = Annotated[str, Meta(pattern=r"^[^\0]+\Z")]
"""A path or URL, relative to the dataset where that is possible."""


class TokenizerInfo(Struct, frozen=True, forbid_unknown_fields=True):
    """The facts about the tokenizer that later stages need.

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
    eos_id: NonNegative
    eos_token: str
    bos_id: NonNegative | None = None
    added_tokens: dict[str, NonNegative] = {}


class InputEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """One file, of the input or of the dataset.

    Attributes:
        name: relative to the input or to the manifest.
        bytes: size.
        xxh3_128: of its bytes, as `xxhsum -H2` prints it.
    """

    name: str
    bytes: NonNegative
    xxh3_128: Digest


class OtherFile(InputEntry, frozen=True, forbid_unknown_fields=True):
    """A file of a dataset other than an array, with a name that packtool gives."""

    def __post_init__(self) -> None:
        _require(re.fullmatch(names.OTHERS, self.name) is not None, f"{self.name!r} is not a file of a dataset")


class DatasetEntry(Struct, frozen=True, forbid_unknown_fields=True):
    """An input dataset. Its name is in `run.json`.

    Attributes:
        bytes, xxh3_128: of its manifest.
    """

    bytes: NonNegative
    xxh3_128: Digest


class TokenShard(Struct, frozen=True, forbid_unknown_fields=True):
    """One shard of a token store: its files and the global number of its first document.

    Attributes:
        tokens, offsets: its tokens, and where each document begins.
        first_document: number of its first document among all shards.
        documents: where its documents came from; None with `--no-provenance`.
        columns: the scalars kept with its tokens, where there are any.
        first_record: number of records of the input file before the records of the shard, if it holds a part of a file.
        loss: which of its tokens train; None where all of them do.
    """

    tokens: FileEntry
    offsets: FileEntry
    first_document: NonNegative
    documents: FileEntry | None = None
    first_record: NonNegative = 0
    columns: OtherFile | None = None
    loss: FileEntry | None = None

    def __post_init__(self) -> None:
        tokens, documents = self.tokens.shape, (sum(self.offsets.shape) - 1,)
        _require(_ending(self) is not None, "its files are not named alike")
        _require(len(tokens) == 1 == len(self.offsets.shape), "its tokens or offsets have several dimensions")
        _require(0 < documents[0] <= tokens[0], "its documents and tokens do not fit together")
        _require(self.documents is None or self.documents.shape == documents, "it has origins of other documents")
        _require(self.loss is None or self.loss.shape == tokens, "it has loss of other tokens")

    @property
    def files(self) -> list[FileEntry | InputEntry]:
        """The files that it has."""
        return list(filter(None, (self.tokens, self.offsets, self.documents, self.columns, self.loss)))


class StorePart(NamedTuple):
    """Which part of the inputs a token store holds: `str` writes it as `--part` has it."""

    number: int  # from 1
    parts: int  # how many there are
    divided: str  # digest of the inputs and options, alike for all parts

    def __str__(self) -> str:
        return f"{self.number}/{self.parts}"


class StoreManifest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Manifest of a token store.

    Attributes:
        format: what it is.
        format_version, packtool_version: of the format, and of the packtool that wrote it.
        options: those that the tokens depend on.
        inputs: the files that were read, in order.
        tokenizer: facts about the tokenizer.
        dtype: of the tokens.
        counts: documents, tokens, and whatever was left out, by reason.
        rejected: the file of rejected records, where there is one.
        shards: the files, in the order of the documents.
        tokenizer_files: the tokenizer.json and its other files; empty if only ids were imported.
    """

    format: str = TOKEN_STORE
    format_version: int = FORMAT_VERSION
    packtool_version: str = __version__
    options: Options
    inputs: list[InputEntry]
    tokenizer: TokenizerInfo
    dtype: DtypeName
    counts: dict[Name, NonNegative]
    rejected: OtherFile | None = None
    shards: list[TokenShard]
    tokenizer_files: list[OtherFile] = []

    def __post_init__(self) -> None:
        documents = tokens = 0
        for shard in self.shards:
            _require(shard.first_document == documents, "its shards do not follow each other")
            documents += shard.offsets.shape[0] - 1
            tokens += shard.tokens.shape[0]
        _require("part" not in self.options or self.part is not None, "its part is no part of anything")
        counted = self.counts.get("documents"), self.counts.get("tokens")
        _require(counted == (documents, tokens), "its counts are not those of its shards")
        _require(len({_ending(shard) for shard in self.shards}) == len(self.shards), "two of its shards share files")
        for kind in ("loss", "documents", "columns"):
            have = {bool(getattr(shard, kind)) for shard in self.shards}
            _require(len(have) < 2, f"not all of its shards have {kind}")

    @property
    def has_loss(self) -> bool:
        """Whether the store has a loss, so that not all tokens train."""
        return any(shard.loss is not None for shard in self.shards)

    @property
    def conversations(self) -> bool:
        """Whether its documents are conversations."""
        return "train_on" in self.options

    @property
    def part(self) -> StorePart | None:
        """The part of the inputs that it holds; None where it holds all, or does not say which."""
        written, divided = self.options.get("part"), self.options.get("divided")
        match = re.fullmatch(r"([1-9][0-9]{0,9})/([1-9][0-9]{0,9})", str(written))
        if match is None or int(match[1]) > int(match[2]) or not isinstance(divided, str):
            return None
        return StorePart(int(match[1]), int(match[2]), divided)

    @property
    def several_of_record(self) -> bool:
        """Whether a record may be several documents, which follow each other: a conversation, up to each message."""
        return self.options.get("train_on") == "each"


class PackedShard(Struct, frozen=True, forbid_unknown_fields=True):
    """One shard of rows.

    Attributes:
        tokens: None with `--index-only`.
        segments, segment_offsets: None with `--no-segments`.
        atoms: None where atoms are uniform.
        loss: which tokens train; None where all of them do, and with `--index-only`.
    """

    tokens: FileEntry | None
    segments: FileEntry | None = None
    segment_offsets: FileEntry | None = None
    atoms: FileEntry | None = None
    loss: FileEntry | None = None

    def __post_init__(self) -> None:
        _require(_ending(self) is not None, "its files are not named alike")
        rows = {entry.shape[0] for entry in (self.tokens, self.loss) if entry}
        if self.segment_offsets is not None:
            rows.add(self.segment_offsets.shape[0] - 1)
        _require(len(rows) < 2, "its files have different numbers of rows")
        _require((self.segments is None) == (self.segment_offsets is None), "it has one half of a segment table")

    @property
    def files(self) -> list[FileEntry]:
        """The files that it has."""
        return list(filter(None, (self.tokens, self.loss, self.segments, self.segment_offsets, self.atoms)))

    @property
    def rows(self) -> int:
        """Rows in the shard."""
        if self.tokens is not None:
            return self.tokens.shape[0]
        if self.segment_offsets is None:
            return 0
        return self.segment_offsets.shape[0] - 1


class Bucket(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rows of one length. A dataset of a single length has one bucket, in the dataset's own directory.

    Attributes:
        directory: relative to the manifest; "" for the dataset's own.
        sequence_length: tokens in a row.
        rows: of all shards.
        unit: tokens in a unit (the smaller of atom size and sequence length).
        units: units that hold anything; what the last row has beyond them is padding.
        atom_units: units in an atom, where atoms are uniform; 0 where `atoms` files list them.
        last_atom_stays: the last atom is incomplete, and every shuffle leaves it last.
        shards: the files of its rows, in order.
    """

    directory: Directory
    sequence_length: Positive
    rows: NonNegative
    unit: Positive
    units: NonNegative
    atom_units: NonNegative
    last_atom_stays: bool
    shards: list[PackedShard]

    def require_whole(self) -> None:
        """Raise a ValueError if its shards do not have its rows."""
        _require(self.rows == sum(shard.rows for shard in self.shards), "its rows are not those of its shards")
        _require(self.rows == -(-self.units * self.unit // self.sequence_length), "its units do not make its rows")
        _require(self.sequence_length % self.unit == 0, "its units do not divide its rows")
        for shard in self.shards:
            for entry in (shard.tokens, shard.loss):
                shape = (shard.rows, self.sequence_length)
                _require(entry is None or entry.shape == shape, "its shards have rows of another length")
            _require((shard.atoms is None) == bool(self.atom_units), "its shards do not list their atoms")
        _require(len({_ending(shard) for shard in self.shards}) == len(self.shards), "two of its shards share files")


class Shuffle(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The order of the rows, and how it came about.

    Attributes:
        method: atom, partial or bucket (docs/shuffling.md).
        atom_size: tokens in an atom; None where atoms are rows.
        seed: of every random choice.
        epoch: which order of that seed, from 0.
        batch_size: rows in a batch, for ``partial``.
        rotate: lanes are rotated, for ``partial``; None for others.
        batch_tokens: tokens in a batch, for ``bucket``.
        unbatched_rows, unbatched_tokens: what ``bucket`` with ``--remainder drop`` leaves out of every batch: rows of
            the dataset, and the tokens they hold, padding included.
    """

    method: Name
    atom_size: Positive | None
    seed: Annotated[int, Meta(ge=0)]
    epoch: Annotated[int, Meta(ge=0, le=(1 << 32) - 1)]
    batch_size: Positive | None = None
    rotate: bool | None = None
    batch_tokens: Positive | None = None
    unbatched_rows: NonNegative | None = None
    unbatched_tokens: NonNegative | None = None


class LeftOut(Struct, frozen=True, forbid_unknown_fields=True):
    """Counts of documents and tokens that were not packed.

    Attributes:
        documents: documents that were left out.
        tokens: their tokens, EOS included.
    """

    documents: NonNegative
    tokens: NonNegative


class ChosenSource(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The choice from one store: each document is left out for one reason, or packed.

    Attributes:
        documents, tokens: of the store; EOS included.
        left_out: by the first reason that holds, in the order of their names here: excluded, not_where, too_short,
            too_long, duplicates, other_side, other_shard, not_sampled, and not_drawn by a weight below 1. Reasons that
            left out no document are missing.
        asked: the epochs, the share or the amount that the user gave; the first two as a number.
        epochs: the passes over the documents that were left to draw from, as a fraction.
        chosen_documents, chosen_tokens: packed, counted as often as they are packed.
        repeated_documents, repeated_tokens: the part of these that an earlier pass has already.
    """

    documents: NonNegative
    tokens: NonNegative
    left_out: dict[Name, LeftOut]
    asked: str
    epochs: Annotated[str, Meta(pattern=r"^[0-9]+(/[1-9][0-9]*)?\Z")]
    chosen_documents: NonNegative
    chosen_tokens: NonNegative
    repeated_documents: NonNegative
    repeated_tokens: NonNegative

    def __post_init__(self) -> None:
        for what in ("documents", "tokens"):
            once = getattr(self, f"chosen_{what}") - getattr(self, f"repeated_{what}")
            left_out = sum(getattr(removed, what) for removed in self.left_out.values())
            _require(getattr(self, what) == left_out + once, f"its {what} are not those left out and those chosen")

    @property
    def available_tokens(self) -> int:
        """Tokens that were left to draw from."""
        available = self.tokens
        for reason, removed in self.left_out.items():
            if reason != NOT_DRAWN:
                available -= removed.tokens
        return available


class KeptColumn(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column of values of documents that was kept with their rows.

    Attributes:
        name: of the field.
        values: the file of values; of categories their places in the list of names.
        missing: number of documents without a value: NaN among numbers, −1 among categories.
        categories: the file with the list of names; None for numbers.
    """

    name: Annotated[str, Meta(min_length=1)]
    values: FileEntry
    missing: NonNegative
    categories: OtherFile | None = None

    @property
    def files(self) -> list[FileEntry | InputEntry]:
        """The files that it has."""
        if self.categories is None:
            return [self.values]
        return [self.values, self.categories]

    def require_place(self, number: int, documents: int) -> None:
        """Raise a ValueError unless it is the column of this number, of a dataset of so many documents."""
        named = self.values.name == names.column_file(number)
        if self.categories is not None:
            named = named and self.categories.name == names.categories_file(number)
        _require(named, f"the files of column {number} are not named after it")
        _require(self.values.shape == (documents,), f"column {number} does not have {documents} values")
        _require(self.missing <= documents, f"column {number} lacks more values than there are documents")


class Choice(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The choice of the documents that were packed.

    Attributes:
        options: how they were chosen.
        sources: what was chosen of each store.
        documents: the file of the stored document behind each document; None with `--no-segments`.
    """

    options: Options
    sources: list[ChosenSource]
    documents: FileEntry | None

    def text(self) -> ChosenText:
        """Return the text tokens of the stores, and how many of them were left out or packed again, without EOS."""
        stored = left_out = packed_again = 0
        for source in self.sources:
            stored += source.tokens - source.documents
            left_out += sum(removed.tokens - removed.documents for removed in source.left_out.values())
            packed_again += source.repeated_tokens - source.repeated_documents
        return ChosenText(stored, left_out, packed_again)


class PackedManifest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Manifest of a packed dataset.

    Attributes:
        format: what it is.
        format_version, packtool_version: of the format, and of the packtool that wrote it.
        strategy: its registered name.
        options: what the strategy was given; with the inputs, all that the rows depend on.
        shuffle: how the rows were ordered; None for corpus order.
        inputs: the token stores, in order, by the digests of their manifests.
        store_documents: number of documents of each token store. Documents are numbered through all stores, so the
            store of a document follows from its number.
        tokenizer, dtype: as the stores have them.
        pad_id: the padding token; EOS unless another was asked for.
        documents: sum of `store_documents`.
        choice: which documents of the stores were packed; None if all were packed once.
        ledger: where every token went.
        lengths: the file of document lengths; None with `--no-segments`.
        report: the file of figures.
        buckets: the rows of each length, the shortest first.
        batches: the file of batches that the ``bucket`` shuffle made.
        tokenizer_files: as the stores have them.
        stores: where the token stores lie from here, in the order of `inputs`, for a dataset whose rows are gathered
            from them; None where its shards have tokens.
        columns: the columns of documents that were kept.
    """

    format: str = PACKED
    format_version: int = FORMAT_VERSION
    packtool_version: str = __version__
    strategy: Name
    options: Options
    shuffle: Shuffle | None
    inputs: list[DatasetEntry]
    store_documents: list[NonNegative]
    tokenizer: TokenizerInfo
    dtype: DtypeName
    pad_id: NonNegative
    documents: NonNegative
    choice: Choice | None = None
    ledger: Ledger
    lengths: FileEntry | None
    report: OtherFile
    buckets: Annotated[list[Bucket], Meta(min_length=1)]
    batches: FileEntry | None = None
    tokenizer_files: list[OtherFile] = []
    stores: list[StoreName] | None = None
    columns: list[KeptColumn] = []

    def __post_init__(self) -> None:
        most = 256 ** int(self.dtype.removeprefix("<u"))
        _require(max(self.pad_id, self.tokenizer.eos_id) < most, f"its ids of padding or EOS are no {self.dtype}")
        of_documents, by_store = [self.lengths], [len(self.store_documents)]
        if self.choice is not None:
            of_documents.append(self.choice.documents)
            by_store.append(len(self.choice.sources))
        for entry in of_documents:
            _require(entry is None or entry.shape == (self.documents,), f"it does not have {self.documents} documents")
        _require(self.documents == sum(self.store_documents), "its documents are not those of its stores")
        if self.choice is not None:
            for name, tokens in self.choice.text()._asdict().items():
                _require(getattr(self.ledger, name) == tokens, f"its ledger and its choice have other tokens {name}")
        for stores in by_store:
            _require(stores == len(self.inputs), f"it does not count the documents of {len(self.inputs)} stores")
        for name in ("directory", "sequence_length"):
            values = {getattr(bucket, name) for bucket in self.buckets}
            _require(len(values) == len(self.buckets), f"two of its buckets have the same {name}")
        for bucket in self.buckets:
            bucket.require_whole()
        for shard in chain.from_iterable(bucket.shards for bucket in self.buckets):
            _require((shard.tokens is None) == self.index_only, "its shards have tokens where it has stores")
            _require((shard.segments is None) == (self.lengths is None), "its segments lack the lengths of documents")
            has_loss = self.has_loss and not self.index_only
            _require((shard.loss is not None) == has_loss, "its shards have no loss where its ledger has")
        self._require_columns()

    def _require_columns(self) -> None:
        """Raise a ValueError where its columns do not fit its documents, or there is no table that names documents."""
        _require(not self.columns or self.lengths is not None, "it has columns, but no segments")
        named = {column.name for column in self.columns}
        _require(len(named) == len(self.columns), "two of its columns have the same name")
        for number, column in enumerate(self.columns):
            column.require_place(number, self.documents)

    @property
    def index_only(self) -> bool:
        """Whether its rows are gathered from the token stores."""
        return self.stores is not None

    @property
    def has_loss(self) -> bool:
        """Whether the dataset has a loss; without one all tokens train."""
        return self.ledger.trained is not None

    @property
    def multiple(self) -> int:
        """Pieces of documents begin at multiples of this many tokens."""
        return int(self.options.get("document_multiple", 1))

    @property
    def seed(self) -> int:
        """The seed of its order, or else the one it was packed with: epochs are orders of one seed."""
        if self.shuffle is not None:
            return self.shuffle.seed
        packed: Any = self.options.get("seed", DEFAULT_SEED)
        return int(packed)


class ExportedFile(OtherFile, frozen=True, forbid_unknown_fields=True):
    """One file in the format of another tool.

    Attributes:
        sequences, tokens: in the file.
    """

    sequences: NonNegative = 0
    tokens: NonNegative = 0


class ExportManifest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Manifest of an export: the documents of a token store or the rows of a packed dataset, for another tool.

    Attributes:
        format: what it is.
        format_version, packtool_version: of the format, and of the packtool that wrote it.
        exported_as: the name of the other tool's format.
        inputs: what was exported, by the digests of the manifests; of several stores, in the order of their documents.
        tokenizer: facts about the tokenizer.
        dtype: of the ids in the files.
        sequence_lengths: distinct row lengths; empty for documents.
        sequences, tokens, padding: in all files.
        lost: what of the input the format does not keep, in words.
        files: the exported files.
        choice: which documents of the stores were exported; None for all of them.
        tokenizer_files: as the input has them.
    """

    format: str = EXPORT
    format_version: int = FORMAT_VERSION
    packtool_version: str = __version__
    exported_as: str
    inputs: Annotated[list[DatasetEntry], Meta(min_length=1)]
    tokenizer: TokenizerInfo
    dtype: str
    sequence_lengths: list[NonNegative]
    sequences: NonNegative
    tokens: NonNegative
    padding: NonNegative
    lost: list[str]
    files: list[ExportedFile]
    tokenizer_files: list[OtherFile] = []
    choice: Choice | None = None


def _require(holds: bool, what: str) -> None:
    """Raise a ValueError, which readers of manifests turn into an error that names the part."""
    if not holds:
        raise ValueError(what)


def _ending(shard: TokenShard | PackedShard) -> str | None:
    """Return what the names of a shard's files have after their kinds, such as ``00007``; None where they differ."""
    endings: set[str] = set()
    for kind in shard.__struct_fields__:
        entry = getattr(shard, kind)
        if isinstance(entry, FileEntry | InputEntry):
            named, _, ending = entry.name.partition(".")[0].partition("-")
            if named != kind:
                return None
            endings.add(ending)
    if len(endings) != 1:
        return None
    return endings.pop()


Manifest = StoreManifest | PackedManifest | ExportManifest


def listed_files(manifest: Manifest) -> Iterator[InputEntry]:
    """Yield every file that a manifest lists, by its name relative to the manifest."""
    files: list[FileEntry | InputEntry | None] = []
    if isinstance(manifest, StoreManifest):
        for shard in manifest.shards:
            files += shard.files
        files.append(manifest.rejected)
    elif isinstance(manifest, ExportManifest):
        files += manifest.files
    else:
        files += [manifest.batches, manifest.report, manifest.lengths]
        if manifest.choice is not None:
            files.append(manifest.choice.documents)
        for column in manifest.columns:
            files += column.files
    for file in [*files, *manifest.tokenizer_files]:
        if file is not None:
            yield InputEntry(file.name, file.bytes, file.xxh3_128)
    if isinstance(manifest, PackedManifest):
        for bucket in manifest.buckets:
            yield from _listed(bucket)


def _listed(bucket: Bucket) -> Iterator[InputEntry]:
    """Yield the files of a bucket, which lie in its directory if it has one."""
    for shard in bucket.shards:
        for entry in shard.files:
            name = entry.name
            if bucket.directory:
                name = f"{bucket.directory}/{name}"
            yield InputEntry(name, entry.bytes, entry.xxh3_128)
