"""Compare what strategies would make of documents, from their lengths alone. No token is touched.

names, options ─candidates─▶ Candidates ─compare─▶ Comparison: figures of the datasets that `pack` would write

lengths ─plan─▶ Layout ─▶ rows ─Tally.add─▶ Trial
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import partial
from operator import attrgetter
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from packtool.engines import Engine, RunOptions, Worker
from packtool.errors import UsageError
from packtool.options.names import FIRST
from packtool.options.shared import DEFAULT_SEED
from packtool.planning import packing
from packtool.planning.document_loss import DocumentLoss
from packtool.planning.metrics.ledger import ChosenText, balance
from packtool.planning.metrics.lengths import LengthCounts
from packtool.planning.metrics.ratios import ratio
from packtool.planning.metrics.summary import measure_rows
from packtool.planning.metrics.tally import Tally
from packtool.planning.packing import STRATEGIES, PackOptions, Strategy, check, plan_corpus
from packtool.planning.packing.strategy import mixes
from packtool.planning.packing.untrained import text_beyond
from packtool.planning.plan import I64, Ints, Mask, Plan, Segments, distinct, stages_of
from packtool.planning.shuffling.atom import AtomShuffle, atom_shuffles
from packtool.planning.shuffling.permutation import Purpose, keys
from packtool.report import dataset_report
from packtool.report.types import Comparison, StrategyOptions, Timing, Trial
from packtool.report.verdict import advise, verdicts
from packtool.rows.layout import Layout
from packtool.spelling import flag
from packtool.support.temporary import temporary_directory

ALL = "all"
EXACT = 10_000_000
"""Documents that are planned, all of them; of more, a sample."""
SAMPLE = 2_000_000
"""Documents of the sample."""
DRAWN = 20_000
"""Documents that are packed for a picture."""
PICTURED = 6
"""Rows of a picture."""
_SEGMENTS = 1 << 16  # that are listed at a time, about: few enough for the cache


@dataclass(frozen=True)
class Candidate:
    """A strategy and the options it is tried with."""

    strategy: Strategy  # a registered strategy
    options: PackOptions  # checked options: the sequence length for strategies that take one, else the buckets

    def arguments(self) -> list[str]:
        """List the arguments with which `packtool pack` does the same.

        >>> tried = Candidate(STRATEGIES["seamless"], PackOptions(sequence_length=512, max_repetition=Fraction(1, 10)))
        >>> tried.arguments()
        ['--strategy', 'seamless', '--sequence-length', '512', '--max-repetition', '0.1']
        """
        words = ["--strategy", self.strategy.name]
        for field in fields(self.options):
            value = getattr(self.options, field.name)
            if value == field.default:
                continue
            if isinstance(value, bool):
                words.append(flag(field.name if value else f"no_{field.name}"))
            else:
                words += [flag(field.name), _written(value)]
        return words


def candidates(
    names: Sequence[str], sequence_lengths: Sequence[int], options: Mapping[str, Any] | None = None
) -> list[Candidate]:
    """Combine every strategy with every sequence length; strategies of several row lengths come once.

    Args:
        names: strategies, or ``all`` among them for every one.
        sequence_lengths: for the strategies that take one.
        options: further options, by their names in `PackOptions`; a strategy is given the ones that it takes.

    Raises:
        UsageError: an unknown strategy, a sequence length is missing, an option makes no sense or no strategy takes it.

    >>> tried = candidates(["concat", "bfd-extra"], [64, 128], {"extra_capacity": 5})
    >>> [(each.strategy.name, each.options.sequence_length, each.options.extra_capacity) for each in tried]
    [('concat', 64, 50), ('concat', 128, 50), ('bfd-extra', 64, 5), ('bfd-extra', 128, 5)]
    """
    chosen = _strategies(names)
    given = options or {}
    for option in given:
        if not any(strategy.takes(option) for strategy in chosen):
            takers = [strategy.name for strategy in STRATEGIES.values() if strategy.takes(option)]
            what = "none of the strategies compared takes this option"
            remedy = f"leave it out, or compare {' or '.join(takers) or 'other strategies'}, too"
            raise UsageError("option-not-taken", what, remedy=remedy, where=flag(option))
    tried = []
    for strategy in chosen:
        tried += _of_strategy(strategy, sequence_lengths, given)
    return tried


def _strategies(names: Sequence[str]) -> list[Strategy]:
    """Return the strategies that are named, each once; all of them where that is asked for."""
    if ALL in names:
        return list(STRATEGIES.values())
    return [packing.strategy(name, "--compare", all="each") for name in dict.fromkeys(names)]


def _of_strategy(strategy: Strategy, sequence_lengths: Sequence[int], given: Mapping[str, Any]) -> list[Candidate]:
    """Try one strategy, with each sequence length if it takes one."""
    taken = {name: value for name, value in given.items() if strategy.takes(name)}
    options = [PackOptions(**taken)]
    if "sequence_length" in strategy.accepts:
        if not sequence_lengths:
            what = f"the strategy {strategy.name} needs the length of a row"
            remedy = "give --sequence-length=2048, or several such as 2048,8192"
            raise UsageError("missing-option", what, remedy=remedy, where="--sequence-length")
        options = [replace(options[0], sequence_length=size) for size in dict.fromkeys(sequence_lengths)]
    for tried in options:
        check(strategy, tried)
    return [Candidate(strategy, tried.normalized()) for tried in options]


def _written(value: Any) -> str:
    """Write a value as a user types it, and exactly.

    >>> _written(Fraction(3, 10)), _written(Fraction(5, 6))
    ('0.3', '5/6')
    """
    if isinstance(value, tuple | list):
        return ",".join(map(str, value))
    if isinstance(value, Fraction) and Fraction(str(float(value))) == value:
        return str(float(value))
    return str(value)


@dataclass(frozen=True)
class PlannedDocuments:
    """Documents in the order in which they are planned."""

    lengths: Ints  # length of each document, EOS included
    ends: Sequence[int] = ()  # where documents come several times, the documents up to the end of each pass
    conversations: npt.NDArray[np.bool_] | None = None  # which documents are conversations; None where all are texts
    numbers: Ints | None = None  # of the documents in the corpus; None for all of them in its order
    again: Mask | None = None  # which documents an earlier pass has; None where each comes once

    def sample(self, count: int) -> PlannedDocuments:
        """Draw documents spread evenly over all: one at random out of each of `count` equal parts.

        >>> PlannedDocuments(np.arange(100), [50, 100]).sample(4).ends
        [2, 4]
        """
        return self._of_numbers(drawn(len(self.lengths), count))

    def without_longer(self, most: int) -> PlannedDocuments:
        """Leave out conversations of more tokens than these, as `pack --too-long drop` does.

        >>> PlannedDocuments(np.array([9, 9, 3]), (), np.array([False, True, True])).without_longer(4).lengths
        array([9, 3])
        """
        if self.conversations is None:
            return self
        longer = self.conversations & (self.lengths > most)
        if not longer.any():
            return self
        return self._of_numbers(np.flatnonzero(~longer))

    def _of_numbers(self, numbers: I64) -> PlannedDocuments:
        """Return the documents of these numbers, ascending."""
        conversations, again = self.conversations, self.again
        if conversations is not None:
            conversations = conversations[numbers]
        if again is not None:
            again = again[numbers]
        in_corpus: Ints = numbers
        if self.numbers is not None:
            in_corpus = self.numbers[numbers]
        ends = np.searchsorted(numbers, self.ends).tolist()
        return PlannedDocuments(self.lengths[numbers], ends, conversations, in_corpus, again)

    @property
    def text(self) -> int:
        """The text tokens of all documents."""
        return int(self.lengths.sum(dtype=np.int64)) - len(self.lengths)

    @property
    def text_again(self) -> int:
        """The text tokens of documents that an earlier pass has."""
        if self.again is None:
            return 0
        return int(self.lengths[self.again].sum(dtype=np.int64)) - int(np.count_nonzero(self.again))


def drawn(documents: int, count: int) -> I64:
    """Draw one document at random out of each of `count` equal parts, in their order; always the same ones.

    >>> bool((drawn(100, 4) // 25 == np.arange(4)).all())
    True
    """
    bounds = np.arange(count + 1) * documents // count
    draws = keys(DEFAULT_SEED, Purpose.COMPARED, 0, 0, count) % np.diff(bounds).astype(np.uint64)
    return bounds[:-1] + draws.astype(np.int64)


def compare(
    lengths: Ints,
    tried: Sequence[Candidate],
    counts: LengthCounts | None = None,
    batch_size: int | None = None,
    *,
    command: str = "packtool pack store -o packed",
    conversations: npt.NDArray[np.bool_] | None = None,
    too_long: Literal["drop", "cut", "first"] = "drop",
    passes: PlannedDocuments | None = None,
    chosen: ChosenText | None = None,
    loss: Callable[[], DocumentLoss] | None = None,
    exact: bool = False,
    advance: Callable[[int], object] = lambda done: None,
    engine: Engine | None = None,
) -> Comparison:
    """Try each candidate on documents of these lengths, EOS included; where memory is not shared, each is a task.

    The figures are those that packing and then measuring gives, for any seed where atoms are rows or hold whole rows: a
    shuffle then changes the order of rows but no row. Of smaller atoms, they are those of the default seed. Of more
    than `EXACT` documents they are those of a sample, unless all are wanted.

    Args:
        lengths: in corpus order.
        counts: of these lengths, where they are known.
        batch_size: rows in a batch, for steps per epoch (with several buckets: of the longest rows).
        command: packs these documents, but for the strategy and its options.
        conversations: which documents are conversations; None where all are texts.
        too_long: what becomes of conversations longer than a row, or of all documents, as with `pack`.
        passes: the same documents for strategies that plan each pass apart; None where each document comes once.
        chosen: the account of the choice of these documents; None where they are all of their stores.
        loss: returns the loss of the documents of the corpus, where conversations are cut; None where all tokens train.
        exact: plan all documents, however many.
        advance: called with 1 after each candidate.

    >>> comparison = compare(np.array([5, 4]), candidates(["concat"], [4]))
    >>> comparison.entries[0].ledger.rows, comparison.entries[0].ledger.padding
    (3, 3)
    """
    counts = counts or LengthCounts.of(lengths)
    lengths_asked = filter(None, map(attrgetter("options.sequence_length"), tried))
    # Attention is given relative to the shortest row length asked for, else to the longest bucket.
    base = min(lengths_asked, default=0) or max(max(each.options.buckets) for each in tried)
    once = PlannedDocuments(lengths, (), conversations)
    sampled = None
    if len(lengths) > EXACT and not exact:
        sampled = SAMPLE
        once = once.sample(sampled)
        passes = passes and passes.sample(sampled)
        chosen = None  # it accounts for all
    attempt = partial(
        _try,
        once=once,
        by_pass=passes or once,
        batch_size=batch_size,
        base=base,
        command=command,
        too_long=too_long,
        chosen=chosen,
        loss=loss,
    )
    trials = dict(_trials(attempt, tried, advance, engine))
    entries = [trials[number][0] for number in range(len(tried))]
    return Comparison(
        verdicts=verdicts(entries, counts),
        attention_baseline=base,
        entries=entries,
        advice=advise(counts, entries),
        sampled_documents=sampled,
        timings=[trials[number][1] for number in range(len(tried))],
    )


def _trials(
    attempt: Callable[[Candidate, Worker], tuple[Trial, Timing]],
    tried: Sequence[Candidate],
    advance: Callable[[int], object],
    engine: Engine | None,
) -> Iterator[tuple[int, tuple[Trial, Timing]]]:
    """Yield the number of each candidate with its trial and the time that took, in any order."""
    if engine is None or engine.shares_memory:
        for number, candidate in enumerate(tried):
            yield number, attempt(candidate, Worker())
            advance(1)
        return
    with temporary_directory() as folder:
        for number, trial in engine.run(attempt, tried, RunOptions(work=folder)):
            yield number, trial
            advance(1)


def _try(
    candidate: Candidate,
    worker: Worker,
    *,
    once: PlannedDocuments,
    by_pass: PlannedDocuments,
    batch_size: int | None,
    base: int,
    command: str,
    too_long: str,
    chosen: ChosenText | None,
    loss: Callable[[], DocumentLoss] | None,
) -> tuple[Trial, Timing]:
    start = time.process_time()
    strategy, options = candidate.strategy, candidate.options
    documents = every = by_pass if strategy.windowed else once
    if too_long == "drop" and options.sequence_length is not None:
        documents = every.without_longer(options.longest_row)
    dropped = len(every.lengths) - len(documents.lengths)
    lengths, tokens = documents.lengths, int(documents.lengths.sum(dtype=np.int64))
    most: int | None = None
    beyond: int | msgspec.UnsetType = msgspec.UNSET
    if too_long == FIRST:
        most = options.longest_row
        beyond = text_beyond(lengths, most)
    if too_long == FIRST or (every.conversations is not None and (dropped or too_long == "cut")):
        command = f"{command} --too-long {too_long}"
    trains = None
    if loss is not None:
        trains = replace(loss(), numbers=documents.numbers)
    plans = plan_corpus(strategy, lengths, options, ends=documents.ends, loss=trains, most=most)
    planned = time.process_time()
    tallies = tallied(lengths, plans, options.multiple)
    ledger = balance(tokens, len(lengths), plans, tallies, _before(chosen, every, documents))
    timing = Timing(planning_seconds=round(planned - start, 3), seconds=round(time.process_time() - start, 3))
    measures = measure_rows(tallies, batch_size, ledger.untrained or 0)
    metrics = measures.whole
    stream_pairs = -(-tokens // base) * (base * (base + 1) // 2)
    trial = Trial(
        strategy=strategy.name,
        command=f"{command} {shlex.join(candidate.arguments())}",
        sequence_length=options.sequence_length,
        options=_options(candidate),
        dropped_conversations=dropped,
        ledger=ledger,
        beyond=beyond,
        metrics=metrics,
        attention=ratio(metrics.attention_full, stream_pairs),
        attention_masked=ratio(metrics.attention_masked, stream_pairs),
        buckets=dataset_report.bucket_figures(tallies, measures.buckets),
        documents_per_row=dataset_report.documents_per_row(measures.documents_in_row),
        stages=stages_of(plans) or None,
        sample_rows=dataset_report.sample_rows(rows_to_draw(lengths, candidate, trains, most), lengths),
    )
    return trial, timing


def _before(chosen: ChosenText | None, every: PlannedDocuments, documents: PlannedDocuments) -> ChosenText:
    """Account for the text before it is planned, as `pack` does, which leaves out long conversations when it chooses.

    Args:
        chosen: the account of `every`; None where these are all.
        documents: those of `every` that are planned.
    """
    gone = every.text - documents.text
    if chosen is None:
        return ChosenText(every.text, gone, 0)
    again = every.text_again - documents.text_again
    return ChosenText(chosen.stored, chosen.left_out + gone - again, chosen.packed_again - again)


def _options(candidate: Candidate) -> StrategyOptions:
    """Return the strategy's options as tried, defaults included."""
    strategy, given = candidate.strategy, candidate.options
    names = [field.name for field in fields(given) if field.name in strategy.accepts]
    if strategy.windowed:
        names.append("window_tokens")
    if given.multiple > 1:
        names.append("document_multiple")
    values = {name: given.in_effect(name) for name in names}
    if "atom_size" in values:
        values["atom_size"] = given.atom
    if "mix_rows" in values:
        values["mix_rows"] = mixes(strategy, given)
    if "buckets" in values:
        values["buckets"] = list(given.buckets)
    for name, value in values.items():
        if isinstance(value, Fraction):
            values[name] = float(value)
    return values


def tallied(lengths: Ints, plans: Sequence[Plan], multiple: int = 1) -> list[Tally]:
    """Count the rows of plans.

    Atoms shorter than a row are in the order in which `pack` shuffles them by default, since the contents of a row
    depend on it.
    """
    shuffles: Sequence[AtomShuffle | None] = [None] * len(plans)
    if any(plan.unit < plan.sequence_length for plan in plans):
        shuffles = atom_shuffles(plans, seed=DEFAULT_SEED)
    tallies = []
    for plan, shuffle in zip(plans, shuffles, strict=True):
        layout = Layout(plan, None if shuffle is None else shuffle.order())
        tally = Tally(lengths, plan.sequence_length, multiple)
        step = max(1, _SEGMENTS * plan.rows // (len(lengths) + plan.rows + 1))
        for first in range(0, plan.rows, step):
            tally.add(layout.segments(first, min(first + step, plan.rows)))
        tallies.append(tally)
    return tallies


def rows_to_draw(
    lengths: Ints, candidate: Candidate, loss: DocumentLoss | None = None, most: int | None = None
) -> Segments:
    """List rows spread evenly over the rows that the candidate makes of the first documents.

    Of several row lengths, rows of the length with the most tokens.
    """
    plans = plan_corpus(candidate.strategy, lengths[:DRAWN], candidate.options, loss=loss, most=most)
    layout = Layout(max(plans, key=lambda plan: plan.rows * plan.sequence_length))
    return spread_rows(layout.segments, layout.rows)


def spread_rows(segments: Callable[[int, int], Segments], rows: int) -> Segments:
    """List some rows, evenly spread, of all that `segments(first, last)` gives."""
    if not rows:
        return segments(0, 0)
    wanted = distinct(np.linspace(0, rows - 1, PICTURED).astype(np.int64)).tolist()
    return Segments.concatenate([segments(row, row + 1) for row in wanted])
