"""What `packtool.open` returns, whatever it opens."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol, overload

from packtool.reading.batch import Batch
from packtool.reading.column_fields import Names
from packtool.reading.rows import Index, RowArray


class Opened(Protocol):
    """A sequence of what is trained on: rows of tokens; or batches of rows, if a dataset has rows of several lengths.

    `Dataset` has the rows of a packed dataset, `BlendedRows` those of a blend, `BucketDataset` has batches.
    """

    @property
    def columns(self) -> Mapping[str, Names]:
        """The kept columns of documents by name, with the lists of categories; None for columns of numbers."""

    @property
    def sources(self) -> Sequence[str]:
        """What the numbers in the field `source` of a batch stand for: names of token stores, or sources of a blend."""

    def __len__(self) -> int:
        """Count the items: rows, or batches."""

    def __iter__(self) -> Iterator[RowArray]:
        """Iterate over the items."""

    def __getitem__(self, index: Index, /) -> Any:
        """Return the tokens of an item: (sequence_length) of a row, (rows, sequence_length) of a batch; or of several.

        Several rows are (rows, sequence_length), several batches a list.
        """

    @overload
    def batch(self, index: Index, *, fields: None = None, **options: Any) -> Batch: ...
    @overload
    def batch(self, index: Index, *, fields: Collection[str], **options: Any) -> Mapping[str, Any]: ...

    def segments(self, index: int) -> Any:
        """Return the segments of a row, or of each row of a batch, in a list."""

    def epoch(self, number: int, *, seed: int | None = None, repack: bool = False) -> Opened:
        """Return the same items in the order of an epoch. A blend has its epochs in it, and only number 0."""
