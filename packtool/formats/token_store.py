"""The token store: every document's tokens, each document ended by EOS, in memory-mapped shards.

A shard is two files: `tokens-NNNNN.npy` (1-D) and `offsets-NNNNN.npy` (n + 1 token offsets of its n documents). A store
may have a loss: `loss-NNNNN.npy` is as long as the tokens, 1 for tokens that train, 0 for others.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import xxhash

from packtool.errors import DataError, UsageError
from packtool.formats import manifest as manifests
from packtool.formats.files import NpyWriter, write_array, write_listed
from packtool.formats.known import known_by, require_alike
from packtool.formats.names import LOSS, OFFSET, ORIGIN, shard_file, token_dtype
from packtool.formats.on_demand import joined_contents, open_arrays, open_now
from packtool.formats.schema import InputEntry, OtherFile, StoreManifest, TokenShard
from packtool.places.npy import FileEntry
from packtool.places.place import DATASET_AGAIN, MappedFile, Place
from packtool.places.typed import Typed, place_of
from packtool.planning.arrays import IN_MEMORY, Arrays, blocks
from packtool.planning.plan import I64, Ints, offsets_of
from packtool.support.mapped import release

LONGEST_DOCUMENT = (1 << 32) - 1
"""Tokens, EOS included: lengths and places in documents are stored in 32 bits."""


def write_shard(
    directory: Path,
    number: int | tuple[int, int],
    tokens: np.ndarray[Any, Any] | Sequence[np.ndarray[Any, Any]],
    offsets: I64,
    vocab_size: int,
) -> tuple[FileEntry, FileEntry]:
    """Write shard `number` and return its tokens and offsets entries.

    Args:
        tokens: ids of all documents, each document's EOS included, in one array or several; any integer type.
        offsets: documents + 1 offsets into `tokens`.
        vocab_size: every id must be below it.
    """
    parts = [tokens] if isinstance(tokens, np.ndarray) else tokens
    dtype = token_dtype(vocab_size)
    with NpyWriter(directory / shard_file("tokens", number), dtype, [sum(map(len, parts))]) as out:
        for part in parts:
            require_known(part, vocab_size)
            out.write(part.astype(dtype, copy=False))
        entry = out.close()
    longest = int(np.diff(offsets).max(initial=0))
    if longest > LONGEST_DOCUMENT:
        what = f"a document of {longest:,} tokens, where {LONGEST_DOCUMENT:,} is the most"
        raise DataError("document-too-long", what, remedy="divide it, or leave it out")
    return entry, write_array(directory / shard_file("offsets", number), offsets.astype(OFFSET, copy=False))


def require_known(ids: np.ndarray[Any, Any], vocab_size: int) -> None:
    """Raise a DataError where a tokenizer has produced an id that its vocabulary does not have."""
    if len(ids) and int(ids.max()) >= vocab_size:
        what = f"the tokenizer produced id {int(ids.max())}, but its vocabulary ends at {vocab_size - 1}"
        raise DataError("id-out-of-range", what, remedy="check that the tokenizer.json is whole")


def write_loss(directory: Path, number: int | tuple[int, int], parts: Sequence[np.ndarray[Any, Any]]) -> FileEntry:
    """Write the loss of the tokens of shard `number`, given in several arrays of `LOSS`; return its entry."""
    with NpyWriter(directory / shard_file("loss", number), LOSS, [sum(map(len, parts))]) as out:
        for part in parts:
            out.write(part)
        return out.close()


def write_columns(path: Path, names: Sequence[str], columns: Sequence[Sequence[str | None]]) -> OtherFile:
    """Write the columns of a shard and return their entry for the manifest."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({name: pa.array(values, pa.string()) for name, values in zip(names, columns, strict=True)})
    out = io.BytesIO()
    parquet.write_table(table, out, compression="zstd")
    return write_listed(path, out.getvalue())


