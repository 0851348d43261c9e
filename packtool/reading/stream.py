"""All epochs of a dataset as one stream of samples, so that one number names a sample and its epoch.

Sample k is item ``k % n`` of epoch ``k // n``, n the items of an epoch: a row, or for a dataset of several lengths a
batch. Where every epoch is packed anew, they may differ in items, and each begins where the one before it ends. What
any process reads depends on k alone, which is what makes order and resuming independent of world size. The stream has
no end: a pass is a number of epochs, and the next pass has the epochs that follow.
"""

from __future__ import annotations

import secrets
import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from packtool.blending.blend import Blend
from packtool.errors import DataError, UsageError
from packtool.formats.manifest import input_entry
from packtool.places.typed import cache_directory, places_of
from packtool.planning.plan import I64, by_value
from packtool.planning.shuffling.balance import pairs_of
from packtool.reading.batch import Batch, check_options, make_batch
from packtool.reading.dataset import BucketDataset, Dataset, open_recipe
from packtool.reading.raw_batch import RawBatch, joined, of_no_rows
from packtool.reading.recipe import CACHE_BYTES, SHARDS, Recipe, training_place
from packtool.reading.rows import Rows
from packtool.warnings import warn

Key: TypeAlias = "int | tuple[int, int]"
"""A sample that is a row; or of a sample that is a batch one row, or none of them (-1)."""

_BY_WEIGHTS = ", row lengths by weights "
"""In the order of a state, before the digest of the weights."""
_COSTS = "row-pairs"
"""Directory in the cache for what rows cost, by the digest of the dataset's manifest: all copies of it share a file."""
_CALL = 1 << 18  # tokens of a source that are read at once: most of what a call costs is then what it reads
_AHEAD = 1 << 21  # tokens of all sources that are read at once, at most
_ROWS_AT_ONCE = 1 << 13  # whose segments are held to count what they cost


