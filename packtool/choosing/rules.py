"""The rules that leave documents out: one row each, the first that holds is the reason.

Everything about a rule follows from its row: the reason in manifests and reports, the option that messages name, what
must be known of documents before a store is made, and what `find` says of a document that a dataset does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from packtool.choosing.asked import Asked
from packtool.choosing.documents import Portion, StoredDocuments
from packtool.choosing.exclusions import excluded
from packtool.choosing.listed import names_lines
from packtool.choosing.sides import Sides
from packtool.errors import UsageError
from packtool.options.kinds import parse_share
from packtool.options.where import condition_of, needs_origins
from packtool.planning.arrays import blocks
from packtool.planning.plan import I64, Ints, Mask
from packtool.planning.selecting.subsets import U64, bound_of_number, first_of_each, held_out, in_shard, sampled
from packtool.spelling import flag

Removes = Callable[[Asked, StoredDocuments, Iterable[Portion]], Iterator[Mask]]


@dataclass(frozen=True)
class Rule:
    """Leaves documents out.

    Attributes:
        reason: why, in manifests and reports.
        options: that ask for it; messages name the first, which `Asked` has.
        removes: function that marks, for each of some portions of the documents, what it leaves out. What is left out
            already by the rules before is final when the first portion is asked for.
        reads_origins: tells from what is asked whether the rule reads where documents came from.
        alone: whether it looks at a document alone, by what a manifest records.
    """

    reason: str
    options: tuple[str, ...]
    removes: Removes
    reads_origins: Callable[[Asked], bool]
    alone: bool = True

    @property
    def flag(self) -> str:
        """The option that asks for it, as it is written."""
        return flag(self.options[0])

    def value(self, asked: Asked) -> Any:
        """Return the value that asks for it; None if nothing does."""
        return getattr(asked, self.options[0])


def _always(asked: Asked) -> bool:
    return True


def _never(asked: Asked) -> bool:
    return False


def _by_lines_or_texts(asked: Asked) -> bool:
    """Return whether a list names a document by its file and line, or a store's texts are excluded.

    What is not a file may be a store that is made later, or a pipe, which can be read only once.
    """
    paths = asked.excluded
    return not all(map(Path.is_file, paths)) or any(map(names_lines, map(Path.read_bytes, paths)))


def _where_came_from(asked: Asked) -> bool:
    return asked.where is not None and needs_origins(condition_of(asked.where))


def _by_texts(asked: Asked) -> bool:
    return asked.holdout_by is None


def _excluded(asked: Asked, documents: StoredDocuments, portions: Iterable[Portion]) -> Iterator[Mask]:
    assert asked.exclusions is not None
    yield from map(excluded(asked.exclusions, documents), portions)


def _not_where(asked: Asked, documents: StoredDocuments, portions: Iterable[Portion]) -> Iterator[Mask]:
    from packtool.choosing.condition import Search  # reads with Arrow, which takes a while to load

    search = Search(condition_of(asked.where or ""), asked.where_stores or {})
    for portion in portions:
        out = np.zeros(len(portion), np.bool_)
        left = portion.left  # what is left out already may lack fields
        out[left] = ~search.holds(portion, left)
        yield out
    search.require_all_present()


def _too_short(asked: Asked, documents: StoredDocuments, portions: Iterable[Portion]) -> Iterator[Mask]:
    for portion in portions:
        yield portion.lengths < (asked.min_tokens or 0)


def _too_long(asked: Asked, documents: StoredDocuments, portions: Iterable[Portion]) -> Iterator[Mask]:
    for portion in portions:
        yield portion.lengths > (asked.max_tokens or 0)


def _conversation_too_long(asked: Asked, documents: StoredDocuments, portions: Iterable[Portion]) -> Iterator[Mask]:
    for portion in portions:
        yield (portion.lengths > (asked.longest or 0)) & portion.store.manifest.conversations


def _duplicates(asked: Asked, documents: StoredDocuments, portions: Iterable[Portion]) -> Iterator[Mask]:
    # Once: several passes go over them, and the stores may lie far away.
    hashes: U64 = documents.arrays.empty(len(documents), np.uint64)
    for portion in documents.portions():
        hashes[portion.here] = portion.hashes

    def left() -> Iterator[tuple[U64, I64]]:
        for a, b in blocks(len(documents)):
            places = np.flatnonzero(documents.codes[a:b] == 0)
            yield hashes[a:b][places], a + places

    first = first_of_each(left, len(documents), documents.arrays)
    for portion in portions:
        yield ~first[portion.here]


def _other_side(asked: Asked, documents: StoredDocuments, portions: Iterable[Portion]) -> Iterator[Mask]:
    if asked.bound is None:
        what, remedy = "the hash is not recorded below which documents are held out", "pack it again with this version"
        raise UsageError("no-holdout", what, remedy=remedy, where="--holdout")
    sides = Sides(asked.holdout_by)
    for portion in portions:
        held = held_out(sides.hashes(portion), seed=int(asked.holdout_seed or 0), bound=asked.bound)
        yield held != (asked.part == "holdout")
    sides.warn_of_missing()


def _other_shard(asked: Asked, documents: StoredDocuments, portions: Iterable[Portion]) -> Iterator[Mask]:
    number, shards = map(int, (asked.shard_of or "1/1").split("/"))
    for portion in portions:
        yield ~in_shard(portion.hashes, number, shards)


def _not_sampled(asked: Asked, documents: StoredDocuments, portions: Iterable[Portion]) -> Iterator[Mask]:
    drawn, share = documents.none(), parse_share(asked.sample or 1)
    for number in range(len(documents.stores)):
        here = documents.of_store(number)
        left = np.flatnonzero(documents.codes[here] == 0)
        drawn[here] = sampled(documents.lengths[here], left, share, asked.sample_interval or 1, asked.seed or 0)
    for portion in portions:
        yield ~drawn[portion.here]


RULES = (
    Rule("excluded", ("exclude",), _excluded, _by_lines_or_texts, alone=False),
    Rule("not_where", ("where",), _not_where, _where_came_from),
    Rule("too_short", ("min_tokens",), _too_short, _never),
    Rule("too_long", ("max_tokens",), _too_long, _never),
    Rule("too_long", ("too_long",), _conversation_too_long, _never, alone=False),
    Rule("duplicates", ("drop_duplicates",), _duplicates, _always, alone=False),
    Rule("other_side", ("holdout", "holdout_of"), _other_side, _by_texts),
    Rule("other_shard", ("shard_of",), _other_shard, _always),
    Rule("not_sampled", ("sample",), _not_sampled, _never, alone=False),
)
"""Why a document may not be taken: the first of these that holds."""


def asked_for(asked: Asked) -> list[Rule]:
    """List the rules that options ask for."""
    return [rule for rule in RULES if rule.value(asked) is not None]


def reading_origins(asked: Asked) -> list[str]:
    """List the options, as they are written, whose rules read where documents came from, before there are any."""
    flags = []
    for rule in RULES:
        if rule.reads_origins(asked):
            flags += [flag(name) for name in rule.options if getattr(asked, name) is not None]
    return flags


def leave_out(asked: Asked, documents: StoredDocuments) -> None:
    """Give documents that may not be taken the number of the first rule that says so."""
    for rule in asked_for(asked):
        removed = rule.removes(asked, documents, documents.portions())
        for portion, mask in zip(documents.portions(), removed, strict=True):
            codes = portion.codes
            codes[mask & (codes == 0)] = 1 + RULES.index(rule)


def with_bound(asked: Asked, documents: StoredDocuments) -> Asked:
    """Settle the hash below which documents are held out, where a number of them is.

    Raises:
        UsageError: the dataset whose hold-out is taken does not say it.
    """
    if asked.holdout is None or asked.bound is not None:
        return asked
    if asked.holdout_of is not None:
        what = f"it held out {asked.holdout}, and does not say of which hash on"
        raise UsageError("no-holdout", what, remedy="pack it again with this version", where=str(asked.holdout_of))
    return replace(asked, holdout_bound=str(_holdout_bound(asked, documents)))


def _holdout_bound(asked: Asked, documents: StoredDocuments) -> int:
    """Return the hash below which as many of all documents are held out as asked."""
    amount, sides = asked.amount, Sides(asked.holdout_by)

    def drawn() -> Iterator[tuple[U64, Ints]]:
        for portion in documents.portions():
            counted: Ints = np.ones(len(portion), np.int64)
            if amount.tokens:
                counted = portion.lengths
            yield sides.hashes(portion), counted

    return bound_of_number(drawn, amount.documents or amount.tokens, seed=int(asked.holdout_seed or 0))
