"""Broken links of a built site are found, and so is what it would fetch."""

from __future__ import annotations

from pathlib import Path

import check_site
import pytest


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "api").mkdir()
    (tmp_path / "style.css").write_text("p { background: url(data:image/png;base64,AA==) }")
    (tmp_path / "index.html").write_text(
        '<link rel="stylesheet" href="style.css?v=1"><a href="api/a.html#place">a</a> <a href="https://a.b">b</a>'
    )
    (tmp_path / "api" / "a.html").write_text('<p id="place"><a href="../index.html">up</a> <a href="#place">here</a>')
    return tmp_path


def test_a_whole_site(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_site.main([str(site)]) == 0
    assert capsys.readouterr().out == "2 pages, every link leads somewhere\n"


@pytest.mark.parametrize(
    ("html", "problem"),
    [
        ('<a href="b.html">b</a>', "new.html: b.html leads nowhere"),
        ('<a href="api/">b</a>', "new.html: api/ leads nowhere"),
        ('<a href="#there">b</a>', "new.html: #there: there is no such place on that page"),
        ('<a href="api/a.html#there">b</a>', "new.html: api/a.html#there: there is no such place on that page"),
        ('<a href="FILE:LINE">b</a>', "new.html: FILE:LINE is not a link"),
        ('<img src="c.png">', "new.html: c.png leads nowhere"),
        ('<script src="//cdn.b/x.js"></script>', "new.html: loads //cdn.b/x.js from elsewhere"),
        ('<link rel="stylesheet" href="https://a.b/x.css">', "new.html: loads https://a.b/x.css from elsewhere"),
    ],
)
def test_a_problem(site: Path, capsys: pytest.CaptureFixture[str], html: str, problem: str) -> None:
    (site / "new.html").write_text(html)
    assert check_site.main([str(site)]) == 1
    assert capsys.readouterr().err == f"{problem}\n"


def test_fonts_from_elsewhere(site: Path) -> None:
    (site / "style.css").write_text("@font-face { src: url('https://fonts.b/f.woff2') }")
    assert check_site.problems(site) == ["style.css: loads https://fonts.b/f.woff2 from elsewhere"]


def test_no_site(tmp_path: Path) -> None:
    assert check_site.problems(tmp_path) == [f"{tmp_path}: no page"]
