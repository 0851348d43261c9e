"""Validate on the same rows each time, whatever the last loop took."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from packtool.errors import UsageError
from packtool.torch.loader import Loader


class ValidationLoader:
    """An iterable of batches that begins with the first row in every loop: all rows in stored order, or some batches.

    It keeps no place, so there is nothing to save, and no epoch to set.

    Args:
        source: path or URL of a packed dataset.
        batches: that a rank gets in a loop; by default as many as have all rows.
        drop_last: leave out the rows that fill no global batch. Else the last one is smaller, and on some ranks may be
            empty: sum losses and targets rather than averaging means.
        options: of `Loader`; without `epochs`.

    Raises:
        UsageError: less than one batch; more than there are; as in `Loader`.
    """

    def __init__(
        self, source: str | Path, *, batches: int | None = None, drop_last: bool = False, **options: Any
    ) -> None:
        for name in ("epochs", "shuffle"):
            if name in options:
                what, remedy = "a validation reads stored rows once, in stored order", "give Loader to read otherwise"
                raise UsageError("bad-option", what, remedy=remedy, where=name)
        self._loader = Loader(source, shuffle=False, drop_last=drop_last, **options)
        most = len(self._loader)
        if batches is not None and (not isinstance(batches, int) or isinstance(batches, bool) or batches < 1):
            remedy = "give 1 or more, or leave it out for all rows"
            raise UsageError("bad-option", f"{batches!r} is not a number of batches", remedy=remedy, where="batches")
        if batches is not None and batches > most:
            what, remedy = f"{batches} batches, but all rows make {most}", "give fewer, or leave it out for all rows"
            raise UsageError("bad-option", what, remedy=remedy, where="batches")
        self._batches = most if batches is None else batches

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self._loader.reset()
        yield from islice(self._loader, self._batches)

    def __len__(self) -> int:
        """Count the batches that this rank gets in a loop."""
        return self._batches

    @property
    def labels(self) -> str:
        """The kind that its batches have, as in `Loader`."""
        return self._loader.labels

    def __repr__(self) -> str:
        return f"<packtool validation: {self._batches} of {len(self._loader)} batches, {self._loader!r}>"
