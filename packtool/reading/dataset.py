"""Packed datasets as sequences: of rows if all have one length, of batches if rows have several lengths."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt

from packtool.blending.blend import Blend
from packtool.errors import UsageError
from packtool.formats.manifest import input_names, read_report
from packtool.options.check import is_whole
from packtool.planning.plan import I64, Ints, Segments, cut_off
from packtool.reading.batch import (
    FIELDS,
    FIELDS_OF_MULTIPLES,
    IGNORED,
    PADDED,
    SEQUENCES,
    TARGETS,
    Batch,
    check_options,
    make_batch,
    require_room,
)
from packtool.reading.column_fields import Values, columns_in, require_columns
from packtool.reading.raw_batch import RawBatch
from packtool.reading.recipe import Epoch, EpochOptions, OpenedRows, Recipe, read, single
from packtool.reading.rows import Index, RowArray, Rows, number_of, numbers_of
from packtool.support.sizes import plural

Result = TypeVar("Result")


class _OpenedDataset:
    """The common parts of opened datasets.

    It is pickled as its path and epoch: a worker process opens it again, and no tokens are sent.

    Attributes:
        recipe: how it was opened.
        manifest: its manifest.
        pad_id, eos_id: token ids.
        has_segments: whether the dataset has a segment table, with the segments of documents in every row.
        has_loss: whether the dataset has a column of loss; without one all tokens train.
        fields: default fields of its batches.
        buckets: the rows of each length, by the length.
    """

    def __init__(self, recipe: Recipe, opened: OpenedRows) -> None:
        self.recipe = replace(recipe, digest=opened.digest)
        self._unchanged = opened.unchanged
        self.manifest = opened.manifest
        self.pad_id = opened.manifest.pad_id
        self.eos_id = opened.manifest.tokenizer.eos_id
        self.buckets = {rows.sequence_length: rows for rows in opened.rows}
        self.has_segments = all(rows.has_segments for rows in opened.rows)
        self.has_loss = opened.manifest.has_loss
        assert opened.columns is not None
        self._columns = opened.columns
        self.fields = FIELDS if opened.manifest.multiple == 1 else FIELDS_OF_MULTIPLES

    def __reduce__(self) -> tuple[Any, ...]:
        return (open_recipe, (self.recipe,))

    def batch_of(self, rows: Rows, index: Index, **options: Any) -> Batch:
        """Build a training batch of some rows of one length; `options` as in `Dataset.batch`."""
        if options.get("fields") is None:
            options["fields"] = self.fields
        require_columns(options["fields"], self._columns.names)
        try:
            return self.read_of(rows, rows.numbers(index), options).batch(**options)
        except TypeError:
            check_options(options, make_batch)
            raise

    def read_of(self, rows: Rows, numbers: I64, options: Mapping[str, Any]) -> RawBatch:
        """Read some rows (from 0) for a training batch: tokens, and segments, loss and columns if needed."""
        return self._checked(lambda: self._read_of(rows, numbers, options))

    def _checked(self, read: Callable[[], Result]) -> Result:
        """Return the result of a function that reads; if it reads by ranges, require an unchanged dataset."""
        if self._unchanged is None or not self.recipe.place.late:
            return read()
        return self._unchanged.opened(read)

    def _read_of(self, rows: Rows, numbers: I64, options: Mapping[str, Any]) -> RawBatch:
        self._require_last_tokens(options)
        fields = options.get("fields", self.fields)
        segments: Segments | None = None
        if self._needs_segments(rows, fields, options):
            tokens, segments = rows.with_segments(numbers)
        else:
            tokens = rows[numbers]
        loss = None
        if not TARGETS.isdisjoint(fields):
            loss = self._loss(rows, numbers, segments)
        following = self._following(rows, numbers, options)
        documents = self.manifest.store_documents if "source" in fields else []
        values: dict[str, Values] | None = None
        columns = columns_in(fields)
        if segments is not None and columns:
            values = {}
            for name in columns:
                if name in self._columns.names:
                    values[name] = self._columns.of(name, segments.document)
        return RawBatch(tokens, segments, loss, following, documents, columns=values)

    def _needs_segments(self, rows: Rows, fields: Collection[str], options: Mapping[str, Any]) -> bool:
        """Return whether a batch of these rows needs their segments; reading rows without them is faster."""
        if columns_in(fields) or options.get("trim"):
            return True
        if "source" in fields and self.manifest.store_documents:
            return True
        if options.get("documents", True) and not SEQUENCES.isdisjoint(fields):
            return True
        if TARGETS.isdisjoint(fields):
            return False
        everywhere = options.get("train_on_repeated", True) and options.get("train_across_documents", True)
        if rows.has_segments or not everywhere:
            return True
        # Padding is no target. The loss says where it is, if there is one. Without both, reading the segments raises
        # the error that says how to pack, which is better than to train on padding.
        return self.manifest.ledger.padding > 0 and not self.has_loss

    def _loss(self, rows: Rows, numbers: I64, segments: Segments | None) -> RowArray | None:
        """Return the loss of some rows: (rows, sequence_length) uint8, 0 also for what `cut_off` finds.

        None if all tokens train: in a dataset without a loss, whose rows are not of the partial shuffle.
        """
        loss = rows.loss(numbers, segments) if self.has_loss else None
        rotated = self.lanes is not None
        if segments is None or (loss is None and not rotated):
            return loss
        # Here, and not where the batch is made: there, rows of a blend may lie beside rows of a source without a
        # loss column, and the labels of a row would depend on its neighbours. A copy, as the array may be read-only.
        loss = np.ones((len(numbers), rows.sequence_length), np.uint8) if loss is None else loss.copy()
        loss.reshape(-1)[cut_off(segments, rotated=rotated)] = 0
        return loss

    def require(self, options: Mapping[str, Any]) -> None:
        """Refuse options of `packtool.reading.make_batch` with which a batch of these rows would fail.

        Raises:
            UsageError: an extra token, if the text of rows goes on in rows of the next batch; rows with more documents
                than `pad_cu_seqlens` has room for.
        """
        self._require_last_tokens(options)
        self._require_room(options)

    def _require_last_tokens(self, options: Mapping[str, Any]) -> None:
        """Refuse an extra token if the text of rows goes on in rows of the next batch."""
        if self.lanes and options.get("extra_token"):
            what = "rows of the partial shuffle go on in the next batch, and the model would not read their last tokens"
            remedy = "leave it out: the label of a row's last token is the first token of the row that goes on"
            raise UsageError("bad-option", what, remedy=remedy, where="extra_token")

    def _require_room(self, options: Mapping[str, Any]) -> None:
        """Refuse a `pad_cu_seqlens` without room for the fullest row, before training begins.

        Rows of a later epoch may be fuller than the present rows, if atoms are smaller than rows, or rows are packed
        anew without a limit. A batch of such rows is refused when it is made.
        """
        fields = options.get("fields", self.fields)
        room = options.get("pad_cu_seqlens")
        require_room(room)
        if room is None or not options.get("documents", True):
            return  # without documents a row is one sequence
        if {"cu_seqlens", "cu_seqlens_padded"}.isdisjoint(fields) and not columns_in(fields):
            return
        most = self._most_documents()
        if most is None:
            return  # a batch of a row with more is refused when it is made
        # A run of padding at the end of a row has room of its own.
        between = max(0, self._runs_of_padding(fields, most) - 1)
        if most + between <= room:
            return
        what = f"room for {plural(room, 'document')} a row, but a row has up to {most}"
        remedy = f"give {most + between}"
        if between:
            what += f", and {between} times padding between them"
        else:
            remedy += f", or pack with --max-documents-per-row={room}"
            limit = self.manifest.options.get("max_documents_per_row")
            remedy += "" if limit is None else f" in place of {limit}"
        raise UsageError("bad-option", what, remedy=remedy, where="pad_cu_seqlens")

    def _runs_of_padding(self, fields: Collection[str], documents: int) -> int:
        """Return the number of sequences in a row of this many documents that may be runs of padding."""
        if self.manifest.multiple > 1:
            # With these fields, padding goes with the document before it.
            apart = PADDED.isdisjoint(fields)
            return documents if apart else 0
        if not self.manifest.ledger.padding:
            return 0
        return max(bucket.sequence_length // bucket.unit for bucket in self.manifest.buckets)

    def _most_documents(self) -> int | None:
        """Return the most documents that a row has; for rows that are packed anew, the most that it may have.

        None where the report does not say.
        """
        limit = self.manifest.options.get("max_documents_per_row")
        if limit is not None and self.recipe.epoch is not None and self.recipe.epoch.options.repack:
            return int(limit)
        report = read_report(self.recipe.place, self.manifest.report, dict[str, Any])
        metrics = report.get("metrics") or {}
        most = (metrics.get("documents_per_row") or {}).get("max")
        if not isinstance(most, int):
            return None
        return most

    @property
    def lanes(self) -> int | None:
        """The distance from a row to the row in which its text goes on: the rows of a batch of the partial shuffle.

        None for other datasets.
        """
        shuffle = self.manifest.shuffle
        return None if shuffle is None else shuffle.batch_size

    def _following(self, rows: Rows, numbers: I64, options: Mapping[str, Any]) -> I64 | None:
        """Find the targets of the last tokens of rows, if their text goes on in rows of the next batch.

        Returns:
            (rows): `IGNORED` at the end of a lane, and if the next token is no target; None for other datasets.
        """
        if self.lanes is None or TARGETS.isdisjoint(options.get("fields", FIELDS)):
            return None
        # Row i of a batch is of lane i, which goes on in row i of the next batch.
        following = np.full(len(numbers), IGNORED)
        here = np.flatnonzero(numbers + self.lanes < len(rows))
        ahead = numbers[here] + self.lanes
        tokens, segments = rows.with_segments(ahead)
        loss = rows.loss(ahead, segments)
        # A lane was rotated, so its end is followed by its start: there a piece from the middle of a document follows
        # something else. As inside a row, its first token is no target.
        trains = _goes_on(rows.segments_of(numbers[here]), segments)
        if options.get("train_across_documents", True):
            trains |= segments.start[segments.offsets[:-1]] == 0
        if loss is not None:
            trains &= loss[:, 0] > 0
        following[here[trains]] = tokens[trains, 0]
        return following

    @property
    def sources(self) -> list[str]:
        """The names of the token stores that the dataset was packed from; their digests if its `run.json` is lost."""
        return input_names(self.recipe.place, self.manifest.inputs)

    @property
    def columns(self) -> dict[str, list[str] | None]:
        """The kept columns of documents by name, with their lists of categories; None for columns of numbers.

        A batch has a column as the field `column.NAME`. The values of a column of categories are places in its list.
        """
        return {name: self._columns.categories(name) for name in self._columns.names}

    def in_epoch(self, number: int, options: EpochOptions) -> Self:
        """Open the same dataset in the order of an epoch.

        Raises:
            UsageError: the number or the seed is out of range; the epoch can't be computed.
        """
        options = options.of(self.manifest)
        seed: Any = options.seed
        for where, value, bits in (("epoch", number, 32), ("seed", seed, 64)):
            if not is_whole(value) or not 0 <= value < 1 << bits:
                remedy = f"give a whole number from 0 to {(1 << bits) - 1}"
                raise UsageError("bad-option", f"{value!r} is out of range", remedy=remedy, where=where)
        epoch = Epoch(int(number), replace(options, seed=int(seed)))
        return cast("Self", open_recipe(replace(self.recipe, epoch=epoch)))

    def _suffix(self) -> str:
        recipe = self.recipe
        return "" if recipe.epoch is None else f", epoch {recipe.epoch.number} of seed {recipe.epoch.seed}"


class Dataset(_OpenedDataset):
    """A packed dataset of one sequence length: a sequence of rows.

    Attributes:
        rows: the rows, without batches.
        sequence_length: tokens in a row.
    """

    def __init__(self, recipe: Recipe, opened: OpenedRows) -> None:
        super().__init__(recipe, opened)
        (self.rows,) = opened.rows
        self.sequence_length = self.rows.sequence_length

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Index) -> RowArray:
        """Return a row, (sequence_length); for a slice, array or list of numbers several rows, (rows, sequence_length).

        A row, or a slice of one shard, is a read-only view of the memory-mapped file if possible.
        """
        return self._checked(lambda: self.rows[index])

    def __iter__(self) -> Iterator[RowArray]:
        return iter(self.rows)

    def __repr__(self) -> str:
        what = f"{plural(len(self), 'row')} of {self.sequence_length} tokens"
        return f"<packtool dataset: {what}, {self.recipe.place}{self._suffix()}>"

    @property
    def order(self) -> Ints:
        """The number of the stored atom at each place: (atoms) uint32, or int64 from 2^32 atoms on.

        An incomplete last atom is not in it: it is last.
        Atoms are rows; with ``pack --atom-size`` they are runs of this many tokens, or of whole rows (docs/format.md).

        Raises:
            UsageError: rows are packed anew (`repack`), or lanes rotated: no order of the stored rows gives them.

        >>> dataset.epoch(1).order  # doctest: +SKIP
        array([3, 0, 2, 1], dtype=uint32)
        """
        return self.rows.order

    def segments(self, index: int) -> npt.NDArray[Any]:
        """Return the segments of one row, in order; document -1 is padding, -2 an EOS that the strategy inserted."""
        return self.rows.segments(index)

    def loss(self, index: Index) -> RowArray | None:
        """Return the loss of some rows: (rows, sequence_length) uint8, 1 for tokens that train; None if all train."""
        return self.rows.loss(self.rows.numbers(index))

    def batch(self, index: Index, **options: Any) -> Batch:
        """Build a training batch of some rows; `options` as in `packtool.reading.batch.make_batch`.

        Raises:
            UsageError: segments are needed, but the dataset was written with ``--no-segments``.
        """
        return self.batch_of(self.rows, index, **options)

    def epoch(self, number: int, *, seed: int | None = None, repack: bool = False) -> Dataset:
        """Return the same rows in the order that ``packtool shuffle --epoch`` gives them, computed instead of written.

        The order takes 4 bytes for every atom.

        Args:
            seed: by default the seed that the dataset was packed or shuffled with, as for the command.
            repack: pack the documents again, as ``packtool pack --epoch`` does: documents get other neighbours in
                rows, and the number of rows may differ a little. For datasets without tokens; plans in memory.
        """
        return self.in_epoch(number, EpochOptions(seed=seed, repack=repack))


class BucketDataset(_OpenedDataset):
    """A packed dataset of several sequence lengths: a sequence of batches, each with rows of one length.

    Attributes:
        batches: the batches, in order: an array of (bucket, first_row, rows), in which bucket is the sequence length;
            None if the dataset has no batches. Then this sequence is empty, but `buckets` has the rows.
    """

    def __init__(self, recipe: Recipe, opened: OpenedRows) -> None:
        super().__init__(recipe, opened)
        self.batches = opened.batches

    def __len__(self) -> int:
        return len(self._table())

    def __getitem__(self, index: Index) -> Any:
        """Return the tokens of a batch, (rows, sequence length of its bucket); for several batches a list of arrays."""
        if isinstance(index, int | np.integer):
            rows, first, count = self.place(index)
            return self._checked(lambda: rows.tokens(first, first + count))
        return [self[number] for number in numbers_of(index, len(self), "batch").tolist()]

    def __iter__(self) -> Iterator[RowArray]:
        return (self[number] for number in range(len(self)))

    def __repr__(self) -> str:
        lengths = ", ".join(f"{len(rows)} of {length}" for length, rows in self.buckets.items())
        items = "no batches" if self.batches is None else plural(len(self.batches), "batch")
        return f"<packtool dataset: {items}, rows: {lengths} tokens, {self.recipe.place}{self._suffix()}>"

    def segments(self, index: int) -> list[npt.NDArray[Any]]:
        """Return the segments of each row of one batch."""
        rows, first, count = self.place(index)
        return list(map(rows.segments, range(first, first + count)))

    def batch(self, index: Index, **options: Any) -> Batch:
        """Build a training batch of the rows of a stored batch, or of several of one length, as `Dataset.batch` does.

        Raises:
            UsageError: batches of several lengths.
        """
        lengths: dict[int, Rows] = {}
        numbers: list[I64] = []
        for number in np.atleast_1d(numbers_of(index, len(self), "batch")).tolist():
            rows, first, count = self.place(number)
            lengths[rows.sequence_length] = rows
            numbers.append(np.arange(first, first + count))
        if len(lengths) != 1:
            what = f"batches of rows of {' and '.join(map(str, sorted(lengths))) or 'no length'} are no batch together"
            raise UsageError("bad-option", what, remedy="name one batch, or several of one length", where="index")
        return self.batch_of(rows, np.concatenate(numbers), **options)

    def place(self, index: int | np.integer[Any]) -> tuple[Rows, int, int]:
        """Return the bucket of a batch, the number of its first row there, and its number of rows."""
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
            seed, repack: as in `Dataset.epoch`.
            batch_tokens: tokens in a batch, a multiple of every sequence length; by default as the dataset's batches.
            drop_rest: leave out rows of a bucket that do not fill a batch; otherwise they make a smaller batch.
            blend: its weights order the batches by their row lengths, such as short rows first.
        """
        options = EpochOptions(seed=seed, repack=repack, batch_tokens=batch_tokens, drop_rest=drop_rest, blend=blend)
        return self.in_epoch(number, options)

    def _table(self) -> npt.NDArray[Any]:
        if self.batches is None:
            what = "the dataset has no batches"
            remedy = "make them with `packtool shuffle --method bucket`, or read dataset.epoch(batch_tokens=N)"
            raise UsageError("no-batches", what, remedy=remedy, where=str(self.recipe.place))
        return self.batches


