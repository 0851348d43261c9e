"""The verdict, advice and judgements: what is said, of which corpora, with which figures."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.planning.packing import STRATEGIES
from packtool.planning.plan import I64
from packtool.report.compare import candidates, compare
from packtool.report.tables import strategies_table
from packtool.report.types import Comparison
from packtool.report.verdict import WASTE, degenerate, judge, waste
from tests.making import Make
from tests.reports import unknown_rows

RNG = np.random.default_rng(11)


def lognormal(median: float, spread: float, documents: int, seed: int = 11) -> I64:
    return np.random.default_rng(seed).lognormal(np.log(median), spread, documents).astype(np.int64) + 2


def alike_groups() -> I64:
    """Rows of two long documents and of five short ones, full to the last token: hardly two groups have equal sums."""
    draw = np.random.default_rng(0)
    lengths: list[int] = []
    for documents, spread in ((2, 60), (5, 20)):
        mean = (2048 - documents) // documents
        drawn = draw.integers(mean - spread, mean + spread, (300, documents - 1))
        lengths += [*drawn.ravel().tolist(), *(2048 - documents - drawn.sum(axis=1)).tolist()]
    return np.array(lengths)


CORPORA = {
    "short": lognormal(60, 0.8, 20_000),
    "long": lognormal(8000, 0.8, 1500),
    "bimodal": np.concatenate([RNG.integers(20, 80, 20_000), RNG.integers(3000, 6000, 600)]),
    "code": np.minimum(lognormal(500, 1.6, 10_000), 200_000),
    "just over half a row": RNG.integers(1150, 1300, 3000),
    "longer than a row": np.full(3000, 5000),
    "wide": np.concatenate([np.full(9800, 100), np.full(200, 5000)]),
    "one row": np.array([170, 300]),
    "31 thousands": np.full(31, 1000),
    "1100": np.full(200, 1100),
    "a row and its EOS": np.full(3000, 2049),
    # Four documents to a row, but that the stream is out of step for a moment: one of 1,000 is cut.
    "out of step": np.concatenate([[512, 512, 300, 512, 724], np.full(995, 512)]),
    "a quarter": np.full(1000, 512),
    "over a quarter": np.full(8000, 513),
    "over a half": np.full(8000, 1025),
    "1.4 %": np.full(3000, 505),
    "2.3 %": np.full(3000, 500),
    "0.1 %": np.full(3000, 511),
    "none": np.zeros(0, np.int64),
    "alike groups": alike_groups(),
    "500": np.full(40, 500),
    "50": np.full(400, 50),
    "mixed": np.repeat([300, 9000], [400, 40]),
    "two lengths": np.repeat([10, 20], 4000),
}
MADE: dict[tuple[str, str, tuple[int, ...]], Comparison] = {}


def compared(corpus: str, names: str = "all", *sizes: int, **options: Any) -> Comparison:
    """The comparison of strategies on a corpus, which many tests look at."""
    tried = candidates(names.split(), sizes or (2048,), options)
    if options:
        return compare(CORPORA[corpus], tried)
    key = corpus, names, sizes
    if key not in MADE:
        MADE[key] = compare(CORPORA[corpus], tried)
    return MADE[key]


WHOLE = "Of the documents that would fit in a row it cuts none; concat cuts "
SCARCE = "if data is scarce and time is not: it takes "
ROW = "tokens of its own document before it on average, not"


@pytest.mark.parametrize(
    ("corpus", "names", "choice", "runner_up", "reason", "other"),
    [
        ("short", "all", "bfd", "concat", f"{WHOLE}.*% of the tokens in rows are padding", "if every token of every"),
        ("long", "all", "bfd", "seamless", WHOLE, "if you continue the pre-training"),
        ("bimodal", "all", "bfd", "seamless", WHOLE, "if you continue the pre-training"),
        ("code", "all", "bfd", "seamless", WHOLE, "if you continue the pre-training"),
        ("just over half a row", "all", "concat", "bfd", r"^Keeping documents whole would cost 40\.", "if no document"),
        ("longer than a row", "all", "concat", "seamless", "", "if you continue"),
        ("longer than a row", "concat padding", "concat", "padding", "", SCARCE),
        ("short", "padding", "padding", None, r"^The only one compared\.", None),
        ("short", "decompose", "decompose", None, "", None),
        ("one row", "concat bfd", "concat", None, r"less than a row in all; 1 row\.$", None),
        ("31 thousands", "concat", "concat", None, "padding, less than a row in all", None),
        # Where every strategy wastes too much, the least wasteful is decompose, which pads nothing and cuts everything.
        ("1100", "decompose bfd padding", "bfd", "decompose", "", "next by the same rule"),
        ("short", "decompose concat bfd", "bfd", "concat", WHOLE, "if every token"),
        ("a row and its EOS", "concat bfd", "bfd", "concat", f"{WHOLE}99.9", ""),
        # What costs nothing is taken however little it saves.
        ("out of step", "concat bfd", "bfd", "concat", r"concat cuts 0\.10%, 1 of all 1,000, in no fewer rows\.", ""),
        ("a quarter", "concat bfd", "concat", None, "no other strategy keeps one in a hundred of all documents", None),
        ("over a quarter", "concat bfd", "concat", "bfd", f"cost 24.8.% of the tokens .* has 235 {ROW} 256. ", ""),
        ("over a half", "concat bfd", "concat", "bfd", f"cost 49.9.% of the tokens .* has 425 {ROW} 512. ", ""),
        ("1.4 %", "concat bfd", "bfd", "concat", "A close call: concat wastes less than one row.$", ""),
        ("2.3 %", "concat bfd", "concat", "bfd", "A close call: decide by what a cut document is worth to you.$", ""),
        ("0.1 %", "concat bfd", "bfd", "concat", "^((?!close call).)*$", ""),
    ],
)
def test_the_verdict(
    corpus: str, names: str, choice: str, runner_up: str | None, reason: str, other: str | None
) -> None:
    [found] = compared(corpus, names).verdicts
    assert (found.choice.strategy, found.runner_up and found.runner_up.strategy) == (choice, runner_up)
    assert found.choice.command.endswith(f"--strategy {choice} --sequence-length 2048")
    assert re.search(reason, found.choice.reason)
    assert runner_up is None or found.runner_up.reason.startswith(other)
    assert found.runner_up == (found.alternatives[0] if found.alternatives else None)
    assert all(each.reason.startswith(("if ", "next by")) for each in found.alternatives)


def test_a_strategy_that_is_not_recommended_is_measured_but_never_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that was just added: it would win here, and is not even an alternative."""
    monkeypatch.setitem(STRATEGIES, "bfd", replace(STRATEGIES["bfd"], recommended=0))
    found = compared("short", "concat bfd", 2048, 64)
    assert {entry.strategy for entry in found.entries} == {"concat", "bfd"}
    assert (found.verdicts[0].choice.strategy, found.verdicts[0].alternatives) == ("concat", [])
    assert compared("short", "bfd", 64).verdicts[0].choice.strategy == "bfd", "unless no other was compared"


