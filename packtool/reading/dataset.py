"""Packed datasets as sequences: of rows, where all have one length; of batches, where they have several."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from packtool.blending.blend import Blend
from packtool.errors import UsageError
from packtool.formats.manifest import input_names, read_report
from packtool.planning.plan import I64, Segments, offsets_of
from packtool.reading.batch import ATTENTION, FIELDS, FIELDS_OF_MULTIPLES, IGNORED, TARGETS, Batch, require_room
from packtool.reading.columns import columns_in, require_columns
from packtool.reading.raw_batch import RawBatch
from packtool.reading.recipe import Epoch, Opened, Recipe, read, single
from packtool.reading.rows import Array, Index, Rows, number_of, numbers_of
from packtool.support.sizes import plural

Result = TypeVar("Result")


class _Packed:
    """The common parts of opened datasets.

    It pickles as the path and epoch it was opened with, so that a worker process opens it again and no tokens travel.

    Attributes:
        recipe: what it was opened with.
        manifest: everything the manifest says.
        pad_id, eos_id: token ids.
        has_segments: the dataset says which segment of which document lies where.
        has_loss: the dataset says which tokens train; else all of them do.
        fields: of its batches by default.
    """

    def __init__(self, recipe: Recipe, opened: Opened) -> None:
        self.recipe = replace(recipe, digest=opened.digest)
        self._unchanged = opened.unchanged
        self.manifest = opened.manifest
        self.pad_id = opened.manifest.pad_id
        self.eos_id = opened.manifest.tokenizer.eos_id
        self.has_segments = all(rows.has_segments for rows in opened.rows)
        self.has_loss = opened.manifest.has_loss
        assert opened.columns is not None
        self._columns = opened.columns
        self.fields = FIELDS if opened.manifest.multiple == 1 else FIELDS_OF_MULTIPLES

    def __reduce__(self) -> tuple[Any, ...]:
        return (open_recipe, (self.recipe,))

    def batch_of(self, rows: Rows, index: Index, **options: Any) -> Batch:
        """Build a training batch of some rows of one length; `options` as in `Dataset.batch`."""
        options.setdefault("fields", self.fields)
        require_columns(options["fields"], self._columns.names)
        return self.read_of(rows, rows.numbers(index), options).batch(**options)

    def read_of(self, rows: Rows, numbers: I64, options: Mapping[str, Any]) -> RawBatch:
        """Read what a training batch of some rows (from 0) is made of: tokens, and the rest where needed."""
        return self._checked(lambda: self._read_of(rows, numbers, options))

    def _checked(self, read: Callable[[], Result]) -> Result:
        """Return what a function reads; by ranges, only if the dataset still is the one that was opened."""
        if self._unchanged is None or not self.recipe.place.late:
            return read()
        return self._unchanged.opened(read)

    def _read_of(self, rows: Rows, numbers: I64, options: Mapping[str, Any]) -> RawBatch:
        self._require_last_tokens(options)
        segments: Segments | None
        fields = options.get("fields", self.fields)
        columns = columns_in(fields)
        attends = bool(columns) or (options.get("documents", True) and not ATTENTION.isdisjoint(fields))
        targets = not TARGETS.isdisjoint(fields)
        with_loss = targets and self.has_loss
        cut = rows.has_segments or (self.manifest.ledger.padding > 0 and not self.has_loss)
        everywhere = all(options.get(name, True) for name in ("train_on_repeated", "train_across_documents"))
        documents = self.manifest.store_documents if "source" in fields else []
        if attends or documents or options.get("trim") or (targets and (cut or not everywhere)):
            tokens, segments = rows.with_segments(numbers)
        else:
            tokens, segments = rows[numbers], None
        loss = rows.loss(numbers, segments) if with_loss else None
        if targets and segments is not None and (loss is not None or self.lanes is not None):
            # Here and not where the batch is made: there, rows of a blend may lie beside those of a source without a
            # loss column, and a row's labels would depend on its neighbours. What was gathered may not be written to.
            loss = np.ones(tokens.shape, np.uint8) if loss is None else loss.copy()
            loss.reshape(-1)[_cut_off(segments, rotated=self.lanes is not None)] = 0
        following, values = self._following(rows, numbers, options), None
        if segments is not None and columns:
            values = {
                name: self._columns.of(name, segments.document) for name in columns if name in self._columns.names
            }
        return RawBatch(tokens, segments, loss, following, documents, columns=values)

    def require(self, options: Mapping[str, Any]) -> None:
        """Refuse options of `packtool.reading.make_batch` that some batches of these rows could not have.

        Raises:
            UsageError: an extra token, where rows go on in those of the next batch; rows with more documents than
                `pad_cu_seqlens` makes room for.
        """
        self._require_last_tokens(options)
        self._require_room(options)

    def _require_last_tokens(self, options: Mapping[str, Any]) -> None:
        """Refuse an extra token where rows go on in those of the next batch."""
        if self.lanes and options.get("extra_token"):
            what = "rows of the partial shuffle go on in the next batch, and the model would not read their last tokens"
            remedy = "leave it out: the label of a row's last token is the first token of the row that goes on"
            raise UsageError("bad-option", what, remedy=remedy, where="extra_token")

    def _require_room(self, options: Mapping[str, Any]) -> None:
        """Refuse a `pad_cu_seqlens` that the fullest row does not go into, before anything is trained.

        Where rows of a later epoch are put together of smaller atoms, or packed anew without a limit, they may be
        fuller than those that are there now. Then a batch of them is refused when it is made.
        """
        fields = options.get("fields", self.fields)
        room = options.get("pad_cu_seqlens")
        require_room(room)
        if room is None or not options.get("documents", True):
            return  # without documents a row is one sequence
        if {"cu_seqlens", "cu_seqlens_padded"}.isdisjoint(fields) and not columns_in(fields):
            return
        most = self._most_documents()
        # A run of padding at the end of a row has room of its own.
        between = max(0, self._runs_of_padding(fields, most) - 1)
        if most + between <= room:
            return
        what = f"room for {plural(room, 'document')} a row, but a row has up to {most}"
        remedy = f"give {most + between}"
        if between:
            what += f", and {between} times padding between them"
        else:
            remedy += f", or pack with --max-documents-per-row {room}"
            limit = self.manifest.options.get("max_documents_per_row")
            remedy += "" if limit is None else f" in place of {limit}"
        raise UsageError("bad-option", what, remedy=remedy, where="pad_cu_seqlens")

    def _runs_of_padding(self, fields: Collection[str], documents: int) -> int:
        """Return how many sequences of a row may be runs of padding, where it has so many documents."""
        if self.manifest.multiple > 1:
            # With these fields, padding goes with the document before it.
            apart = {"cu_seqlens_padded", "max_seqlen_padded"}.isdisjoint(fields)
            return documents if apart else 0
        if not self.manifest.ledger.padding:
            return 0
        return max(bucket.sequence_length // bucket.unit for bucket in self.manifest.buckets)

    def _most_documents(self) -> int:
        """Return how many documents a row has at most; of rows that are packed anew, may have."""
        limit = self.manifest.options.get("max_documents_per_row")
        if limit is not None and self.recipe.epoch is not None and self.recipe.epoch.repack:
            return int(limit)
        report = read_report(self.recipe.place, self.manifest.report, dict[str, Any])
        return int(report["metrics"]["documents_per_row"]["max"])

    @property
    def lanes(self) -> int | None:
        """In how many rows after it each row goes on: those of a batch of the partial shuffle. None if rows don't."""
        shuffle = self.manifest.shuffle
        return None if shuffle is None else shuffle.batch_size

    def _following(self, rows: Rows, numbers: I64, options: Mapping[str, Any]) -> I64 | None:
        """Find the target of each row's last token where rows go on in those of the next batch: the partial shuffle's.

        Returns:
            (rows): `IGNORED` at the end of a lane, and where the next token is none; None where rows do not go on.
        """
        if self.lanes is None or TARGETS.isdisjoint(options.get("fields", FIELDS)):
            return None
        # Row i of a batch is of lane i, which goes on in row i of the next batch.
        following = np.full(len(numbers), IGNORED)
        here = np.flatnonzero(numbers + self.lanes < len(rows))
        ahead = numbers[here] + self.lanes
        tokens, segments = rows.with_segments(ahead)
        loss = rows.loss(ahead, segments)
        # Where a lane was rotated, its last row goes on in its first: a piece that begins in the middle of a document
        # may follow another place. As inside a row, that is no target.
        trains = _goes_on(rows.segments_of(numbers[here]), segments)
        if options.get("train_across_documents", True):
            trains |= segments.start[segments.offsets[:-1]] == 0
        if loss is not None:
            trains &= loss[:, 0] > 0
        following[here[trains]] = tokens[trains, 0]
        return following

    @property
    def sources(self) -> list[str]:
        """The names of the token stores that it was packed from; their digests where its `run.json` is lost."""
        return input_names(self.recipe.place, self.manifest.inputs)

    @property
    def columns(self) -> dict[str, list[str] | None]:
        """The columns that were kept of its documents, each with its list of names; None for numbers.

        A batch has a column as field `column.NAME`. Of categories its values are places in the list.
        """
        return {name: self._columns.categories(name) for name in self._columns.names}

    def _in_epoch(self, number: int, seed: int | None, **options: Any) -> Any:
        """Open the same dataset in the order of an epoch; `options` as in `Epoch`."""
        seed = self.manifest.seed if seed is None else seed
        for where, value, bits in (("epoch", number, 32), ("seed", seed, 64)):
            if not isinstance(value, int | np.integer) or not 0 <= value < 1 << bits:
                remedy = f"give a whole number from 0 to {(1 << bits) - 1}"
                raise UsageError("bad-option", f"{value!r} is out of range", remedy=remedy, where=where)
        return open_recipe(replace(self.recipe, epoch=Epoch(int(number), int(seed), **options)))

    def _suffix(self) -> str:
        recipe = self.recipe
        return "" if recipe.epoch is None else f", epoch {recipe.epoch.number} of seed {recipe.epoch.seed}"


