"""What a choice of documents is asked for: the options in full, as the manifest records them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from packtool.choosing.exclusions import NOTHING, Exclusions
from packtool.errors import UsageError
from packtool.formats import manifest as manifests
from packtool.formats.known import known_by
from packtool.formats.schema import Options, PackedManifest
from packtool.options.documents import DocumentOptions
from packtool.options.kinds import HoldoutAmount, parse_amount, parse_share, recorded_part
from packtool.options.record import as_recorded
from packtool.places.typed import Typed, place_of
from packtool.planning.selecting.subsets import bound_of_share


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The options of a choice; None for what is not asked.

    The fields are what a manifest records, in this order.

    Attributes:
        mix: epochs or an amount of each store, or its share of `tokens`; in their order, once that is known.
        holdout_by: the field whose value decides the side of a document, in place of its text.
        holdout_hashes: what the hashes that decide sides are of, where they are not of texts.
        where_stores: the number of each store that `where` names; None where it names none.
        sample_interval: width of the intervals of lengths that a sample is drawn from.
        too_long: what becomes of conversations longer than a row, where they are left out.
        holdout_bound: the hash below which texts are held out, where a number of documents drew it.
        longest: the most tokens of a conversation, for `too_long`; not recorded, as the rows say it.
        exclude: digests of `exclusions`.
        exclusions: contents; not recorded.
    """

    mix: list[str] | None = None
    tokens: int | None = None
    holdout: str | None = None
    holdout_by: str | None = None
    holdout_seed: int | None = None
    part: str | None = None
    shard_of: str | None = None
    min_tokens: int | None = None
    max_tokens: int | None = None
    where: str | None = None
    where_stores: dict[str, int] | None = None
    drop_duplicates: bool | None = None
    exclude: str | list[str] | None = field(default=None, metadata={"recorded": "exclude_xxh3_128"})
    sample: str | None = None
    sample_interval: int | None = None
    seed: int | None = None
    too_long: str | None = None
    holdout_bound: str | None = None
    holdout_hashes: str | None = None
    longest: int | None = field(default=None, metadata={"recorded": None})
    exclusions: Exclusions = field(default=NOTHING, metadata={"recorded": None})

    @classmethod
    def of(
        cls, options: DocumentOptions, exclusions: Exclusions, row_length: int | None = None, longest: int | None = None
    ) -> Asked:
        """Settle options that `check` took.

        Args:
            row_length: the default for the width of the intervals of lengths that samples are drawn from.
            longest: the most tokens of a conversation; longer ones are left out. None to keep all of them.

        Raises:
            UsageError: a sample without an interval; a dataset in which nothing was held out.
        """
        asked = cls(
            shard_of=options.shard_of,
            min_tokens=options.min_tokens,
            max_tokens=options.max_tokens,
            where=options.where,
            drop_duplicates=options.drop_duplicates or None,
            exclude=exclusions.recorded(),
            exclusions=exclusions,
        )
        if options.mix or options.tokens is not None:
            asked = replace(asked, mix=[], seed=options.seed)
        if options.tokens is not None:
            asked = replace(asked, tokens=parse_amount(options.tokens))
        if options.holdout is not None:
            seed, by = options.holdout_seed, options.holdout_by
            asked = replace(asked, holdout=str(options.holdout), holdout_seed=seed, holdout_by=by, part=options.part)
        if options.holdout_of is not None:
            asked = replace(asked, **_held_out_of(options.holdout_of), part=options.part)
        if options.sample is not None:
            interval = options.sample_interval or row_length
            if interval is None:
                what, remedy = "--sample needs it where no row has a length", "give a width, such as 2048"
                raise UsageError("missing-option", what, remedy=remedy, where="--sample-interval")
            share = str(parse_share(options.sample))
            asked = replace(asked, sample=share, sample_interval=interval, seed=options.seed)
        if longest is not None:
            asked = replace(asked, too_long="drop", longest=longest)
        return asked

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> Asked:
        """Read the choice that the manifest of a dataset records."""
        names = {recorded: name for name, recorded in _recorded_names().items()}
        return cls(**{names[name]: value for name, value in options.items() if name in names})

    def recorded(self) -> Options:
        """Return the options of the choice, as the manifest records them."""
        return as_recorded({recorded: getattr(self, name) for name, recorded in _recorded_names().items()})

    @property
    def amount(self) -> HoldoutAmount:
        """How much is held out."""
        return recorded_part(self.holdout or "")

    @property
    def bound(self) -> int | None:
        """The hash below which documents are held out; None for a number of documents of which it is not known."""
        if self.holdout is None:
            return None
        if self.amount.share is not None:
            return bound_of_share(self.amount.share)
        if self.holdout_bound is None:
            return None
        return int(self.holdout_bound)


NOTHING_ASKED = Asked()


def _recorded_names() -> dict[str, str]:
    """Return the fields that a manifest records, with their names there."""
    names = {each.name: each.metadata.get("recorded", each.name) for each in fields(Asked)}
    return {name: recorded for name, recorded in names.items() if recorded is not None}


def _held_out_of(dataset: Typed) -> dict[str, Any]:
    """Return the options of the hold-out of a packed dataset."""
    place = place_of(dataset)
    manifest = manifests.read_as(place, PackedManifest)
    known_by(place, manifest).require_holdout()
    assert manifest.choice is not None
    asked = Asked.read(manifest.choice.options)
    if asked.bound is None:
        what = f"it held out {asked.holdout}, and does not say of which hash on"
        raise UsageError("no-holdout", what, remedy="pack it again with this version", where=str(place))
    names = ("holdout", "holdout_by", "holdout_seed", "holdout_bound", "holdout_hashes")
    return {name: getattr(asked, name) for name in names}
