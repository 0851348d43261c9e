"""Choose which documents of the stores to pack, and how often, before anything is planned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from packtool.choosing.account import counts_of, nothing_left, source_of
from packtool.choosing.asked import NOTHING_ASKED, Asked
from packtool.choosing.chosen import EVERYTHING, Chosen
from packtool.choosing.documents import Codes, StoredDocuments
from packtool.choosing.exclusions import Exclusions, read_exclusions
from packtool.choosing.rules import leave_out, settled
from packtool.errors import UsageError
from packtool.formats.schema import Choice, ChosenSource
from packtool.formats.token_store import Corpus
from packtool.options.documents import DocumentOptions
from packtool.options.kinds import parse_part, parse_temperature
from packtool.planning.arrays import IN_MEMORY, Arrays
from packtool.planning.plan import Mask
from packtool.planning.selecting.mixture import (
    Passes,
    epochs_of,
    passes,
    require_whole,
    shares_by_temperature,
    weight_of,
    weights_of,
)


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
        require_whole([weight for _, weight in weights])
    everything = options.holdout is not None and parse_part(options.holdout).share == 1
    if everything and options.part == "train":
        what = f"{options.holdout} holds out all documents"
        raise UsageError("nothing-chosen", what, remedy="hold out less", where="--holdout")
    if isinstance(options.exclude, str | Path):
        return read_exclusions([options.exclude])
    return read_exclusions(options.exclude)


def choose(
    corpus: Corpus,
    options: DocumentOptions,
    exclusions: Exclusions,
    row_length: int | None = None,
    arrays: Arrays = IN_MEMORY,
    longest: int | None = None,
) -> Chosen:
    """Choose documents of the corpus, as the options say.

    Args:
        options: that `check_choice` took.
        exclusions: as `check_choice` returned them.
        row_length: the default for the width of the intervals of lengths that samples are drawn from.
        arrays: makes arrays as long as the corpus.
        longest: the most tokens of a conversation; longer conversations are left out. None to keep all of them.

    Raises:
        UsageError: weights or shares of other stores, or options that leave no document.
        DataError: a list names a document that no store has.
    """
    asked = Asked.of(options, exclusions, row_length, longest)
    if asked == NOTHING_ASKED:
        return EVERYTHING
    corpus.work_in(arrays)
    documents = StoredDocuments(corpus, arrays)
    weights = weights_of(options.mix, documents.names, shares=asked.tokens is not None)
    asked = settled(asked, options, documents)
    # First, which documents may be packed; then, how often those of each store are.
    leave_out(asked, documents)
    here = [documents.of_store(number) for number in range(len(corpus.stores))]
    counts = [counts_of(documents.codes[part], documents.lengths[part]) for part in here]
    left = [int(count[1, 0]) for count in counts]
    if options.temperature is not None:
        weights = shares_by_temperature(left, parse_temperature(options.temperature))
    epochs = epochs_of(weights, left, documents.names.shortest, asked.tokens, options.max_epochs)
    if asked.mix is not None:
        asked = replace(asked, mix=list(map(str, weights)))
    chosen: list[Passes] = []
    sources: list[ChosenSource] = []
    for number, store in enumerate(corpus.stores):
        lengths, codes = documents.lengths[here[number]], documents.codes[here[number]]
        taken = passes(lengths, _kept(codes, arrays), epochs[number], options.seed, arrays)
        chosen.append(taken)
        sources.append(source_of(store, lengths, taken, counts[number], str(weights[number]), epochs[number]))
    if not sum(source.chosen_documents for source in sources):
        raise nothing_left(documents, asked)
    return Chosen(Choice(options=asked.recorded(), sources=sources, documents=None), chosen)


def _kept(codes: Codes, arrays: Arrays) -> Mask:
    """Mark the documents that no rule leaves out."""
    return arrays.filled(len(codes), np.bool_, lambda a, b: codes[a:b] == 0)
