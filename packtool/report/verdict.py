"""Judge figures in words: the verdict and advice on strategies, and whether a packed dataset is good.

The verdict is one strategy for a corpus and a row length, by the rule of docs/choosing.md: whole documents, if they
cost at most 2 % of the tokens and save at least one document in a hundred from being cut; else one stream. Advice holds
whatever strategy the verdict names. A packed dataset is judged by the limits of the verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from packtool.planning.metrics.lengths import LengthCounts
from packtool.planning.metrics.neighbours import Neighbours
from packtool.planning.metrics.ratios import ratio
from packtool.planning.metrics.summary import Metrics
from packtool.planning.packing import STRATEGIES
from packtool.report.figures import count, number, percent, times, times_random
from packtool.report.types import Advice, ChosenStrategy, PackedReport, Trial, Verdict
from packtool.support.sizes import plural

WASTE = 0.02
"""Share of tokens that whole documents may cost: padding, repeats and what is dropped."""
NOTABLE = 0.01
"""Avoidably cut documents, as a share of all: fewer are not worth a change."""
SAME = 0.001
"""Shares that differ by less are alike."""
EVEN = 0.25
"""Rows whose variance between rows, beyond that of random ones, differs by less are equally well mixed."""
WIDE = 8
"""Lengths spread widely where one document in a hundred is this many times the median."""
MUCH = 0.25
"""Share of tokens in documents longer than a row from which sliding windows matter."""
DEGENERATE_CUT, DEGENERATE_PADDING = 0.5, 0.25
"""A price that nobody pays: more than half of the documents that fit cut, or a quarter of the output padding."""
_FAR = 1.75
"""Rows this many times as long as the mean document are far above it: in the paper 256 tokens and more, against 143."""
_ALIKE = 0.5  # share of rows of equal lengths but one from which rows are better mixed

_SIMPLEST_FIRST = sorted(STRATEGIES.values(), key=lambda strategy: strategy.recommended)
_WHOLE = [strategy.name for strategy in _SIMPLEST_FIRST if strategy.recommended and strategy.whole]
_LIMITS = (
    "What whole documents are worth was measured in continual pre-training, not from scratch, and not on code; "
    "the limits of 2 % and 1 % are a judgement. See the page Choosing a strategy."
)
_SEAMLESS = (
    "Seamless Data Packing, Tables 1 and 2. Continual pre-training of models of 0.5 to 3 billion parameters, rows of "
    "512 to 2048. Not tested: training from scratch, code."
)
_BUCKETS = (
    "Bucket Pre-training, Tables 1 and 2. Speed and training loss of one 13-billion-parameter model. Not tested: "
    "downstream tasks, other bucket sizes."
)
_OPTIMIZING = (
    "Optimizing Packing and Shuffling Strategies, section 3.3 and Table 3. GPT-2 124M on WikiText, rows of 32 to 128 "
    "tokens, two epochs; each model was scored on its own packing."
)


def verdicts(entries: Sequence[Trial], counts: LengthCounts) -> list[Verdict]:
    """Choose a strategy for each row length that was tried; one in all where only strategies of several lengths were.

    Only recommended strategies are chosen from, unless no recommended one was tried.

    Args:
        entries: what the strategies make of the documents.
        counts: the documents' lengths.
    """
    if not counts.documents:
        return []
    field = [entry for entry in entries if STRATEGIES[entry.strategy].recommended] or entries
    groups = by_length(field)
    several = groups.pop(None, [])
    if not groups:
        return [_verdict(None, several, [], counts)]
    return [_verdict(size, tried, several, counts) for size, tried in groups.items()]


def by_length(trials: Sequence[Trial]) -> dict[int | None, list[Trial]]:
    """Group trials by their row lengths; those of several lengths are together."""
    groups: dict[int | None, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(trial.sequence_length, []).append(trial)
    return groups


def with_leads(alternatives: Sequence[ChosenStrategy]) -> Iterator[tuple[str, ChosenStrategy]]:
    """Yield alternatives with the words that lead to each: the first is the runner-up."""
    lead = "Runner-up:"
    for other in alternatives:
        yield lead, other
        lead = "Or"


def padding_waste(rows: Trial | PackedReport) -> float:
    """Return padding as a share of the output, without a remainder: less than one row for each row length.

    Nor is padding counted that begins documents at multiples: the trainer needs it, whatever the strategy.

    A remainder is the same on a sample of thirty rows and on a corpus of a million, so it says nothing of a strategy.
    """
    padding = sum(max(0, b.padding - (b.sequence_length - 1)) for b in rows.buckets)
    return ratio(max(0, padding - (rows.ledger.rounding or 0)), rows.ledger.output)


def waste(rows: Trial | PackedReport) -> float:
    """Return the share of tokens that train nothing new or are lost: padding, repeats and dropped text."""
    assert rows.metrics is not None, "what is wasted follows from boundaries"
    return padding_waste(rows) + rows.metrics.repeated_ratio + _dropped(rows)


def _dropped(rows: Trial | PackedReport) -> float:
    """Return the share of the text that the strategy drops, without what is left out of long documents on request."""
    assert rows.metrics is not None, "what is dropped follows from boundaries"
    return max(0.0, rows.metrics.dropped_ratio - ratio(rows.beyond or 0, rows.ledger.input))


def avoidably_cut(entry: Trial) -> float:
    """Return the documents that would fit a row but are cut, as a share of all documents."""
    return ratio(entry.metrics.cut_fitting_documents, entry.metrics.documents)


def degenerate(entry: Trial) -> bool:
    """Return whether an entry cuts or pads too much for its good figures to be worth marking."""
    return cuts_too_much(entry) or pads_too_much(entry)


def cuts_too_much(entry: Trial) -> bool:
    """Return whether more than half of the documents that fit a row are cut."""
    return entry.metrics.cut_fitting_ratio > DEGENERATE_CUT


def keeps_text(entry: Trial) -> bool:
    """Return whether an entry drops no text that it was to pack; what pads little by dropping text is no rival."""
    return not _dropped(entry)


def pads_too_much(entry: Trial) -> bool:
    """Return whether more than a quarter of the output is padding, apart from a remainder."""
    return padding_waste(entry) > DEGENERATE_PADDING


def _verdict(size: int | None, entries: Sequence[Trial], several: Sequence[Trial], counts: LengthCounts) -> Verdict:
    winner, reason = _winner(entries)
    rivals = {entry.strategy: entry for entry in sorted([*entries, *several], key=waste, reverse=True)}
    del rivals[winner.strategy]
    alternatives = list(_alternatives(winner, rivals, size, counts))
    return Verdict(
        sequence_length=size,
        choice=_chosen(winner, reason, _SEAMLESS if winner.strategy in _WHOLE else None),
        runner_up=alternatives[0] if alternatives else None,
        alternatives=alternatives,
        limits=_LIMITS,
    )


def _simplest(entries: Iterable[Trial]) -> Trial:
    return min(entries, key=lambda entry: STRATEGIES[entry.strategy].recommended)


def _winner(entries: Sequence[Trial]) -> tuple[Trial, str]:
    """Choose among entries of one row length, and say why."""
    # Rows of several lengths need a trainer that takes them, so they win only where nothing else was compared.
    one_length = [entry for entry in entries if not STRATEGIES[entry.strategy].multi_bucket] or entries
    # One stream is the baseline, so it is never out.
    contest = [entry for entry in one_length if entry.strategy == "concat" or not degenerate(entry)] or one_length
    # Where all waste too much, the one that wastes least still answers the question.
    affordable = [entry for entry in contest if waste(entry) <= WASTE] or [min(contest, key=waste)]
    # Cut documents count first, then waste, then evenness; what differs by less than SAME or EVEN is a draw.
    best = _least(_least(_least(affordable, avoidably_cut, SAME), waste, SAME), _unevenness, EVEN)
    whole = plain = _simplest(best)
    # Without one stream among the affordable, there is nothing plainer than the winner to weigh it against.
    for entry in affordable:
        if entry.strategy == "concat":
            plain = entry
    if avoidably_cut(plain) - avoidably_cut(whole) >= NOTABLE:
        reason = f"{_both_cut(whole, plain)}."
        close = ""
        if waste(whole) > WASTE / 2:
            wasted = percent(waste(plain)) if waste(plain) else "less than one row"
            close = f" A close call: {plain.strategy} wastes {wasted}."
        return whole, f"{reason} {_cost(whole)}{close}"
    # It cuts hardly fewer documents than one stream, but perhaps another does at no cost at all.
    free = [entry for entry in contest if _costs_nothing(entry, plain)]
    if free:
        whole = _simplest(free)
        reason = f"{_both_cut(whole, plain)}, in no fewer rows."
        return whole, f"{reason} {_cost(whole)}"
    return plain, _why_plain(plain, entries, one_length)


def _why_plain(plain: Trial, entries: Sequence[Trial], one_length: Sequence[Trial]) -> str:
    """Say why no strategy is worth more than the plain one."""
    costly = [e for e in one_length if waste(e) > WASTE and avoidably_cut(plain) - avoidably_cut(e) >= NOTABLE]
    if costly:
        closest = min(costly, key=waste)
        lost = _context(plain, closest)
        reason = (
            f"Keeping documents whole would cost {percent(waste(closest))} of the tokens ({closest.strategy}), more "
            f"than the {percent(WASTE)} at which this verdict draws the line. {_cuts(plain)}{lost}. {_cost(plain)}"
        )
        if waste(closest) < 2 * WASTE:
            reason += " A close call: decide by what a cut document is worth to you."
        return reason
    if len(entries) == 1:
        return f"The only one compared. {_cuts(plain)}. {_cost(plain)}"
    return f"{_cuts(plain)}; no other strategy keeps one in a hundred of all documents more whole. {_cost(plain)}"


def _costs_nothing(entry: Trial, plain: Trial) -> bool:
    """Return whether an entry cuts fewer documents than another, and takes, repeats and drops no more.

    Padding is not compared: in as many rows it is what they have room for.
    """
    fewer = avoidably_cut(entry) < avoidably_cut(plain)
    mine, its = entry.ledger, plain.ledger
    return fewer and mine.output <= its.output and mine.repeated <= its.repeated and mine.dropped <= its.dropped


def _context(cut: Trial, whole: Trial) -> str:
    """Say what cutting documents costs in tokens: how many tokens of its own document a token no longer sees."""
    if cut.metrics.mean_context >= whole.metrics.mean_context:
        return ""
    before, after = number(cut.metrics.mean_context), number(whole.metrics.mean_context)
    return f", so that a token has {before} tokens of its own document before it on average, not {after}"


def _least(entries: Sequence[Trial], figure: Callable[[Trial], float], same: float) -> list[Trial]:
    """Return the entries whose figure is least, or differs from the least by no more than `same`."""
    least = min(map(figure, entries))
    return [entry for entry in entries if figure(entry) <= least + same]


def _unevenness(entry: Trial) -> float:
    """Return the variance between rows beyond that of random ones."""
    homogeneity = entry.metrics.homogeneity
    return max(0.0, homogeneity.between_rows - homogeneity.random_rows)


def _alternatives(
    winner: Trial, rivals: dict[str, Trial], size: int | None, counts: LengthCounts
) -> Iterator[ChosenStrategy]:
    """List the choices for other aims or other trainers, and when they apply; the most likely first."""
    longer = 0.0
    clipped = winner.beyond is not msgspec.UNSET  # no document has more tokens than a row that any strategy may take
    if size is not None and not clipped:
        longer = counts.tokens_over(size) / counts.tokens
    spread = counts.quantile(0.99) / max(1, counts.quantile(0.5))
    if "seamless" in rivals and longer >= MUCH and winner.strategy in (*_WHOLE, "concat"):
        metrics = rivals["seamless"].metrics
        reason = (
            f"if you continue the pre-training of an existing model and long documents matter: {percent(longer)} of "
            f"the tokens lie in documents longer than a row. {percent(metrics.repeated_ratio)} of the tokens in "
            f"its rows are repeated, and {percent(metrics.dropped_ratio)} of the text is dropped."
        )
        yield _chosen(rivals["seamless"], reason, _SEAMLESS)
    if "buckets" in rivals and spread >= WIDE and size is not None:
        metrics = rivals["buckets"].metrics
        reason = (
            "if your trainer takes batches of several row lengths: lengths spread widely (one document in a hundred is "
            f"{number(spread)} times the median), and it puts {number(metrics.concatenation_ratio)} documents in a row "
            f"at {percent(metrics.padding_ratio)} padding."
        )
        yield _chosen(rivals["buckets"], reason, _BUCKETS)
    if winner.strategy == "concat" and "padding" in rivals and size is not None and not clipped and counts.mean > size:
        more = rivals["padding"].metrics.rows / max(1, winner.metrics.rows) - 1
        reason = (
            f"if data is scarce and time is not: it takes {percent(more)} more rows, and documents are longer than a "
            "row. There it ended 4.2 to 19.4% lower in perplexity, for 13 to 46% more steps."
        )
        yield _chosen(rivals["padding"], reason, _OPTIMIZING)
    if winner.strategy == "concat":
        simplest = next((rivals[name] for name in _WHOLE if name in rivals), None)
        if simplest is not None and winner.metrics.cut_fitting_documents:
            reason = f"if no document that would fit may be cut: {_cost(simplest)[:-1].lower()}."
            yield _chosen(simplest, reason, _SEAMLESS)
    elif "concat" in rivals and winner.metrics.padding_ratio:
        cut = _share_cut(rivals["concat"])
        reason = f"if every token of every row must be text: of the documents that would fit in a row it cuts {cut}."
        yield _chosen(rivals["concat"], reason)
    elif rivals:
        rest = min(rivals.values(), key=lambda entry: (degenerate(entry), waste(entry)))
        yield _chosen(rest, f"next by the same rule. {_cost(rest)}")


def _chosen(entry: Trial, reason: str, source: str | None = None) -> ChosenStrategy:
    return ChosenStrategy(strategy=entry.strategy, reason=reason, command=entry.command, source=source)


def _cost(entry: Trial) -> str:
    """Describe the cost of an entry in a sentence."""
    metrics = entry.metrics
    remainder = ""
    if not padding_waste(entry) and not entry.ledger.rounding:
        remainder = ", less than a row in all"
    costs = _spent(entry, f"{remainder}{_multiples(entry)}")
    rows = plural(metrics.rows, "row")
    added = _added(entry)
    if added:
        rows += f", {count(added)} of them since {_limit(entry)}"
    return f"{', '.join(costs) or 'No padding, nothing dropped or repeated'}; {rows}."


def _spent(rows: Trial | PackedReport, of_padding: str) -> list[str]:
    """Say which tokens of the rows train nothing new, and which of the text are lost.

    Args:
        of_padding: what else there is to say of padding.
    """
    metrics, shares = rows.metrics, []
    assert metrics is not None, "what is spent follows from boundaries"
    if metrics.padding_ratio:
        shares.append(f"{percent(metrics.padding_ratio)} of the tokens in rows are padding{of_padding}")
    if metrics.repeated_ratio:
        shares.append(f"{percent(metrics.repeated_ratio)} of the tokens in rows are repeated")
    if _dropped(rows):
        shares.append(f"{percent(_dropped(rows))} of the text is dropped")
    return shares


def _added(rows: Trial | PackedReport) -> int:
    """Count the rows that are there since rows hold no more documents than asked for."""
    if rows.stages is None:
        return 0
    return rows.stages.get("added", 0)


def _limit(rows: Trial | PackedReport) -> str:
    return f"a row holds at most {plural(rows.options['max_documents_per_row'], 'document')}"


def _multiples(rows: Trial | PackedReport) -> str:
    """Say how much of the padding is there since documents begin at multiples."""
    if not rows.ledger.rounding:
        return ""
    share, multiple = percent(ratio(rows.ledger.rounding, rows.ledger.output)), rows.options["document_multiple"]
    return f" ({share} since documents begin at multiples of {multiple})"


def _cuts(entry: Trial) -> str:
    """Say how many of the documents that would fit in a row an entry cuts."""
    return f"Of the documents that would fit in a row {entry.strategy} cuts {_share_cut(entry)}"


def _both_cut(whole: Trial, plain: Trial) -> str:
    """Say the same of two entries, beside each other."""
    shares = f"it cuts {_share_cut(whole)}; {plain.strategy} cuts {_share_cut(plain)}"
    return f"Of the documents that would fit in a row {shares}"


def _share_cut(entry: Trial) -> str:
    """Say how many documents that would fit are cut, also as the share of all that decides."""
    metrics = entry.metrics
    if not metrics.cut_fitting_documents:
        return "none"
    of_all = f"{count(metrics.cut_fitting_documents)} of all {count(metrics.documents)}"
    return f"{percent(metrics.cut_fitting_ratio)}, {of_all}"


def advise(counts: LengthCounts, entries: Sequence[Trial]) -> list[Advice]:
    """Give advice for documents of these lengths.

    Args:
        counts: document lengths in tokens.
        entries: what strategies make of them (the comparison's entries); each rule uses the ones it finds.
    """
    if not counts.documents:
        return []
    sizes = sorted({entry.sequence_length for entry in entries if entry.sequence_length})
    on_padding = _advise_on_padding(counts, entries, sizes)
    return [*_advise_on_atoms(counts, sizes), *on_padding, *_advise_to_mix(entries), *_advise_on_few_sums(entries)]


def _advise_on_atoms(counts: LengthCounts, sizes: Sequence[int]) -> Iterator[Advice]:
    below = [size for size in sizes if size < counts.mean]
    if below:
        yield Advice(
            f"Keep the atom size at the sequence length (the default) for rows of {_tokens(below)}.",
            f"Documents average {number(counts.mean)} tokens, more than a row. There, atoms shorter or longer than a "
            "row gave higher perplexity, for concat and for padding.",
            "Optimizing Packing and Shuffling Strategies, sections 3.1 and 3.2",
            "Tested with GPT-2 124M on WikiText, rows of 32 to 128 tokens.",
        )


def _advise_on_padding(counts: LengthCounts, entries: Sequence[Trial], sizes: Sequence[int]) -> Iterator[Advice]:
    far = [size for size in sizes if size >= _FAR * counts.mean]
    if not far:
        return
    more = " or more" if len(far) > 1 else ""
    reason = f"That is {number(far[0] / counts.mean)} times the mean document of {number(counts.mean)} tokens{more}"
    padded = [e.metrics.padding_ratio for e in entries if e.strategy == "padding" and e.sequence_length in far]
    if padded:
        reason += f", so that {percent(min(padded))} of the output{more} would be padding"
    yield Advice(
        f"Do not use padding for rows of {_tokens(far)}.",
        f"{reason}.",
        "Optimizing Packing and Shuffling Strategies, sections 3.4 and 4",
        "Tested with GPT-2 XL on WikiText, rows of 256 to 1024 tokens, documents of 143 on average.",
    )


def _equal_but_one(entry: Trial) -> float:
    return entry.metrics.homogeneity.equal_but_one


def _advise_to_mix(entries: Sequence[Trial]) -> Iterator[Advice]:
    alike = [entry for entry in entries if _equal_but_one(entry) > _ALIKE and entry.options.get("mix_rows") is False]
    if alike:
        worst = max(alike, key=_equal_but_one)
        mixing = worst.metrics.homogeneity
        yield Advice(
            f"Mix the rows of {worst.strategy}: --mix-rows.",
            f"Of its rows with more than two pieces, {percent(mixing.equal_but_one)} hold equal lengths but for one; "
            f"{percent(mixing.between_rows)} of the variance of log length lies between rows, "
            f"{percent(mixing.random_rows)} if rows were random. Mixing cuts no more "
            "documents, and takes no more rows and no more padding.",
            "Counted on this corpus; no paper behind these strategies measured it",
            "Not tested: what such rows do to a model.",
        )


def _advise_on_few_sums(entries: Sequence[Trial]) -> Iterator[Advice]:
    """Mixing needs groups of documents with equal sums; where there are few such groups, rows stay alike."""
    for random in entries:
        if random.strategy != "first-fit-shuffle":
            continue
        length = random.sequence_length or 0
        mixed = [entry for entry in entries if entry.sequence_length == length and entry.options.get("mix_rows")]
        stuck = [entry for entry in mixed if _unevenness(entry) - _unevenness(random) > EVEN]
        if stuck:
            worst = max(stuck, key=_unevenness)
            yield Advice(
                f"For mixed rows of {_tokens([length])} take first-fit-shuffle.",
                f"Few groups of these documents have equal sums, and rows in random order would be more: "
                f"{worst.strategy} stays {times(times_random(worst.metrics.homogeneity) or 1)} as alike as random "
                "rows, though it is mixed. "
                f"first-fit-shuffle mixes them in {_rows(random)} rows instead of {_rows(worst)}.",
                "Counted on this corpus; no paper behind these strategies measured it",
                "Not tested: what such rows do to a model.",
            )


def _rows(trial: Trial) -> str:
    return count(trial.ledger.rows)


def _tokens(sizes: Sequence[int]) -> str:
    *first, last = map(count, sizes)
    if not first:
        return f"{last} tokens"
    return f"{', '.join(first)} and {last} tokens"


class Judgement(NamedTuple):
    """A judgement of one figure of a packed dataset."""

    good: bool  # whether there is nothing to do about it
    words: str  # the figure, whether it is good, and what to do if it is not


def judge(report: PackedReport) -> list[Judgement]:
    """Interpret the figures of a packed dataset; nothing if boundaries are unknown, or without documents."""
    metrics = report.metrics
    if metrics is None or not metrics.documents or not report.ledger.output:
        return []
    judgements = [_judge_waste(report, metrics), _judge_cuts(metrics), *_judge_mixing(report)]
    if report.beyond:
        share = percent(ratio(report.beyond, report.ledger.input))
        words = f"{share} of the text is left out: what follows the first tokens of long documents."
        judgements.insert(1, Judgement(True, words))
    if report.neighbours is not None:
        keeps = STRATEGIES[report.strategy].neighbours
        judgements.append(Judgement(keeps, f"{neighbours_shown(report.neighbours)}."))
    return judgements


def neighbours_shown(neighbours: Neighbours) -> str:
    """Say what share of the pairs of tokens in a row are of documents with the same value.

    >>> neighbours_shown(Neighbours("repo", pairs=8, alike=6, alike_share=0.75))
    '75.00% of the pairs of tokens in a row are of documents with the same repo'
    """
    share = percent(neighbours.alike_share)
    return f"{share} of the pairs of tokens in a row are of documents with the same {neighbours.field}"


def _judge_waste(report: PackedReport, metrics: Metrics) -> Judgement:
    parts = _spent(report, _multiples(report))
    added = _added(report)
    if added:
        parts.append(f"{percent(added / report.ledger.rows)} of the rows are there since {_limit(report)}")
    if not parts:
        return Judgement(True, "Nothing is wasted: no padding, nothing repeated or dropped.")
    words = ", ".join(parts)
    if waste(report) > WASTE:
        return Judgement(False, f"{words}: more than {percent(WASTE)}; other strategies may waste less.")
    if metrics.padding_ratio > WASTE:  # of a few rows, the part of one that is not full is a large share
        return Judgement(True, f"{words}: less than one row, a remainder that more text makes small.")
    return Judgement(True, f"{words}: little is wasted.")


def _judge_cuts(metrics: Metrics) -> Judgement:
    """Judge how many of the documents that would fit in a row are cut: longer ones are cut by every strategy."""
    avoidable = metrics.cut_fitting_documents
    if not metrics.cut_documents:
        return Judgement(True, "No document is cut.")
    longer = metrics.documents - metrics.fitting_documents
    also = ""
    if longer:
        verb = "is" if longer == 1 else "are"
        also = f" ({plural(longer, 'document')} {verb} longer than a row: no strategy keeps these whole)"
    if not avoidable:
        return Judgement(True, f"No document that would fit in a row is cut{also}.")
    cut = f"{percent(metrics.cut_fitting_ratio)} of the documents that would fit in a row are cut"
    if avoidable / metrics.documents < NOTABLE:
        return Judgement(True, f"{cut}, which is little{also}.")
    return Judgement(False, f"{cut}, which {_WHOLE[0]} would keep whole{also}.")


def _judge_mixing(report: PackedReport) -> Iterator[Judgement]:
    """Judge mixing where rows could have been mixed; of several row lengths, by the length that is mixed least."""
    mixable = "mix_rows" in STRATEGIES[report.strategy].accepts
    least = max(report.buckets, key=lambda b: b.homogeneity.between_rows - b.homogeneity.random_rows)
    mixing, alike = least.homogeneity, times_random(least.homogeneity)
    if mixable and alike is not None and mixing.between_rows - mixing.random_rows > EVEN:
        remedy = "--mix-rows mixes them, at the same padding or less, and the same cuts"
        if report.options.get("mix_rows"):
            if mixing.rows_of_several < mixing.rows / 2:
                return  # most rows are full of one or two documents: these differ, however the others are mixed
            remedy = "mixing finds little to exchange; first-fit-shuffle mixes such rows, for some padding"
        yield Judgement(
            False,
            f"Documents that share a row of {count(least.sequence_length)} tokens are more alike in length than in "
            f"random rows: {remedy}.",
        )
