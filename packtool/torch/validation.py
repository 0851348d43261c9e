"""Validate on the same rows each time, whatever the last loop took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from packtool.blending.blend import Blend
from packtool.choosing.in_common import in_common
from packtool.errors import UsageError
from packtool.options.check import is_whole
from packtool.places.typed import place_of
from packtool.reading.batch import OF_TOKENS
from packtool.reading.sources import require_one_tokenizer
from packtool.reading.stream import blend_of
from packtool.support.sizes import plural
from packtool.torch.labels import TensorBatch
from packtool.torch.loader import Loader
from packtool.warnings import warn


class ValidationLoader:
    """An iterable of batches that begins with the first row in every loop: all rows in stored order, or some batches.

    The loader keeps no place, so there is nothing to save, and no epoch to set. All rows are in as few batches as
    `batch_size` allows, and batches are as equal as possible: 103 rows of 16 at most are 5 batches of 15 and 2 of 14.
    So a mean over batches is close to a mean over rows, and every rank has rows of the last batch.

    Several datasets come one after the other in every loop, each in batches of its own. The field `source` of a batch
    has the place of its dataset in `sources`, so that a loop yields the loss of each dataset by name.

    Args:
        source: path or URL of a packed dataset; or several: a list, or a blend, whose weights do not matter here.
        batches: number of batches that a rank gets in a loop, of each dataset; by default as many as have all rows.
        drop_last: leave out the rows that fill no global batch: all batches are full.
        fill: where ranks can't share a batch equally, give each rank as many rows as the others, as `Loader` does.
        train: the loader of the run that is validated: `warn_of_trained` is called with it.
        fields: as of `Loader`. Of several datasets batches have `source` by default, unless labels are ``same``.
        options: of `Loader`; without `epochs`.

    Raises:
        UsageError: less than one batch, or more than there are; a batch of fewer rows than ranks, so that a rank has
            no row; a source of a blend without a path; a dataset that is twice in a list; as in `Loader`.

    Attributes:
        sources: the paths in a list, as they are written, or the names in a blend; of a dataset as in `Loader`.
    """

    def __init__(
        self,
        source: str | Path | Blend | Sequence[str | Path],
        *,
        batches: int | None = None,
        drop_last: bool = False,
        fill: bool = False,
        train: Loader | None = None,
        fields: Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        for name in ("epochs", "shuffle"):
            if name in options:
                what, remedy = "a validation reads stored rows once, in stored order", "give Loader to read otherwise"
                raise _bad(what, remedy, name)
        self._batches, self._fill = batches, fill
        blend = _as_blend(source)
        self._names_source = blend is not None and options.get("labels") != "same"
        if blend is not None and fields is not None:
            self._names_source = "source" in fields
            fields = list(fields)
            if self._names_source:
                fields.remove("source")
            if self._names_source and not set(OF_TOKENS) & set(fields):
                what = "source has a number for each token, and no other field has one"
                raise _bad(what, "name input_ids, too", "fields")
        more = {**options, "shuffle": False, "drop_last": drop_last, "fill": fill, "fields": fields}
        self._loaders: list[Loader] = []
        if blend is None:
            self._loaders.append(Loader(source, **more))  # type: ignore[arg-type]
            self.sources = self._loaders[0].sources
        else:
            self._loaders += _opened(blend, more)
            self.sources = list(blend.sources)
        for loader in self._loaders:
            most = self._require_batches(loader)
            # Some batches are the first ones, and full. Of all rows the last batch may have few: they are made equal.
            loader.sampler.even = not drop_last and batches in (None, most)
            self._require_rows(loader)
        if train is not None:
            self.warn_of_trained(train)

    def warn_of_trained(self, train: Loader) -> None:
        """Warn if documents of the validation are among those that a loader trains on, as far as manifests say it.

        They say it where both were packed of one store, and of overlapping parts of it: no file but manifests is read.
        """
        for loader in self._loaders:
            for valid in filter(None, loader.sampler.stream.sources.values()):
                for source in filter(None, train.sampler.stream.sources.values()):
                    if in_common(source.manifest, valid.manifest):
                        what = f"some of its documents are in {source.recipe.place}, too, which is trained on"
                        remedy = "pack both with one --holdout, or this one with --holdout-of the other, --part=holdout"
                        warn("validation-trained-on", what, remedy=remedy, where=str(valid.recipe.place))

    def __iter__(self) -> Iterator[TensorBatch]:
        for number, loader in enumerate(self._loaders):
            loader.reset()
            self._require_rows(loader)
            for batch in islice(loader, self._batches):
                if self._names_source:
                    batch["source"] = torch.full(_shape_of(batch), number, dtype=torch.int32)
                yield batch

    def __len__(self) -> int:
        """Count the batches that this rank gets in a loop."""
        return sum(map(self._taken, self._loaders))

    @property
    def labels(self) -> str:
        """The kind that its batches have, as in `Loader`."""
        return self._loaders[0].labels

    @property
    def counts_targets(self) -> bool:
        """Whether its batches have the field `global_targets`."""
        return self._loaders[0].counts_targets

    def __repr__(self) -> str:
        lines = []
        for loader in self._loaders:
            lines.append(f"<packtool validation: {self._taken(loader)} of {len(loader)} batches, {loader!r}>")
        return "\n".join(lines)

    def _taken(self, loader: Loader) -> int:
        """Count the batches of one dataset that this rank gets in a loop."""
        if self._batches is None:
            return len(loader)
        return min(self._batches, len(loader))

    def _require_batches(self, loader: Loader) -> int:
        """Return how many batches all rows of a dataset make; refuse a number of batches that is none, or too large."""
        batches, most = self._batches, len(loader)
        if batches is None:
            return most
        if not is_whole(batches) or batches < 1:
            raise _bad(
                f"{batches!r} is not a number of batches", "give 1 or more, or leave it out for all rows", "batches"
            )
        if batches > most:
            what = f"{batches} batches, but all rows make {most}"
            raise _bad(what, "give fewer, or leave it out for all rows", "batches")
        return most

    def _require_rows(self, loader: Loader) -> None:
        """Refuse batches in which a rank has no rows: models fail on these, and a mean over them is no number."""
        if self._fill:
            return
        batches = self._taken(loader)  # and with it, the rank that this process has by now
        for number, (rows, fewest) in enumerate(islice(loader.sampler.fewest(), batches)):
            if fewest == 0:
                ranks = f"{loader.sampler.sharing.world_size} ranks"
                what = f"batch {number} shares {plural(rows, 'row')} among {ranks}, so one has none"
                remedy = "give fill=True for rows without targets in their place, or drop_last=True"
                if rows >= loader.sampler.sharing.world_size:
                    what = f"{plural(rows, 'row')} among {ranks} are more turns for some than for others"
                    remedy = "give fill=True for rows without targets in their place, or another micro_batch_size"
                raise _bad(what, remedy, "batch_size")


def _as_blend(source: str | Path | Blend | Sequence[str | Path]) -> Blend | None:
    """Return several datasets by their names; None for a single one. Refuse a list that has a dataset twice."""
    if isinstance(source, str | Path | Blend):
        return blend_of(source)
    blend = Blend({str(path): path for path in source})  # which refuses what is no path
    places: dict[str, str | Path] = {}
    for path in source:
        place = place_of(path).full
        if place in places:
            raise _bad(f"{places[place]} and {path} are one dataset", "name it once", "source")
        places[place] = path
    return blend


def _opened(blend: Blend, options: Mapping[str, Any]) -> Iterator[Loader]:
    """Open a loader of each dataset of a blend, from the stores that the blend says its tokens are in."""
    first = None
    for name, written in blend.sources.items():
        if written.path is None:
            what, remedy = f"{name} has no path, so it can't be read", "give it one, or leave it out"
            raise UsageError("missing-option", what, remedy=remedy, where=written.where)
        stores = {}
        if written.stores:
            stores["stores"] = written.stores
        loader = Loader(str(written.path), **{**options, **stores})
        manifest = loader.sampler.stream.source(0).epoch(0).manifest
        if first is None:
            first = name, manifest
        require_one_tokenizer(name, manifest, *first, "source")
        yield loader


def _shape_of(batch: Mapping[str, Any]) -> torch.Size:
    """Return the rows and the tokens in a row of a batch, which has a field of this shape."""
    for name in OF_TOKENS:
        if name in batch:
            tensor: torch.Tensor = batch[name]
            return tensor.shape
    raise AssertionError


def _bad(what: str, remedy: str, where: str) -> UsageError:
    return UsageError("bad-option", what, remedy=remedy, where=where)
