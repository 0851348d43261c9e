"""Which documents of the stores may be packed, and for which reason the others may not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.arrays import IN_MEMORY, Arrays
from packtool.commands.choose_options import holdout_of, shard_of, share_of
from packtool.errors import DataError, UsageError
from packtool.options.pack import PackArguments
from packtool.plan import I64, Ints
from packtool.selecting.sample import sampled
from packtool.selecting.sides import first_of_each, held_out, in_shard
from packtool.storage.token_store import TokenStore

Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.uint8]
Origins = npt.NDArray[Any]


REASONS = ("excluded", "too_short", "too_long", "duplicates", "other_side", "other_shard", "not_sampled")
"""Why a document may not be packed: the first of these that holds."""


def documents_left(
    stores: Sequence[TokenStore],
    names: Sequence[str],
    lengths: Sequence[Ints],
    options: PackArguments,
    interval: int,
    arrays: Arrays = IN_MEMORY,
) -> list[Codes]:
    """For each document of each store 0 if it may be packed, else the number of its reason in `REASONS`, from 1.

    Args:
        names: of the stores, for messages.
        lengths: of their documents.
        interval: of lengths, for a sample.
        arrays: makes those that are as long as the corpus.
    """
    by_text = options.holdout is not None or options.shard_of is not None or options.drop_duplicates
    origins = [store.origins(arrays) for store in stores] if by_text or options.exclude is not None else []
    hashes = [each["hash"] for each in origins] if by_text else []
    excluded = [] if options.exclude is None else _excluded(stores, origins, options.exclude)
    first = _first(hashes, excluded) if options.drop_duplicates else []
    held = [] if options.holdout is None else _held_out(hashes, lengths, names, options, arrays)
    shard = None if options.shard_of is None else shard_of(options.shard_of)

    def removed(store: int, part: slice) -> Iterator[tuple[str, Mask]]:
        if excluded:
            yield "excluded", excluded[store][part]
        if options.min_tokens is not None:
            yield "too_short", lengths[store][part] < options.min_tokens
        if options.max_tokens is not None:
            yield "too_long", lengths[store][part] > options.max_tokens
        if first:
            yield "duplicates", ~first[store][part]
        if held:
            yield "other_side", held[store][part] != (options.part == "holdout")
        if shard is not None:
            yield "other_shard", ~in_shard(hashes[store][part], *shard)

    def codes(store: int, a: int, b: int) -> Codes:
        out = np.zeros(b - a, np.uint8)
        for reason, mask in removed(store, slice(a, b)):
            out[mask & (out == 0)] = _code(reason)
        return out

    found: list[Codes] = []
    for store, sizes in enumerate(lengths):
        why: Codes = arrays.filled(len(sizes), np.uint8, partial(codes, store))
        if options.sample is not None:
            mask = sampled(sizes, np.flatnonzero(why == 0), share_of(options.sample), interval, options.seed)
            why[(why == 0) & ~mask] = _code("not_sampled")
        found.append(why)
    return found


def _code(reason: str) -> int:
    return 1 + REASONS.index(reason)


def _first(hashes: Sequence[npt.NDArray[np.uint64]], excluded: Sequence[Mask]) -> list[Mask]:
    """Which documents are the first of their text among all that are not excluded."""
    every = np.concatenate(hashes)
    left = ~np.concatenate(excluded) if excluded else np.ones(len(every), np.bool_)
    first = np.zeros(len(left), np.bool_)
    first[left] = first_of_each(every[left])
    return np.split(first, _ends(hashes))


def _held_out(
    hashes: Sequence[npt.NDArray[np.uint64]],
    lengths: Sequence[Ints],
    names: Sequence[str],
    options: PackArguments,
    arrays: Arrays,
) -> list[Mask]:
    """Which documents are held out: one threshold for all stores, so that the copies of a text are on one side."""
    assert options.holdout is not None
    asked, seed = holdout_of(options.holdout), options.holdout_seed
    if asked.share is not None:

        def drawn(store: int, a: int, b: int) -> Mask:
            return held_out(hashes[store][a:b], lengths[store][a:b], seed=seed, share=asked.share)

        held = [arrays.filled(len(each), np.bool_, partial(drawn, store)) for store, each in enumerate(hashes)]
    else:
        every = np.concatenate(hashes), np.concatenate(lengths)
        held = np.split(held_out(*every, seed=seed, documents=asked.documents, tokens=asked.tokens), _ends(hashes))
    for mask, name in zip(held, names, strict=True):
        if len(mask) and mask.all():
            what = f"{options.holdout} holds out all {len(mask):,} documents of {name}"
            raise UsageError("nothing-chosen", what, remedy="hold out less", where="--holdout")
    return held


def _ends(parts: Sequence[npt.NDArray[Any]]) -> I64:
    return np.cumsum([len(part) for part in parts])[:-1]


def listed_file(path: Path | str) -> bytes:
    """The contents of a list of documents.

    Raises:
        DataError: it can't be read.
    """
    try:
        return Path(path).read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError(
            "missing-input", f"can't be read ({reason})", remedy="check the path", where=str(path)
        ) from None


def _excluded(stores: Sequence[TokenStore], origins: Sequence[Origins], path: str | Path) -> list[Mask]:
    """Documents that the list names, each by its id or by FILE:RECORD."""
    out = [np.zeros(store.documents, np.bool_) for store in stores]
    wanted: dict[str, list[tuple[int, int]]] = {}
    entries = {line.strip(): n for n, line in enumerate(listed_file(path).decode("utf-8", "replace").splitlines(), 1)}
    entries.pop("", None)
    by_id = _excluded_ids(stores, list(entries), out)
    for entry, line in entries.items():
        name, _, record = entry.rpartition(":")
        if entry in by_id:
            continue
        if not name or not record.isdecimal() or int(record) >= 1 << 63:
            remedy = "name each document by its id, or by its input file and line, such as web/a.jsonl:17"
            raise DataError("bad-list", f"{entry!r} is not a document", remedy=remedy, where=f"{path}:{line}")
        wanted.setdefault(name, []).append((int(record), line))
    found: dict[str, set[int]] = {name: set() for name in wanted}
    for store, origin, mask in zip(stores, origins, out, strict=True):
        for number, entry_of in enumerate(store.manifest.inputs):
            if entry_of.name in wanted:
                here = np.flatnonzero(origin["file"] == number)
                records = origin["record"][here]
                hit = np.isin(records, np.array([record for record, _ in wanted[entry_of.name]], np.uint64))
                mask[here[hit]] = True
                found[entry_of.name] |= set(records[hit].tolist())
    for file, records_of in wanted.items():
        for number, line in records_of:
            if number not in found[file]:
                what = f"no store has a document {file}:{number}"
                remedy = "take it out of the list, or check the name: it is relative to the input of tokenize"
                raise DataError("bad-list", what, remedy=remedy, where=f"{path}:{line}")
    return out


def _excluded_ids(stores: Sequence[TokenStore], entries: Sequence[str], out: Sequence[Mask]) -> set[str]:
    """Mark documents with these ids; the entries that are ids."""
    known: set[str] = set()
    for store, mask in zip(stores, out, strict=True):
        if store.id_field is not None:
            documents = store.with_ids(entries)
            mask[documents] = True
            known |= set(store.column(store.id_field).take(documents).to_pylist())
    return known
