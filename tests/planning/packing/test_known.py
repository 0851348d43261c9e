"""Every strategy is where readers look for it, and is said to be what it declares; what is missing is named."""

import re
from pathlib import Path

import pytest

from packtool.planning.packing import STRATEGIES

ROOT = Path(__file__).parents[3]
KEEPING = sorted(name for name, strategy in STRATEGIES.items() if strategy.whole and strategy.keeps_eos)
LISTS = [
    # A page, how it lists strategies, and those that belong there by what they declare.
    ("docs/conversations.md", r"packed whole: ([^\n]*) keep whole what fits a row", KEEPING),
    ("docs/strategies.md", r"bin-packing strategies \((.*?)\)", [n for n, s in STRATEGIES.items() if s.windowed]),
]


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def missing(name: str) -> list[str]:
    """List the places that do not know a strategy."""
    page = text_of("docs/strategies.md")
    headings = re.findall(r"^## (.*)$", page, re.MULTILINE)
    rows = re.findall(r"^\| (\[`.*?) \|", page, re.MULTILINE)
    file = f"tests/planning/packing/test_{name.replace('-', '_')}.py"
    known = {
        "docs/strategies.md, as a heading": any(name in heading.split(" and ") for heading in headings),
        "docs/strategies.md, in the table at its beginning": any(f"[`{name}`]" in row for row in rows),
        f"the tests, as {file}": (ROOT / file).exists(),
    }
    return [place for place, knows in known.items() if not knows]


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_page_knows_it(name: str) -> None:
    places = missing(name)
    assert not places, f"{name} is missing from {'; '.join(places)}"


def test_each_place_that_lacks_one_is_named() -> None:
    assert len(missing("apart")) == 3


@pytest.mark.parametrize(("page", "pattern", "names"), LISTS)
def test_pages_list_what_strategies_declare(page: str, pattern: str, names: list[str]) -> None:
    found = re.search(pattern, text_of(page), re.DOTALL)
    assert found is not None, f"{page} has no {pattern}"
    listed = re.findall(r"`([a-z-]+)`", found[1])
    assert sorted(listed) == sorted(names), f"{page}: {found[0]}"


def test_the_rule_of_the_verdict_is_the_order_of_the_registry() -> None:
    """Of strategies whose figures are alike, docs/choosing.md names the order; `concat` is the one that cuts."""
    found = re.search(r"then the simpler strategy: (.*?)\.", text_of("docs/choosing.md"), re.DOTALL)
    recommended = {name: STRATEGIES[name].recommended for name in [*KEEPING, "concat"] if STRATEGIES[name].recommended}
    assert re.findall(r"`([a-z-]+)`", found[1]) == sorted(recommended, key=recommended.__getitem__)