def _goes_on(rows: Segments, after: Segments) -> npt.NDArray[np.bool_]:
    """Return whether a row's text goes on, in the same document, with the row at its place in `after`: (rows)."""
    last, first = rows.offsets[1:] - 1, after.offsets[:-1]
    goes_on: npt.NDArray[np.bool_] = rows.document[last] == after.document[first]
    goes_on &= rows.start[last] + rows.length[last] == after.start[first]
    return goes_on


def open_recipe(recipe: Recipe) -> Dataset | BucketDataset:
    """Open the dataset of a recipe, in this process or another one.

    Raises:
        UsageError: token ids do not fit the dtype; else as `packtool.reading.recipe.read`.
    """
    opened = read(recipe)
    if recipe.dtype is not None:
        dtype = np.dtype(recipe.dtype)
        largest = max(opened.manifest.tokenizer.vocab_size - 1, opened.manifest.pad_id)
        if not np.issubdtype(dtype, np.integer) or np.iinfo(dtype).max < largest:
            what = f"{dtype} does not hold token ids up to {largest}"
            remedy = "give int64, or leave it out for the type they are stored in"
            raise UsageError("bad-option", what, remedy=remedy, where="dtype")
    return Dataset(recipe, opened) if single(opened.manifest) else BucketDataset(recipe, opened)