class Stream:
    """Epochs of a packed dataset.

    It pickles by path; a worker process opens an epoch when it is first asked for a sample of it, and keeps one open.

    Args:
        source: path or URL of a packed dataset.
        epochs: of a pass, each with every sample once.
        shuffle: each epoch in its own order, as ``packtool shuffle --seed --epoch`` writes it, computed; else every
            epoch in stored order.
        seed: of these orders; by default the one the dataset was packed or shuffled with.
        batch_tokens: tokens in a batch; for rows of several lengths by default as the dataset's own batches, for rows
            of one length a row.
        drop_rest: for rows of several lengths: rows that do not fill a batch are in none.
        repack: pack the documents again for each epoch; for a dataset without tokens.
        blend: says by its weights of row lengths when which length comes.
        cache, cache_bytes, fetch, stores: as in `packtool.open`.
        options: of `packtool.reading.make_batch`.

    Attributes:
        items: samples in the first epoch, and in every other one that is not packed anew.
        bucketed: samples are batches.
        batch_rows: rows of one length that make `batch_tokens`.
        rows_ahead: rows to read at once, for several batches; 0 where each is read when it is needed.
    """

    def __init__(
        self,
        source: str | Path,
        *,
        epochs: int = 1,
        shuffle: bool = True,
        seed: int | None = None,
        batch_tokens: int | None = None,
        drop_rest: bool = False,
        repack: bool = False,
        blend: Blend | None = None,
        cache: str | Path | None = None,
        cache_bytes: str | int = CACHE_BYTES,
        fetch: str = SHARDS,
        stores: str | Path | Sequence[str | Path] = (),
        **options: Any,
    ) -> None:
        check_options(options, Stream, make_batch)
        if not isinstance(epochs, int | np.integer) or epochs < 1:
            raise UsageError("bad-option", f"{epochs} is out of range", remedy="give 1 or more", where="epochs")
        if repack and not shuffle:
            what, remedy = "an epoch that is packed anew has an order of its own", "leave one of the two out"
            raise UsageError("bad-option", what, remedy=remedy, where="repack")
        place = partial(training_place, directory=cache, size=cache_bytes, fetch=fetch)
        self.recipe = Recipe(place(source), stores=tuple(map(place, places_of(stores))))
        self._cache = cache_directory() if cache is None else Path(cache).absolute()
        self.epochs = epochs
        self.options = options
        self._shuffle = shuffle
        self._seed = seed
        self._batch_tokens = batch_tokens
        self._drop_rest = drop_rest
        self._repack = repack
        self._blend = blend
        self._begins = [0]
        self._opened: tuple[int, Dataset | BucketDataset] | None = None
        self._pairs: dict[int, I64] = {}
        first = self.epoch(0)
        first.require(options)
        self.options.setdefault("fields", first.fields)
        self.bucketed = isinstance(first, BucketDataset)
        self._multiple = first.manifest.multiple
        self.items = len(first)
        if isinstance(first, BucketDataset):
            self.batch_rows, self.rows_ahead = 1, 0
        else:
            self.batch_rows = rows_in(batch_tokens, first.sequence_length)
            self.rows_ahead = rows_ahead(first.sequence_length, 1, near=self.near)
        self.batch([])  # options that make no sense are found here, not in a worker

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None, "_pairs": {}}

    def __len__(self) -> int:
        """Count the samples of the first pass: of all its epochs."""
        return self.begin_of(self.epochs)

    def __repr__(self) -> str:
        return repr(self.epoch(0))

    @property
    def names(self) -> list[str]:
        """The token stores that the rows were packed from, by the numbers that `source` has in a batch."""
        return self.epoch(0).sources

    @property
    def near(self) -> bool:
        """Whether it lies in a directory of this machine."""
        return self.recipe.place.near

    def begin_of(self, number: int) -> int:
        """Return the first sample of an epoch. Where epochs are repacked, this plans those before it."""
        if not self._repack:
            return number * self.items
        while len(self._begins) <= number:
            self._begins.append(self._begins[-1] + len(self.epoch(len(self._begins) - 1)))
        return self._begins[number]

    def epoch_of(self, sample: int) -> tuple[int, int]:
        """Return the epoch of a sample, and which of its items it is."""
        if not self._repack:
            return divmod(sample, self.items)
        while self._begins[-1] <= sample:
            self.begin_of(len(self._begins))
        number = bisect_right(self._begins, sample) - 1
        return number, sample - self._begins[number]

    def epochs_of(self, samples: I64) -> tuple[I64, I64]:
        """Apply `epoch_of` to several samples."""
        if not self._repack or not len(samples):
            return samples // self.items, samples % self.items
        self.epoch_of(int(samples.max()))
        numbers = np.searchsorted(self._begins, samples, side="right") - 1
        return numbers, samples - np.array(self._begins)[numbers]

    @cached_property
    def identity(self) -> dict[str, Any]:
        """The identity of this stream: another one may mean another sample by the same number.

        Returns:
            items: samples in an epoch.
            dataset: the digest of its manifest.
            order: ``computed``; ``repacked``; or ``stored``; where row lengths have weights, with their digest.
            seed: of computed orders, else None.
            batch_tokens, drop_rest: of rows of several lengths, whose batches they make.
        """
        order = "repacked" if self._repack else "computed" if self._shuffle else "stored"
        seed = None
        if self._shuffle:
            seed = self.epoch(0).manifest.seed if self._seed is None else self._seed
        if self._blend is not None:
            order += f"{_BY_WEIGHTS}{self._blend.digest()}"
        digest = input_entry(self.recipe.place).xxh3_128
        identity: dict[str, Any] = {"items": self.items, "dataset": digest, "order": order, "seed": seed}
        if self.bucketed:
            shuffle = self.epoch(0).manifest.shuffle
            tokens = self._batch_tokens or (shuffle and shuffle.batch_tokens)
            identity |= {"batch_tokens": tokens, "drop_rest": self._drop_rest}
        return identity

    def state(self, samples: int) -> dict[str, Any]:
        """Return the state after some samples: how many, and `identity`."""
        return {"samples": samples, **self.identity}

    def restore(self, state: Mapping[str, Any]) -> int:
        """Return the samples of a state of this stream.

        Raises:
            DataError: not a state; or that of another dataset, order or seed.
        """
        where = str(self.recipe.place)
        samples = state.get("samples") if isinstance(state, Mapping) else None
        if not isinstance(samples, int) or isinstance(samples, bool) or samples < 0 or "items" not in state:
            what = f"{state!r:.100} is not the state of a loader, which has samples, items, dataset, order and seed"
            raise DataError("bad-state", what, remedy="give what its state_dict returned", where=where)
        missing = [name for name in self.identity if name not in state]
        for name, value in self.identity.items():
            if name in state and state[name] != value:
                raise state_differs(name, state[name], value, where)
        if missing and "dataset" in state and {*missing} & {"order", "seed"}:
            what = f"the state has no {' and no '.join(missing)}"
            raise DataError("bad-state", what, remedy="give what the loader's state_dict returned", where=where)
        if missing:
            what = f"the state has no {' and no '.join(missing)}, as an earlier version wrote it"
            remedy = "make sure that the loader has the dataset, order, seed and batch_tokens of the run"
            warn("state-unnamed", what, remedy=remedy, where=where)
        return samples

    def located(self, samples: Sequence[Key]) -> Sequence[Key] | I64:
        """Return what a batch of some samples is asked for by."""
        return samples

    def next_block(self, sample: int) -> int:
        """Return the sample from which others could come if something were changed while training: none."""
        return sys.maxsize

    def epoch(self, number: int) -> Dataset | BucketDataset:
        """Return the dataset in the order of one epoch, from 0."""
        if self._opened is None or self._opened[0] != number:
            self._opened = None  # an order takes memory: let go of the last one before the next is made
            self._opened = number, self._open(number)
        return self._opened[1]

    def rows_of(self, sample: int) -> int:
        """Count the rows in a sample that is a batch."""
        return self._place(sample)[3]

    def full_rows_of(self, sample: int) -> int:
        """Count the rows that a batch of the same length has if its bucket has enough of them."""
        dataset, rows, _, count = self._place(sample)
        tokens = self._batch_tokens or getattr(dataset.manifest.shuffle, "batch_tokens", None)
        return tokens // rows.sequence_length if tokens else count

    def _place(self, sample: int) -> tuple[BucketDataset, Rows, int, int]:
        """Return the dataset of a sample that is a batch, the rows of its bucket, its first row and their number."""
        number, item = self.epoch_of(sample)
        dataset = cast("BucketDataset", self.epoch(number))
        return dataset, *dataset.place(item)

    def pairs(self, batches: Sequence[Sequence[Key]]) -> I64:
        """Return what each row of some batches costs in attention: query-key pairs within its documents.

        Args:
            batches: each of one sample, with all of its rows; or of samples, one after another through all batches.

        Raises:
            UsageError: the dataset was written with ``--no-segments``.
        """
        parts: list[I64] = []
        if self.bucketed:
            for batch in batches:
                sample, _ = cast("tuple[int, int]", batch[0])
                _, rows, first, count = self._place(sample)
                parts.append(self._pairs_of(rows, np.arange(first, first + count)))
            return np.concatenate(parts)
        first, last = cast("int", batches[0][0]), cast("int", batches[-1][-1])
        while first <= last:
            number, item = self.epoch_of(first)
            dataset = cast("Dataset", self.epoch(number))
            parts.append(self._pairs_of(dataset.rows, np.arange(item, min(item + last + 1 - first, len(dataset)))))
            first += len(parts[-1])
        return np.concatenate(parts)

    def read(self, keys: Sequence[Key]) -> RawBatch:
        """Read what a batch of some samples is made of, in the given order."""
        if not keys:
            first = self.epoch(0)
            length = next(iter(first.buckets)) if isinstance(first, BucketDataset) else first.sequence_length
            return of_no_rows(length)
        if self.bucketed:
            pairs = cast("Sequence[tuple[int, int]]", keys)
            dataset, rows, begin, _ = self._place(pairs[0][0])
            inside = np.array([begin + row for _, row in pairs if row >= 0], np.int64)
            return dataset.read_of(rows, inside, self.options)
        return self.read_rows(np.array(keys, np.int64), self.options)

    def read_rows(self, samples: I64, options: Mapping[str, Any]) -> RawBatch:
        """Read some samples, which are rows, for a batch with these options of `packtool.reading.make_batch`."""
        numbers, items = self.epochs_of(samples)

        def parts() -> Iterator[tuple[I64, RawBatch]]:
            for number, places in by_value(numbers):
                epoch = cast("Dataset", self.epoch(number))
                yield places, epoch.read_of(epoch.rows, items[places], options)

        return joined(len(samples), parts())

    def batch(self, keys: Sequence[Key]) -> Batch:
        """Build a training batch of some samples in the given order."""
        return self.read(keys).batch(**self.options)

    def _pairs_of(self, rows: Rows, numbers: I64) -> I64:
        numbers_stored = rows.stored_numbers(numbers)
        if numbers_stored is None:
            return row_pairs(rows, numbers, self._multiple)
        length = rows.sequence_length
        if length not in self._pairs:
            base = open_recipe(replace(self.recipe, epoch=None))
            stored = base.rows if isinstance(base, Dataset) else base.buckets[length]
            file = self._cache / _COSTS / f"{self.identity['dataset']}-{length}.npy"
            self._pairs[length] = _kept_pairs(stored, self._multiple, file)
        return self._pairs[length][numbers_stored]

    def _open(self, number: int) -> Dataset | BucketDataset:
        dataset = open_recipe(self.recipe)
        wanted: dict[str, Any] = {"seed": self._seed, "repack": self._repack}
        if isinstance(dataset, BucketDataset):
            wanted |= {"batch_tokens": self._batch_tokens, "drop_rest": self._drop_rest, "blend": self._blend}
            if dataset.batches is None and not self._shuffle:
                return dataset.epoch(0, **wanted)
        return dataset.epoch(number, **wanted) if self._shuffle else dataset


