"""Which documents of the stores may be packed, and for which reason the others may not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.commands.choose_options import holdout_of, shard_of, share_of
from packtool.errors import DataError, UsageError
from packtool.options.pack import PackArguments
from packtool.plan import I64, Ints
from packtool.selecting.sample import sampled
from packtool.selecting.sides import first_of_each, held_out, in_shard
from packtool.storage.token_store import TokenStore

Mask = npt.NDArray[np.bool_]
Origins = npt.NDArray[Any]


def documents_left(
    stores: Sequence[TokenStore],
    names: Sequence[str],
    lengths: Sequence[Ints],
    options: PackArguments,
    interval: int,
) -> tuple[list[I64], list[dict[str, Mask]]]:
    """The documents of each store that may be packed, and those that may not, each under the first reason that holds.

    Args:
        names: of the stores, for messages.
        lengths: of their documents.
        interval: of lengths, for a sample.
    """
    by_text = options.holdout is not None or options.shard_of is not None or options.drop_duplicates
    origins = [store.origins() for store in stores] if by_text or options.exclude is not None else []
    hashes = [each["hash"] for each in origins] if by_text else []
    excluded = _excluded(stores, origins, options.exclude)
    first = _first(hashes, excluded) if options.drop_duplicates else []
    held = _held_out(hashes, lengths, names, options) if options.holdout is not None else []
    kept, removed = [], []
    for number, sizes in enumerate(lengths):
        keep: dict[str, Mask] = {"excluded": ~excluded[number]}
        if options.min_tokens is not None:
            keep["too_short"] = sizes >= options.min_tokens
        if options.max_tokens is not None:
            keep["too_long"] = sizes <= options.max_tokens
        if first:
            keep["duplicates"] = first[number]
        if held:
            keep["other_side"] = held[number] if options.part == "holdout" else ~held[number]
        if options.shard_of is not None:
            keep["other_shard"] = in_shard(hashes[number], *shard_of(options.shard_of))
        left: Mask = np.ones(len(sizes), np.bool_)
        reasons: dict[str, Mask] = {}
        for reason, mask in keep.items():
            reasons[reason] = left & ~mask
            left = left & mask
        if options.sample is not None:
            mask = sampled(sizes, np.flatnonzero(left), share_of(options.sample), interval, options.seed)
            reasons["not_sampled"] = left & ~mask
            left = left & mask
        kept.append(np.flatnonzero(left))
        removed.append(reasons)
    return kept, removed


def _first(hashes: Sequence[npt.NDArray[np.uint64]], excluded: Sequence[Mask]) -> list[Mask]:
    """Which documents are the first of their text among all that are not excluded."""
    left = ~np.concatenate(excluded)
    first = np.zeros(len(left), np.bool_)
    first[left] = first_of_each(np.concatenate(hashes)[left])
    return np.split(first, _ends(hashes))


def _held_out(
    hashes: Sequence[npt.NDArray[np.uint64]], lengths: Sequence[Ints], names: Sequence[str], options: PackArguments
) -> list[Mask]:
    """Which documents are held out: one threshold for all stores, so that the copies of a text are on one side."""
    assert options.holdout is not None
    asked = holdout_of(options.holdout)
    every = held_out(
        np.concatenate(hashes),
        np.concatenate(lengths),
        seed=options.holdout_seed,
        share=asked.share,
        documents=asked.documents,
        tokens=asked.tokens,
    )
    held = np.split(every, _ends(hashes))
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


def _excluded(stores: Sequence[TokenStore], origins: Sequence[Origins], path: str | Path | None) -> list[Mask]:
    """Documents that the list names, each by its id or by FILE:RECORD."""
    out = [np.zeros(store.documents, np.bool_) for store in stores]
    if path is None:
        return out
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
