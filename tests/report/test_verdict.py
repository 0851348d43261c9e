"""The verdict, advice and judgements: what is said, of which corpora, with which figures."""

from __future__ import annotations

import functools
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import packtool
from packtool.planning.packing import STRATEGIES
from packtool.planning.plan import I64
from packtool.report.compare import candidates, compare
from packtool.report.dataset_report import report_of_rows
from packtool.report.figures import number
from packtool.report.tables import strategies_table
from packtool.report.types import Comparison, Verdict
from packtool.report.verdict import NOTABLE, WASTE, Advice, avoidably_cut, degenerate, judge, waste
from tests.reports import NOTHING, store_report
from tests.stores import write_store

RNG = np.random.default_rng(11)


def lognormal(median: float, spread: float, documents: int) -> I64:
    return np.random.default_rng(11).lognormal(np.log(median), spread, documents).astype(np.int64) + 2


SHORT = lognormal(60, 0.8, 20_000)
LONG = lognormal(8000, 0.8, 1500)
BIMODAL = np.concatenate([RNG.integers(20, 80, 20_000), RNG.integers(3000, 6000, 600)])
CODE = np.minimum(lognormal(500, 1.6, 10_000), 200_000)
OVER_HALF = RNG.integers(1150, 1300, 3000)
ONE_LENGTH = np.full(3000, 5000)


@functools.cache
def compared_once(lengths: bytes, names: tuple[str, ...], sizes: tuple[int, ...]) -> Comparison:
    """The comparison of documents of these lengths, which many tests look at."""
    return store_report(np.frombuffer(lengths, np.int64), names, sizes).comparison


def compared(lengths: I64, *names: str, sizes: tuple[int, ...] = (2048,)) -> Comparison:
    return compared_once(lengths.astype(np.int64).tobytes(), names or ("all",), sizes)


def judged(lengths: I64, *names: str) -> Verdict:
    (verdict,) = compared(lengths, *names).verdicts
    return verdict


