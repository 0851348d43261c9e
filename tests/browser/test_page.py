"""The page in a real browser: no console message, charts drawn, nothing wider than the screen, light and dark."""

import json
import re
from html import escape
from pathlib import Path

import numpy as np
import pytest

import packtool
from packtool.planning.metrics.ledger import balance
from packtool.planning.metrics.tally import Tally
from packtool.planning.packing import PackOptions, plan
from packtool.report.page import page
from packtool.rows.layout import Layout
from tests.browser.browser import open_page
from tests.reports import measured, rows_report, store_report
from tests.stores import write_store

pytestmark = pytest.mark.browser

LENGTHS = np.clip(np.random.default_rng(4).lognormal(6, 1.2, 3000), 2, 50_000).astype(np.int64)
# The page lies in a frame, since a window can't be as narrow as a telephone.
AROUND = """<!DOCTYPE html><body>
<iframe id="page" style="border: 0; width: {width}px; height: 900px" srcdoc="{page}"></iframe>
<script>
addEventListener("load", () => {{
  const view = document.getElementById("page").contentWindow, all = s => [...view.document.querySelectorAll(s)];
  const folded = all("details"), shown = all("svg").filter(s => s.checkVisibility()).length;
  folded.forEach(f => f.open = true);
  view.dispatchEvent(new Event("resize"));
  const boxes = all("svg").map(s => s.getBoundingClientRect());
  const texts = all("svg text").map(t => t.getBoundingClientRect());
  const found = {{
    width: view.innerWidth, scroll: view.document.documentElement.scrollWidth,
    charts: boxes.length, shown, folds: folded.length,
    smallest: Math.min(...boxes.map(b => Math.min(b.width, b.height))),
    outside: texts.filter(t => t.left < -1 || t.right > view.innerWidth + 1).length,
    letters: Math.min(...texts.map(t => t.height)), wide: all(".scroll.wide").length,
    ground: view.getComputedStyle(view.document.body).backgroundColor,
    ink: view.getComputedStyle(view.document.body).color,
  }};
  const note = document.body.appendChild(document.createElement("pre"));
  note.id = "found";
  note.textContent = JSON.stringify(found);
}});
</script>"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    (whole,) = plan("bfd", LENGTHS, PackOptions(sequence_length=2048))
    tally = Tally(LENGTHS, 2048)
    tally.add(Layout(whole).segments(0, whole.rows))
    ledger = balance(int(LENGTHS.sum()), len(LENGTHS), [whole], [tally])
    packed = rows_report([tally], ledger, "bfd", {"sequence_length": 2048})
    rows = tmp_path_factory.mktemp("blend") / "rows"
    packtool.pack(write_store(rows.with_name("store"), [40] * 100), rows, strategy="concat", sequence_length=64)
    text = f'rows = 100\n[sources.a]\npath = "{rows}"\n[[stages]]\nweights = {{ a = 1 }}\n'
    rows.with_suffix(".toml").write_text(text)
    return {
        "blend": page(packtool.stats(rows.with_suffix(".toml"))),
        "comparison": page(store_report(LENGTHS, ["all"], [512, 2048])),
        "documents": page(store_report(LENGTHS)),
        "packed": page(measured(packed)),
    }


@pytest.mark.parametrize("name", ["blend", "comparison", "documents", "packed"])
@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("dark", [False, True])
def test_page(tmp_path: Path, pages: dict[str, str], name: str, width: int, dark: bool) -> None:
    file = tmp_path / "page.html"
    file.write_text(AROUND.format(width=width, page=escape(pages[name], quote=True)), "utf-8")
    scheme = "--blink-settings=preferredColorScheme=" + ("0" if dark else "1")
    printed, console = open_page(tmp_path, file.as_uri(), "--window-size=1400,1000", scheme, "--dump-dom")
    assert console == []
    found = json.loads(re.findall(r'<pre id="found">(.*?)</pre>', printed)[0])
    assert (found["shown"], found["charts"], found["folds"]) == {
        "blend": (1, 1, 0),
        "comparison": (8, 24, 1),
        "documents": (1, 1, 1),
        "packed": (2, 2, 1),
    }[name]
    assert found["smallest"] > 50
    assert found["scroll"] <= found["width"] == width
    assert found["outside"] == 0
    assert 12 <= found["letters"] <= 24
    assert (found["wide"] > 0) is (width == 390 and name in ("blend", "comparison"))
    light, ink = ("rgb(18, 22, 29)", "rgb(231, 235, 242)") if dark else ("rgb(255, 255, 255)", "rgb(28, 35, 48)")
    assert (found["ground"], found["ink"]) == (light, ink)


def test_screenshot_and_print(tmp_path: Path, pages: dict[str, str]) -> None:
    file = tmp_path / "page.html"
    file.write_text(pages["comparison"], "utf-8")
    picture, paper = tmp_path / "page.png", tmp_path / "page.pdf"
    open_page(tmp_path, file.as_uri(), "--window-size=1280,4000", f"--screenshot={picture}")
    open_page(tmp_path, file.as_uri(), "--no-pdf-header-footer", f"--print-to-pdf={paper}")
    assert picture.stat().st_size > 100_000
    assert paper.read_bytes().startswith(b"%PDF")


def test_the_console_is_watched(tmp_path: Path) -> None:
    file = tmp_path / "bad.html"
    file.write_text("<body><script>nothing.there()</script></body>", "utf-8")
    _, console = open_page(tmp_path, file.as_uri(), "--dump-dom")
    assert len(console) == 1
    assert "nothing is not defined" in console[0]
