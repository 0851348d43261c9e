"""Read the columns that a packed dataset keeps of its documents from the token stores, portion by portion.

Stores have them as text. A column of numbers is read as such; of any other, each different text is a category. The list
of names is that of all documents of the stores, whichever of them are packed: so the parts of a corpus that are packed
one by one, such as a hold-out, number them alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from packtool.choosing.columns import ReadField, floats_of
from packtool.choosing.documents import Portion, StoredDocuments
from packtool.errors import UsageError
from packtool.formats.kept_columns import is_absent
from packtool.formats.names import CATEGORY, MISSING, MOST_CATEGORIES, NUMBER
from packtool.formats.token_store import Corpus
from packtool.options.kinds import KeptField
from packtool.planning.arrays import blocks
from packtool.planning.plan import Mask


@dataclass(frozen=True)
class KeptValues:
    """The values of one column."""

    name: str  # the name of the field
    values: npt.NDArray[Any]  # the value of each document of the corpus
    categories: list[str] | None  # the list of names; None for numbers
    missing: int  # how many documents have no value


def kept_values(corpus: Corpus, field: KeptField) -> KeptValues:
    """Read a column of the documents of a corpus. Documents of a store that does not have it lack a value.

    Args:
        field: that a store keeps.

    Raises:
        DataError: a value of a document is no number, where numbers are wanted; a store is damaged.
        UsageError: a column has more than `MOST_CATEGORIES` different values.
    """
    documents = StoredDocuments(corpus, corpus.arrays)
    portions = (portion for portion in documents.portions() if field.name in portion.store.kept_fields)
    categories: list[str] | None = None
    if field.number:
        stored = corpus.arrays.filled(len(documents), NUMBER, lambda a, b: np.nan)
        _read_numbers(portions, field.name, corpus.taken(), stored)
    else:
        stored = corpus.arrays.filled(len(documents), CATEGORY, lambda a, b: MISSING)
        categories = _read_categories(portions, field.name, stored)
    values = corpus.of_documents(stored)
    missing = 0
    for first, last in blocks(len(values)):
        missing += int(np.count_nonzero(is_absent(values[first:last])))
    return KeptValues(field.name, values, categories, missing)


def _read_numbers(portions: Iterable[Portion], name: str, taken: Mask, out: npt.NDArray[Any]) -> None:
    """Fill in the numbers of the documents that are taken: what the others hold may be anything."""
    remedy = f"leave such documents out with --where, or give --keep={name} to keep each different text as a category"
    for portion in portions:
        places = np.flatnonzero(taken[portion.here])
        field = ReadField(name, portion.store, portion.first + places, remedy)
        out[portion.here][places] = floats_of(portion.field(name).take(pa.array(places)), field)


def _read_categories(portions: Iterable[Portion], name: str, out: npt.NDArray[Any]) -> list[str]:
    """Fill in the categories of all documents; return their names.

    Categories are numbered as they are met, and by the order of their names in the end.
    """
    met: dict[str, int] = {}
    for portion in portions:
        texts = portion.field(name)
        different = pc.unique(texts).drop_null()
        if len(different) <= MOST_CATEGORIES:
            for text in different.to_pylist():
                met.setdefault(text, len(met))
        if max(len(met), len(different)) > MOST_CATEGORIES:
            raise _too_many(name)
        numbers = pc.index_in(texts, value_set=pa.array(list(met), pa.string())).fill_null(MISSING)
        out[portion.here] = numbers.to_numpy()
    names = sorted(met)
    place_of = np.full(len(names) + 1, MISSING, CATEGORY)  # the last entry, at index -1, keeps missing values missing
    for place, text in enumerate(names):
        place_of[met[text]] = place
    for first, last in blocks(len(out)):
        out[first:last] = place_of[out[first:last]]
    return names


def _too_many(name: str) -> UsageError:
    what = f"column {name} has more than {MOST_CATEGORIES:,} different values, the most that categories may have"
    remedy = f"give {name}:number if they are numbers, or keep a column of fewer"
    return UsageError("too-many-categories", what, remedy=remedy, where="--keep")