def state_differs(name: str, saved: object, mine: object, where: str) -> DataError:
    """Return the error for a state of something else."""
    what = f"{name}: {saved} in the state, {mine} in this loader"
    remedy = "resume with the dataset, order and seed that the run began with"
    if name == "order" and all(_BY_WEIGHTS in str(order) for order in (saved, mine)):
        what = "the state is from a run with other weights of row lengths, which place every batch of an epoch"
        remedy = "resume with the weights that it began with"
    return DataError("state-differs", what, remedy=remedy, where=where)


def row_pairs(rows: Rows, numbers: I64, multiple: int = 1) -> I64:
    """Count query-key pairs of some rows, as `pairs_of` does, from their segments.

    Raises:
        UsageError: the dataset was written with ``--no-segments``.
    """
    parts = [numbers[first : first + _ROWS_AT_ONCE] for first in range(0, len(numbers), _ROWS_AT_ONCE)]
    return np.concatenate([np.empty(0, np.int64), *(pairs_of(rows.segments_of(part), multiple) for part in parts)])


def _kept_pairs(rows: Rows, multiple: int, file: Path) -> I64:
    """Return the pairs of all rows in stored order, from the file; or compute them, and keep them there if possible."""
    try:
        kept: I64 = np.load(file, mmap_mode="r")
        if kept.shape == (len(rows),) and kept.dtype == np.int64:
            return kept
    except (OSError, ValueError, EOFError):
        pass
    pairs = row_pairs(rows, np.arange(len(rows)), multiple)
    unfinished = file.with_name(f"{file.name}.{secrets.token_hex(4)}")  # nobody else writes to what a reader maps
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with unfinished.open("xb") as out:
            np.save(out, pairs)
        unfinished.replace(file)
    except OSError:
        unfinished.unlink(missing_ok=True)  # where nothing can be kept, they are computed again
    return pairs


def rows_ahead(length: int, sources: int, *, near: bool) -> int:
    """Return how many rows of this length to read at once; none where they have to be fetched, perhaps a shard each."""
    return min(sources * _CALL, _AHEAD) // length if near else 0


def rows_in(batch_tokens: int | None, length: int) -> int:
    if batch_tokens is None:
        return 1
    if batch_tokens < length or batch_tokens % length:
        what = f"{batch_tokens} is not a multiple of the {length} tokens of a row"
        raise UsageError("bad-option", what, remedy="give a multiple, or batch_size in rows", where="batch_tokens")
    return batch_tokens // length
