"""The sources of a blend, opened: each a stream of its own, all of one row length and one tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from packtool.blending.blend import Blend, Source
from packtool.errors import UsageError
from packtool.formats import manifest as manifests
from packtool.formats.schema import PackedManifest, TokenizerInfo
from packtool.planning.plan import I64, by_value
from packtool.reading.batch import FIELDS
from packtool.reading.blend_schedule import Extent, schedule_of
from packtool.reading.dataset import Dataset
from packtool.reading.raw_batch import RawBatch, joined, of_no_rows
from packtool.reading.recipe import CACHE_BYTES, SHARDS, single, training_place
from packtool.reading.stream import Stream


class Sources:
    """The sources of a blend, and which of them each sample is from.

    Sample n is row j of a source, j counted through its epochs; row j is sample j of the source's own stream, so its
    order depends on no other source.

    Args:
        blend: as it was written.
        options: as in `Stream`, but for what the blend says of each source.

    Attributes:
        names: of the sources, in alphabetical order; a number of a source is its place here.
        streams: of those that have a path.
        sequence_length: tokens in a row.
        fields: of a batch by default.
        extents: how much each source has.
        schedule: of the run.

    Raises:
        UsageError: sources that don't go together, or are one and the same; as in `schedule_of`.
        DataError: a source is missing, unfinished or damaged.
    """

    def __init__(self, blend: Blend, **options: Any) -> None:
        self.blend = blend
        self.names = tuple(sorted(blend.sources))
        written = {name: source for name, source in sorted(blend.sources.items()) if source.path is not None}
        self.streams = {name: _stream(source, options) for name, source in written.items()}
        first = {name: cast("Dataset", stream.epoch(0)) for name, stream in self.streams.items()}
        _require_alike(blend, first)
        self.sequence_length = next(iter(first.values())).sequence_length
        self.fields = (*next(iter(first.values())).fields, "source")
        self.extents = {name: self._extent(name, source) for name, source in blend.sources.items()}
        self.schedule = schedule_of(blend, self.extents, self.sequence_length)

    def _extent(self, name: str, source: Source) -> Extent:
        if name not in self.streams:
            return Extent(0)
        stream = self.streams[name]
        epochs = 1 if source.stop and source.max_epochs is None else source.max_epochs
        return Extent(stream.items, None if epochs is None else stream.begin_of(epochs))

    @property
    def gone(self) -> set[str]:
        """Sources without a path, whose rows are all in the past of a run that is resumed."""
        return set(self.names) - self.streams.keys()

    def require_paths(self) -> None:
        """Refuse to begin a run without all of its sources.

        Raises:
            UsageError: a source has no path.
        """
        for name in sorted(self.gone):
            what, remedy = f"{name} has no path", "give it one, or resume from a state in which its rows are past"
            raise UsageError("missing-option", what, remedy=remedy, where=self.blend.sources[name].where)

    def stream(self, number: int) -> Stream:
        """Return the stream of a source by its number.

        Raises:
            UsageError: it has no path.
        """
        if self.names[number] not in self.streams:
            self.require_paths()
        return self.streams[self.names[number]]

    def read(self, source: I64, row: I64, options: Mapping[str, Any]) -> RawBatch:
        """Read what a training batch is made of, of rows of some sources, in the given order.

        Args:
            source: by number, of each row.
            row: which of the rows of its source it is, through all epochs.
            options: of `packtool.reading.make_batch`.
        """
        fields = options.get("fields", FIELDS)
        options = {**options, "fields": [name for name in fields if name != "source"]}
        if not len(source):
            return of_no_rows(self.sequence_length)._replace(source=source.astype(np.int32))
        parts = ((places, self.stream(number).read_rows(row[places], options)) for number, places in by_value(source))
        return joined(len(source), parts)._replace(source=source.astype(np.int32))


def several_lengths(blend: Blend, options: Mapping[str, Any]) -> Source | None:
    """Return the only source of a blend where that has rows of several lengths, which then have the weights.

    Args:
        options: of places, as in `packtool.open`.

    Raises:
        UsageError: one of several sources has rows of several lengths.
    """
    for name, source in blend.sources.items():
        lengths = [] if source.path is None else _lengths(source.path, options)
        if not lengths:
            continue
        if len(blend.sources) == 1:
            return source
        listed = ", ".join(map(str, lengths))
        what = f"{name} has rows of several lengths ({listed}), so it can't be blended with others"
        raise UsageError("sources-differ", what, remedy="pack it to rows of one length", where=source.where)
    return None


def _lengths(path: str, options: Mapping[str, Any]) -> list[int]:
    kept = options.get("cache"), options.get("cache_bytes", CACHE_BYTES), options.get("fetch", SHARDS)
    manifest = manifests.read(training_place(path, *kept))
    if not isinstance(manifest, PackedManifest) or single(manifest):
        return []
    return [bucket.sequence_length for bucket in manifest.buckets]


def _stream(source: Source, options: Mapping[str, Any]) -> Stream:
    own = {"repack": source.repack, "shuffle": source.shuffle, "seed": source.seed, "stores": source.stores}
    return Stream(str(source.path), **own, **options)  # type: ignore[arg-type]


def _require_alike(blend: Blend, datasets: Mapping[str, Dataset]) -> None:
    """Refuse sources of several row lengths or tokenizers, and a dataset that is two sources."""
    if not datasets:
        what, remedy = "no source has a path", "give a packed dataset"
        raise UsageError("missing-option", what, remedy=remedy, where=blend.name)
    tokenizers: dict[str, tuple[str, TokenizerInfo]] = {}
    lengths: dict[int, str] = {}
    multiples: dict[int, str] = {}
    places: dict[str, str] = {}
    for name, dataset in datasets.items():
        where = blend.sources[name].where
        other = places.setdefault(str(dataset.recipe.place), name)
        if other != name:
            what, remedy = (
                f"{other} and {name} are the same dataset",
                "name it once; its weight says how often it comes",
            )
            raise UsageError("source-named-twice", what, remedy=remedy, where=where)
        lengths.setdefault(dataset.sequence_length, name)
        tokenizer = dataset.manifest.tokenizer
        tokenizers.setdefault(tokenizer.sha256, (name, tokenizer))
        if len(lengths) > 1:
            (length, one), _ = lengths.items()
            what = f"{name} has rows of {dataset.sequence_length} tokens, {one} of {length}"
            raise UsageError("sources-differ", what, remedy="pack all sources to rows of one length", where=where)
        multiples.setdefault(dataset.manifest.multiple, name)
        if len(multiples) > 1:
            (multiple, one), _ = multiples.items()
            what = f"documents of {name} begin at multiples of {dataset.manifest.multiple}, of {one} at {multiple}"
            remedy = "pack all sources with the same --document-multiple"
            raise UsageError("sources-differ", what, remedy=remedy, where=where)
        if len(tokenizers) > 1:
            (one, _), _ = tokenizers.values()
            what = f"{name} has other tokens than {one}, by another tokenizer"
            raise UsageError("sources-differ", what, remedy="tokenize all sources with one tokenizer", where=where)