class Dataset(_Packed):
    """A packed dataset of one sequence length: a sequence of rows.

    Attributes:
        rows: of the dataset.
        sequence_length: tokens in a row.
    """

    def __init__(self, recipe: Recipe, opened: Opened) -> None:
        super().__init__(recipe, opened)
        (self.rows,) = opened.rows
        self.sequence_length = self.rows.sequence_length

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Index) -> Array:
        """Return one row, (sequence_length); of a slice, array or list of numbers, (rows, sequence_length).

        A row, and a slice of one shard, is a read-only view of the memory-mapped file where possible.
        """
        return self._checked(lambda: self.rows[index])

    def __iter__(self) -> Iterator[Array]:
        return iter(self.rows)

    def __repr__(self) -> str:
        what = f"{len(self)} rows of {self.sequence_length} tokens"
        return f"<packtool dataset: {what}, {self.recipe.place}{self._suffix()}>"

    def segments(self, index: int) -> npt.NDArray[Any]:
        """Return the segments of one row, in order; document -1 is padding, -2 an EOS that the strategy inserted."""
        return self.rows.segments(index)

    def loss(self, index: Index) -> Array | None:
        """Return whether each token of some rows trains: (rows, sequence_length) uint8, 1 or 0; None if all do."""
        return self.rows.loss(self.rows.numbers(index))

    def batch(self, index: Index, **options: Any) -> Batch:
        """Build a training batch of some rows; `options` are those of `packtool.reading.batch.make_batch`.

        Raises:
            UsageError: the dataset was written with ``--no-segments``, and they are needed.
        """
        return self.batch_of(self.rows, index, **options)

    def epoch(self, number: int, *, seed: int | None = None, repack: bool = False) -> Dataset:
        """Return the same rows in the order that ``packtool shuffle --epoch`` gives them, computed instead of written.

        Takes 8 bytes of memory for an atom.

        Args:
            seed: by default the one the dataset was packed or shuffled with, as for the command.
            repack: pack the documents again, as ``packtool pack --epoch`` does: rows have other neighbours, and there
                may be a few more or fewer of them. For datasets without tokens; plans in memory.
        """
        other: Dataset = self._in_epoch(number, seed, repack=repack)
        return other


