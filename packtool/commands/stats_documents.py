"""`stats` on documents that are not packed: how long they are, and what each strategy would make of them."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from packtool.cluster import Cluster
from packtool.commands.stats_corpus import CorpusOptions, corpus_lengths
from packtool.comparing import Candidate, affordable, compare
from packtool.metrics import LengthCounts
from packtool.metrics.ratios import ratio
from packtool.plan import Ints
from packtool.progress import Progress
from packtool.report.compared import comparison_of
from packtool.report.packed import lengths_of
from packtool.report.schema import Comparison, CorpusReport, StoredSourceFigures, StoreReport
from packtool.selecting.sides import first_of_each
from packtool.storage.manifest import input_entry
from packtool.storage.token_store import Corpus


def store_report(
    paths: Sequence[str],
    tried: Sequence[Candidate],
    batch_size: int | None,
    parameters: int | None,
    *,
    where: Cluster | None,
    quiet: bool,
) -> StoreReport:
    """The report of one or more token stores, as `pack` takes them, with what each candidate would make of them.

    Args:
        where: the cluster that tries candidates; None for this process.
    """
    corpus = Corpus([Path(path) for path in paths])
    lengths = corpus.lengths()
    counts = LengthCounts.of(lengths)
    known: Counter[str] = Counter()
    for store in corpus.stores:
        known.update(store.manifest.counts)
    command = f"packtool pack {shlex.join(paths)} -o packed"
    return StoreReport(
        path=" ".join(paths),
        tokenizer=corpus.tokenizer,
        dtype=corpus.dtype.str,
        counts=dict(known),
        sources=_sources(corpus, counts),
        batch_size=batch_size,
        lengths=lengths_of(counts, "tokens"),
        comparison=_comparison(lengths, counts, tried, batch_size, parameters, command, where, quiet=quiet),
    )


def _sources(corpus: Corpus, counts: LengthCounts) -> list[StoredSourceFigures]:
    """The stores one by one; `counts` is of all their lengths."""
    stores, lengths = corpus.stores, corpus.lengths()
    known = all(shard.documents is not None for store in stores for shard in store.manifest.shards)
    firsts = first_of_each(np.concatenate([store.origins()["hash"] for store in stores])) if known else None
    ends = np.cumsum(corpus.store_documents)
    return [
        StoredSourceFigures(
            name=store.path.resolve().name,
            digest=input_entry(store.path).xxh3_128,
            documents=store.documents,
            document_share=ratio(store.documents, corpus.documents),
            tokens=store.tokens,
            token_share=ratio(store.tokens, corpus.tokens),
            lengths=lengths_of(
                counts if len(stores) == 1 else LengthCounts.of(lengths[end - store.documents : end]), "tokens"
            ),
            duplicates=None if firsts is None else int(np.count_nonzero(~firsts[end - store.documents : end])),
        )
        for store, end in zip(stores, ends.tolist(), strict=True)
    ]


def corpus_report(
    location: str,
    options: CorpusOptions,
    tried: Sequence[Candidate],
    batch_size: int | None,
    parameters: int | None,
    *,
    quiet: bool,
) -> CorpusReport:
    """The report of text files, with what each candidate would make of them."""
    found = corpus_lengths(location, options, tokens=bool(tried), quiet=quiet)
    words = lengths_of(LengthCounts.of(found.words), "words")
    comparison = None
    lengths = words
    if found.tokens is not None:
        counts = LengthCounts.of(found.tokens)
        lengths = lengths_of(counts, "tokens")
        given = _tokenize_options(options)
        command = (
            f"packtool tokenize {shlex.join([location, '-o', 'tokens', *given])} && packtool pack tokens -o packed"
        )
        comparison = _comparison(
            found.tokens, counts, tried, batch_size, parameters, command, options.where, quiet=quiet
        )
    return CorpusReport(
        path=location,
        tokenizer=found.tokenizer,
        counts=found.counts,
        batch_size=batch_size,
        lengths=lengths,
        words=words,
        characters=lengths_of(LengthCounts.of(found.characters), "characters"),
        comparison=comparison,
    )


def _comparison(
    lengths: Ints,
    counts: LengthCounts,
    tried: Sequence[Candidate],
    batch_size: int | None,
    parameters: int | None,
    command: str,
    where: Cluster | None,
    *,
    quiet: bool,
) -> Comparison | None:
    if not tried:
        return None
    left_out = [each.strategy for each in tried if not affordable(each, len(lengths))]
    tried = [each for each in tried if affordable(each, len(lengths))]
    with Progress(len(tried), "compare", unit=" plans", quiet=quiet) as progress:
        outcomes = list(compare(lengths, tried, progress.advance, where))
    return comparison_of(outcomes, counts, batch_size, command, parameters, list(dict.fromkeys(left_out)))


def _tokenize_options(options: CorpusOptions) -> list[str]:
    """What `packtool tokenize` is given to read the same documents."""
    given = {
        "--tokenizer": options.tokenizer,
        "--eos-token": options.eos_token,
        "--text-field": None if options.text_field == CorpusOptions().text_field else options.text_field,
        "--format": options.format,
    }
    return [word for flag, value in given.items() if value is not None for word in (flag, str(value))]
