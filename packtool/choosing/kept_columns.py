"""Read the columns that a packed dataset keeps of its documents from the token stores, shard by shard.

Stores have them as text. A column of numbers is read as such; of any other, each different text is a category. The list
of names is that of all documents of the stores, whichever of them are packed: so the parts of a corpus that are packed
one by one, such as a hold-out, number them alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from packtool.choosing.columns import ReadField, floats_of
from packtool.errors import UsageError
from packtool.formats.kept_columns import absent, is_absent
from packtool.formats.names import CATEGORY, MISSING, MOST_CATEGORIES, NUMBER
from packtool.formats.token_store import Corpus
from packtool.options.kinds import KeptField
from packtool.planning.arrays import blocks
from packtool.planning.plan import I64, offsets_of


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
    dtype = NUMBER if field.number else CATEGORY
    firsts = offsets_of(np.array([store.documents for store in corpus.stores], np.int64))
    stored = corpus.arrays.filled(int(firsts[-1]), dtype, lambda first, last: absent(dtype))
    categories: list[str] | None = None
    if field.number:
        _read_numbers(corpus, field.name, firsts, stored)
    else:
        categories = _read_categories(corpus, field.name, firsts, stored)
    values = corpus.of_documents(stored)
    missing = 0
    for first, last in blocks(len(values)):
        missing += int(np.count_nonzero(is_absent(values[first:last])))
    return KeptValues(field.name, values, categories, missing)


def _read_numbers(corpus: Corpus, name: str, firsts: I64, out: npt.NDArray[Any]) -> None:
    """Fill in the numbers of the documents that are taken: what the others hold may be anything."""
    taken = corpus.taken()
    remedy = f"leave such documents out with --where, or give --keep={name} to keep each different text as a category"
    for store, begin in zip(corpus.stores, firsts.tolist(), strict=False):
        if name not in store.kept_fields:
            continue
        for first, texts in store.column_parts(name):
            wanted = np.flatnonzero(taken[begin + first : begin + first + len(texts)])
            chosen = pa.concat_arrays(texts.take(pa.array(wanted)).chunks or [pa.array([], pa.string())])
            field = ReadField(name, store, first + wanted, remedy)
            out[begin + field.documents] = floats_of(chosen, field)


def _read_categories(corpus: Corpus, name: str, firsts: I64, out: npt.NDArray[Any]) -> list[str]:
    """Fill in the categories of all documents; return their names.

    Categories are numbered as they are met, and by the order of their names in the end.
    """
    import pyarrow.compute as pc  # 25 ms, of every run of pack and shuffle, also without columns

    met: dict[str, int] = {}
    for store, begin in zip(corpus.stores, firsts.tolist(), strict=False):
        if name not in store.kept_fields:
            continue
        for first, texts in store.column_parts(name):
            different = pc.unique(texts).drop_null()
            if len(different) <= MOST_CATEGORIES:
                for text in different.to_pylist():
                    met.setdefault(text, len(met))
            if max(len(met), len(different)) > MOST_CATEGORIES:
                raise _too_many(name)
            places = pc.index_in(texts, value_set=pa.array(list(met), pa.string())).fill_null(MISSING)
            out[begin + first : begin + first + len(texts)] = places.to_numpy()
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
