"""What `pack` takes of its stores: options to the documents that are packed, before anything is planned."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from packtool.errors import DataError, UsageError
from packtool.options.pack import PackArguments
from packtool.plan import I64
from packtool.selecting.mixture import epochs_of, passes
from packtool.selecting.sides import first_of_each, held_out, in_shard
from packtool.storage.manifest import Choice, ChosenSource
from packtool.storage.token_store import Corpus, TokenStore

_FACTORS = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12}
Mask = npt.NDArray[np.bool_]


def choose(corpus: Corpus, options: PackArguments) -> Choice | None:
    """Choose documents of the corpus, as the options ask; None where they ask for nothing.

    Raises:
        UsageError: weights, shares or sides that make no sense, or leave nothing.
    """
    asked = _asked(options)
    if not asked:
        return None
    stores = corpus.stores
    names = _names(stores)
    weights = _weights(options.mix, names)
    if options.mix:
        asked["mix"] = [str(weights[name]) for name in names]  # in the order of the stores, whatever they are called
    budget = None if options.tokens is None else _count(options.tokens, "--tokens")
    if budget is not None and not options.mix:
        remedy = "name each store's share: --mix web=0.7,wiki=0.3"
        raise UsageError("bad-mixture", "there are no shares of it", remedy=remedy, where="--tokens")
    kept, left_out = _kept(stores, names, options)
    lengths = [store.lengths() for store in stores]
    tokens = [int(each[documents].sum(dtype=np.int64)) for each, documents in zip(lengths, kept, strict=True)]
    most = Fraction(options.max_epochs)
    epochs = epochs_of(weights, dict(zip(names, tokens, strict=True)), budget, most)
    chosen = [
        passes(each, documents, epochs[name], options.seed)
        for each, documents, name in zip(lengths, kept, names, strict=True)
    ]
    if not sum(map(len, chosen)):
        raise UsageError("nothing-chosen", "no document is left", remedy="check the options", where="--mix")
    sources = []
    for number, (name, store) in enumerate(zip(names, stores, strict=True)):
        once = np.unique(chosen[number])
        held = int(lengths[number][chosen[number]].sum(dtype=np.int64))
        sources.append(
            ChosenSource(
                documents=store.documents,
                tokens=store.tokens,
                **left_out[number],
                asked=str(weights[name]),
                chosen_documents=len(chosen[number]),
                chosen_tokens=held,
                repeated_documents=len(chosen[number]) - len(once),
                repeated_tokens=held - int(lengths[number][once].sum(dtype=np.int64)),
            )
        )
    corpus.choose(chosen)
    return Choice(options=asked, sources=sources, documents=None)


def _asked(options: PackArguments) -> dict[str, Any]:
    """The options that choose, as the manifest has them; those that ask for nothing are left out."""
    asked: dict[str, Any] = {}
    if options.mix:
        asked["mix"] = list(options.mix)
        asked["seed"] = options.seed
    if options.tokens is not None:
        asked["tokens"] = _count(options.tokens, "--tokens")
    if options.holdout is not None:
        asked |= {"holdout": str(options.holdout), "holdout_seed": options.holdout_seed, "part": options.part}
    elif options.part != "train":
        remedy = "say how much is held out: --holdout 0.5%"
        raise UsageError("bad-option", "has no effect without --holdout", remedy=remedy, where="--part")
    if options.shard_of is not None:
        asked["shard_of"] = options.shard_of
    if options.drop_duplicates:
        asked["drop_duplicates"] = True
    if options.exclude is not None:
        asked["exclude_xxh3_128"] = xxhash.xxh3_128_hexdigest(_list_file(Path(options.exclude)))
    return asked


def _names(stores: Sequence[TokenStore]) -> list[str]:
    """Names of the stores in a mixture: of their directories, or the paths as given where these are the same."""
    names = [store.path.resolve().name for store in stores]
    return names if len(set(names)) == len(names) else [str(store.path) for store in stores]


def _weights(mix: Sequence[str], names: Sequence[str]) -> dict[str, Fraction]:
    if not mix:
        return dict.fromkeys(names, Fraction(1))
    if len(set(names)) < len(names):
        remedy = "name each store once, with a weight above 1 to pack it more often"
        raise UsageError("bad-mixture", "a store is named twice among the inputs", remedy=remedy, where="--mix")
    out: dict[str, Fraction] = {}
    for each in mix:
        name, separator, weight = str(each).rpartition("=")
        if not separator or name not in names:
            what = f"{each!r} is not a weight" if not separator else f"there is no store {name!r} among the inputs"
            raise UsageError("bad-mixture", what, remedy=f"give {names[0]}=1 and so on", where="--mix")
        if name in out:
            raise UsageError("bad-mixture", f"{name} has two weights", remedy="keep one of them", where="--mix")
        if not re.fullmatch(r"\s*\d+(\.\d+)?(/[1-9]\d*)?\s*", weight) or ("." in weight and "/" in weight):
            what = f"the weight of {name} is {weight!r}, not a number from 0"
            raise UsageError("bad-mixture", what, remedy="give a number such as 0.4 or 3", where="--mix")
        out[name] = Fraction(weight.strip())
        if out[name] > 1_000_000:
            raise UsageError("bad-mixture", f"{weight} epochs of {name}", remedy="give fewer", where="--mix")
    missing = [name for name in names if name not in out]
    if missing:
        what = f"{missing[0]} has no weight"
        raise UsageError("bad-mixture", what, remedy="give every store a weight, 0 to leave it out", where="--mix")
    return out


def _count(value: str | int, option: str) -> int:
    """A number of tokens, such as 300B.

    >>> _count("1.5M", "--tokens"), _count(7, "--tokens")
    (1500000, 7)
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmbgt]?)\s*", str(value).lower())
    if match is None or not 0 < Decimal(match[1]) * _FACTORS[match[2]] < 1 << 62:
        what = f"{value!r} is not a number of tokens"
        raise UsageError("bad-option", what, remedy="write it like 300B, 5M or 1000000", where=option)
    return int(Decimal(match[1]) * _FACTORS[match[2]])


