"""Validate on the same rows each time, whatever the last loop took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from packtool.blending.blend import Blend, names_blend
from packtool.errors import UsageError
from packtool.reading.batch import OF_TOKENS
from packtool.support.sizes import plural
from packtool.torch.loader import Loader

if TYPE_CHECKING:
    from packtool.places.typed import Typed


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
        fields: as of `Loader`. Of several datasets batches have `source` by default, unless labels are ``same``.
        options: of `Loader`; without `epochs`.

    Raises:
        UsageError: less than one batch, or more than there are; a batch of fewer rows than ranks, so that a rank has
            no row; a source of a blend without a path; as in `Loader`.

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
        fields: Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        for name in ("epochs", "shuffle"):
            if name in options:
                what, remedy = "a validation reads stored rows once, in stored order", "give Loader to read otherwise"
                raise UsageError("bad-option", what, remedy=remedy, where=name)
        blend = _blend_of(source)
        self._names_source = blend is not None and options.get("labels") != "same"
        if blend is not None and fields is not None:
            self._names_source = "source" in fields
            fields = list(fields)
            if self._names_source:
                fields.remove("source")
            if self._names_source and not set(OF_TOKENS) & set(fields):
                what = "source has a number for each token, and no other field has one"
                raise UsageError("bad-option", what, remedy="name input_ids, too", where="fields")
        self._each: list[_Validation] = []
        for path, stores in _datasets(source, blend):
            if stores:
                options["stores"] = stores
            loader = Loader(path, shuffle=False, drop_last=drop_last, fill=fill, fields=fields, **options)
            if self._each:
                _require_one_tokenizer(loader, self._each[0].loader)
            self._each.append(_Validation(loader, batches, drop_last=drop_last, fill=fill))
        self.sources = self._each[0].loader.sources
        if blend is not None:
            self.sources = list(blend.sources)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for number, one in enumerate(self._each):
            for batch in one:
                if self._names_source:
                    batch["source"] = torch.full(_shape_of(batch), number, dtype=torch.int32)
                yield batch

    def __len__(self) -> int:
        """Count the batches that this rank gets in a loop."""
        return sum(map(len, self._each))

    @property
    def labels(self) -> str:
        """The kind that its batches have, as in `Loader`."""
        return self._each[0].loader.labels

    def __repr__(self) -> str:
        return "\n".join(map(repr, self._each))


class _Validation:
    """The batches of one dataset, each loop from the first row on; arguments as of `ValidationLoader`."""

    def __init__(self, loader: Loader, batches: int | None, *, drop_last: bool, fill: bool) -> None:
        self.loader = loader
        self._fill = fill
        most = len(loader)
        if batches is not None and (not isinstance(batches, int) or isinstance(batches, bool) or batches < 1):
            remedy = "give 1 or more, or leave it out for all rows"
            raise UsageError("bad-option", f"{batches!r} is not a number of batches", remedy=remedy, where="batches")
        if batches is not None and batches > most:
            what, remedy = f"{batches} batches, but all rows make {most}", "give fewer, or leave it out for all rows"
            raise UsageError("bad-option", what, remedy=remedy, where="batches")
        self._batches = batches
        # Some batches are the first ones, and full. Of all rows the last batch may have few, so they are made equal.
        loader.sampler.even = not drop_last and batches in (None, most)
        self._require_rows()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self.loader.reset()
        self._require_rows()
        yield from islice(self.loader, self._batches)

    def __len__(self) -> int:
        most = len(self.loader)
        return most if self._batches is None else min(self._batches, most)

    def __repr__(self) -> str:
        return f"<packtool validation: {len(self)} of {len(self.loader)} batches, {self.loader!r}>"

    def _require_rows(self) -> None:
        """Refuse batches in which a rank has no rows: models fail on these, and a mean over them is no number."""
        if self._fill:
            return
        batches = len(self)  # and with it, the rank that this process has by now
        sampler = self.loader.sampler
        for number, (rows, fewest) in enumerate(islice(sampler.fewest(), batches)):
            if fewest == 0:
                what = f"batch {number} shares {plural(rows, 'row')} among {sampler.world_size} ranks, so one has none"
                remedy = "give fill=True for rows without targets in their place, or drop_last=True"
                raise UsageError("bad-option", what, remedy=remedy, where="batch_size")


def _blend_of(source: str | Path | Blend | Sequence[str | Path]) -> Blend | None:
    """Return several datasets by their names; None for a single one."""
    if isinstance(source, Blend):
        return source
    if isinstance(source, str | Path):
        return Blend.read(source) if names_blend(source) else None
    return Blend({str(path): path for path in source})


def _datasets(source: Any, blend: Blend | None) -> Iterator[tuple[str | Path, tuple[Typed, ...]]]:
    """Yield the path of each dataset, and the stores that a blend says its tokens are in."""
    if blend is None:
        yield source, ()
        return
    for name, written in blend.sources.items():
        if written.path is None:
            what, remedy = f"{name} has no path, so it can't be read", "give it one, or leave it out"
            raise UsageError("missing-option", what, remedy=remedy, where=written.where)
        yield str(written.path), written.stores


def _require_one_tokenizer(loader: Loader, first: Loader) -> None:
    """Refuse a dataset with tokens of another tokenizer than those of the first, which one model can't read."""
    mine, other = (each.sampler.stream.source(0).epoch(0).manifest.tokenizer for each in (loader, first))
    if mine.sha256 != other.sha256:
        what = f"{loader.sampler.stream.name} has other tokens than {first.sampler.stream.name}, by another tokenizer"
        raise UsageError("sources-differ", what, remedy="tokenize all sources with one tokenizer", where="source")


def _shape_of(batch: Mapping[str, Any]) -> torch.Size:
    """Return the rows and the tokens in a row of a batch, which has a field of this shape."""
    for name in OF_TOKENS:
        if name in batch:
            return batch[name].shape
    raise AssertionError
