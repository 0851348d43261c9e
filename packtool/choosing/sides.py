"""What decides on which side of a hold-out a document is: its text, its conversation, or the value of a field."""

from __future__ import annotations

import numpy as np
import xxhash

from packtool.choosing.documents import Portion
from packtool.planning.plan import Mask
from packtool.planning.selecting.subsets import U64
from packtool.support.sizes import plural
from packtool.warnings import warn

OTHER_SIDE = {"train": "held out for validation", "holdout": "kept for training"}
"""What the documents on the other side of a hold-out are, by the part that was taken."""


class Sides:
    """Hashes that decide on which side documents are: documents with the same one are on the same side.

    Args:
        field: whose value decides; None for the text. Where one conversation is several documents, that is the text of
            the whole conversation, as it would be in a store where it is one document.
    """

    def __init__(self, field: str | None) -> None:
        self._field = field
        self._missing = 0
        self._first: str | None = None

    def hashes(self, portion: Portion) -> U64:
        """Return the hash of each document of a portion; of a document without a value, that of its text.

        Raises:
            UsageError: the store did not keep the field, or does not record hashes of texts.
        """
        if self._field is None:
            return portion.hashes_of_records
        portion.store.known.require_kept(self._field, "--holdout-by", "hold out by another field")
        values = portion.field(self._field).combine_chunks().dictionary_encode()
        different = values.dictionary.to_pylist()
        hashes = np.array([xxhash.xxh3_64_intdigest(value.encode()) for value in different], np.uint64)
        missing: Mask = values.is_null().to_numpy(zero_copy_only=False)
        found: U64 = np.zeros(len(portion), np.uint64)
        found[~missing] = hashes[values.indices.drop_null().to_numpy()]
        missing &= portion.codes == 0  # on which side the others would be is of no effect
        if missing.any():
            found[missing] = portion.hashes_of_records[missing]
            self._count(portion, missing)
        return found

    def _count(self, portion: Portion, missing: Mask) -> None:
        """Count documents without a value."""
        for place in np.flatnonzero(missing)[:1].tolist():
            self._first = self._first or portion.store.name_of(portion.first + place)
        self._missing += int(np.count_nonzero(missing))

    def warn_of_missing(self) -> None:
        """Warn of the documents without a value, which are on one side or the other by their texts."""
        if not self._missing:
            return
        what = f"{plural(self._missing, 'document')} without {self._field} (first: {self._first}): their texts decide"
        remedy = f"leave them out if they belong together: --where=\"field['{self._field}'] is not None\""
        warn("holdout-by-text", what, remedy=remedy, where="--holdout-by")
