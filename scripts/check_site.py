"""Check a built documentation site: every link leads somewhere, and nothing is fetched from elsewhere.

python scripts/check_site.py build/site
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The places of a page that links can lead to, its links, and what a browser loads with it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif "src" in given or (tag == "link" and given.get("rel") not in ("canonical", "author")):
            self.loads.append(given.get("src") or given.get("href", ""))


def problems(site: Path) -> list[str]:
    """What is wrong with a site, a line each."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = [] if pages else [f"{site}: no page"]
    for path, page in pages.items():
        name = path.relative_to(site)
        for target in page.loads:
            if urlsplit(target).netloc:
                found.append(f"{name}: loads {target} from elsewhere")
        for target in [*page.links, *page.loads]:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                if parts.scheme not in ("", "http", "https", "mailto", "data"):
                    found.append(f"{name}: {target} is not a link")
                continue
            file = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not file.is_file():
                found.append(f"{name}: {target} leads nowhere")
            elif parts.fragment and file in pages and unquote(parts.fragment) not in pages[file].places:
                found.append(f"{name}: {target}: there is no such place on that page")
    for path in sorted(site.rglob("*.css")):
        elsewhere = re.findall(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')]+)", path.read_text(encoding="utf-8"))
        found += [f"{path.relative_to(site)}: loads {target} from elsewhere" for target in elsewhere]
    return found


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        raise SystemExit("usage: check_site.py SITE")
    site = Path(arguments[0]).resolve()
    found = problems(site)
    for line in found:
        sys.stderr.write(f"{line}\n")
    if not found:
        sys.stdout.write(f"{len(list(site.rglob('*.html')))} pages, every link leads somewhere\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