def test_a_strategy_that_is_not_recommended_is_measured_but_never_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that was just added: it would win here, and is not even an alternative."""
    better = judged(SHORT, "concat", "bfd")
    assert better.choice.strategy == "bfd"
    monkeypatch.setitem(STRATEGIES, "bfd", replace(STRATEGIES["bfd"], recommended=0))
    monkeypatch.setattr(sys.modules[__name__], "compared_once", compared_once.__wrapped__)
    assert [entry.strategy for entry in compared(SHORT, "concat", "bfd").entries] == ["concat", "bfd"]
    verdict = judged(SHORT, "concat", "bfd")
    assert (verdict.choice.strategy, verdict.alternatives) == ("concat", [])
    assert judged(SHORT, "bfd").choice.strategy == "bfd", "unless no other was compared"


@pytest.mark.parametrize(
    ("lengths", "choice", "runner_up"),
    [
        (SHORT, "bfd", "concat"),
        (LONG, "bfd", "seamless"),
        (BIMODAL, "bfd", "seamless"),
        (CODE, "bfd", "seamless"),
        (OVER_HALF, "concat", "bfd"),
        (ONE_LENGTH, "concat", "seamless"),
    ],
    ids=["short", "long", "bimodal", "code", "just over half a row", "longer than a row"],
)
def test_corpora_of_different_shapes(lengths: I64, choice: str, runner_up: str) -> None:
    verdict = judged(lengths)
    assert verdict.choice.strategy == choice
    assert verdict.runner_up.strategy == runner_up
    assert f"--strategy {choice} --sequence-length 2048" in verdict.choice.command


@pytest.mark.parametrize("lengths", [SHORT, LONG, BIMODAL, CODE, OVER_HALF])
def test_the_rule_as_it_is_written_down(lengths: I64) -> None:
    comparison = compared(lengths)
    entries = {e.strategy: e for e in comparison.entries if e.sequence_length}
    chosen = entries[comparison.verdicts[0].choice.strategy]
    assert waste(chosen) <= WASTE
    assert not degenerate(chosen) or chosen.strategy == "concat"
    cheap = [e for e in entries.values() if waste(e) <= WASTE]
    if chosen.strategy == "concat":
        assert all(avoidably_cut(chosen) - avoidably_cut(e) < NOTABLE for e in cheap)
    else:
        assert avoidably_cut(entries["concat"]) - avoidably_cut(chosen) >= NOTABLE


def test_the_reason_has_the_figures_of_the_corpus() -> None:
    comparison = compared(SHORT)
    concat = next(e for e in comparison.entries if e.strategy == "concat")
    reason = comparison.verdicts[0].choice.reason
    cut = f"{100 * concat.metrics.cut_fitting_ratio:.2f}%"
    assert reason.startswith(f"Of the documents that would fit in a row it cuts none; concat cuts {cut}. ")
    assert "of the tokens in rows are padding" in reason
    padded = judged(OVER_HALF).choice.reason
    assert padded.startswith("Keeping documents whole would cost 40.")


def test_wide_lengths_whose_tokens_fit_a_row_suggest_buckets() -> None:
    lengths = np.concatenate([np.full(9800, 100), np.full(200, 5000)])
    verdict = store_report(lengths, ["all"], [8192], [1024, 8192]).comparison
    rival = verdict.verdicts[0].runner_up
    assert rival.strategy == "buckets"
    assert rival.reason.startswith("if your trainer takes batches of several row lengths: ")
    assert "--strategy buckets --buckets 1024,8192" in rival.command


def test_a_verdict_for_each_row_length_and_among_those_compared() -> None:
    comparison = compared(SHORT, "concat", "padding", sizes=(64, 2048))
    assert [v.sequence_length for v in comparison.verdicts] == [64, 2048]
    assert {v.choice.strategy for v in comparison.verdicts} == {"concat"}
    (alone,) = compared(SHORT, "padding").verdicts
    assert alone.choice.reason.startswith("The only one compared.")
    assert alone.runner_up is None
    (several,) = compared(SHORT, "buckets", "length-buckets").verdicts
    assert (several.sequence_length, several.choice.strategy) == (None, "buckets")


def test_longer_documents_suggest_padding_where_data_is_scarce() -> None:
    verdict = judged(ONE_LENGTH, "concat", "padding")
    assert verdict.runner_up.reason.startswith("if data is scarce and time is not: it takes ")
    assert "each model was scored on its own packing" in verdict.runner_up.source


@pytest.mark.parametrize("seed", range(2))
def test_a_small_sample_gets_the_verdict_of_its_corpus(seed: int) -> None:
    sample = np.random.default_rng(seed).lognormal(np.log(500), 1.2, 20_000).astype(np.int64) + 2
    assert judged(sample).choice.strategy == "bfd"
    for rows in (1, 2, 5, 15, 30, 50, 100):
        few = sample[: int(np.searchsorted(np.cumsum(sample), rows * 2048)) + 1]
        choice = compared(few).verdicts[0].choice
        assert choice.strategy in (("bfd", "concat") if rows < 5 else ("bfd",)), rows
        assert rows < 5 or "Of the documents that would fit in a row it cuts none" in choice.reason


def test_what_one_row_does_not_have_is_not_spoken_of() -> None:
    reason = judged(np.array([170, 300]), "concat", "bfd").choice.reason
    assert reason.endswith("less than a row in all; 1 row.")


def test_the_padding_of_the_last_row_is_no_waste() -> None:
    entries = {e.strategy: e for e in compared(np.full(31, 1000), "concat", "bfd", "padding").entries}
    assert entries["concat"].metrics.padding_ratio > WASTE
    assert waste(entries["concat"]) == 0
    assert "padding, less than a row in all" in judged(np.full(31, 1000), "concat").choice.reason
    # Each of 31 rows lacks 1,049 tokens; less than one row of these is a remainder.
    padded = entries["padding"]
    assert padded.ledger.padding == 31 * 1049
    assert waste(padded) == (31 * 1049 - 2047) / (31 * 2048)


def test_strategies_of_several_lengths_and_degenerate_ones_do_not_win() -> None:
    # Where every strategy wastes too much, the least wasteful is decompose, which pads nothing and cuts everything.
    lengths = np.full(200, 1100)
    verdict = judged(lengths, "decompose", "bfd", "padding")
    assert verdict.choice.strategy == "bfd"
    assert [each.strategy for each in judged(SHORT, "decompose", "concat", "bfd").alternatives] == ["concat"]
    assert judged(SHORT, "decompose").choice.strategy == "decompose"


def test_one_page_gives_one_answer() -> None:
    for lengths in (SHORT, LONG, BIMODAL, CODE, OVER_HALF, ONE_LENGTH):
        comparison = compared(lengths)
        assert not any("use bfd" in advice.advice or "concat" in advice.advice for advice in comparison.advice)
        (verdict,) = comparison.verdicts
        assert verdict.runner_up == verdict.alternatives[0]
        assert all(each.reason.startswith("if ") for each in verdict.alternatives)


def test_documents_that_fill_a_row_but_for_their_eos_fit_it() -> None:
    verdict = judged(np.full(3000, 2049), "concat", "bfd")
    assert verdict.choice.strategy == "bfd"
    assert "Of the documents that would fit in a row it cuts none; concat cuts 99.9" in verdict.choice.reason


def test_what_costs_nothing_is_taken_however_little_it_saves() -> None:
    # Four documents to a row, but that the stream is out of step for a moment: one of 1,000 is cut.
    lengths = np.concatenate([[512, 512, 300, 512, 724], np.full(995, 512)])
    entries = {entry.strategy: entry for entry in compared(lengths, "concat", "bfd").entries}
    assert 0 < avoidably_cut(entries["concat"]) < NOTABLE
    assert entries["bfd"].metrics.rows == entries["concat"].metrics.rows
    choice = judged(lengths, "concat", "bfd").choice
    assert choice.strategy == "bfd"
    assert "concat cuts 0.10%, in no fewer rows." in choice.reason
    assert judged(np.full(1000, 512), "concat", "bfd").choice.strategy == "concat"


@pytest.mark.parametrize(("length", "share"), [(513, "24.8"), (1025, "49.9")])
def test_just_above_a_part_of_a_row_the_loss_is_told_in_tokens(length: int, share: str) -> None:
    comparison = compared(np.full(8000, length), "concat", "bfd")
    concat, bfd = (number(entry.metrics.mean_context) for entry in comparison.entries)
    assert bfd == number((length - 1) / 2)
    reason = comparison.verdicts[0].choice.reason
    assert re.search(f"would cost {share}[0-9]% of the tokens", reason)
    said = f"so that a token has {concat} tokens of its own document before it on average, not {bfd}. "
    assert said in reason


def test_near_the_limit_the_trade_is_named() -> None:
    near = judged(np.full(3000, 505), "concat", "bfd").choice  # four to a row of 2048: 1.4 % padding
    assert near.strategy == "bfd"
    assert near.reason.endswith("A close call: concat wastes no more than a part of one row.")
    over = judged(np.full(3000, 500), "concat", "bfd").choice  # 2.3 %
    assert over.strategy == "concat"
    assert over.reason.endswith("A close call: decide by what a cut document is worth to you.")
    assert "close call" not in judged(np.full(3000, 511), "concat", "bfd").choice.reason


def test_what_a_multiple_costs_is_told_and_held_against_no_strategy() -> None:
    lengths = lognormal(150, 0.8, 4000)
    plain, padded = (
        compare(lengths, candidates(["concat", "bfd"], [2048], options)) for options in ({}, {"document_multiple": 32})
    )
    assert [each.verdicts[0].choice.strategy for each in (plain, padded)] == ["bfd", "bfd"]
    entry = next(entry for entry in padded.entries if entry.strategy == "bfd")
    assert entry.metrics.padding_ratio > WASTE > waste(entry)
    reason = padded.verdicts[0].choice.reason
    told = re.search(r"padding \((\d+\.?\d*)% since documents begin at multiples of 32\)", reason)
    each = entry.ledger.rounding / entry.metrics.documents  # type: ignore[operator]
    assert 14 < each < 17, "half a multiple"
    assert float(told[1]) == pytest.approx(100 * each * entry.metrics.documents / entry.ledger.output, abs=0.05)


def test_what_a_limit_on_documents_costs_is_told(tmp_path: Path) -> None:
    lengths = lognormal(40, 0.8, 2000)
    free, limited = (
        compare(lengths, candidates(["bfd"], [1024], options)) for options in ({}, {"max_documents_per_row": 12})
    )
    rows = [each.entries[0].ledger.rows for each in (free, limited)]
    assert free.entries[0].stages is None
    assert limited.entries[0].stages == {"filled": rows[0], "added": rows[1] - rows[0]}
    told = f"{rows[1]} rows, {rows[1] - rows[0]} of them since a row holds at most 12 documents"
    assert told in limited.verdicts[0].choice.reason
    store = write_store(tmp_path / "store", lengths.tolist())
    packtool.pack(store, tmp_path / "rows", strategy="bfd", sequence_length=1024, max_documents_per_row=12)
    report = packtool.stats(tmp_path / "rows")
    assert report.stages == limited.entries[0].stages
    share = f"{(rows[1] - rows[0]) / rows[1]:.2%}"
    assert f", {share} of the rows are there since a row holds at most 12 documents" in judge(report)[0].words


def test_no_documents_no_verdict() -> None:
    assert compared(np.zeros(0, np.int64)).verdicts == []


def test_degenerate_entries_are_not_marked() -> None:
    comparison = compared(CODE)
    entries = comparison.entries
    decompose = next(e for e in entries if e.strategy == "decompose")
    assert decompose.metrics.padding_ratio == 0
    assert degenerate(decompose)
    table = strategies_table(comparison)
    marked, bad = set(), set()
    for _, rows in table.cells(table.columns):
        for row in rows:
            for column, cell in zip(table.columns, row, strict=True):
                marked |= {(row[0].text, column.title)} if cell.best else set()
                bad |= {(row[0].text, column.title)} if cell.bad else set()
    assert "decompose" not in dict(marked)
    assert bad == {
        *((e.strategy, "cut that would fit") for e in entries if e.metrics.cut_fitting_ratio > 0.5),
        *((e.strategy, "padding") for e in entries if e.metrics.padding_ratio > 0.25),
    }
    assert ("decompose", "cut that would fit") in bad
    assert ("padding", "padding") in bad
    assert ("bfd", "cut that would fit") in marked


def test_the_command_is_there_to_paste() -> None:
    comparison = store_report(SHORT, ["concat"], [64]).comparison
    assert comparison.entries[0].command == "packtool pack store -o packed --strategy concat --sequence-length 64"


def advice_for(lengths: list[int], sizes: list[int], names: list[str] | None = None) -> list[Advice]:
    return compare(np.array(lengths, np.int64), candidates(names or ["all"], sizes)).advice


def said(advice: list[Advice]) -> str:
    return "\n".join(f"{a.advice} {a.reason}" for a in advice)


def test_documents_longer_than_a_row() -> None:
    text = said(advice_for([500] * 40, [64]))
    assert "Keep the atom size at the sequence length (the default) for rows of 64 tokens." in text
    assert "Do not use padding" not in text


def test_rows_far_longer_than_documents() -> None:
    text = said(advice_for([50] * 400, [512]))
    assert "Do not use padding for rows of 512 tokens." in text
    assert "That is 10.2 times the mean document of 50.0 tokens, so that" in text
    assert "so that 90.43% of the output would be padding." in text
    assert "atom size" not in text


def test_every_piece_has_its_source_and_its_limits() -> None:
    for piece in advice_for([300] * 400 + [9000] * 40, [64, 512, 8192]):
        assert piece.source.startswith(("Optimizing", "Counted on this corpus"))
        assert "ested" in piece.untested


@pytest.mark.parametrize("names", [["concat"], ["padding"], ["bfd", "buckets"]])
def test_few_strategies_are_enough(names: list[str]) -> None:
    for piece in advice_for([300] * 40 + [9000] * 4, [64, 512], names):
        assert "None" not in piece.reason


def test_no_documents_no_advice() -> None:
    assert advice_for([], [64]) == []


def test_rows_of_equal_lengths_are_named() -> None:
    array = np.array([10] * 4000 + [20] * 4000, np.int64)
    text = said(compare(array, candidates(["bfd"], [512], {"mix_rows": False})).advice)
    assert "Mix the rows of bfd: --mix-rows." in text
    assert "hold equal lengths but for one" in text


LENGTHS = [*([40] * 60), *([100] * 30), *([300] * 10)]


def judgements(place: Path, lengths: list[int] = LENGTHS, **options: object) -> list[tuple[bool, str]]:
    store = write_store(place / "store", lengths)
    packtool.pack(store, place / "rows", sequence_length=128, **options)  # type: ignore[arg-type]
    return [(each.good, each.words) for each in judge(packtool.stats(place / "rows"))]  # type: ignore[arg-type]


def test_avoidable_truncation_is_told_from_what_no_strategy_keeps_whole(tmp_path: Path) -> None:
    _, (good, words) = judgements(tmp_path, strategy="concat")
    assert not good
    longer = "(10 documents are longer than a row: no strategy keeps these whole)"
    assert words.endswith(f"% of the documents that would fit in a row are cut, which bfd would keep whole {longer}.")


def test_documents_longer_than_a_row_are_no_fault(tmp_path: Path) -> None:
    _, (good, words), *_ = judgements(tmp_path, strategy="bfd")
    assert (good, words) == (
        True,
        "No document that would fit in a row is cut "
        "(10 documents are longer than a row: no strategy keeps these whole).",
    )


def test_waste_is_held_against_the_limit_of_the_verdict(tmp_path: Path) -> None:
    (good, words), _ = judgements(tmp_path, strategy="padding")
    assert not good
    assert words.endswith("% of the tokens in rows are padding: more than 2.00%; other strategies may waste less.")
    (tmp_path / "more").mkdir()
    (good, words), _ = judgements(tmp_path / "more", strategy="concat")
    assert good
    assert words.endswith(": little is wasted.")
    (tmp_path / "few").mkdir()
    (good, words), _ = judgements(tmp_path / "few", [40] * 5, strategy="concat")
    assert good
    assert words.endswith(": less than one row, a remainder that more text makes small.")


@pytest.mark.parametrize("mixed", [True, False])
def test_rows_that_could_be_mixed_are_named(tmp_path: Path, mixed: bool) -> None:
    found = judgements(tmp_path, [10] * 400 + [60] * 400, strategy="bfd", mix_rows=mixed)
    assert any("--mix-rows mixes them" in words for _, words in found) is not mixed


def test_long_documents_alone_in_their_rows_do_not_make_mixed_rows_look_alike(tmp_path: Path) -> None:
    short = np.random.default_rng(0).integers(4, 16, 3000).tolist()
    found = judgements(tmp_path, [640] * 60 + short, strategy="bfd", mix_rows=True)
    assert all(good for good, _ in found)


def test_rows_that_mixing_leaves_alike_are_told_of_first_fit_shuffle(tmp_path: Path) -> None:
    # Rows of two long documents and rows of five short ones, full to the last token: nothing fits as well, and hardly
    # two groups have equal sums.
    draw = np.random.default_rng(0)
    lengths: list[int] = []
    for documents, spread in ((2, 60), (5, 20)):
        mean = (2048 - documents) // documents
        drawn = draw.integers(mean - spread, mean + spread, (300, documents - 1))
        lengths += [*drawn.ravel().tolist(), *(2048 - documents - drawn.sum(axis=1)).tolist()]
    packtool.pack(write_store(tmp_path / "store", lengths), tmp_path / "rows", strategy="bfd", sequence_length=2048)
    *_, (good, words) = [(each.good, each.words) for each in judge(packtool.stats(tmp_path / "rows"))]  # type: ignore[arg-type]
    assert not good
    assert words.endswith("mixing finds little to exchange; first-fit-shuffle mixes such rows, for some padding.")
    text = said(advice_for(lengths, [2048], ["bfd", "first-fit-shuffle"]))
    assert "For mixed rows of 2,048 tokens take first-fit-shuffle." in text
    assert re.search(r"though it is mixed\. first-fit-shuffle mixes them in 6\d\d rows instead of 6\d\d\.", text)


def test_of_several_row_lengths_the_least_mixed_is_named(tmp_path: Path) -> None:
    lengths = np.clip(np.random.default_rng(1).lognormal(3.3, 1.5, 3000), 2, 900).astype(int).tolist()
    store = write_store(tmp_path / "store", lengths)
    packtool.pack(store, tmp_path / "rows", strategy="buckets", buckets=[128, 1024], mix_rows=False)
    words = " ".join(each.words for each in judge(packtool.stats(tmp_path / "rows")))  # type: ignore[arg-type]
    assert "Documents that share a row of 128 tokens are more alike in length than in random rows: " in words


def test_of_nothing_nothing_is_said() -> None:
    assert judge(report_of_rows([], NOTHING, strategy="concat", options={}, shuffle=None)) == []
