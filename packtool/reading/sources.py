"""Open the sources of a run: one dataset, or the datasets of a blend, of one row length and one tokenizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from packtool.blending.blend import Blend, WrittenSource
from packtool.errors import PacktoolError, UsageError
from packtool.formats.schema import PackedManifest
from packtool.places.place import Place
from packtool.places.typed import Typed, cache_directory
from packtool.reading.dataset import BucketDataset, Dataset, open_recipe
from packtool.reading.epochs import Source
from packtool.reading.recipe import CACHE_BYTES, SHARDS, EpochOptions, Fetch, Recipe, training_place


class CacheOptions(NamedTuple):
    """How the files of a dataset at a URL are kept on this machine, as in `packtool.open`."""

    cache: str | Path | None = None
    cache_bytes: str | int = CACHE_BYTES
    fetch: Fetch = SHARDS

    def recipe(self, source: Typed, stores: Sequence[Typed] = (), dtype: str | None = None) -> Recipe:
        """Return the recipe of a dataset."""
        places = tuple(map(self._place, stores))
        return Recipe(self._place(source), dtype, stores=places, orders=self.directory / "orders")

    @property
    def directory(self) -> Path:
        """Directory for figures that are computed of datasets once, such as `RowCosts`."""
        return cache_directory() if self.cache is None else Path(self.cache).absolute()

    def _place(self, typed: Typed) -> Place:
        return training_place(typed, self.cache, self.cache_bytes, self.fetch)


def open_sources(
    written: Mapping[str, WrittenSource],
    caching: CacheOptions,
    batch_tokens: int | None,
    *,
    drop_rest: bool = False,
    blend: Blend | None = None,
) -> dict[str, Source | None]:
    """Open the sources of a run, in the order of their names.

    Args:
        batch_tokens, drop_rest: for rows of several lengths, as in `EpochOptions`.
        blend: in which they stand; None for a dataset alone. If it has one source, its weights are of row lengths.

    Returns:
        The sources by name; None for a source without a path, whose rows all lie in the past of a run that is resumed.

    Raises:
        UsageError: sources that don't go together, or are the same dataset; no source has a path.
        DataError: a source is missing, unfinished or damaged.
    """
    sources: dict[str, Source | None] = dict.fromkeys(sorted(written))
    others: dict[str, Dataset] = {}
    names: dict[tuple[object, ...], str] = {}
    for name in sources:
        source = written[name]
        if source.path is None:
            continue
        try:
            dataset = open_recipe(caching.recipe(source.path, source.stores))
        except PacktoolError as error:
            if blend is not None:
                error.where = ": ".join(filter(None, (source.where, error.where)))
            raise
        if blend is None and not dataset.manifest.ledger.rows:
            what, remedy = "the dataset has no rows", "check what it was packed from, with packtool info"
            raise UsageError("source-empty", what, remedy=remedy, where=source.where)
        if len(written) > 1:
            others[name] = _of_one_length(dataset, name, source.where)
            _require_alike(others, name, source.where)
        options = EpochOptions(
            seed=source.seed, repack=source.repack, batch_tokens=batch_tokens, drop_rest=drop_rest, blend=blend
        )
        opened = Source(dataset, options, cache=caching.directory, shuffle=source.shuffle)
        _require_new(opened, name, names, source.where)
        sources[name] = opened
    if blend is not None and all(source is None for source in sources.values()):
        what, remedy = "no source has a path", "give a packed dataset"
        raise UsageError("missing-option", what, remedy=remedy, where=blend.name)
    return sources


def _require_new(source: Source, name: str, names: dict[tuple[object, ...], str], where: str) -> None:
    """Refuse a source that has the same rows in the same order as another one, wherever the two lie.

    Args:
        names: of the sources opened so far, by what decides their rows; the new one is added.
    """
    twin = names.setdefault(tuple(source.identity.items()), name)
    if twin != name:
        what = f"{twin} and {name} are the same dataset, in the same order"
        remedy = "name it once, since its weight says how often it comes; or give one of them another seed"
        raise UsageError("source-named-twice", what, remedy=remedy, where=where)


def _of_one_length(dataset: Dataset | BucketDataset, name: str, where: str) -> Dataset:
    """Return a dataset of one row length; refuse rows of several lengths beside other sources."""
    if isinstance(dataset, Dataset):
        return dataset
    lengths = ", ".join(map(str, dataset.buckets))
    what = f"{name} has rows of several lengths ({lengths}), so it can't be blended with others"
    raise UsageError("sources-differ", what, remedy="pack it to rows of one length", where=where)


def _require_alike(datasets: Mapping[str, Dataset], name: str, where: str) -> None:
    """Refuse a dataset that differs from the datasets opened before it.

    Args:
        datasets: opened so far, by name, the new one included.
        name: of the new one.
        where: it was written, for messages.
    """
    mine, (other, first) = datasets[name], next(iter(datasets.items()))
    if mine.sequence_length != first.sequence_length:
        what = f"{name} has rows of {mine.sequence_length} tokens, {other} of {first.sequence_length}"
        raise UsageError("sources-differ", what, remedy="pack all sources to rows of one length", where=where)
    if mine.manifest.multiple != first.manifest.multiple:
        multiples = mine.manifest.multiple, first.manifest.multiple
        what = f"documents of {name} begin at multiples of {multiples[0]}, of {other} at {multiples[1]}"
        remedy = "pack all sources with the same --document-multiple"
        raise UsageError("sources-differ", what, remedy=remedy, where=where)
    require_one_tokenizer(name, mine.manifest, other, first.manifest, where)


def require_one_tokenizer(name: str, manifest: PackedManifest, other: str, first: PackedManifest, where: str) -> None:
    """Refuse a dataset with tokens of another tokenizer than those of the first, which one model can't read."""
    if manifest.tokenizer.sha256 != first.tokenizer.sha256:
        what = f"{name} has other tokens than {other}, by another tokenizer"
        raise UsageError("sources-differ", what, remedy="tokenize all sources with one tokenizer", where=where)
