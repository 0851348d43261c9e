"""Compare what strategies would make of documents, from their lengths alone. No token is touched.

names, options ─candidates─▶ Candidates ─compare─▶ Comparison: figures of the datasets that `pack` would write

A candidate's strategy counts its rows where it can; otherwise they are planned, listed and counted.

lengths ─┬─Strategy.count───────────────────────────┬▶ Counted: tallies, and what is left out ─▶ Trial
         └─Strategy.plan─▶ Layout─▶ rows ─Tally.add─┘
"""

from __future__ import annotations

import itertools
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from packtool import packing
from packtool.engines import Engine, Worker
from packtool.errors import UsageError
from packtool.metrics.ledger import balance
from packtool.metrics.lengths import LengthCounts, unpacked
from packtool.metrics.mixing import MIXING_BATCH
from packtool.metrics.ratios import ratio
from packtool.metrics.sliding import sliding
from packtool.metrics.summary import measure, training_cost
from packtool.metrics.tally import Tally
from packtool.options.declare import flag
from packtool.options.names import meant_strategy
from packtool.options.shared import DEFAULT_SEED
from packtool.packing import STRATEGIES, Counted, PackOptions
from packtool.packing.strategy import check, mixes
from packtool.plan import Ints, Plan, Segments, distinct
from packtool.report import packed
from packtool.report.schema import Comparison, Options, SlidingForecast, Timing, Trial
from packtool.report.verdict import advise, verdicts
from packtool.shuffling.atom import AtomShuffle, atom_shuffles
from packtool.shuffling.balance import Waiting, waiting_of
from packtool.temporary import temporary_directory
from packtool.writing.layout import Layout
from packtool.writing.sharing import save

ALL = "all"
MIXED_EXACTLY = 2_000_000
"""Documents whose rows are mixed for a comparison; of larger corpora, the first of them stand for all."""
SAMPLE = 20_000
"""Documents that are packed for a picture."""
PICTURED = 6
"""Rows of a picture."""
REPETITIONS = [Fraction(i, 20) for i in range(1, 11)]
"""Maximum repetition ratios for which sliding is foreseen: those of the paper's Figure 3."""
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
        asked: the strategy was named, not only included in ``all``.
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
class PassByPass:
    """Documents of which some come several times, in the order in which passes over them are planned apart.

    Attributes:
        lengths: of all documents, pass after pass.
        ends: the number of documents up to the end of each pass.
    """

    lengths: Ints
    ends: Sequence[int]


class Ranks(NamedTuple):
    """Who trains on the rows.

    Attributes:
        ranks: how many.
        global_batch: rows of the longest length in a step of all; shorter rows fill the same number of tokens.
        token_cost: of a token, in query-key pairs, beside its attention.
    """

    ranks: int
    global_batch: int
    token_cost: int