def document_lengths(offsets: npt.NDArray[np.int64], tokens: int, where: str) -> I64:
    """Compute the length of each document, in tokens, from the documents + 1 offsets of a shard of `tokens` tokens.

    Raises:
        DataError: the documents do not cover all tokens without gaps, or one of them is empty or too long.

    >>> document_lengths(np.array([0, 3, 5]), 5, "offsets-00000.npy")
    array([3, 2])
    """
    lengths: I64 = np.diff(offsets)
    if not len(lengths) or offsets[0] != 0 or offsets[-1] != tokens or lengths.min() < 1 or lengths.max() > tokens:
        what = f"its offsets do not divide its {tokens} tokens into documents"
        raise DataError("bad-offsets", what, remedy=DATASET_AGAIN, where=where)
    longest = int(lengths.max())
    if longest > LONGEST_DOCUMENT:
        what = f"a document of {longest:,} tokens, where {LONGEST_DOCUMENT:,} is the most"
        raise DataError("document-too-long", what, remedy="divide it, or leave it out", where=where)
    return lengths


def count_trained(loss: npt.NDArray[np.uint8], where: str) -> int:
    """Count the tokens that train; raise a DataError where the loss of one is neither 0 nor 1.

    >>> count_trained(np.array([0, 1, 1], np.uint8), "loss-00000.npy")
    2
    """
    if int(loss.max(initial=0)) > 1:
        what = f"token {int(np.argmax(loss.reshape(-1) > 1))} has loss {int(loss.max())}, which is neither 0 nor 1"
        raise DataError("bad-loss", what, remedy=DATASET_AGAIN, where=where)
    return int(np.count_nonzero(loss))


def read_column(place: Place, entry: InputEntry, name: str) -> Any:
    """Read one column of a shard as a `pyarrow.ChunkedArray` of strings; raise a DataError if it is missing."""
    import pyarrow as pa
    from pyarrow import parquet

    data = pa.BufferReader(place.checked(entry))
    try:
        # Threads of Arrow that are just about to end when the process ends abort it, now and then.
        with parquet.ParquetFile(data, pre_buffer=False) as file:
            return file.read(columns=[name], use_threads=False).column(name)
    except (pa.ArrowException, KeyError) as error:
        what, where = f"has no column {name!r} ({error})", place.where(entry.name)
        raise DataError("bad-columns", what, remedy="make the dataset again", where=where) from None


