"""`stats` of text files: of all their documents, or of those that are chosen."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from packtool.choosing.choose import check_choice
from packtool.commands.stats_compare import CHOOSING, comparison_of
from packtool.commands.stats_store import NEW_STORE, store_report
from packtool.commands.text_lengths import corpus_lengths
from packtool.commands.tokenize import tokenize
from packtool.engines import Engine
from packtool.options.arguments import as_flags
from packtool.options.declare import given
from packtool.options.stats import StatsArguments
from packtool.places.local import LocalPlace
from packtool.planning.metrics.lengths import LengthCounts
from packtool.report.compare import Candidate
from packtool.report.packed import lengths_of
from packtool.report.schema import (
    CorpusReport,
    StoreReport,
)
from packtool.support.temporary import temporary_directory

_TEXT = ("tokenizer", "eos_token", "text_field", "format")
"""Options of how text files are read."""
_LISTING = ("longest", "most_repeated")
"""Options that list documents."""


def texts_report(
    location: str, tried: Sequence[Candidate], options: StatsArguments, engine: Engine
) -> CorpusReport | StoreReport:
    """Report on text files: on all documents, or on those that are chosen from them."""
    report_of: Callable[..., CorpusReport | StoreReport] = _all
    if given(options, (*CHOOSING, *_LISTING)):
        report_of = _chosen
    return report_of(location, tried, options, engine)


def _all(location: str, tried: Sequence[Candidate], options: StatsArguments, engine: Engine) -> CorpusReport:
    """Report on all documents of text files."""
    measured = corpus_lengths(location, options, engine, tokens=bool(tried))
    words = lengths_of(LengthCounts.of(measured.words), "words")
    comparison = None
    lengths = words
    if measured.tokens is not None:
        counts = LengthCounts.of(measured.tokens)
        lengths = lengths_of(counts, "tokens")
        command = f"{_tokenize(location, options)} && packtool pack tokens -o packed"
        comparison = comparison_of(measured.tokens, counts, tried, command, options, engine)
    return CorpusReport(
        path=location,
        tokenizer=measured.tokenizer,
        tokenizer_name=None if options.tokenizer is None else str(options.tokenizer),
        counts=measured.counts,
        batch_size=options.batch_size,
        lengths=lengths,
        words=words,
        characters=lengths_of(LengthCounts.of(measured.characters), "characters"),
        comparison=comparison,
    )


def _chosen(location: str, tried: Sequence[Candidate], options: StatsArguments, engine: Engine) -> StoreReport:
    """Report on the documents that are chosen from text files, or listed.

    That needs lengths in tokens, hashes of texts and places in files. A token store has all of these, so one is
    made for the time being, with the name that it has in the advised command.
    """
    exclusions = check_choice(options)  # here, before everything is tokenized
    with temporary_directory() as folder:
        store = LocalPlace(folder / NEW_STORE)
        how: dict[str, Any] = {}
        for name in (*_TEXT, "workers", "scheduler", "quiet"):
            if getattr(options, name) is not None:
                how[name] = getattr(options, name)
        tokenize(location, store.path, **how)
        report = store_report([store], tried, options, engine, f"{_tokenize(location, options)} && ", exclusions)
    return msgspec.structs.replace(report, path=location)


def _tokenize(location: str, options: StatsArguments) -> str:
    """Return the command that would tokenize text files."""
    return shlex.join(["packtool", "tokenize", location, "-o", NEW_STORE, *as_flags(options, _TEXT)])
