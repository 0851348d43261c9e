"""Validate on the same rows each time, whatever the last loop took."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from packtool.blending.blend import Blend, names_blend
from packtool.errors import UsageError
from packtool.support.sizes import plural
from packtool.torch.loader import Loader


class ValidationLoader:
    """An iterable of batches that begins with the first row in every loop: all rows in stored order, or some batches.

    It keeps no place, so there is nothing to save, and no epoch to set. All rows are in as few batches as
    `batch_size` allows, and these are as equal as possible: 103 rows of 16 at most are 5 batches of 15 and 2 of 14. So
    a mean over batches is close to one over rows, and no rank is left without rows by a last batch of few.

    Args:
        source: path or URL of a packed dataset.
        batches: that a rank gets in a loop; by default as many as have all rows.
        drop_last: leave out the rows that fill no global batch: all batches are full.
        fill: where a batch can't be shared equally, give each rank as many rows as the others, as of `Loader`.
        options: of `Loader`; without `epochs`.

    Raises:
        UsageError: a blend; less than one batch, or more than there are; a batch of fewer rows than ranks, which would
            leave one without; as in `Loader`.
    """

    def __init__(
        self,
        source: str | Path,
        *,
        batches: int | None = None,
        drop_last: bool = False,
        fill: bool = False,
        **options: Any,
    ) -> None:
        for name in ("epochs", "shuffle"):
            if name in options:
                what, remedy = "a validation reads stored rows once, in stored order", "give Loader to read otherwise"
                raise UsageError("bad-option", what, remedy=remedy, where=name)
        if isinstance(source, Blend) or names_blend(source):
            what = "a blend says what to train on, and does not validate"
            remedy = "make a ValidationLoader of each of its sources, and so a loss of each"
            where = source.name if isinstance(source, Blend) else str(source)
            raise UsageError("bad-option", what, remedy=remedy, where=where)
        self._fill = fill
        self._loader = Loader(source, shuffle=False, drop_last=drop_last, fill=fill, **options)
        most = len(self._loader)
        if batches is not None and (not isinstance(batches, int) or isinstance(batches, bool) or batches < 1):
            remedy = "give 1 or more, or leave it out for all rows"
            raise UsageError("bad-option", f"{batches!r} is not a number of batches", remedy=remedy, where="batches")
        if batches is not None and batches > most:
            what, remedy = f"{batches} batches, but all rows make {most}", "give fewer, or leave it out for all rows"
            raise UsageError("bad-option", what, remedy=remedy, where="batches")
        self._batches = batches
        # Some batches are the first ones, and full. Of all rows the last batch may have few, so they are made equal.
        self._loader.sampler.even = not drop_last and batches in (None, most)
        self._require_rows()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self._loader.reset()
        self._require_rows()
        yield from islice(self._loader, self._batches)

    def __len__(self) -> int:
        """Count the batches that this rank gets in a loop."""
        most = len(self._loader)
        return most if self._batches is None else min(self._batches, most)

    @property
    def labels(self) -> str:
        """The kind that its batches have, as in `Loader`."""
        return self._loader.labels

    def __repr__(self) -> str:
        return f"<packtool validation: {len(self)} of {len(self._loader)} batches, {self._loader!r}>"

    def _require_rows(self) -> None:
        """Refuse batches in which a rank has no rows: models fail on these, and a mean over them is no number."""
        if self._fill:
            return
        batches = len(self)  # and with it, the rank that this process has by now
        sampler = self._loader.sampler
        for number, (rows, fewest) in enumerate(islice(sampler.fewest(), batches)):
            if fewest == 0:
                what = f"batch {number} shares {plural(rows, 'row')} among {sampler.world_size} ranks, so one has none"
                remedy = "give fill=True for rows without targets in their place, or drop_last=True"
                raise UsageError("bad-option", what, remedy=remedy, where="batch_size")