class TokenStore:
    """Read access to a token store.

    Asking a store that was made with ``--no-provenance`` where documents came from raises a UsageError.

    Raises:
        DataError: missing, unfinished or damaged.
        UsageError: a packed dataset rather than a store.
    """

    def __init__(self, place: Typed) -> None:
        self.place = place_of(place)  # where the store lies
        manifest = manifests.read_as(self.place, StoreManifest)
        self.manifest = manifest
        self.known = known_by(self.place, manifest)
        self.dtype = np.dtype(manifest.dtype)
        self.documents = manifest.counts["documents"]
        self.tokens = manifest.counts["tokens"]
        self.first_documents = np.array([s.first_document for s in manifest.shards] + [self.documents], np.int64)
        self._origins: dict[int, MappedFile] = {}
        self.shards = open_arrays(self.place, [shard.tokens for shard in manifest.shards], self.dtype)
        self.offsets = open_arrays(self.place, [shard.offsets for shard in manifest.shards], OFFSET)
        self.loss: Sequence[npt.NDArray[Any]] | None = None  # 1 for tokens that train, by shard; None if all train
        masks = [shard.loss for shard in manifest.shards if shard.loss is not None]
        if masks:
            self.loss = open_arrays(self.place, masks, LOSS)

    def lengths(self, arrays: Arrays = IN_MEMORY) -> Ints:
        """Return the checked length of each document with its EOS, in tokens: uint32, in document order."""
        out: Ints = arrays.empty(self.documents, np.uint32)
        for shard, first in enumerate(self.first_documents[:-1]):
            lengths = self._lengths(shard)
            out[first : first + len(lengths)] = lengths
            release([self.offsets[shard]])  # twice as much memory as the lengths, in all
        return out

    def origins(self, arrays: Arrays = IN_MEMORY) -> np.ndarray[Any, Any]:
        """Return where each document came from: of `ORIGIN`, `record` counted in the whole file, in document order."""
        out = arrays.empty(self.documents, ORIGIN)
        for shard, first in enumerate(self.first_documents[:-1].tolist()):
            count = int(self.first_documents[shard + 1]) - first
            out[first : first + count] = self.origins_of(shard, slice(0, count))
        return out

    def origins_of(self, shard: int, documents: slice) -> np.ndarray[Any, Any]:
        """Return where some documents of a shard came from, as `origins` does for all."""
        out: np.ndarray[Any, Any] = self._opened_origins(shard)[documents].copy()
        out["record"] += np.uint64(self.manifest.shards[shard].first_record)
        return out

    def hashes_of(self, shard: int, documents: slice) -> npt.NDArray[np.uint64]:
        """Return the hashes of some documents of a shard, without where they came from."""
        return self._opened_origins(shard)["hash"][documents].copy()

    def _opened_origins(self, shard: int) -> np.ndarray[Any, Any]:
        """Return the origins of a shard, mapped."""
        opened = self._origins.get(shard) or self._origins_of(self.manifest.shards[shard])
        if not self.place.sound:  # where it is, a file that stays mapped would take room after it has gone
            self._origins[shard] = opened
        return opened.array

    def origin(self, number: int) -> str:
        """Return `file:record` of one document."""
        file, record = self.file_and_record(number)
        return f"{file}:{record}"

    def file_and_record(self, number: int) -> tuple[str, int]:
        """Return the input file of one document, and the number of its record there, from 1."""
        shard = self.manifest.shards[self._shard_of(number)]
        file, record, _ = self._origins_of(shard).array[number - shard.first_document].tolist()
        return self.manifest.inputs[file].name, record + shard.first_record

    def name_of(self, number: int) -> str:
        """Name one document as messages do: by its file and record, where they are known."""
        if self.known.has_origins:
            return self.origin(number)
        return f"{self.place}, document {number}"

    def _origins_of(self, shard: TokenShard) -> MappedFile:
        if shard.documents is None:
            self.known.require_origins()
        assert shard.documents is not None
        return MappedFile.opened(self.place, shard.documents, ORIGIN)

    def _shard_of(self, document: int) -> int:
        return int(np.searchsorted(self.first_documents, document, side="right")) - 1

    @property
    def masked(self) -> bool:
        """Whether its documents are conversations, and it says which of their tokens train."""
        return self.manifest.conversations and self.loss is not None

    @property
    def id_field(self) -> str | None:
        """The field with the ids of its documents, where they were kept."""
        field = self.manifest.options.get("id_field")
        if not isinstance(field, str) or not all(shard.columns for shard in self.manifest.shards):
            return None
        return field

    @property
    def kept_fields(self) -> Sequence[str]:
        """The fields that were kept with the tokens."""
        return self.known.columns or ()

    def column(self, name: str) -> Any:
        """Return a field that was kept with the tokens: a `pyarrow.ChunkedArray` of strings, one a document."""
        import pyarrow as pa

        chunks: list[Any] = []
        for shard in range(len(self.shards)):
            chunks += self.shard_column(shard, name).chunks
        return pa.chunked_array(chunks, pa.string())

    def shard_column(self, number: int, name: str) -> Any:
        """Return a field that was kept with the tokens of one shard: a `pyarrow.ChunkedArray` of strings."""
        shard = self.manifest.shards[number]
        if shard.columns is None:
            what = f"keeps no column {name!r} with its tokens"
            remedy = f"tokenize again with --columns={name}"
            raise UsageError("unknown-column", what, remedy=remedy, where=str(self.place))
        column, documents = read_column(self.place, shard.columns, name), shard.offsets.shape[0] - 1
        if len(column) != documents:
            what = f"has {len(column)} values of {name!r}, but {documents} documents"
            where = self.place.where(shard.columns.name)
            raise DataError("bad-columns", what, remedy="make the dataset again", where=where)
        return column

    def kept(self, number: int) -> dict[str, str | None]:
        """Return the fields that were kept with one document, by name; None for one that it lacks."""
        shard = self.manifest.shards[self._shard_of(number)]
        values: dict[str, str | None] = {}
        if shard.columns is not None:
            for name in self.kept_fields:
                column = read_column(self.place, shard.columns, name)
                values[name] = column[number - shard.first_document].as_py()
        return values

    def with_ids(self, ids: Sequence[str]) -> I64:
        """Return the documents with any of these ids, ascending; an empty array if ids were not kept."""
        if self.id_field is None:
            return np.empty(0, np.int64)
        import pyarrow as pa
        import pyarrow.compute as pc

        hits = pc.is_in(self.column(self.id_field), value_set=pa.array(list(ids), pa.string()))
        return np.flatnonzero(hits.to_numpy()).astype(np.int64)

    def _lengths(self, shard: int) -> I64:
        """Return the length of each document of a shard."""
        return document_lengths(
            self.offsets[shard], self.manifest.shards[shard].tokens.shape[0], self._offsets_file(shard)
        )

    def _offsets_file(self, shard: int) -> str:
        return self.place.where(self.manifest.shards[shard].offsets.name)

    def files(self) -> Iterator[MappedFile]:
        """Yield every file of tokens, offsets and loss, and of origins if origins were read; no files if all files have
        been checked already."""
        if self.place.sound:
            return
        yield from self._origins.values()
        for entry, tokens, offsets in zip(self.manifest.shards, self.shards, self.offsets, strict=True):
            yield MappedFile(self.place, entry.tokens, tokens)
            yield MappedFile(self.place, entry.offsets, offsets)
        for entry, loss in zip(self.manifest.shards, self.loss or (), strict=False):
            assert entry.loss is not None
            yield MappedFile(self.place, entry.loss, loss)

    def trained(self, documents: I64 | None = None) -> int:
        """Count the tokens that train, EOS included; in `documents`, as often as they are named, or in all."""
        if documents is None:
            return int(self.manifest.counts.get("trained_tokens", self.tokens))
        trained = 0
        times = np.bincount(documents, minlength=self.documents)
        for shard, first in enumerate(self.first_documents[:-1]):
            lengths = self._lengths(shard)
            if self.loss is not None:
                lengths = np.add.reduceat(self.loss[shard], self.offsets[shard][:-1], dtype=np.int64)
                release([self.loss[shard]])
            trained += int(lengths @ times[first : first + len(lengths)])
        return trained

    def require_trained(self) -> None:
        """Raise a DataError where a token's loss is neither 0 nor 1, or others train than the manifest counts."""
        if self.loss is None:
            return
        trained, expected = 0, self.manifest.counts["trained_tokens"]
        for shard, loss in zip(self.manifest.shards, self.loss, strict=True):
            assert shard.loss is not None
            trained += count_trained(loss, self.place.where(shard.loss.name))
        if trained != expected:
            what = f"{trained} tokens train, but the manifest says {expected}"
            raise DataError("wrong-count", what, remedy=DATASET_AGAIN, where=str(self.place))

    def release(self) -> None:
        """Give back the memory that maps the tokens, offsets and loss read so far."""
        release([*open_now(self.shards), *open_now(self.offsets), *open_now(self.loss or ())])

    def document(self, number: int) -> np.ndarray[Any, Any]:
        """Return the tokens of one document, EOS last."""
        shard, here = self._tokens_of(number)
        return self.shards[shard][here]

    def document_loss(self, number: int) -> np.ndarray[Any, Any] | None:
        """Return the loss of one document: 1 for tokens that train, 0 for others; None if the whole store trains."""
        shard, here = self._tokens_of(number)
        if self.loss is None:
            return None
        return self.loss[shard][here]

    def _tokens_of(self, number: int) -> tuple[int, slice]:
        """Return the shard of a document, and its tokens in there."""
        shard = self._shard_of(number)
        a, b = self.offsets[shard][number - self.first_documents[shard] :][:2].tolist()
        document_lengths(np.array([0, b - a]), min(b, len(self.shards[shard])) - max(a, 0), self._offsets_file(shard))
        return shard, slice(a, b)


