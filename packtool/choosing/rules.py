"""The rules that leave documents out: one row each, the first that holds is the reason.

Everything about a rule follows from its row: the reason in manifests and reports, the option that messages name, what
must be known of documents before a store is made, and what `find` says of a document that a dataset does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from packtool.choosing.asked import Asked
from packtool.choosing.documents import Portion, StoredDocuments
from packtool.choosing.exclusions import excluded
from packtool.formats.token_store import TEXTS
from packtool.options.declare import Declared, flag, given
from packtool.options.documents import DocumentOptions
from packtool.options.kinds import parse_share
from packtool.options.where import condition_of, needs_origins, store_names
from packtool.planning.plan import Ints, Mask
from packtool.planning.selecting.names import StoreNames
from packtool.planning.selecting.subsets import U64, bound_of_number, first_of_each, held_out, in_shard, sampled

Removes = Callable[[Portion], Mask]


@dataclass(frozen=True)
class Rule:
    """Leaves documents out.

    Attributes:
        reason: why, in manifests and reports.
        options: that ask for it; messages name the first, which `Asked` has.
        begin: takes the value that asks for it, and returns what marks the documents of a portion that it leaves out;
            None where that is not known.
        origins: tells from the value of the first option whether the rule reads where documents came from.
        alone: whether it looks at a document alone, by what a manifest records.
    """

    reason: str
    options: tuple[str, ...]
    begin: Callable[[Any, Asked, StoredDocuments], Removes | None]
    origins: Callable[[Any], bool] = lambda value: False
    alone: bool = True

    @property
    def flag(self) -> str:
        """The option that asks for it, as it is written."""
        return flag(self.options[0])

    def asked(self, asked: Asked) -> Any:
        """Return the value that asks for it; None if nothing does."""
        return getattr(asked, self.options[0])


def _always(value: Any) -> bool:
    return True


def _where_came_from(condition: str) -> bool:
    return needs_origins(condition_of(condition))


def _excluded(digests: Any, asked: Asked, documents: StoredDocuments) -> Removes:
    return excluded(asked.exclusions, documents)


def _not_where(where: str, asked: Asked, documents: StoredDocuments) -> Removes | None:
    from packtool.choosing.condition import holds  # reads with Arrow, which takes a while to load

    condition, stores = condition_of(where), asked.where_stores or {}
    if not set(store_names(condition)) <= set(stores):
        return None  # recorded before names were: what they meant depends on where the stores lay

    def removes(portion: Portion) -> Mask:
        out = np.zeros(len(portion.codes), np.bool_)
        left = portion.left  # what is left out already may lack fields
        out[left] = ~holds(condition, portion, left, stores)
        return out

    return removes


def _too_short(least: int, asked: Asked, documents: StoredDocuments) -> Removes:
    return lambda portion: portion.lengths < least


def _too_long(most: int, asked: Asked, documents: StoredDocuments) -> Removes:
    return lambda portion: portion.lengths > most


def _conversation_too_long(drop: str, asked: Asked, documents: StoredDocuments) -> Removes | None:
    longest = asked.longest
    if longest is None:
        return None
    return lambda portion: (portion.lengths > longest) & portion.store.manifest.conversations


def _duplicates(drop: bool, asked: Asked, documents: StoredDocuments) -> Removes:
    def left() -> Iterator[tuple[U64, Any]]:
        for portion in documents.portions():
            places = portion.left
            yield portion.hashes[places], portion.here.start + places

    first = first_of_each(left, len(documents), documents.arrays)
    return lambda portion: ~first[portion.here]


def _other_side(amount: str, asked: Asked, documents: StoredDocuments) -> Removes | None:
    if asked.bound is None:
        return None
    held = partial(held_out, seed=int(asked.holdout_seed or 0), bound=asked.bound)
    return lambda portion: held(portion.hashes) != (asked.part == "holdout")


def _other_shard(part: str, asked: Asked, documents: StoredDocuments) -> Removes:
    number, shards = map(int, part.split("/"))
    return lambda portion: ~in_shard(portion.hashes, number, shards)


def _not_sampled(share: str, asked: Asked, documents: StoredDocuments) -> Removes:
    drawn, interval = documents.none(), int(asked.sample_interval or 0)
    for number in range(len(documents.stores)):
        here = documents.of_store(number)
        left = np.flatnonzero(documents.codes[here] == 0)
        drawn[here] = sampled(documents.lengths[here], left, parse_share(share), interval, int(asked.seed or 0))
    return lambda portion: ~drawn[portion.here]


RULES = (
    Rule("excluded", ("exclude",), _excluded, _always, alone=False),
    Rule("not_where", ("where",), _not_where, _where_came_from),
    Rule("too_short", ("min_tokens",), _too_short),
    Rule("too_long", ("max_tokens",), _too_long),
    Rule("too_long", ("too_long",), _conversation_too_long),
    Rule("duplicates", ("drop_duplicates",), _duplicates, _always, alone=False),
    Rule("other_side", ("holdout", "holdout_of"), _other_side, _always),
    Rule("other_shard", ("shard_of",), _other_shard, _always),
    Rule("not_sampled", ("sample",), _not_sampled, alone=False),
)
"""Why a document may not be taken: the first of these that holds."""


def asked_for(asked: Asked) -> list[Rule]:
    """List the rules that options ask for."""
    return [rule for rule in RULES if rule.asked(asked) is not None]


def reading_origins(options: DocumentOptions) -> list[Declared]:
    """List the given options whose rules read where documents came from, before there are any."""
    found = []
    for rule in RULES:
        names = [name for name in rule.options if hasattr(options, name)]
        found += [each for each in given(options, names) if rule.origins(getattr(options, each.name))]
    return found


def leave_out(asked: Asked, documents: StoredDocuments) -> None:
    """Give documents that may not be taken the number of the first rule that says so."""
    for rule in asked_for(asked):
        removes = rule.begin(rule.asked(asked), asked, documents)
        assert removes is not None
        for portion in documents.portions():
            codes = portion.codes
            codes[removes(portion) & (codes == 0)] = 1 + RULES.index(rule)


def settled(asked: Asked, options: DocumentOptions, documents: StoredDocuments) -> Asked:
    """Settle what depends on the stores: which of them a condition names, and what decides a hold-out.

    Args:
        options: as they were given.

    Raises:
        UsageError: a name that fits no store or several; hashes of several kinds.
    """
    if asked.where is not None:
        asked = replace(asked, where_stores=stores_named(asked.where, documents.names))
    if asked.holdout is None:
        return asked
    documents.require_alike()
    hashed = documents.stores[0].hashed
    if options.holdout_of is not None:
        documents.require_hashed(asked.holdout_hashes or TEXTS, f"the hold-out of {options.holdout_of}")
    elif hashed != TEXTS:
        asked = replace(asked, holdout_hashes=hashed)
    if asked.bound is None:
        asked = replace(asked, holdout_bound=str(_holdout_bound(asked, documents)))
    return asked


def stores_named(where: str, names: StoreNames) -> dict[str, int] | None:
    """Return the number of each store that a condition names; None where it names none.

    Raises:
        UsageError: a name fits no store, or several.
    """
    numbers = {name: names.number(name, "--where") for name in store_names(condition_of(where))}
    return numbers or None


def _holdout_bound(asked: Asked, documents: StoredDocuments) -> int:
    """Return the hash below which as many of all documents are held out as asked."""
    amount = asked.amount

    def drawn() -> Iterator[tuple[U64, Ints]]:
        for portion in documents.portions():
            counted: Ints = np.ones(len(portion.codes), np.int64)
            if amount.tokens:
                counted = portion.lengths
            yield portion.hashes, counted

    return bound_of_number(drawn, amount.documents or amount.tokens, seed=int(asked.holdout_seed or 0))