def test_the_padding_of_the_last_row_is_no_waste() -> None:
    stream, padded = compared("31 thousands", "concat padding").entries
    assert stream.metrics.padding_ratio > WASTE
    assert waste(stream) == 0
    # Each of 31 rows lacks 1,049 tokens; less than one row of these is a remainder.
    assert padded.ledger.padding == 31 * 1049
    assert waste(padded) == (31 * 1049 - 2047) / (31 * 2048)


def test_wide_lengths_whose_tokens_fit_a_row_suggest_buckets() -> None:
    rival = compared("wide", "all", 8192, buckets=(1024, 8192)).verdicts[0].runner_up
    assert rival.reason.startswith("if your trainer takes batches of several row lengths: ")
    assert "--strategy buckets --buckets 1024,8192" in rival.command


def test_a_verdict_for_each_row_length_and_among_those_compared() -> None:
    verdicts = compared("short", "concat padding", 64, 2048).verdicts
    assert [(each.sequence_length, each.choice.strategy) for each in verdicts] == [(64, "concat"), (2048, "concat")]
    [several] = compared("short", "buckets length-buckets").verdicts
    assert (several.sequence_length, several.choice.strategy) == (None, "buckets")
    assert compared("none").verdicts == []


def test_what_a_multiple_costs_is_told_and_held_against_no_strategy() -> None:
    lengths = lognormal(150, 0.8, 4000)
    plain, padded = (
        compare(lengths, candidates(["concat", "bfd"], [2048], options)) for options in ({}, {"document_multiple": 32})
    )
    assert [each.verdicts[0].choice.strategy for each in (plain, padded)] == ["bfd", "bfd"]
    entry = padded.entries[1]
    assert entry.metrics.padding_ratio > WASTE > waste(entry)
    reason = padded.verdicts[0].choice.reason
    told = re.search(r"padding \((\d+\.?\d*)% since documents begin at multiples of 32\)", reason)
    assert 14 < entry.ledger.rounding / entry.metrics.documents < 17, "half a multiple"
    assert float(told[1]) == pytest.approx(100 * entry.ledger.rounding / entry.ledger.output, abs=0.05)


def test_what_a_limit_on_documents_costs_is_told(make: Make) -> None:
    lengths = lognormal(40, 0.8, 2000)
    free, limited = (
        compare(lengths, candidates(["bfd"], [1024], options)) for options in ({}, {"max_documents_per_row": 12})
    )
    rows = [each.entries[0].ledger.rows for each in (free, limited)]
    assert free.entries[0].stages is None
    assert limited.entries[0].stages == {"filled": rows[0], "added": rows[1] - rows[0]}
    told = f"{rows[1]} rows, {rows[1] - rows[0]} of them since a row holds at most 12 documents"
    assert told in limited.verdicts[0].choice.reason
    options = {"strategy": "bfd", "sequence_length": 1024, "max_documents_per_row": 12}
    report = packtool.stats(make(lengths.tolist(), rows=options) / "rows")
    assert report.stages == limited.entries[0].stages
    share = f"{(rows[1] - rows[0]) / rows[1]:.2%}"
    assert f", {share} of the rows are there since a row holds at most 12 documents" in judge(report)[0].words


