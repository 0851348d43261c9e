"""Say in words how documents were chosen of the stores: what was asked, and why documents were left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from packtool.choosing.sides import OTHER_SIDE
from packtool.formats.schema import Choice, LeftOut
from packtool.options.kinds import recorded_part
from packtool.options.shared import DEFAULT_SEED
from packtool.report.figures import options_in_words

_REASONS = {
    "not_where": "for which --where does not hold",
    "too_short": "too short",
    "too_long": "too long",
    "duplicates": "with the text of an earlier one",
    "other_shard": "of other shards",
    "not_sampled": "not in the sample",
    "not_drawn": "beyond the amount asked",
}
"""Why documents were left out, by the names in manifests; other names say it themselves."""
_TOLD_APART = (
    "mix",
    "holdout",
    "holdout_seed",
    "holdout_bound",
    "holdout_hashes",
    "part",
    "where_stores",
    "exclude_xxh3_128",
)
"""Recorded options that are told in words of their own, or, as weights, store by store."""


def reason_in_words(reason: str, asked: Mapping[str, Any]) -> str:
    """Name the documents that were left out for a reason.

    Args:
        reason: as manifests and reports name it.
        asked: how the documents were chosen, as recorded; empty where that is not at hand.

    >>> reason_in_words("other_side", {"part": "train"}), reason_in_words("other_side", {})
    ('held out for validation', 'on the other side of the hold-out')
    """
    if reason == "other_side":
        return OTHER_SIDE.get(asked.get("part", ""), "on the other side of the hold-out")
    return _REASONS.get(reason, reason.replace("_", " "))


def left_out_in_words(left_out: Iterable[Mapping[str, LeftOut]], asked: Mapping[str, Any]) -> str:
    """Say how many documents were left out for each reason; "" if all were taken.

    Args:
        left_out: of each store, by reasons.
        asked: how the documents were chosen, as recorded.

    >>> web, wiki = LeftOut(documents=2, tokens=90), LeftOut(documents=1, tokens=50)
    >>> left_out_in_words([{"too_long": web}, {"too_long": wiki}], {})
    '3 too long'
    """
    documents: Counter[str] = Counter()
    for of_store in left_out:
        for reason, removed in of_store.items():
            documents[reason] += removed.documents
    words: list[str] = []
    for reason, count in documents.items():
        words.append(f"{count:,} {reason_in_words(reason, asked)}")
    return ", ".join(words)


def left_out_of(choice: Choice | None) -> str:
    """Say how many documents of all stores a choice left out, and why; "" if all were taken."""
    if choice is None:
        return ""
    left_out = map(attrgetter("left_out"), choice.sources)
    return left_out_in_words(left_out, choice.options)


def choice_in_words(asked: Mapping[str, Any], excluded: Sequence[str] = ()) -> str:
    """Say how documents were chosen: what was asked, without what follows from it.

    Args:
        asked: how the documents were chosen, as recorded.
        excluded: names of the lists and stores whose documents were excluded; empty if only their hashes are known.

    >>> choice_in_words({"holdout": "5", "holdout_seed": 0, "part": "train", "min_tokens": 9}, ["list.txt"])
    'all but a hold-out of 5 documents, min tokens 9, without those of list.txt'
    """
    words = []
    if "mix" in asked:
        words.append("weights of the stores")
    if "holdout" in asked:
        lead = "a hold-out of" if asked["part"] == "holdout" else "all but a hold-out of"
        words.append(f"{lead} {recorded_part(asked['holdout']).in_words()}")
        if asked["holdout_seed"]:
            words.append(f"holdout seed {asked['holdout_seed']}")
    others = {name: value for name, value in asked.items() if name not in _TOLD_APART}
    if others.get("seed") == DEFAULT_SEED:
        del others["seed"]
    if others:
        words.append(options_in_words(others))
    if excluded:
        words.append(f"without those of {', '.join(excluded)}")
    elif "exclude_xxh3_128" in asked:
        words.append(options_in_words({"without those of": asked["exclude_xxh3_128"]}))
    return ", ".join(words)
