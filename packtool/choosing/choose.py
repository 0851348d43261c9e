"""Choose which documents of the stores to pack, and how often, before anything is planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from packtool.choosing.account import StoreEpochs, counts_of, nothing_left, source_of
from packtool.choosing.asked import NOTHING_ASKED, Asked
from packtool.choosing.chosen import EVERYTHING, Chosen
from packtool.choosing.documents import Codes, StoredDocuments
from packtool.choosing.exclusions import Exclusions
from packtool.choosing.rules import leave_out, settled
from packtool.errors import UsageError
from packtool.formats.schema import Choice, ChosenSource
from packtool.formats.token_store import Corpus
from packtool.options.documents import DocumentOptions
from packtool.options.kinds import parse_part, parse_temperature
from packtool.planning.arrays import IN_MEMORY, Arrays
from packtool.planning.plan import I64, Mask
from packtool.planning.selecting.mixture import Passes, passes
from packtool.planning.selecting.weights import (
    Weight,
    by_store,
    epochs_of,
    epochs_of_shares,
    shares_by_temperature,
    shares_of,
    weights_in,
)


def check_choice(options: DocumentOptions) -> None:
    """Refuse options that make no sense together, before a store is opened.

    Raises:
        UsageError: they make no sense.
    """
    if options.temperature is not None and options.mix:
        what = "--mix gives the shares already"
        raise UsageError("bad-mixture", what, remedy="give one of them", where="--temperature")
    weights_in(options.mix, divided=options.tokens is not None)
    everything = options.holdout is not None and parse_part(options.holdout).share == 1
    if everything and options.part == "train":
        what = f"{options.holdout} holds out all documents"
        raise UsageError("nothing-chosen", what, remedy="hold out less", where="--holdout")


def choose_documents(
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
        exclusions: what `--exclude` names, read once: a list may come from a pipe.
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
    weights = by_store(weights_in(options.mix, divided=asked.tokens is not None), documents.names)
    asked = settled(asked, options, documents)
    # First, which documents may be packed; then, how often those of each store are.
    leave_out(asked, documents)
    here = [documents.of_store(number) for number in range(len(corpus.stores))]
    counts = [counts_of(documents.codes[part], documents.lengths[part]) for part in here]
    mixture = _mixture(weights, counts, documents.names.shortest, asked, options)
    if asked.mix is not None:
        asked = replace(asked, mix=[store.asked for store in mixture])
    chosen: list[Passes] = []
    sources: list[ChosenSource] = []
    for number, store in enumerate(corpus.stores):
        lengths, codes = documents.lengths[here[number]], documents.codes[here[number]]
        taken = passes(
            mixture[number].counted(lengths), _kept(codes, arrays), mixture[number].epochs, options.seed, arrays
        )
        chosen.append(taken)
        sources.append(source_of(store, lengths, taken, counts[number], mixture[number]))
    if not sum(source.chosen_documents for source in sources):
        raise nothing_left(documents, asked)
    return Chosen(Choice(options=asked.recorded(), sources=sources, documents=None), chosen)


def _mixture(
    weights: Sequence[Weight], counts: Sequence[I64], names: Sequence[str], asked: Asked, options: DocumentOptions
) -> list[StoreEpochs]:
    """Compute how often each store is packed.

    Args:
        weights: of each store, as they were given.
        counts: of the documents of each store, as `counts_of` returns them.
        names: of the stores.

    Raises:
        UsageError: more is asked of a store than it may give.
    """
    most = options.max_epochs
    if asked.tokens is None:
        mixed: list[StoreEpochs] = []
        for weight, count, name in zip(weights, counts, names, strict=True):
            epochs = epochs_of(weight, int(count[0, 0]), int(count[1, 0]), name, most)
            mixed.append(StoreEpochs(str(weight), epochs, by_documents=weight.unit == "documents"))
        return mixed
    left = [int(count[1, 0]) for count in counts]
    if options.temperature is not None:
        shares = shares_by_temperature(left, parse_temperature(options.temperature))
    elif options.mix:
        shares = shares_of([weight.number for weight in weights])
    else:
        shares = shares_of(left)
    of_stores = epochs_of_shares(shares, left, names, asked.tokens, most or 1, stop=options.stop)
    return list(map(StoreEpochs, map(str, shares), of_stores))


def _kept(codes: Codes, arrays: Arrays) -> Mask:
    """Mark the documents that no rule leaves out."""
    return arrays.filled(len(codes), np.bool_, lambda a, b: codes[a:b] == 0)
