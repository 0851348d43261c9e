"""`stats` of token stores, or of the documents that are chosen from them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from packtool.choosing.asked import Asked
from packtool.choosing.choose import choose_documents
from packtool.choosing.documents import StoredDocuments
from packtool.choosing.whole_conversations import KEEPING, cut_by, no_conversations
from packtool.commands.ranked_documents import longest, most_repeated
from packtool.engines import Engine
from packtool.formats.made_by import tokenizer_named
from packtool.formats.token_store import Corpus
from packtool.options.arguments import as_flags
from packtool.options.declare import declared
from packtool.options.documents import DocumentOptions
from packtool.options.names import FIRST
from packtool.options.stats import StatsArguments
from packtool.outputs.recorded import Recorded
from packtool.places.place import Place
from packtool.planning.metrics.lengths import LengthCounts
from packtool.planning.metrics.ratios import ratio
from packtool.planning.plan import Ints, offsets_of
from packtool.planning.selecting.mixture import Passes, by_pass
from packtool.planning.selecting.subsets import first_of_each
from packtool.report.compare import Candidate, PlannedDocuments, compare
from packtool.report.dataset_report import lengths_of
from packtool.report.types import StoredSourceFigures, StoreReport
from packtool.support.progress import Progress
from packtool.writing.planning import loss_of

NEW_STORE = "tokens"
"""The store of text files that are not tokenized yet."""
_CHOOSING = tuple(name for name in declared(DocumentOptions) if name != "seed")


def store_report(
    places: Sequence[Place],
    tried: Sequence[Candidate],
    options: StatsArguments,
    asked: Asked,
    engine: Engine,
    before: str = "",
) -> StoreReport:
    """Report on token stores, or on the documents that are chosen from them, as `pack` takes them.

    Args:
        asked: which documents, settled.
        before: the command that makes the store.
    """
    recorded = Recorded.of(places)
    corpus = Corpus(places)
    known: Counter[str] = Counter()
    for store in corpus.stores:
        known.update(store.manifest.counts)
    chosen = choose_documents(corpus, asked)
    if chosen.passes is not None:
        corpus.choose([passes.documents() for passes in chosen.passes])
        known["documents"], known["tokens"] = corpus.documents, corpus.tokens
    lengths = corpus.lengths()
    conversations = _conversations(corpus, options, tried)
    if conversations is not None and options.too_long != "cut":
        tried = _keeping_whole(tried, options)
    loss = None
    if options.too_long in ("cut", FIRST) and corpus.has_loss:
        loss = partial(loss_of, corpus)
    counts = LengthCounts.of(lengths)
    stores = [NEW_STORE] if before else list(map(str, places))
    command = before + shlex.join(["packtool", "pack", *stores, "-o", "packed", *as_flags(options, _CHOOSING)])
    listed: dict[str, Any] = {}
    if options.longest is not None:
        listed["longest"] = longest(corpus, options.longest)
    if options.most_repeated is not None:
        listed["most_repeated"] = most_repeated(corpus, options.most_repeated)
    comparison = None
    if tried:
        with Progress(len(tried), "compare", unit=" plans", quiet=options.quiet) as progress:
            comparison = compare(
                lengths,
                tried,
                counts,
                options.batch_size,
                command=command,
                conversations=conversations,
                too_long=options.too_long,
                passes=_pass_by_pass(lengths, conversations, chosen.passes),
                chosen=None if chosen.choice is None else chosen.choice.text(),
                loss=loss,
                exact=options.exact,
                advance=progress.advance,
                engine=engine,
            )
    report = StoreReport(
        path=" ".join(map(str, places)),
        tokenizer=corpus.tokenizer,
        tokenizer_name=tokenizer_named(places),
        dtype=corpus.dtype.str,
        counts=dict(known),
        sources=_stored_sources(corpus, recorded, counts),
        batch_size=options.batch_size,
        lengths=lengths_of(counts),
        comparison=comparison,
        **listed,
    )
    recorded.require_unchanged()
    return report


def _conversations(corpus: Corpus, options: StatsArguments, tried: Sequence[Candidate]) -> npt.NDArray[np.bool_] | None:
    """Mark the documents that are conversations; None if there are none, or nothing is compared."""
    conversations = [store.manifest.conversations for store in corpus.stores]
    if not any(conversations) and options.too_long == "cut":
        raise no_conversations()
    if not any(conversations) or not tried:
        return None
    return np.repeat(conversations, corpus.store_documents)


def _keeping_whole(tried: Sequence[Candidate], options: StatsArguments) -> list[Candidate]:
    """Leave out strategies that cut documents which fit a row, since `pack` does not do that to conversations."""
    for candidate in tried:
        if candidate.strategy.name not in KEEPING and candidate.strategy.name in (options.compare or ()):
            raise cut_by(candidate.strategy, "these are conversations", "--compare")
    return [candidate for candidate in tried if candidate.strategy.name in KEEPING]


def _pass_by_pass(
    lengths: Ints, conversations: npt.NDArray[np.bool_] | None, passes: Sequence[Passes] | None
) -> PlannedDocuments | None:
    """Return the documents in the order in which `pack` plans them, if some come several times."""
    if passes is None or all(taken.number < 2 for taken in passes):
        return None
    order, ends = by_pass(passes)
    if conversations is not None:
        conversations = conversations[order]
    again = np.arange(len(order)) >= ends[0]
    return PlannedDocuments(lengths[order], ends, conversations, order, again)


def _stored_sources(corpus: Corpus, recorded: Recorded, counts: LengthCounts) -> list[StoredSourceFigures]:
    """Count the stores one by one; `counts` has the lengths of all of them."""
    stores, lengths = corpus.stores, corpus.lengths()
    firsts = _firsts(corpus)
    trained: Sequence[int | None] = [None] * len(stores)
    if corpus.has_loss:
        trained = corpus.trained()
    ends = offsets_of(np.array(corpus.store_documents, np.int64)).tolist()
    names = StoredDocuments(corpus).names.shortest
    sources = []
    for number, (begin, end) in enumerate(pairwise(ends)):
        its_lengths = lengths[begin:end]
        tokens = int(its_lengths.sum(dtype=np.int64))
        its_counts = counts
        if len(stores) > 1:
            its_counts = LengthCounts.of(its_lengths)
        duplicates = None
        if firsts is not None:
            duplicates = int(np.count_nonzero(~firsts[begin:end]))
        figures = StoredSourceFigures(
            name=names[number],
            digest=recorded.entries[number].xxh3_128,
            documents=end - begin,
            document_share=ratio(end - begin, corpus.documents),
            tokens=tokens,
            token_share=ratio(tokens, corpus.tokens),
            lengths=lengths_of(its_counts),
            duplicates=duplicates,
            trained_tokens=trained[number],
        )
        sources.append(figures)
    return sources


def _firsts(corpus: Corpus) -> npt.NDArray[np.bool_] | None:
    """Mark the documents that are the first with their text; None without hashes of one kind."""
    first = corpus.stores[0]
    for store in corpus.stores:
        if not store.known.has_origins or store.known.hashed != first.known.hashed:
            return None
    hashes = corpus.of_documents(np.concatenate([store.origins()["hash"] for store in corpus.stores]))
    return first_of_each(lambda: iter([(hashes, np.arange(len(hashes)))]), len(hashes))
