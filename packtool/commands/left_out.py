"""Find the documents that lists, limits, hold-outs and samples leave out of what is packed, and why each is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.commands.exclusions import Exclusions
from packtool.commands.places import names_of
from packtool.errors import UsageError
from packtool.formats.token_store import TokenStore
from packtool.options.documents import DocumentOptions
from packtool.options.kinds import parse_part, parse_share
from packtool.options.where import Condition, condition_of, needs_origins
from packtool.planning.arrays import Arrays
from packtool.planning.plan import I64, Ints, Mask
from packtool.planning.selecting.subsets import first_of_each, held_out, in_shard, sampled

Codes = npt.NDArray[np.uint8]

REASONS = {
    "excluded": "--exclude",
    "not_where": "--where",
    "too_short": "--min-tokens",
    "too_long": "--max-tokens or --too-long",
    "duplicates": "--drop-duplicates",
    "other_side": "--holdout",
    "other_shard": "--shard-of",
    "not_sampled": "--sample",
}
"""Why a document may not be taken, the first of these that holds; and the option that asks for it."""


def origins_of(
    stores: Sequence[TokenStore], options: DocumentOptions, exclusions: Exclusions, arrays: Arrays
) -> list[npt.NDArray[Any]]:
    """Return where the documents of each store came from, and the hashes of their texts; empty where nothing asks.

    Raises:
        UsageError: something asks, and a store does not have them.
    """
    by_text = options.holdout is not None or options.shard_of is not None or options.drop_duplicates
    by_line = options.where is not None and needs_origins(condition_of(options.where))
    if by_text or by_line or exclusions:
        return [store.origins(arrays) for store in stores]
    return []


def reasons_of(
    stores: Sequence[TokenStore],
    lengths: Sequence[Ints],
    origins: Sequence[npt.NDArray[Any]],
    options: DocumentOptions,
    exclusions: Exclusions,
    whole: int | None,
    arrays: Arrays,
) -> list[Codes]:
    """Give each document of each store 0 if it may be packed, else the number of its reason in `REASONS`, from 1.

    Args:
        lengths: of the documents of each store.
        origins: of the documents of each store, where the options need them.
        options: whose hold-out has its bound.
        whole: the most tokens of a conversation.

    Raises:
        UsageError: all documents of a store are held out.
        DataError: a list names a document that no store has.
    """
    hashes = [origin["hash"] for origin in origins]
    rules = _Rules(options, stores, lengths, hashes, whole)
    if exclusions:
        rules.excluded = exclusions.excluded(stores, origins, arrays)
    if options.where is not None:
        rules.wanted = _wanted(stores, condition_of(options.where), lengths, origins, arrays)
    if options.drop_duplicates:
        rules.first = first_of_each(hashes, rules.left, arrays)
    if options.holdout is not None:
        rules.held = _held_out(stores, hashes, options, arrays)
    reasons: list[Codes] = []
    for store, sizes in enumerate(lengths):
        reasons.append(arrays.filled(len(sizes), np.uint8, partial(rules.codes, store)))
    if options.sample is not None:
        _sample(lengths, reasons, options)
    return reasons


@dataclass
class _Rules:
    """What leaves documents out, one rule after the other, block by block.

    Attributes:
        lengths, hashes: of the documents of each store; hashes only where the options need them.
        whole: the most tokens of a conversation; None for any number.
        excluded, wanted, first, held: documents that are excluded, that `--where` takes, that are the first with their
            text, and that are held out: a mask for each store, or none where nothing asks.
    """

    options: DocumentOptions
    stores: Sequence[TokenStore]
    lengths: Sequence[Ints]
    hashes: Sequence[npt.NDArray[np.uint64]]
    whole: int | None
    excluded: Sequence[Mask] = ()
    wanted: Sequence[Mask] = ()
    first: Sequence[Mask] = ()
    held: Sequence[Mask] = ()

    def codes(self, store: int, a: int, b: int) -> Codes:
        """Give documents ``a:b`` of a store the number of the first rule that leaves them out, from 1; else 0."""
        out = np.zeros(b - a, np.uint8)
        for reason, mask in self._removed(store, slice(a, b)):
            out[mask & (out == 0)] = _code(reason)
        return out

    def left(self, store: int, part: slice) -> Mask:
        """Mark the documents of a part of a store that may be the first with their text."""
        out: Mask = np.ones(part.stop - part.start, np.bool_)
        if self.excluded:
            out &= ~self.excluded[store][part]
        if self.wanted:
            out &= self.wanted[store][part]
        return out

    def _removed(self, store: int, part: slice) -> Iterator[tuple[str, Mask]]:
        """Yield the rules in use, in the order of `REASONS`, with the documents that each leaves out."""
        options, lengths = self.options, self.lengths[store][part]
        if self.excluded:
            yield "excluded", self.excluded[store][part]
        if self.wanted:
            yield "not_where", ~self.wanted[store][part]
        if options.min_tokens is not None:
            yield "too_short", lengths < options.min_tokens
        if options.max_tokens is not None:
            yield "too_long", lengths > options.max_tokens
        if self.whole is not None and self.stores[store].manifest.conversations:
            yield "too_long", lengths > self.whole
        if self.first:
            yield "duplicates", ~self.first[store][part]
        if self.held:
            yield "other_side", self.held[store][part] != (options.part == "holdout")
        if options.shard_of is not None:
            number, shards = map(int, options.shard_of.split("/"))
            yield "other_shard", ~in_shard(self.hashes[store][part], number, shards)


def _sample(lengths: Sequence[Ints], reasons: Sequence[Codes], options: DocumentOptions) -> None:
    """Give the documents that may be packed and are not drawn the reason that they are not."""
    assert options.sample is not None
    assert options.sample_interval is not None
    share = parse_share(options.sample)
    for sizes, why in zip(lengths, reasons, strict=True):
        mask = sampled(sizes, np.flatnonzero(why == 0), share, options.sample_interval, options.seed)
        why[(why == 0) & ~mask] = _code("not_sampled")


def _code(reason: str) -> int:
    return 1 + list(REASONS).index(reason)


def _wanted(
    stores: Sequence[TokenStore],
    condition: Condition,
    lengths: Sequence[Ints],
    origins: Sequence[npt.NDArray[Any]],
    arrays: Arrays,
) -> list[Mask]:
    """Mark the documents for which a condition holds."""
    from packtool.commands.where import documents_where  # reads with Arrow, which takes a while to load

    names = names_of([store.place for store in stores])
    wanted = []
    for number, store in enumerate(stores):
        of_store = None
        if origins:
            of_store = origins[number]
        wanted.append(documents_where(store, names[number], condition, lengths[number], of_store, arrays))
    return wanted


def _held_out(
    stores: Sequence[TokenStore],
    hashes: Sequence[npt.NDArray[np.uint64]],
    options: DocumentOptions,
    arrays: Arrays,
) -> list[Mask]:
    """Mark the held-out documents. One bound for all stores keeps the copies of a text on one side."""
    assert options.holdout is not None
    bound, seed = parse_part(options.holdout).bound, options.holdout_seed
    assert bound is not None

    def drawn(store: int, a: int, b: int) -> Mask:
        return held_out(hashes[store][a:b], seed=seed, bound=bound)

    held = [arrays.filled(len(hashed), np.bool_, partial(drawn, store)) for store, hashed in enumerate(hashes)]
    for mask, name in zip(held, names_of([store.place for store in stores]), strict=True):
        if len(mask) and mask.all():
            what = f"{options.holdout} holds out all {len(mask):,} documents of {name}"
            raise UsageError("nothing-chosen", what, remedy="hold out less", where="--holdout")
    return held


def ends_of(stores: Sequence[TokenStore]) -> I64:
    """Return where the documents of every store but the last end, counted over all stores."""
    return np.cumsum([store.documents for store in stores])[:-1]
