"""Judge a packed dataset in words: each figure that matters against the limits of the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from packtool.metrics.summary import Metrics
from packtool.packing import STRATEGIES
from packtool.report.figures import count, percent, times, times_random
from packtool.report.schema import MeasuredReport, PackedReport
from packtool.report.verdict import EVEN, NOTABLE, WASTE, padding_waste
from packtool.shuffling.balance import Waiting


@dataclass(frozen=True)
class Judgement:
    """What one figure says.

    Attributes:
        good: nothing to do about it.
        words: the figure, whether it is good, and what to do if it is not.
    """

    good: bool
    words: str


def judge(report: PackedReport) -> list[Judgement]:
    """Interpret the figures of a packed dataset; nothing if boundaries are unknown, or there are no documents."""
    metrics = report.metrics
    if metrics is None or not metrics.documents or not report.ledger.output:
        return []
    waiting = report.waiting if isinstance(report, MeasuredReport) else []
    return [_waste(report, metrics), _truncation(metrics), *_mixing(report), *map(_waiting, waiting)]


def _waste(report: PackedReport, metrics: Metrics) -> Judgement:
    padding = padding_waste(report.buckets, report.ledger.output)
    wasted = padding + metrics.repeated_ratio + metrics.dropped_ratio
    shares = ((metrics.padding_ratio, "padding"), (metrics.repeated_ratio, "repeated"))
    parts = [f"{percent(share)} of the output is {what}" for share, what in shares if share]
    parts += [f"{percent(metrics.dropped_ratio)} of the text is dropped"] if metrics.dropped_ratio else []
    said = ", ".join(parts) or "No padding, nothing repeated or dropped"
    if wasted > WASTE:
        return Judgement(False, f"{said}: more than {percent(WASTE)}; other strategies may waste less.")
    return Judgement(True, f"{said}: little is wasted.")


def _truncation(metrics: Metrics) -> Judgement:
    """Judge truncation among documents that fit a row: longer ones are cut by every strategy."""
    avoidable = metrics.avoidably_truncated_documents
    cut = f"{percent(metrics.truncation_ratio)} of the documents are cut"
    if not metrics.truncated_documents:
        return Judgement(True, "No document is cut.")
    if not avoidable:
        return Judgement(True, f"{cut}, all of them longer than a row: no strategy keeps these whole.")
    share = avoidable / metrics.documents
    longer = metrics.documents - metrics.fitting_documents
    split = f"{cut}, all of which would fit a row"
    if longer:
        split = f"{cut}: {percent(longer / metrics.documents)} are longer than a row, but {percent(share)} would fit"
    if share < NOTABLE:
        return Judgement(True, f"{split}, which is little.")
    return Judgement(False, f"{split}, and bfd would keep these whole.")


def _mixing(report: PackedReport) -> Iterator[Judgement]:
    """Judge mixing where rows could have been mixed; of several row lengths, by those that are mixed least."""
    mixable = "mix_rows" in STRATEGIES[report.strategy].accepts and not report.options.get("mix_rows")
    least = max(report.buckets, key=lambda b: b.homogeneity.between_rows - b.homogeneity.random_rows)
    mixing = least.homogeneity
    if mixable and mixing.between_rows - mixing.random_rows > EVEN:
        yield Judgement(
            False,
            f"Documents that share a row of {count(least.sequence_length)} tokens are of like length, "
            f"{times(times_random(mixing))} as alike as in random rows: --mix-rows mixes them, at the same padding and "
            "truncation.",
        )


def _waiting(waiting: Waiting) -> Judgement:
    ranks, size = count(waiting.ranks), count(waiting.sequence_length)
    rows = f"With rows of {size} tokens, {ranks} ranks wait {percent(waiting.dealt)} of a step"
    if waiting.dealt < NOTABLE:
        return Judgement(True, f"{rows} for the slowest: it does not matter here.")
    if waiting.dealt - waiting.balanced < NOTABLE:
        why = f"a rank has {waiting.global_batch // waiting.ranks}, too few to even out"
        return Judgement(False, f"{rows} for the slowest, and balanced {percent(waiting.balanced)}: {why}.")
    return Judgement(False, f'{rows} for the slowest; Loader(balance="step") makes that {percent(waiting.balanced)}.')