class BucketDataset(_Packed):
    """A packed dataset of several sequence lengths: a sequence of batches, each with rows of one length.

    Attributes:
        buckets: maps each length to its rows.
        batches: the batches, in order: an array of (bucket, first_row, rows), where bucket is the sequence length; None
            where none were made. Without them there are no items, but there are the rows of each bucket.
    """

    def __init__(self, recipe: Recipe, opened: Opened) -> None:
        super().__init__(recipe, opened)
        self.buckets = {rows.sequence_length: rows for rows in opened.rows}
        self.batches = opened.batches

    def __len__(self) -> int:
        return len(self._table())

    def __getitem__(self, index: Index) -> Any:
        """Return the tokens of one batch, (rows, sequence length of its bucket); of several, a list of them."""
        if isinstance(index, int | np.integer):
            rows, first, count = self.place(index)
            return self._checked(lambda: rows.tokens(first, first + count))
        return [self[number] for number in numbers_of(index, len(self), "batch").tolist()]

    def __iter__(self) -> Iterator[Array]:
        return (self[number] for number in range(len(self)))

    def __repr__(self) -> str:
        lengths = ", ".join(f"{len(rows)} of {length}" for length, rows in self.buckets.items())
        items = "no batches" if self.batches is None else plural(len(self.batches), "batch")
        return f"<packtool dataset: {items}, rows: {lengths} tokens, {self.recipe.place}{self._suffix()}>"

    def segments(self, index: int) -> list[npt.NDArray[Any]]:
        """Return the segments of each row of one batch."""
        rows, first, count = self.place(index)
        return list(map(rows.segments, range(first, first + count)))

    def batch(self, index: int, **options: Any) -> Batch:
        """Build a training batch of one stored batch; as `Dataset.batch`."""
        rows, first, count = self.place(index)
        return self.batch_of(rows, slice(first, first + count), **options)

    def place(self, index: int | np.integer[Any]) -> tuple[Rows, int, int]:
        """Return the rows of the bucket that a batch is from, its first row and their number."""
        table = self._table()
        bucket, first, count = table[number_of(index, len(table), "batch")].tolist()
        return self.buckets[bucket], first, count

    def epoch(
        self,
        number: int,
        *,
        seed: int | None = None,
        batch_tokens: int | None = None,
        drop_rest: bool = False,
        repack: bool = False,
        blend: Blend | None = None,
    ) -> BucketDataset:
        """Return the batches that ``packtool shuffle --method bucket --epoch`` makes, computed instead of written.

        Args:
            seed: by default the one the dataset was packed or shuffled with, as for the command.
            batch_tokens: tokens in a batch, a multiple of every sequence length; by default as the dataset's own.
            drop_rest: rows of a bucket that do not fill a batch are in none; else they make a smaller one.
            repack: as in `Dataset.epoch`.
            blend: says by its weights of row lengths when which length comes: short rows first, say.
        """
        if batch_tokens is None and self.manifest.shuffle is not None:
            batch_tokens = self.manifest.shuffle.batch_tokens
        other: BucketDataset = self._in_epoch(
            number, seed, batch_tokens=batch_tokens, drop_rest=drop_rest, repack=repack, blend=blend
        )
        return other

    def _table(self) -> npt.NDArray[Any]:
        if self.batches is None:
            raise UsageError(
                "no-batches",
                "the dataset has no batches",
                remedy="make them with packtool shuffle --method bucket, or read dataset.epoch(batch_tokens=N)",
                where=str(self.recipe.place),
            )
        return self.batches