class Corpus:
    """Several token stores, or documents chosen of them, as one sequence, numbered in the order given.

    Raises:
        UsageError: the stores disagree on tokenizer, dtype or EOS.
    """

    def __init__(self, places: Sequence[Typed]) -> None:
        self.stores = list(map(TokenStore, places))
        self.known = [store.known for store in self.stores]
        require_alike(self.known)
        self.documents = sum(store.documents for store in self.stores)
        self.tokens = sum(store.tokens for store in self.stores)
        self.tokenizer = self.stores[0].manifest.tokenizer
        self.dtype = self.stores[0].dtype
        self.store_documents = [store.documents for store in self.stores]
        self.chosen: I64 | None = None
        """Stored document behind each document, where they were chosen; each numbered in its own store."""
        self._stored: Ints | None = None
        self._behind: I64 | None = None
        self._lengths: Ints | None = None
        self._starts: I64 | None = None
        self.arrays = IN_MEMORY  # allocates arrays as long as the corpus

    @cached_property
    def shards(self) -> Sequence[np.ndarray[Any, Any]]:
        """The tokens of all stores."""
        return joined_contents([store.shards for store in self.stores])

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the places of the stores, and the arrays computed from their offsets."""
        known = ("documents", "tokens", "store_documents", "chosen", "_stored", "_behind", "_lengths", "_starts")
        where = [(store.place, _seal(store.manifest)) for store in self.stores]
        return _again, (where,), {name: getattr(self, name) for name in known}

    @property
    def has_loss(self) -> bool:
        """Whether any of the stores has a loss; all tokens of the other stores train."""
        return any(store.loss is not None for store in self.stores)

    def trained(self) -> list[int]:
        """Count the tokens of each store's documents that train, EOS included."""
        if self.chosen is None:
            return [store.trained(None) for store in self.stores]
        chosen = np.split(self.chosen, np.cumsum(self.store_documents)[:-1])
        return [store.trained(documents) for store, documents in zip(self.stores, chosen, strict=True)]

    def lengths(self) -> Ints:
        """Return the length of each document with its EOS, in tokens: uint32, in document order."""
        if self._lengths is None:
            self._lengths = self.of_documents(self.stored_lengths())
        return self._lengths

    def of_documents(self, stored: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each document its item of an array with one for every document of the stores."""
        behind = self._behind
        if behind is None:
            return stored
        return self.arrays.filled(len(behind), stored.dtype, lambda a, b: stored.take(behind[a:b]))

    def taken(self) -> npt.NDArray[np.bool_]:
        """Return whether each document of the stores is in the corpus: (documents of all stores)."""
        stored, behind = sum(store.documents for store in self.stores), self._behind
        taken = self.arrays.filled(stored, np.bool_, lambda first, last: behind is None)
        if behind is not None:
            for first, last in blocks(len(behind)):
                taken[behind[first:last]] = True
        return taken

    def files(self) -> Iterator[MappedFile]:
        """Yield every file of every store that was read or will be."""
        for store in self.stores:
            yield from store.files()

    def stored_lengths(self) -> Ints:
        """Return the lengths of all documents of the stores, whichever of them were chosen."""
        if self._stored is None:
            lengths = [store.lengths(self.arrays) for store in self.stores]
            self._stored = lengths[0]
            if len(lengths) > 1:
                self._stored = self.arrays.concatenated(lengths, np.uint32)
        return self._stored

    def choose(self, documents: Sequence[I64]) -> None:
        """Restrict the corpus to these documents of the stores, in this order; a document may come several times.

        Args:
            documents: numbers of the documents of each store.
        """
        firsts = offsets_of(np.array([store.documents for store in self.stores], np.int64))[:-1].tolist()
        self.store_documents = list(map(len, documents))
        self.chosen = self.arrays.concatenated(documents, np.int64)
        self._behind = self.arrays.concatenated(documents, np.int64, firsts)
        self._lengths = None
        self.documents = len(self.chosen)
        self.tokens = int(self.lengths().sum(dtype=np.int64))

    def work_in(self, arrays: Arrays) -> None:
        """Drop cached offsets, and compute them in these arrays from now on."""
        self.arrays = arrays
        self._stored = self._lengths = self._starts = None

    def release(self) -> None:
        """Give back the memory that maps the tokens and offsets read so far."""
        for store in self.stores:
            store.release()

    def locate(self, document: I64) -> I64:
        """Return the place of each document's first token in the stream of all shards."""
        if self._starts is None:
            self._starts = self.arrays.offsets(self.stored_lengths())
        return self._starts[self.stored(document)]

    def stored(self, document: I64) -> I64:
        """Return the number of each document among all documents of the stores."""
        if self._behind is None:
            return document
        return self._behind[document]


def _again(where: Sequence[tuple[Place, str]]) -> Corpus:
    """Open the same stores in another process."""
    corpus = Corpus([place for place, _ in where])
    for store, (_, seal) in zip(corpus.stores, where, strict=True):
        if _seal(store.manifest) != seal:
            what = "has been replaced since the command began"
            raise DataError("wrong-checksum", what, remedy="run the command again", where=str(store.place))
    return corpus


def _seal(manifest: StoreManifest) -> str:
    """Return a hash of all contents of a manifest."""
    return xxhash.xxh3_128_hexdigest(msgspec.json.encode(manifest))
