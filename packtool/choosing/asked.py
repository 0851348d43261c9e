"""What a choice of documents is asked for: the options in full, as the manifest records them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from packtool.choosing.exclusions import Exclusions, read_exclusions
from packtool.choosing.weights import Weight, weights_in
from packtool.errors import UsageError
from packtool.formats.schema import Options
from packtool.options.documents import DocumentOptions
from packtool.options.kinds import (
    PATHS,
    HoldoutAmount,
    parse_amount,
    parse_part,
    parse_share,
    parse_temperature,
    recorded_part,
)
from packtool.options.record import as_recorded
from packtool.places.typed import Typed
from packtool.planning.selecting.subsets import bound_of_share

_UNRECORDED = {"recorded": None}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The options of a choice; None for what is not asked.

    `of` parses what was given, `settle` looks at the stores, `choose_documents` at their documents. The fields down to
    `holdout_hashes` are what a manifest records, in this order; two choices are equal where these are.

    Attributes:
        mix: epochs or an amount of each store, or its share of `tokens`; in their order, once that is known.
        holdout_by: the field whose value decides the side of a document, in place of its text.
        holdout_hashes: what the hashes that decide sides are of, where they are not of texts.
        where_stores: the number of each store that `where` names; None where it names none.
        sample_interval: width of the intervals of lengths that a sample is drawn from.
        too_long: what becomes of conversations longer than a row, where they are left out.
        holdout_bound: the hash below which texts are held out, where a number of documents drew it.
        exclude: digests of `exclusions`, once these are read.
        longest: the most tokens of a conversation, for `too_long`; the rows say it.
        weights: what is asked of stores, by their names; settled, of each store in their order.
        temperature: by which `tokens` is divided.
        max_epochs: the most that are taken of a store.
        stop: a store stops there, and others give what it lacks.
        holdout_of: the dataset whose hold-out is taken.
        excluded: the paths of lists and token stores.
        exclusions: their contents.
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
    longest: int | None = field(default=None, compare=False, metadata=_UNRECORDED)
    weights: Sequence[tuple[str, Weight]] = field(default=(), compare=False, metadata=_UNRECORDED)
    temperature: Decimal | None = field(default=None, compare=False, metadata=_UNRECORDED)
    max_epochs: int | None = field(default=None, compare=False, metadata=_UNRECORDED)
    stop: bool = field(default=False, compare=False, metadata=_UNRECORDED)
    holdout_of: Typed | None = field(default=None, compare=False, metadata=_UNRECORDED)
    excluded: Sequence[Path] = field(default=(), compare=False, metadata=_UNRECORDED)
    exclusions: Exclusions | None = field(default=None, compare=False, metadata=_UNRECORDED)

    @classmethod
    def of(cls, options: DocumentOptions, row_length: int | None = None) -> Asked:
        """Parse options.

        Args:
            row_length: the default for the width of the intervals of lengths that samples are drawn from.

        Raises:
            UsageError: they make no sense together.
        """
        _require_sense(options)
        asked = cls(
            shard_of=options.shard_of,
            min_tokens=options.min_tokens,
            max_tokens=options.max_tokens,
            where=options.where,
            drop_duplicates=options.drop_duplicates or None,
            excluded=list(map(Path, PATHS.parse(options.exclude))),
            weights=weights_in(options.mix, divided=options.tokens is not None),
            max_epochs=options.max_epochs,
            stop=options.stop,
        )
        # What is not known yet is an empty list: it is asked for, and so is not None.
        if asked.excluded:
            asked = replace(asked, exclude=[])
        if options.mix or options.tokens is not None:
            asked = replace(asked, mix=[], seed=options.seed)
        if options.tokens is not None:
            asked = replace(asked, tokens=parse_amount(options.tokens))
        if options.temperature is not None:
            asked = replace(asked, temperature=parse_temperature(options.temperature))
        if options.holdout is not None:
            seed, by = options.holdout_seed, options.holdout_by
            asked = replace(asked, holdout=str(options.holdout), holdout_seed=seed, holdout_by=by, part=options.part)
        if options.holdout_of is not None:
            asked = replace(asked, holdout_of=options.holdout_of, part=options.part)
        if options.sample is not None:
            interval = options.sample_interval or row_length
            share = str(parse_share(options.sample))
            asked = replace(asked, sample=share, sample_interval=interval, seed=options.seed)
        return asked

    def with_contents(self) -> Asked:
        """Read the lists that are excluded, unless that was done before: one may come from a pipe.

        Raises:
            DataError: a list can't be read.
        """
        if self.exclusions is not None:
            return self
        exclusions = read_exclusions(self.excluded)
        return replace(self, exclusions=exclusions, exclude=exclusions.recorded())

    def held_out_as(self, holdout: Mapping[str, Any]) -> Asked:
        """Take the hold-out that the manifest of another dataset records."""
        other = Asked.read(holdout)
        names = ("holdout", "holdout_by", "holdout_seed", "holdout_bound", "holdout_hashes")
        return replace(self, **{name: getattr(other, name) for name in names})

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


def _require_sense(options: DocumentOptions) -> None:
    """Refuse options that make no sense together."""
    if options.temperature is not None and options.mix:
        what = "--mix gives the shares already"
        raise UsageError("bad-mixture", what, remedy="give one of them", where="--temperature")
    everything = options.holdout is not None and parse_part(options.holdout).share == 1
    if everything and options.part == "train":
        what = f"{options.holdout} holds out all documents"
        raise UsageError("nothing-chosen", what, remedy="hold out less", where="--holdout")
