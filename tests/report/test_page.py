"""Pages: whole, self-contained and escaped, with the charts that the report promises."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest

from packtool.planning.metrics.lengths import LengthCounts
from packtool.report.dataset_report import lengths_of
from packtool.report.figures import percent
from packtool.report.page import facts, lengths_figure, page, section, tiles
from packtool.report.tables import Table, TableColumn, table_of
from packtool.report.types import PackedReport, PackedSourceFigures
from tests.reports import NO_DOCUMENTS, measured, store_report, unknown_rows

VOID = {"meta", "br", "hr", "link", "img"}


class Checker(HTMLParser):
    """Every element closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        names = [name for name, _ in attrs]
        assert not any(name.startswith("on") or name in ("src", "href") for name in names)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def check(text: str) -> list[str]:
    """The headings of the figures, each with a drawing that is well-formed."""
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    assert re.findall("<script.*?>", text) == ["<script>"]
    assert "fetch" not in text
    assert "import" not in text
    assert "://" not in text
    assert "url(" not in text
    assert not re.search(r"\b(nan|inf)\b", text, re.IGNORECASE)
    for drawing in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(drawing)
    return re.findall(r"<figure><h3>(.*?)</h3><svg", text)


def test_page_of_a_packed_dataset(report: PackedReport) -> None:
    text = page(measured(report))
    assert check(text) == ["Where every token went", "Document length"]
    assert "row of 8,192" in text
    assert "<dt>packed with</dt><dd>bfd: sequence length 8,192" in text
    for name, tokens in (("padding", report.ledger.padding), ("EOS", report.ledger.eos)):
        assert f"<td class='words'>  {name}</td><td data-value='{tokens}'>{tokens:,}</td>" in text


def test_a_mixture_is_drawn_as_asked_and_as_got(report: PackedReport) -> None:
    shares = {"document_share": 0.5, "token_share": 0.25, "asked_share": 0.5}
    counts = ("documents", "tokens", "asked_epochs", "epochs", "stored_documents", "stored_tokens")
    again = {"left_out": {}, "repeated_documents": 0, "repeated_tokens": 0}
    source = PackedSourceFigures(name="web", digest="0" * 32, **dict.fromkeys(counts, 1), **again, **shares)
    other = msgspec.structs.replace(source, name="code", token_share=0.75)
    weighed = msgspec.structs.replace(report, sources=[source, other], choice={"mix": ["2", "1"], "seed": 42})
    text = page(measured(weighed))
    assert "The mixture, asked and got" in check(text)
    for said in ("web: asked 50.00%", "web: got 25.00%", "code: got 75.00%"):
        assert f"<title>{said}</title>" in text
    assert "<dt>documents</dt><dd>weights of the stores</dd>" in text
    for plain in (
        msgspec.structs.replace(weighed, sources=[source]),
        msgspec.structs.replace(report, sources=[source, other]),  # nothing was asked
    ):
        assert "asked and got" not in page(measured(plain))


def test_page_of_a_comparison() -> None:
    lengths = np.random.default_rng(2).lognormal(4, 1, 400).astype(np.int64) + 2
    text = page(store_report(lengths, ["all"], [32, 128], [64, 256]))
    headings = check(text)
    for rows in ("rows of 32 tokens", "rows of 128 tokens", "rows of several lengths"):
        assert headings.count(f"Padding against cuts: {rows}") == 1
    assert re.findall("<h2>(.*?)</h2>", text)[:3] == ["Verdict", "Strategies", "Rows"]
    command = "packtool pack store -o packed --strategy bfd --sequence-length 128"
    assert command in re.sub("</?span>", "", text)
    assert text.count("<table class='sorts'>") == 2
    first, rest = text.split("<details>")
    chosen = re.findall("<p class='choice'>.*?<b>(.*?)</b>", text)
    assert [f"<h3>{name}, rows of" in first for name in chosen] == [True, True]
    assert "<h3>padding, rows of" in rest
    assert "row of 32" in text
    assert "row of 128" in text
    assert "&lt;store&gt; &amp; more" in text
    assert "class='best'" in text
    assert "<dt>seamless tried with</dt><dd>max repetition 0.3, extra capacity 31" in text.replace(
        "remainder pad, ", ""
    )


@pytest.mark.parametrize("lengths", [[], [2], [2, 2, 2], [1 << 20]])
def test_extreme_corpora(lengths: list[int]) -> None:
    check(page(store_report(np.array(lengths, np.int64), ["all"], [64], [64, 256])))
    check(page(store_report(np.array(lengths, np.int64))))


def test_page_without_segments() -> None:
    text = page(measured(unknown_rows(stored=3, input=3, placed=3, eos=1, output=4, rows=1)))
    assert check(text) == ["Where every token went"]
    assert "no metrics" in text


def test_page_of_no_rows() -> None:
    check(page(measured(unknown_rows(NO_DOCUMENTS))))


EVIL = "<b>&'\""


@pytest.mark.parametrize(
    "made",
    [
        f"<div>{section(table_of(EVIL, [TableColumn(EVIL, str, meaning=EVIL)], [EVIL], EVIL))}</div>",
        f"<div>{section(Table(EVIL, [TableColumn(EVIL, str)], [(EVIL, [EVIL])]))}</div>",
        tiles([(EVIL, EVIL)]),
        facts([(EVIL, EVIL)]),
    ],
)
def test_what_users_wrote_is_escaped(made: str) -> None:
    root = ElementTree.fromstring(made)
    assert "".join(root.itertext()).count(EVIL) >= 2
    assert root.find(".//b") is None


def test_cells_carry_the_number_to_sort_by() -> None:
    column = TableColumn("figure", lambda row: row[0], percent, "a share", better=-1)
    made = section(Table("", [column], [("group", [(0.12,), (0.5,), (None,)])], contest=lambda row: True))
    root = ElementTree.fromstring(f"<div>{made}</div>")
    assert [(cell.text, cell.get("data-value"), cell.get("class")) for cell in root.findall(".//tbody/tr/td")] == [
        ("12.00%", "0.12", "best"),
        ("50.00%", "0.5", None),
        ("–", None, None),
    ]
    assert [head.get("title") for head in root.findall(".//thead/tr/th")] == ["a share"]


def test_a_table_without_rows_is_left_out() -> None:
    assert section(table_of("title", [TableColumn("figure", str)], [])) == ""


def test_quantiles_are_named() -> None:
    made = lengths_figure(lengths_of(LengthCounts.of(np.arange(1, 1001))))
    for name, value in (("shortest", "1"), ("median", "500"), ("p99", "990"), ("longest", "1,000")):
        assert f"<dt>{name}</dt><dd>{value}</dd>" in made