def test_degenerate_entries_are_not_marked() -> None:
    comparison = compared("code")
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
    assert {("decompose", "cut that would fit"), ("padding", "padding")} <= bad
    assert ("bfd", "cut that would fit") in marked


@pytest.mark.parametrize(
    ("corpus", "names", "size", "options", "said", "unsaid"),
    [
        ("none", "all", 64, {}, "^$", "."),
        ("500", "all", 64, {}, r"Keep the atom size at the sequence length \(the default\) for rows of 64 tokens\.",
         "Do not use padding"),
        ("50", "all", 512, {},
         r"Do not use padding for rows of 512 tokens\. That is 10\.2 times the mean document of 50\.0 tokens, so "
         r"that 90\.43% of the output would be padding\.", "atom size"),
        ("two lengths", "bfd", 512, {"mix_rows": False},
         "Mix the rows of bfd: --mix-rows.*hold equal lengths but for one", "None"),
        ("alike groups", "bfd first-fit-shuffle", 2048, {},
         r"For mixed rows of 2,048 tokens take first-fit-shuffle\..*though it is mixed\. "
         r"first-fit-shuffle mixes them in 6\d\d rows instead of 6\d\d\.", "None"),
        ("mixed", "concat", 512, {}, "", "None"),
        ("mixed", "padding", 64, {}, "", "None"),
        ("mixed", "bfd buckets", 512, {}, "", "None"),
        ("mixed", "all", 8192, {}, "", "None"),
    ],
)  # fmt: skip
def test_advice(corpus: str, names: str, size: int, options: dict[str, Any], said: str, unsaid: str) -> None:
    advice = compared(corpus, names, size, **options).advice
    text = " ".join(f"{each.advice} {each.reason}" for each in advice)
    assert re.search(said, text)
    assert not re.search(unsaid, text)
    for each in advice:
        assert each.source.startswith(("Optimizing", "Counted on this corpus"))
        assert "ested" in each.untested


USUAL = [*([40] * 60), *([100] * 30), *([300] * 10)]
LONGER = r"\(10 documents are longer than a row: no strategy keeps these whole\)"
SHORT = np.random.default_rng(0).integers(4, 16, 3000).tolist()
SPREAD = np.clip(np.random.default_rng(1).lognormal(3.3, 1.5, 3000), 2, 900).astype(int).tolist()
ALIKE = "more alike in length than in random rows: "


@pytest.mark.parametrize(
    ("lengths", "strategy", "options", "good", "words"),
    [
        (USUAL, "concat", {}, True, "^[^;]*: little is wasted.$"),
        (USUAL, "concat", {}, False, f"% of the documents that .* are cut, which bfd would keep whole {LONGER}.$"),
        (USUAL, "bfd", {}, True, rf"^No document that would fit in a row is cut {LONGER}\.$"),
        (USUAL, "padding", {}, False, r"padding: more than 2\.00%; other strategies may waste less\.$"),
        ([40] * 5, "concat", {}, True, r": less than one row, a remainder that more text makes small\.$"),
        ([10] * 400 + [60] * 400, "bfd", {"mix_rows": False}, False, f"{ALIKE}--mix-rows mixes them"),
        ([10] * 400 + [60] * 400, "bfd", {"mix_rows": True}, True, ""),
        # Long documents alone in their rows do not make mixed rows look alike.
        ([640] * 60 + SHORT, "bfd", {"mix_rows": True}, True, ""),
        (CORPORA["alike groups"].tolist(), "bfd", {"sequence_length": 2048}, False,
         "mixing finds little to exchange; first-fit-shuffle mixes such rows, for some padding.$"),
        (SPREAD, "buckets", {"buckets": (128, 1024), "mix_rows": False}, False,
         f"Documents that share a row of 128 tokens are {ALIKE}"),
    ],
)  # fmt: skip
def test_judgements(
    make: Make, lengths: list[int], strategy: str, options: dict[str, Any], good: bool, words: str
) -> None:
    length = {} if strategy == "buckets" else {"sequence_length": 128}
    report = packtool.stats(make(lengths, rows={"strategy": strategy, **length, **options}) / "rows")
    found = judge(report)  # type: ignore[arg-type]
    assert any(each.good is good and re.search(words, each.words) for each in found), found
    assert words or not any(ALIKE in each.words for each in found)


def test_of_nothing_nothing_is_said() -> None:
    assert judge(unknown_rows()) == []
