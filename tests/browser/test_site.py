"""The documentation site, as `make docs` built it, in a real browser: what a reader looks for is found."""

import functools
import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.browser import open_page

pytestmark = pytest.mark.browser
SITE = Path(__file__).parents[2] / "build" / "site"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    assert (SITE / "index.html").exists(), "build it: make docs"
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=SITE)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize(
    ("words", "page"),
    [("mixed rows", "strategies.html"), ("segment_offsets", "format.html"), ("packtool.pack", "api/commands.html")],
)
def test_search(tmp_path: Path, address: str, words: str, page: str) -> None:
    address += f"/search.html?q={words.replace(' ', '+')}"
    printed, console = open_page(tmp_path, address, "--virtual-time-budget=10000", "--dump-dom")
    assert console == []
    assert page in re.findall(r'<li[^>]*><a href="([^"#?]+)', printed)


def test_search_finds_nothing(tmp_path: Path, address: str) -> None:
    printed, _ = open_page(tmp_path, f"{address}/search.html?q=xyzzyq", "--virtual-time-budget=10000", "--dump-dom")
    assert "did not match any documents" in printed


@pytest.mark.parametrize("page", ["index.html", "cli.html", "api/commands.html"])
def test_pages(tmp_path: Path, address: str, page: str) -> None:
    printed, console = open_page(tmp_path, f"{address}/{page}", "--virtual-time-budget=5000", "--dump-dom")
    assert console == []
    assert "<h1>" in printed