def compare(
    lengths: Ints,
    tried: Sequence[Candidate],
    counts: LengthCounts | None = None,
    batch_size: int | None = None,
    *,
    command: str = "packtool pack store -o packed",
    parameters: int | None = None,
    ranks: Ranks | None = None,
    left_out: Sequence[str] = (),
    passes: PassByPass | None = None,
    advance: Callable[[int], object] = lambda done: None,
    engine: Engine | None = None,
) -> Comparison:
    """Try each candidate on documents of these lengths, EOS included; where memory is not shared, each is a task.

    The figures are those that packing and then measuring gives, for any seed where atoms are rows or hold whole rows: a
    shuffle then changes the order of rows but no row. Of smaller atoms, they are those of the default seed.

    Args:
        lengths: in corpus order.
        counts: of these lengths, where they are known.
        batch_size: rows in a batch, for steps per epoch (with several buckets: of the longest rows).
        command: packs these documents, but for the strategy and its options.
        parameters: of the model whose training cost is estimated.
        ranks: whose waiting is predicted.
        left_out: strategies that were meant but are not tried.
        passes: the same documents for strategies that plan each pass apart; None where each document comes once.
        advance: called with 1 after each candidate.

    >>> comparison = compare(np.array([5, 4]), candidates(["concat"], [4]))
    >>> comparison.entries[0].ledger.rows, comparison.entries[0].ledger.padding
    (3, 3)
    """
    counts = LengthCounts.of(lengths) if counts is None else counts
    sizes = sorted({size for each in tried if (size := each.options.sequence_length) is not None})
    # Attention is given relative to the shortest row length asked for, else to the longest bucket.
    base = sizes[0] if sizes else max(max(each.options.buckets) for each in tried)
    attempt = partial(
        _try,
        lengths=lengths,
        passes=passes,
        batch_size=batch_size,
        baseline_pairs=-(-counts.tokens // base) * (base * (base + 1) // 2),
        command=command,
        parameters=parameters,
        ranks=ranks,
    )
    trials: dict[int, tuple[Trial, Timing]] = {}
    if engine is None or engine.shares_memory:
        for number, candidate in enumerate(tried):
            trials[number] = attempt(candidate, Worker())
            advance(1)
    else:
        with temporary_directory() as folder:
            task = save(attempt, folder)
            for number, trial in engine.run(task, tried, shared=task.file):
                trials[number] = trial
                advance(1)
    entries = [trials[number][0] for number in range(len(tried))]
    return Comparison(
        verdicts=verdicts(entries, counts),
        attention_baseline=base,
        entries=entries,
        sliding=[
            SlidingForecast(
                sequence_length=size,
                longer_texts=counts.documents - counts.at_most(size),
                longer_tokens=counts.tokens_over(size),
                steps=[sliding(counts, size, share) for share in REPETITIONS],
            )
            for size in sizes
        ],
        advice=advise(counts, entries),
        left_out=list(left_out),
        unpacked=unpacked(counts, batch_size or MIXING_BATCH),
        timings=[trials[number][1] for number in range(len(tried))],
    )


def _try(
    candidate: Candidate,
    worker: Worker,
    *,
    lengths: Ints,
    passes: PassByPass | None,
    batch_size: int | None,
    baseline_pairs: int,
    command: str,
    parameters: int | None,
    ranks: Ranks | None,
) -> tuple[Trial, Timing]:
    begin = time.process_time()
    documents = PassByPass(lengths, ())
    if passes is not None and STRATEGIES[candidate.strategy].windowed:
        documents = passes
    counted, sampled, planned = count_rows(documents.lengths, candidate, documents.ends)
    tallies = [each.tally for each in counted]
    ledger = balance(int(lengths.sum(dtype=np.int64)), len(lengths), counted, tallies)
    timing = Timing(planning_seconds=round(planned - begin, 3), seconds=round(time.process_time() - begin, 3))
    metrics = measure(tallies, batch_size)
    trial = Trial(
        strategy=candidate.strategy,
        label=candidate.label,
        command=f"{command} {shlex.join(candidate.arguments())}",
        sequence_length=candidate.options.sequence_length,
        options=_options(candidate),
        ledger=ledger,
        metrics=metrics,
        attention=ratio(metrics.attention_full, baseline_pairs),
        attention_masked=ratio(metrics.attention_masked, baseline_pairs),
        buckets=packed.bucket_figures(tallies),
        documents_per_row=packed.documents_per_row(tallies),
        context=packed.available_context(tallies),
        sampled_documents=sampled,
        training=None if parameters is None else training_cost(metrics, ledger.output, parameters),
        waiting=[] if ranks is None else _expected_waiting(lengths, candidate, ranks),
        sample_rows=packed.sample_rows(rows_to_draw(documents.lengths, candidate), documents.lengths),
    )
    return trial, timing


def _options(candidate: Candidate) -> Options:
    """Return the strategy's options as tried, defaults included."""
    strategy, given = STRATEGIES[candidate.strategy], candidate.options
    names = [field.name for field in fields(given) if field.name in strategy.accepts]
    names += ["window_tokens"] if strategy.windowed else []
    values = {name: given.in_effect(name) for name in names}
    if "atom_size" in values:
        values["atom_size"] = given.atom
    if "mix_rows" in values:
        values["mix_rows"] = mixes(strategy, given)
    if "buckets" in values:
        values["buckets"] = list(given.buckets)
    return {name: float(value) if isinstance(value, Fraction) else value for name, value in values.items()}


def count_rows(
    lengths: Ints, candidate: Candidate, ends: Sequence[int] = ()
) -> tuple[list[Counted], int | None, float]:
    """Count the rows that a candidate would make.

    Args:
        ends: the number of documents up to the end of each pass that is planned apart.

    Returns:
        The counts of each row length; the number of first documents from which the mixing of rows was estimated, None
        where all rows were mixed; and the CPU time of the process when planning was done.
    """
    strategy, options = STRATEGIES[candidate.strategy], candidate.options
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
    return counts, sampled, planned


def affordable(candidate: Candidate, documents: int) -> bool:
    """Return whether an unrequested candidate is worth its time on this many documents.

    Those that place documents one by one, in random order, take a microsecond and more for each.
    """
    return candidate.asked or documents <= MIXED_EXACTLY or not STRATEGIES[candidate.strategy].random


def listed(lengths: Ints, plans: Sequence[Plan]) -> list[Counted]:
    """Count the rows of plans, each of them listed.

    Atoms shorter than a row are in the order in which `pack` shuffles them by default, since the contents of a row
    depend on it.
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


def _expected_waiting(lengths: Ints, candidate: Candidate, ranks: Ranks) -> list[Waiting]:
    """Predict how long ranks wait in the order of the default seed, for each row length that fills a global batch.

    It is measured on a plan of the first documents alone.
    """
    plans = packing.plan(candidate.strategy, lengths[:_WAITING_DOCUMENTS], candidate.options)
    longest = max(plan.sequence_length for plan in plans)
    waiting = []
    for plan, shuffle in zip(plans, atom_shuffles(plans, seed=DEFAULT_SEED), strict=True):
        size = plan.sequence_length
        rows = ranks.global_batch * longest // size // ranks.ranks * ranks.ranks
        if plan.rows >= rows:
            layout = Layout(plan, shuffle.order())
            waiting.append(waiting_of(layout.segments, plan.rows, size, ranks.ranks, rows, ranks.token_cost))
    return waiting


def rows_to_draw(lengths: Ints, candidate: Candidate) -> Segments:
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
