"""What `pack` takes of its stores: options to the documents that are packed, before anything is planned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import xxhash

from packtool.arrays import IN_MEMORY, Arrays, blocks
from packtool.commands.choose_documents import REASONS, Codes, Mask, documents_left, listed_file
from packtool.commands.choose_options import holdout_of, parse_tokens, shard_of, share_of, weights_of
from packtool.errors import UsageError
from packtool.options.pack import PackArguments
from packtool.plan import I64, Ints
from packtool.selecting.mixture import Passes, epochs_of, passes
from packtool.storage.manifest import Choice, ChosenSource, LeftOut
from packtool.storage.schema import NOT_DRAWN
from packtool.storage.token_store import Corpus, TokenStore
from packtool.temporary import temporary_directory
from packtool.writing.memory import Budget
from packtool.writing.planning import arrays_for


@dataclass(frozen=True)
class Chosen:
    """What is packed of the stores.

    Attributes:
        choice: its account, for the manifest.
        passes: the documents of each store.
    """

    choice: Choice
    passes: Sequence[Passes]


@contextmanager
def choosing(corpus: Corpus, options: PackArguments, budget: Budget) -> Iterator[Chosen | None]:
    """What `choose` finds, as long as the block runs: where it might exceed the memory granted, it lies on disk."""
    with temporary_directory() as work, arrays_for(corpus.documents, budget, work) as arrays:
        yield choose(corpus, options, arrays)


def choose(corpus: Corpus, options: PackArguments, arrays: Arrays = IN_MEMORY) -> Chosen | None:
    """Choose documents of the corpus, as the options ask; None where they ask for nothing.

    Raises:
        UsageError: weights, shares or sides that make no sense, or leave nothing.
        DataError: the list of exclusions can't be read, or names what there is not.
    """
    asked = _asked(options)
    if not asked:
        return None
    stores = corpus.stores
    if arrays is not IN_MEMORY:
        corpus.work_in(arrays)
    names = _names(stores)
    weights = weights_of(options.mix, names)
    if options.mix:
        asked["mix"] = [str(weights[name]) for name in names]  # in the order of the stores, whatever they are called
    budget = None if options.tokens is None else parse_tokens(options.tokens, "--tokens")
    if budget is not None and not options.mix:
        remedy = "name each store's share: --mix web=0.7,wiki=0.3"
        raise UsageError("bad-mixture", "there are no shares of it", remedy=remedy, where="--tokens")
    ends = np.cumsum([store.documents for store in stores])[:-1]
    lengths: list[Ints] = np.split(corpus.stored_lengths(), ends)  # read once: what is chosen is looked up in them
    found = documents_left(stores, names, lengths, options, asked.get("sample_interval", 0), arrays)
    counts = [_count(codes, sizes) for codes, sizes in zip(found, lengths, strict=True)]
    epochs = epochs_of(
        weights,
        {name: int(each[1, 0]) for name, each in zip(names, counts, strict=True)},
        budget,
        Fraction(options.max_epochs),
    )
    chosen = [
        passes(sizes, arrays.filled(len(codes), np.bool_, partial(_is_left, codes)), epochs[name], options.seed, arrays)
        for sizes, codes, name in zip(lengths, found, names, strict=True)
    ]
    sources = [
        _source(store, sizes, mine, count, str(weights[name]), epochs[name])
        for store, sizes, mine, count, name in zip(stores, lengths, chosen, counts, names, strict=True)
    ]
    if not sum(source.chosen_documents for source in sources):
        raise _nothing_left(sources, options)
    return Chosen(Choice(options=asked, sources=sources, documents=None), chosen)


def _is_left(codes: Codes, a: int, b: int) -> Mask:
    left: Mask = codes[a:b] == 0
    return left


def _count(codes: Codes, lengths: Ints) -> I64:
    """Documents of each code, and their tokens: (2, codes)."""
    out = np.zeros((2, 1 + len(REASONS)), np.int64)
    for a, b in blocks(len(codes)):
        out[0] += np.bincount(codes[a:b], minlength=out.shape[1])
        out[1] += np.bincount(codes[a:b], weights=lengths[a:b], minlength=out.shape[1]).astype(np.int64)
    return out


def _source(
    store: TokenStore, lengths: Ints, chosen: Passes, counts: I64, asked: str, epochs: Fraction
) -> ChosenSource:
    """The account of one store: every document of it is left out for one reason, or packed."""
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


_OPTIONS = {
    "excluded": "--exclude",
    "too_short": "--min-tokens",
    "too_long": "--max-tokens",
    "duplicates": "--drop-duplicates",
    "other_side": "--holdout",
    "other_shard": "--shard-of",
    "not_sampled": "--sample",
    NOT_DRAWN: "--mix",
}
"""Which option leaves documents out for each reason."""


def _nothing_left(sources: Sequence[ChosenSource], options: PackArguments) -> UsageError:
    """The error where no document is packed: it names the option that took most."""
    total = sum(source.documents for source in sources)
    taken: dict[str, int] = {}
    for source in sources:
        for reason, left_out in source.left_out.items():
            taken[reason] = taken.get(reason, 0) + left_out.documents
    worst = max(taken, key=lambda reason: taken[reason], default=NOT_DRAWN)
    if worst == "other_side" and options.part == "holdout":
        what = f"{options.holdout} holds out none of the {total:,} documents"
        return UsageError("nothing-chosen", what, remedy="hold out more, or a number of documents", where="--holdout")
    what = f"no document is left: it takes {taken.get(worst, 0):,} of the {total:,} documents"
    return UsageError("nothing-chosen", what, remedy="ask for less of it", where=_OPTIONS[worst])


def _asked(options: PackArguments) -> dict[str, Any]:
    """The options that choose, as the manifest has them; those that ask for nothing are left out."""
    asked: dict[str, Any] = {}
    if options.mix:
        asked["mix"] = []
    if options.tokens is not None:
        asked["tokens"] = parse_tokens(options.tokens, "--tokens")
    if options.holdout is not None:
        holdout_of(options.holdout)
        asked |= {"holdout": str(options.holdout), "holdout_seed": options.holdout_seed, "part": options.part}
    elif options.part != "train":
        remedy = "say how much is held out: --holdout 0.5%"
        raise UsageError("bad-option", "has no effect without --holdout", remedy=remedy, where="--part")
    if options.shard_of is not None:
        shard_of(options.shard_of)
        asked["shard_of"] = options.shard_of
    if options.drop_duplicates:
        asked["drop_duplicates"] = True
    if options.exclude is not None:
        asked["exclude_xxh3_128"] = xxhash.xxh3_128_hexdigest(listed_file(options.exclude))
    for name in ("min_tokens", "max_tokens"):
        if (value := getattr(options, name)) is not None:
            asked[name] = value
    if options.sample is not None:
        longest = max(options.buckets) if options.sequence_length is None else options.sequence_length
        asked |= {"sample": str(share_of(options.sample)), "sample_interval": options.sample_interval or longest}
    elif options.sample_interval is not None:
        remedy = "say how much to sample: --sample 0.25"
        raise UsageError("bad-option", "has no effect without --sample", remedy=remedy, where="--sample-interval")
    if "mix" in asked or "sample" in asked:
        asked["seed"] = options.seed
    return asked


def _names(stores: Sequence[TokenStore]) -> list[str]:
    """Names of the stores in a mixture: of their directories, or the paths as given where these are the same."""
    names = [store.path.resolve().name for store in stores]
    return names if len(set(names)) == len(names) else [str(store.path) for store in stores]
