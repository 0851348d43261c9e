"""Compare strategies on document lengths alone, before anything is written. No token is touched.

names, options ─candidates─▶ Candidates ─compare─▶ Outcomes: ledger and tallies of the dataset `pack` would write

A candidate's strategy counts its rows where it can; otherwise they are planned, listed and counted.

lengths ─┬─Strategy.count───────────────────────────┬▶ Counted: tallies, and what is left out ─balance─▶ Outcome
         └─Strategy.plan─▶ Layout─▶ rows ─Tally.add─┘
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from packtool import packing
from packtool.engines import Engine, Worker
from packtool.errors import UsageError
from packtool.metrics.ledger import Ledger, balance
from packtool.metrics.tally import Tally, TallyCounts
from packtool.options.declare import flag
from packtool.options.names import meant_strategy
from packtool.options.shared import DEFAULT_SEED
from packtool.packing import STRATEGIES, Counted, PackOptions
from packtool.packing.strategy import check, mixes
from packtool.plan import Ints, Plan, Segments, distinct
from packtool.shuffling.atom import AtomShuffle, atom_shuffles
from packtool.shuffling.balance import Waiting, waiting_of
from packtool.temporary import temporary_directory
from packtool.writing.layout import Layout
from packtool.writing.sharing import save

ALL = "all"
MIXED_EXACTLY = 2_000_000
"""Documents whose rows are mixed for a comparison; of larger corpora, the first so many stand for all."""
SAMPLE = 20_000
"""Documents that are packed for a picture."""
PICTURED = 6
"""Rows of a picture."""
_SEGMENTS = 1 << 16  # that are listed at a time, about: few enough for the cache
_WAITING_DOCUMENTS = 200_000  # that are planned to tell how long ranks wait: hundreds of rows even of the longest
_SHORT = {
    "atom_size": "A",
    "extra_capacity": "c",
    "max_repetition": "r",
    "padding_threshold": "P",
    "min_bucket": "min",
    "buckets": "",
    "remainder": "",
    "mix_rows": "",
    "even_cost": "",
}
"""How labels name the options that differ."""
_NAMED = {"mix_rows": ("unmixed", "mixed"), "even_cost": ("uneven", "even")}
"""How they name switches that are off and on."""


@dataclass(frozen=True)
class Candidate:
    """A strategy and the options it is tried with.

    Attributes:
        strategy: its registered name.
        options: the sequence length for strategies that take one, else the buckets.
        label: its name and, where it is tried in several ways, the options in which these differ.
        asked: the strategy was named, not only meant by ``all``.
    """

    strategy: str
    options: PackOptions
    label: str = ""
    asked: bool = True

    def arguments(self) -> list[str]:
        """List the arguments with which `packtool pack` does the same.

        >>> Candidate("seamless", PackOptions(sequence_length=512, max_repetition=Fraction(1, 10))).arguments()
        ['--strategy', 'seamless', '--sequence-length', '512', '--max-repetition', '0.1']
        """
        words = ["--strategy", self.strategy]
        for field in fields(self.options):
            value = getattr(self.options, field.name)
            if value == field.default:
                continue
            if isinstance(value, bool):
                words.append(flag(field.name) if value else flag(f"no_{field.name}"))
            else:
                words += [flag(field.name), _written(value)]
        return words


def candidates(
    names: Sequence[str],
    sequence_lengths: Sequence[int],
    grid: Mapping[str, Sequence[Any]] | None = None,
) -> list[Candidate]:
    """Combine every strategy with every sequence length, and with every combination of the values of options it takes.

    Strategies of several row lengths come once.

    Args:
        names: strategies, or ``all`` among them for every one.
        sequence_lengths: for the strategies that take one.
        grid: values to try, by the name of the option in `PackOptions`.

    Raises:
        UsageError: an unknown strategy, a sequence length is missing, an option makes no sense or no strategy takes it.

    >>> [tried.label for tried in candidates(["concat", "bfd-extra"], [64], grid={"extra_capacity": [5, 10]})]
    ['concat', 'bfd-extra c=5', 'bfd-extra c=10']
    """
    chosen = list(STRATEGIES) if ALL in names else list(dict.fromkeys(names))
    for name in chosen:
        if name not in STRATEGIES:
            raise UsageError(
                "unknown-strategy",
                f"there is no strategy {name!r}",
                remedy=meant_strategy(name, {**{each.name: each.summary for each in STRATEGIES.values()}, ALL: "each"}),
                where="--compare",
            )
    values = grid or {}
    for option in values:
        if not any(option in STRATEGIES[name].accepts for name in chosen):
            takers = [name for name, strategy in STRATEGIES.items() if option in strategy.accepts]
            what = "none of the strategies compared takes this option"
            remedy = f"leave it out, or compare {' or '.join(takers) or 'other strategies'}, too"
            raise UsageError("option-not-taken", what, remedy=remedy, where=flag(option))
    return [
        replace(candidate, asked=name in names)
        for name in chosen
        for candidate in _variants(name, sequence_lengths, values)
    ]


def _variants(name: str, sequence_lengths: Sequence[int], values: Mapping[str, Sequence[Any]]) -> list[Candidate]:
    """Try one strategy in every way."""
    strategy = STRATEGIES[name]
    axes = {option: tried for option, tried in values.items() if option in strategy.accepts}
    if "sequence_length" in strategy.accepts:
        if not sequence_lengths:
            raise UsageError(
                "missing-option",
                f"the strategy {name} needs the length of a row",
                remedy="give --sequence-length, such as 2048 or 2048,8192",
                where="--sequence-length",
            )
        axes = {"sequence_length": list(dict.fromkeys(sequence_lengths)), **axes}
    variants = []
    for combination in itertools.product(*axes.values()):
        given = dict(zip(axes, combination, strict=True))
        options = replace(PackOptions(), **given)
        check(strategy, options)
        differing = [_named(option, given[option]) for option in axes if option in _SHORT and len(axes[option]) > 1]
        variants.append(Candidate(name, options, " ".join([name, *differing])))
    return variants


def _named(option: str, value: Any) -> str:
    """Write an option and its value, short."""
    if isinstance(value, bool):
        return _NAMED[option][value]
    name = _SHORT[option]
    return f"{name}={_written(value)}" if name else _written(value)


def _written(value: Any) -> str:
    """Write a value as a user types it."""
    if isinstance(value, tuple | list):
        return ",".join(map(str, value))
    return str(float(value)) if isinstance(value, Fraction) else str(value)


@dataclass(frozen=True)
class Outcome:
    """The outcome of trying a candidate on a corpus.

    Attributes:
        candidate: what was tried.
        tallies: one for each row length.
        ledger: where every token goes.
        sample: a few rows of the first documents, packed alone.
        sampled: the first so many documents alone tell how rows are mixed: how alike their segments are and how many
            documents each holds; None where all do.
        planning_seconds: CPU seconds from lengths to plans, or to counts without them.
        seconds: CPU seconds from lengths to figures.
        waiting: how long ranks wait for each other, for each row length; empty where that was not worked out.
    """

    candidate: Candidate
    tallies: list[Tally]
    ledger: Ledger
    sample: Segments
    sampled: int | None
    planning_seconds: float
    seconds: float
    waiting: Sequence[Waiting] = ()


@dataclass(frozen=True)
class PassByPass:
    """Documents of which some come several times, in the order in which passes over them are planned apart.

    Attributes:
        lengths: of all documents, pass after pass.
        ends: the number of documents up to the end of each pass.
    """

    lengths: Ints
    ends: Sequence[int]


def compare(
    lengths: Ints,
    tried: Sequence[Candidate],
    advance: Callable[[int], object] = lambda done: None,
    engine: Engine | None = None,
    passes: PassByPass | None = None,
) -> Iterator[Outcome]:
    """Try each candidate on documents of these lengths, EOS included; where memory is not shared, each is a task.

    Args:
        lengths: in corpus order.
        advance: called with 1 after each candidate.
        passes: the same documents for strategies that plan each pass apart; None where each document comes once.

    The figures are those that packing and then measuring gives, for any seed where atoms are rows or hold whole rows: a
    shuffle then changes the order of rows but no row. Of smaller atoms, they are those of the default seed.

    >>> [outcome] = compare(np.array([5, 4]), candidates(["concat"], [4]))
    >>> outcome.ledger.rows, outcome.ledger.padding
    (3, 3)
    """
    if engine is None or engine.shares_memory:
        for candidate in tried:
            yield _try(lengths, candidate, passes)
            advance(1)
        return
    with temporary_directory() as folder:
        task = save(partial(_on_worker, lengths, passes), folder)
        sent = {}
        for number, result in engine.run(task, tried, shared=task.file):
            sent[number] = result
            advance(1)
    for number in range(len(tried)):
        outcome, counts = sent[number]
        for sequence_length, counted in counts:
            tally = Tally(lengths, sequence_length)
            tally.include(counted)
            outcome.tallies.append(tally)
        yield outcome


def _on_worker(
    lengths: Ints, passes: PassByPass | None, candidate: Candidate, worker: Worker
) -> tuple[Outcome, list[tuple[int, TallyCounts]]]:
    """Try a candidate; return its outcome with the counts of each row length instead of tallies, which hold lengths."""
    outcome = _try(lengths, candidate, passes)
    return replace(outcome, tallies=[]), [(tally.sequence_length, tally.counts()) for tally in outcome.tallies]


def _try(lengths: Ints, candidate: Candidate, passes: PassByPass | None = None) -> Outcome:
    begin = time.process_time()
    strategy, options = STRATEGIES[candidate.strategy], candidate.options
    ends: Sequence[int] = ()
    if passes is not None and strategy.windowed:
        lengths, ends = passes.lengths, passes.ends
    mixed, sampled, counts = mixes(strategy, options), None, None
    if not mixed or len(lengths) > MIXED_EXACTLY:
        counts = packing.count(strategy.name, lengths, options, ends)
    if counts is None:
        plans = packing.plan(strategy.name, lengths, options, ends=ends)
        planned = time.process_time()
        counts = listed(lengths, plans)
    else:
        planned = time.process_time()
        if mixed:  # what mixing changes is estimated from a sample of mixed rows; all else stays exact
            sampled = MIXED_EXACTLY
            some = lengths[:sampled]
            for whole, part in zip(counts, listed(some, packing.plan(strategy.name, some, options)), strict=True):
                whole.tally.homogeneity = part.tally.homogeneity
                whole.tally.documents_in_row = part.tally.documents_in_row
    tokens = int(lengths.sum(dtype=np.int64))
    tallies = [each.tally for each in counts]
    ledger = balance(tokens, len(lengths), counts, tallies)
    seconds = time.process_time() - begin
    return Outcome(candidate, tallies, ledger, sample_rows(lengths, candidate), sampled, planned - begin, seconds)


def affordable(candidate: Candidate, documents: int) -> bool:
    """Return whether an unrequested candidate is worth its time on this many documents.

    Those that place documents one by one, in random order, take a microsecond and more for each.
    """
    return candidate.asked or documents <= MIXED_EXACTLY or not STRATEGIES[candidate.strategy].random


def listed(lengths: Ints, plans: Sequence[Plan]) -> list[Counted]:
    """Count the rows of plans, each of them listed.

    Atoms shorter than a row are in the order in which `pack` shuffles them unless told otherwise, since what is in a
    row depends on it.
    """
    shuffles: Sequence[AtomShuffle | None] = [None] * len(plans)
    if any(plan.unit < plan.sequence_length for plan in plans):
        shuffles = atom_shuffles(plans, seed=DEFAULT_SEED)
    counts = []
    for plan, shuffle in zip(plans, shuffles, strict=True):
        layout = Layout(plan, None if shuffle is None else shuffle.order())
        tally = Tally(lengths, plan.sequence_length)
        step = max(1, _SEGMENTS * plan.rows // (len(lengths) + plan.rows + 1))
        for first in range(0, plan.rows, step):
            tally.add(layout.segments(first, min(first + step, plan.rows)))
        counts.append(Counted(tally, plan.dropped, plan.eos_omitted, plan.eos_inserted))
    return counts


def expected_waiting(
    lengths: Ints, candidate: Candidate, ranks: int, global_batch: int, token_cost: int
) -> list[Waiting]:
    """Predict how long ranks wait in the order of the default seed, for each row length that fills a global batch.

    A plan of the first documents alone tells it.

    Args:
        lengths: of documents, EOS included.
        global_batch: rows of the longest; of shorter ones as many as have as many tokens.
    """
    plans = packing.plan(candidate.strategy, lengths[:_WAITING_DOCUMENTS], candidate.options)
    longest = max(plan.sequence_length for plan in plans)
    waiting = []
    for plan, shuffle in zip(plans, atom_shuffles(plans, seed=DEFAULT_SEED), strict=True):
        size = plan.sequence_length
        rows = global_batch * longest // size // ranks * ranks
        if plan.rows >= rows:
            layout = Layout(plan, shuffle.order())
            waiting.append(waiting_of(layout.segments, plan.rows, size, ranks, rows, token_cost))
    return waiting


def sample_rows(lengths: Ints, candidate: Candidate) -> Segments:
    """List rows spread evenly over those that the candidate makes of the first documents.

    Of several row lengths, those of the one with the most tokens.
    """
    plans = packing.plan(candidate.strategy, lengths[:SAMPLE], candidate.options)
    layout = Layout(max(plans, key=lambda plan: plan.rows * plan.sequence_length))
    return spread_rows(layout.segments, layout.rows)


def spread_rows(segments: Callable[[int, int], Segments], rows: int) -> Segments:
    """List some rows, evenly spread, of all that `segments(first, last)` gives."""
    wanted = distinct(np.linspace(0, rows - 1, PICTURED).astype(np.int64)).tolist() if rows else []
    return Segments.concatenate([segments(row, row + 1) for row in wanted] or [segments(0, 0)])