def _kept(
    stores: Sequence[TokenStore], names: Sequence[str], options: PackArguments
) -> tuple[list[I64], list[dict[str, int]]]:
    """Documents of each store that may be packed, and how many were left out for which reason."""
    by_text = options.holdout is not None or options.shard_of is not None or options.drop_duplicates
    origins = [store.origins() for store in stores] if by_text or options.exclude is not None else []
    excluded = _excluded(stores, origins, options.exclude)
    first: list[Mask] = []
    if options.drop_duplicates:
        # An excluded document does not count as the first of its text.
        whole = first_of_each(np.concatenate([o["hash"][~no] for o, no in zip(origins, excluded, strict=True)]))
        ends = np.cumsum([int((~no).sum()) for no in excluded])[:-1]
        for part, no in zip(np.split(whole, ends), excluded, strict=True):
            mask = np.zeros(len(no), np.bool_)
            mask[~no] = part
            first.append(mask)
    kept, counts = [], []
    for number, store in enumerate(stores):
        left = ~excluded[number]
        dropped = {"excluded": int((~left).sum())}
        masks: dict[str, Mask] = {}
        if first:
            masks["duplicates"] = first[number]
        if options.holdout is not None:
            held = _side(origins[number]["hash"], store, names[number], options)
            masks["other_side"] = held if options.part == "holdout" else ~held
        if options.shard_of is not None:
            masks["other_shard"] = in_shard(origins[number]["hash"], *_shard(options.shard_of))
        for reason in ("duplicates", "other_side", "other_shard"):
            before = int(left.sum())
            left = left & masks.get(reason, np.True_)
            dropped[reason] = before - int(left.sum())
        kept.append(np.flatnonzero(left))
        counts.append(dropped)
    return kept, counts


def _side(hashes: npt.NDArray[np.uint64], store: TokenStore, name: str, options: PackArguments) -> Mask:
    text = str(options.holdout)
    share = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    number = re.fullmatch(r"\s*(\d+(?:\.\d+)?\s*[kmbgt]?)\s*(tokens?|documents?)?\s*", text.lower())
    lengths, seed = store.lengths(), options.holdout_seed
    if share:
        held = held_out(hashes, lengths, seed=seed, share=Fraction(share[1]) / 100)
    elif number:
        what = "tokens" if (number[2] or "").startswith("token") else "documents"
        held = held_out(hashes, lengths, seed=seed, **{what: _count(number[1], "--holdout")})  # type: ignore[arg-type]
    else:
        remedy = "write it like 0.5%, 1000 documents or 2M tokens"
        raise UsageError("bad-option", f"{text!r} is not a part to hold out", remedy=remedy, where="--holdout")
    if held.all() and len(held):
        what = f"{text} holds out all {len(held):,} documents of {name}"
        raise UsageError("nothing-chosen", what, remedy="hold out less", where="--holdout")
    return held


def _shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    number, shards = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= shards < 1 << 31:
        remedy = "give a number and how many there are, such as 1/8 to 8/8"
        raise UsageError("bad-option", f"{text!r} is not a shard", remedy=remedy, where="--shard-of")
    return number, shards


def _list_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError(
            "missing-input", f"can't be read ({reason})", remedy="check the path", where=str(path)
        ) from None


def _excluded(stores: Sequence[TokenStore], origins: Sequence[npt.NDArray[Any]], path: str | Path | None) -> list[Mask]:
    """Documents that the list names, each by FILE:RECORD."""
    out = [np.zeros(store.documents, np.bool_) for store in stores]
    if path is None:
        return out
    wanted: dict[str, list[tuple[int, int]]] = {}
    for line, entry in enumerate(_list_file(Path(path)).decode("utf-8", "replace").splitlines(), 1):
        name, _, record = entry.strip().rpartition(":")
        if not entry.strip():
            continue
        if not name or not record.isdecimal() or int(record) >= 1 << 63:
            remedy = "name each document by its input file and line, such as web/a.jsonl:17"
            raise DataError("bad-list", f"{entry.strip()!r} is not a document", remedy=remedy, where=f"{path}:{line}")
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
