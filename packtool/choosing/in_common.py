"""Tell from the manifests of two datasets whether they have documents in common, without looking at any."""

from __future__ import annotations

from typing import Any

from packtool.choosing.asked import NOTHING_ASKED, Asked
from packtool.formats.schema import PackedManifest

_HASHES = 1 << 64


def in_common(one: PackedManifest, other: PackedManifest) -> bool:
    """Return whether two datasets were packed of one store, and of overlapping parts of it.

    Parts overlap where the sides of their hold-outs do. Other rules may keep parts apart, too, and manifests do not say
    whether they do: then nothing is known, and that counts as nothing in common. Copies of a text in other stores are
    not known either.
    """
    if not _stores(one) & _stores(other):
        return False
    mine, its = _asked(one), _asked(other)
    return _sides_overlap(mine, its) and not _may_be_apart(mine, its)


def _stores(manifest: PackedManifest) -> set[str]:
    """Return the digests of the stores that documents were packed of."""
    packed = set()
    for entry, documents in zip(manifest.inputs, manifest.store_documents, strict=True):
        if documents:
            packed.add(entry.xxh3_128)
    return packed


def _asked(manifest: PackedManifest) -> Asked:
    if manifest.choice is None:
        return NOTHING_ASKED
    return Asked.read(manifest.choice.options)


def _sides_overlap(one: Asked, other: Asked) -> bool:
    """Return whether some hash is on the sides of both; False where no bound of a hold-out is known."""
    if one.holdout is None or other.holdout is None:
        return True  # it has both sides
    drawn = [(asked.holdout_by, asked.holdout_seed, asked.holdout_hashes) for asked in (one, other)]
    if drawn[0] != drawn[1]:
        return True  # each draws at random, whatever the other draws
    first, last = 0, _HASHES
    for asked in (one, other):
        bound = asked.bound
        if bound is None:
            return False
        if asked.part == "holdout":
            last = min(last, bound)
        else:
            first = max(first, bound)
    return first < last


def _may_be_apart(one: Asked, other: Asked) -> bool:
    """Return whether rules other than hold-outs may keep documents apart."""
    mine, its = _rules(one), _rules(other)
    if mine == its or (not mine and one.holdout is None) or (not its and other.holdout is None):
        return False  # the same documents, or one of the two has all
    return bool(mine and its) or "exclude" in (*mine, *its)


def _rules(asked: Asked) -> dict[str, Any]:
    """Return the rules that may choose other documents than those of another dataset; weights and samples do not."""
    names = ("shard_of", "min_tokens", "max_tokens", "where", "where_stores", "exclude")
    rules = {name: getattr(asked, name) for name in names}
    return {name: value for name, value in rules.items() if value is not None}