def _cut_off(segments: Segments, *, rotated: bool) -> I64:
    """Find the first tokens of pieces that begin in the middle of a document, behind another document in their row.

    Nothing before them predicts them: where a store says which tokens train, and where a lane of the partial shuffle
    was rotated, so that its end is followed by its begin.

    Args:
        rotated: also behind another place of the same document, as where a lane lies inside one.

    Returns:
        Their places in the rows laid end to end.
    """
    cut = (segments.document >= 0) & (segments.start > 0)
    apart = segments.document[1:] != segments.document[:-1]
    if rotated:
        apart |= segments.start[1:] != segments.start[:-1] + segments.length[:-1]
    cut[1:] &= apart
    first = segments.offsets[:-1]
    cut[first[first < len(cut)]] = False  # nothing in the row precedes its first piece
    return offsets_of(segments.length)[:-1][cut]


def _goes_on(rows: Segments, after: Segments) -> npt.NDArray[np.bool_]:
    """Return for each of some rows whether another one begins where it ends, in the same document."""
    last, first = rows.offsets[1:] - 1, after.offsets[:-1]
    goes_on: npt.NDArray[np.bool_] = rows.document[last] == after.document[first]
    goes_on &= rows.start[last] + rows.length[last] == after.start[first]
    return goes_on


def open_recipe(recipe: Recipe) -> Dataset | BucketDataset:
    """Open a dataset, as another process did.

    Raises:
        UsageError: token ids do not fit the dtype; else as `packtool.reading.recipe.read`.
    """
    opened = read(recipe)
    if recipe.dtype is not None:
        dtype = np.dtype(recipe.dtype)
        largest = max(opened.manifest.tokenizer.vocab_size - 1, opened.manifest.pad_id)
        if not np.issubdtype(dtype, np.integer) or np.iinfo(dtype).max < largest:
            raise UsageError(
                "bad-option",
                f"{dtype} does not hold token ids up to {largest}",
                remedy="give int64, or leave it out for the type they are stored in",
                where="dtype",
            )
    return Dataset(recipe, opened) if single(opened.manifest) else BucketDataset(recipe, opened)
