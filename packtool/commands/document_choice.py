"""Choose which documents of the stores to pack, and how often, before anything is planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from packtool.commands import holdout
from packtool.commands.choice_account import counts_of, nothing_left, source_of
from packtool.commands.chosen import EVERYTHING, Chosen
from packtool.commands.exclusions import Exclusions, read_exclusions
from packtool.commands.left_out import Codes, ends_of, origins_of, reasons_of
from packtool.commands.places import names_of
from packtool.errors import UsageError
from packtool.formats.schema import Choice, ChosenSource
from packtool.formats.token_store import Corpus
from packtool.options.documents import DocumentOptions
from packtool.options.kinds import parse_amount, parse_part, parse_share, parse_temperature
from packtool.options.record import as_recorded
from packtool.options.shared import Many
from packtool.planning.arrays import IN_MEMORY, Arrays
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

_RECORDED = (
    *("mix", "tokens", "holdout", "holdout_seed", "part", "shard_of", "min_tokens", "max_tokens"),
    *("where", "drop_duplicates", "exclude_xxh3_128", "sample", "sample_interval", "seed"),
)
"""The options of a choice, in the order of a manifest; `choose` adds `too_long` and the bound of a hold-out."""


def check_choice(options: DocumentOptions) -> Exclusions:
    """Refuse options that make no sense together, before a store is opened.

    Returns:
        What `--exclude` names, read once: a list may come from a pipe.

    Raises:
        UsageError: they make no sense.
        DataError: a list of exclusions can't be read.
    """
    if options.temperature is not None and options.mix:
        what = "--mix gives the shares already"
        raise UsageError("bad-mixture", what, remedy="give one of them", where="--temperature")
    if options.tokens is not None and not options.mix and options.temperature is None:
        remedy = "name each store's share: --mix web=70%,wiki=30%, or give --temperature"
        raise UsageError("bad-mixture", "needs --mix or --temperature", remedy=remedy, where="--tokens")
    weights = [weight_of(weight, shares=options.tokens is not None) for weight in options.mix]
    if options.tokens is not None and weights:
        require_whole(dict(weights))
    if options.holdout is not None and parse_part(options.holdout).share == 1:
        what = f"{options.holdout} holds out all documents"
        raise UsageError("nothing-chosen", what, remedy="hold out less", where="--holdout")
    return read_exclusions(_paths(options.exclude))


def choose(
    corpus: Corpus,
    options: DocumentOptions,
    row_length: int | None = None,
    arrays: Arrays = IN_MEMORY,
    whole: int | None = None,
    exclusions: Exclusions | None = None,
) -> Chosen:
    """Choose documents of the corpus, as the options say.

    Args:
        options: that `check_choice` took.
        row_length: the default for the width of the intervals of lengths that samples are drawn from.
        arrays: makes arrays as long as the corpus.
        whole: the most tokens of a conversation; longer conversations are left out. None to keep all of them.
        exclusions: as `check_choice` returned them; None to read them.

    Raises:
        UsageError: weights or shares of other stores, or options that leave no document.
        DataError: the list of exclusions can't be read, or names a document that no store has.
    """
    options = holdout.as_asked(options)
    if exclusions is None:
        exclusions = read_exclusions(_paths(options.exclude))
    asked = _asked(options, row_length, exclusions)
    if whole is not None:
        asked["too_long"] = "drop"
    if not asked:
        return EVERYTHING
    stores = corpus.stores
    corpus.work_in(arrays)
    # It raises where `--mix` names another store, or leaves one out; so it comes before lengths are read.
    weights = weights_of(options.mix, names_of([store.place for store in stores]), shares=options.tokens is not None)
    # First, which documents may be packed.
    lengths: list[Ints] = np.split(corpus.stored_lengths(), ends_of(stores))
    options = replace(options, sample_interval=asked.get("sample_interval"))
    origins = origins_of(stores, options, exclusions, arrays)
    options = holdout.settled(options, lengths, origins)
    if options.holdout is not None and parse_part(options.holdout).share is None:
        asked[holdout.BOUND] = str(parse_part(options.holdout).bound)
    reasons = reasons_of(stores, lengths, origins, options, exclusions, whole, arrays)
    counts = list(map(counts_of, reasons, lengths))
    # Then, how often those of each store are.
    weights, epochs = _mixture(weights, counts, options)
    shares = list(map(str, weights.values()))
    if "mix" in asked:
        asked["mix"] = shares
    chosen: list[Passes] = []
    sources: list[ChosenSource] = []
    for number, store in enumerate(stores):
        taken = _passes(lengths[number], reasons[number], epochs[number], options.seed, arrays)
        figures = source_of(store, lengths[number], taken, counts[number], shares[number], epochs[number])
        chosen.append(taken)
        sources.append(figures)
    if not sum(source.chosen_documents for source in sources):
        raise nothing_left(sources, options)
    return Chosen(Choice(options=asked, sources=sources, documents=None), chosen)


def _mixture(
    weights: dict[str, Fraction], counts: Sequence[I64], options: DocumentOptions
) -> tuple[dict[str, Fraction], list[Fraction]]:
    """Compute how often each store is packed.

    Args:
        weights: that were given, by name, in the order of the stores; 1 where none were.
        counts: of the documents of each store, as `counts_of` returns them.

    Returns:
        The weights, or the shares of `--tokens` that the temperature gives; and the epochs of each store.

    Raises:
        UsageError: shares that do not sum to 1, or that take more epochs than allowed.
    """
    left = {name: int(count[1, 0]) for name, count in zip(weights, counts, strict=True)}
    if options.temperature is not None:
        weights = shares_by_temperature(left, parse_temperature(options.temperature))
    budget = None if options.tokens is None else parse_amount(options.tokens)
    epochs = epochs_of(weights, left, budget, Fraction(options.max_epochs))
    return weights, [epochs[name] for name in left]


def _passes(lengths: Ints, codes: Codes, epochs: Fraction, seed: int, arrays: Arrays) -> Passes:
    """Choose the documents of one store, of those that no reason leaves out."""
    left = arrays.filled(len(codes), np.bool_, lambda a, b: codes[a:b] == 0)
    return passes(lengths, left, epochs, seed, arrays)


def _paths(given: Many) -> Sequence[Path | str]:
    """Return the paths that were given, one or several."""
    if isinstance(given, str | Path):
        return [given]
    return given


def _asked(options: DocumentOptions, row_length: int | None, exclusions: Exclusions) -> dict[str, Any]:
    """Return the options in use that choose documents, as the manifest records them; `mix` is filled in later."""
    asked: dict[str, Any] = {
        "holdout": options.holdout,
        "shard_of": options.shard_of,
        "min_tokens": options.min_tokens,
        "max_tokens": options.max_tokens,
        "where": options.where,
        "drop_duplicates": options.drop_duplicates or None,
    }
    if options.mix or options.temperature is not None:
        asked |= {"mix": [], "seed": options.seed}  # the weight of each store follows once it is known
    if options.tokens is not None:
        asked["tokens"] = parse_amount(options.tokens)
    if options.holdout is not None:
        asked |= {"holdout_seed": options.holdout_seed, "part": options.part}
    if exclusions:
        digests = exclusions.digests()
        asked["exclude_xxh3_128"] = digests if len(digests) > 1 else digests[0]
    if options.sample is not None:
        interval = options.sample_interval or row_length
        if interval is None:
            what, remedy = "--sample needs it where no row has a length", "give the width of an interval, such as 2048"
            raise UsageError("missing-option", what, remedy=remedy, where="--sample-interval")
        asked |= {"sample": parse_share(options.sample), "sample_interval": interval, "seed": options.seed}
    # In one order, whatever is asked: manifests with the same options are the same.
    return as_recorded({name: asked.get(name) for name in _RECORDED})
