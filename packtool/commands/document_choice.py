"""Choose which documents of the stores to pack, and how often, before anything is planned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xxhash

from packtool.commands.document_origins import listed_documents
from packtool.errors import DataError, UsageError
from packtool.formats.schema import NOT_DRAWN, Choice, ChosenSource, LeftOut, Options
from packtool.formats.token_store import Corpus, TokenStore
from packtool.options.declare import flag
from packtool.options.documents import DocumentOptions
from packtool.options.kinds import parse_amount, parse_part, parse_share, parse_temperature
from packtool.places.local import LocalPlace
from packtool.places.place import Place
from packtool.planning.arrays import IN_MEMORY, Arrays, blocks
from packtool.planning.plan import I64, Ints
from packtool.planning.selecting.mixture import (
    Passes,
    epochs_of,
    passes,
    require_whole,
    shares_by_temperature,
    weight_of,
    weights_of,
)
from packtool.planning.selecting.subsets import first_of_each, held_out, in_shard, sampled

Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.uint8]

REASONS = {
    "excluded": "--exclude",
    "too_short": "--min-tokens",
    "too_long": "--max-tokens or --too-long",
    "duplicates": "--drop-duplicates",
    "other_side": "--holdout",
    "other_shard": "--shard-of",
    "not_sampled": "--sample",
}
"""Why a document may not be taken, the first of these that holds; and the option that asks for it."""


@dataclass(frozen=True)
class Chosen:
    """The documents taken from the stores: each once, unless there is a choice.

    Attributes:
        choice: its account, for the manifest.
        passes: the documents of each store.
    """

    choice: Choice | None = None
    passes: Sequence[Passes] | None = None

    @property
    def options(self) -> list[Options]:
        """The options of the choice, for the key of an output; none without one."""
        return [] if self.choice is None else [self.choice.options]


def require_distinct(stores: Sequence[Place]) -> None:
    """Refuse a store that is named twice, which would double its documents silently."""
    seen: set[str] = set()
    for store in stores:
        identity = str(store.path.resolve()) if isinstance(store, LocalPlace) else str(store)
        if identity in seen:
            remedy = f"name it once; --mix {store.name}=2 packs its documents twice"
            raise UsageError("store-named-twice", "named twice among the inputs", remedy=remedy, where=str(store))
        seen.add(identity)


def check_choice(options: DocumentOptions) -> None:
    """Refuse options that make no sense together, before a store is opened."""
    needs = (
        ("part", options.part != "train", options.holdout, "holdout", "say how much is held out: --holdout 0.5%"),
        ("sample_interval", options.sample_interval, options.sample, "sample", "say how much to sample: --sample 25%"),
        ("temperature", options.temperature, options.tokens, "tokens", "say how many tokens it divides: --tokens 10B"),
    )
    for name, given, other, needed, remedy in needs:
        if given and other is None:
            raise UsageError("bad-option", f"has no effect without {flag(needed)}", remedy=remedy, where=flag(name))
    if options.temperature is not None and options.mix:
        what = "--mix gives the shares already"
        raise UsageError("bad-mixture", what, remedy="give one of them", where="--temperature")
    if options.tokens is not None and not options.mix and options.temperature is None:
        remedy = "name each store's share: --mix web=70%,wiki=30%, or give --temperature"
        raise UsageError("bad-mixture", "needs --mix or --temperature", remedy=remedy, where="--tokens")
    weights = [weight_of(each, shares=options.tokens is not None) for each in options.mix]
    if options.tokens is not None and weights:
        require_whole(dict(weights))
    if options.holdout is not None and parse_part(options.holdout).share == 1:
        what = f"{options.holdout} holds out all documents"
        raise UsageError("nothing-chosen", what, remedy="hold out less", where="--holdout")
    if options.exclude is not None:
        _read_list(options.exclude)


def _read_list(path: Path | str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        what = f"can't be read ({(error.strerror or str(error)).lower()})"
        raise DataError("missing-input", what, remedy="check the path", where=str(path)) from None


def choose(
    corpus: Corpus,
    options: DocumentOptions,
    row_length: int | None = None,
    arrays: Arrays = IN_MEMORY,
    whole: int | None = None,
) -> Chosen:
    """Choose documents of the corpus, as the options say.

    Args:
        options: that `check_choice` took.
        row_length: the default for the width of the intervals of lengths that samples are drawn from.
        arrays: makes arrays as long as the corpus.
        whole: the most tokens of a conversation; longer ones are left out. None to leave none out.

    Raises:
        UsageError: weights or shares of other stores, or options that leave no document.
        DataError: the list of exclusions can't be read, or names a document that no store has.
    """
    excluded = None if options.exclude is None else _read_list(options.exclude)
    asked = _asked(options, row_length, excluded)
    if whole is not None:
        asked["too_long"] = "drop"
    if not asked:
        return Chosen()
    stores = corpus.stores
    corpus.work_in(arrays)
    names = names_of([store.place for store in stores])
    weights = weights_of(options.mix, names, shares=options.tokens is not None)
    lengths: list[Ints] = np.split(corpus.stored_lengths(), _ends(stores))
    reasons = _reasons(stores, lengths, options, excluded, whole, asked.get("sample_interval", 0), arrays)
    counts = [_count(codes, sizes) for codes, sizes in zip(reasons, lengths, strict=True)]
    left = {name: int(each[1, 0]) for name, each in zip(names, counts, strict=True)}
    if options.temperature is not None:
        weights = shares_by_temperature(left, parse_temperature(options.temperature))
    if "mix" in asked:
        asked["mix"] = [str(weights[name]) for name in names]  # in the order of the stores, whatever they are called
    epochs = epochs_of(weights, left, asked.get("tokens"), Fraction(options.max_epochs))
    chosen = [
        _passes(sizes, codes, epochs[name], options.seed, arrays)
        for sizes, codes, name in zip(lengths, reasons, names, strict=True)
    ]
    sources = [
        _source(store, sizes, mine, count, str(weights[name]), epochs[name])
        for store, sizes, mine, count, name in zip(stores, lengths, chosen, counts, names, strict=True)
    ]
    if not sum(source.chosen_documents for source in sources):
        raise _nothing_left(sources, options)
    return Chosen(Choice(options=asked, sources=sources, documents=None), chosen)


def _passes(lengths: Ints, codes: Codes, epochs: Fraction, seed: int, arrays: Arrays) -> Passes:
    left = arrays.filled(len(codes), np.bool_, lambda a, b: codes[a:b] == 0)
    return passes(lengths, left, epochs, seed, arrays)


def _count(codes: Codes, lengths: Ints) -> I64:
    """Count the documents of each code, and their tokens: (2, codes)."""
    out = np.zeros((2, 1 + len(REASONS)), np.int64)
    for a, b in blocks(len(codes)):
        out[0] += np.bincount(codes[a:b], minlength=out.shape[1])
        out[1] += np.bincount(codes[a:b], weights=lengths[a:b], minlength=out.shape[1]).astype(np.int64)
    return out


def _source(
    store: TokenStore, lengths: Ints, chosen: Passes, counts: I64, asked: str, epochs: Fraction
) -> ChosenSource:
    """Account for one store: each of its documents is packed, or left out for one reason."""
    kept, part = counts[:, 0], _count(chosen.part.view(np.uint8), lengths)[:, 1]
    different = kept if chosen.whole else part
    packed = chosen.whole * kept + part
    left_out = {**dict(zip(REASONS, counts[:, 1:].T, strict=True)), NOT_DRAWN: kept - different}
    return ChosenSource(
        documents=store.documents,
        tokens=store.tokens,
        left_out={reason: LeftOut(*each.tolist()) for reason, each in left_out.items() if each[0]},
        asked=asked,
        epochs=str(epochs),
        chosen_documents=int(packed[0]),
        chosen_tokens=int(packed[1]),
        repeated_documents=int((packed - different)[0]),
        repeated_tokens=int((packed - different)[1]),
    )


def _nothing_left(sources: Sequence[ChosenSource], options: DocumentOptions) -> UsageError:
    """Return the error for a choice that leaves nothing; it names the option that took the most."""
    total = sum(source.documents for source in sources)
    taken = Counter({NOT_DRAWN: 0})
    for source in sources:
        taken.update({reason: left_out.documents for reason, left_out in source.left_out.items()})
    [(worst, most)] = taken.most_common(1)
    if worst == "other_side" and options.part == "holdout":
        what = f"{options.holdout} holds out none of the {total:,} documents"
        return UsageError("nothing-chosen", what, remedy="hold out more, or a number of documents", where="--holdout")
    what = f"no document is left: it takes {most:,} of the {total:,} documents"
    return UsageError("nothing-chosen", what, remedy="ask for less of it", where={**REASONS, NOT_DRAWN: "--mix"}[worst])


def _asked(options: DocumentOptions, row_length: int | None, excluded: bytes | None) -> dict[str, Any]:
    """Return the options that choose documents, as the manifest records them, without those that are not in use."""
    asked: dict[str, Any] = {}
    if options.mix or options.temperature is not None:
        asked["mix"] = []  # each store's weight, once it is known
    if options.tokens is not None:
        asked["tokens"] = parse_amount(options.tokens)
    if options.holdout is not None:
        asked |= {"holdout": str(options.holdout), "holdout_seed": options.holdout_seed, "part": options.part}
    for name in ("shard_of", "min_tokens", "max_tokens"):
        if (value := getattr(options, name)) is not None:
            asked[name] = value
    if options.drop_duplicates:
        asked["drop_duplicates"] = True
    if excluded is not None:
        asked["exclude_xxh3_128"] = xxhash.xxh3_128_hexdigest(excluded)
    if options.sample is not None:
        interval = options.sample_interval or row_length
        if interval is None:
            what, remedy = "--sample needs it where no row has a length", "give the width of an interval, such as 2048"
            raise UsageError("missing-option", what, remedy=remedy, where="--sample-interval")
        asked |= {"sample": str(parse_share(options.sample)), "sample_interval": interval}
    if "mix" in asked or "sample" in asked:
        asked["seed"] = options.seed
    return asked


def names_of(stores: Sequence[Place]) -> list[str]:
    """Name the stores of a mixture after their directories, or after the paths as given if these would be the same."""
    names = [store.name for store in stores]
    return names if len(set(names)) == len(names) else [str(store) for store in stores]


def _reasons(
    stores: Sequence[TokenStore],
    lengths: Sequence[Ints],
    options: DocumentOptions,
    listed: bytes | None,
    whole: int | None,
    interval: int,
    arrays: Arrays,
) -> list[Codes]:
    """Give each document of each store 0 if it may be packed, else the number of its reason in `REASONS`, from 1.

    Args:
        lengths: of the documents of each store.
        listed: contents of the list of exclusions.
        whole: the most tokens of a conversation.
        interval: of lengths, for a sample.
    """
    by_text = options.holdout is not None or options.shard_of is not None or options.drop_duplicates
    origins = [store.origins(arrays) for store in stores] if by_text or listed is not None else []
    hashes = [each["hash"] for each in origins] if by_text else []
    excluded = [] if listed is None else listed_documents(stores, origins, listed, str(options.exclude))
    first = _first(stores, hashes, excluded) if options.drop_duplicates else []
    held = [] if options.holdout is None else _held_out(stores, hashes, lengths, options, arrays)
    number, shards = (int(each) for each in (options.shard_of or "1/1").split("/"))

    def removed(store: int, part: slice) -> Iterator[tuple[str, Mask]]:
        if excluded:
            yield "excluded", excluded[store][part]
        if options.min_tokens is not None:
            yield "too_short", lengths[store][part] < options.min_tokens
        if options.max_tokens is not None:
            yield "too_long", lengths[store][part] > options.max_tokens
        if whole is not None and stores[store].manifest.conversations:
            yield "too_long", lengths[store][part] > whole
        if first:
            yield "duplicates", ~first[store][part]
        if held:
            yield "other_side", held[store][part] != (options.part == "holdout")
        if options.shard_of is not None:
            yield "other_shard", ~in_shard(hashes[store][part], number, shards)

    def codes(store: int, a: int, b: int) -> Codes:
        out = np.zeros(b - a, np.uint8)
        for reason, mask in removed(store, slice(a, b)):
            out[mask & (out == 0)] = _code(reason)
        return out

    reasons: list[Codes] = []
    for store, sizes in enumerate(lengths):
        why: Codes = arrays.filled(len(sizes), np.uint8, partial(codes, store))
        if options.sample is not None:
            mask = sampled(sizes, np.flatnonzero(why == 0), parse_share(options.sample), interval, options.seed)
            why[(why == 0) & ~mask] = _code("not_sampled")
        reasons.append(why)
    return reasons


def _code(reason: str) -> int:
    return 1 + list(REASONS).index(reason)


def _first(
    stores: Sequence[TokenStore], hashes: Sequence[npt.NDArray[np.uint64]], excluded: Sequence[Mask]
) -> list[Mask]:
    """Mark the documents that are the first with their text among all that are not excluded."""
    every = np.concatenate(hashes)
    left = ~np.concatenate(excluded) if excluded else np.ones(len(every), np.bool_)
    first = np.zeros(len(left), np.bool_)
    first[left] = first_of_each(every[left])
    return np.split(first, _ends(stores))


def _held_out(
    stores: Sequence[TokenStore],
    hashes: Sequence[npt.NDArray[np.uint64]],
    lengths: Sequence[Ints],
    options: DocumentOptions,
    arrays: Arrays,
) -> list[Mask]:
    """Mark the held-out documents. One threshold for all stores keeps the copies of a text on one side."""
    assert options.holdout is not None
    asked, seed = parse_part(options.holdout), options.holdout_seed
    if asked.share is not None:

        def drawn(store: int, a: int, b: int) -> Mask:
            return held_out(hashes[store][a:b], lengths[store][a:b], seed=seed, share=asked.share)

        held = [arrays.filled(len(each), np.bool_, partial(drawn, store)) for store, each in enumerate(hashes)]
    else:
        every = np.concatenate(hashes), np.concatenate(lengths)
        held = np.split(held_out(*every, seed=seed, documents=asked.documents, tokens=asked.tokens), _ends(stores))
    for mask, name in zip(held, names_of([store.place for store in stores]), strict=True):
        if len(mask) and mask.all():
            what = f"{options.holdout} holds out all {len(mask):,} documents of {name}"
            raise UsageError("nothing-chosen", what, remedy="hold out less", where="--holdout")
    return held


def _ends(stores: Sequence[TokenStore]) -> I64:
    """Return where the documents of each store but the last end among those of all stores."""
    return np.cumsum([store.documents for store in stores])[:-1]
