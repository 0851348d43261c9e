"""Every strategy is where readers look for it; what is missing is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from packtool.planning.packing import STRATEGIES
from packtool.report.verdict import SIMPLEST_FIRST

ROOT = Path(__file__).parents[3]


def missing(name: str, *, multi_bucket: bool) -> list[str]:
    """List the places that do not know a strategy."""
    readme, page = ((ROOT / path).read_text(encoding="utf-8") for path in ("README.md", "docs/strategies.md"))
    listed = re.search(r"packs\*\* with the strategies(.*?);", readme, re.DOTALL)
    headings = re.findall(r"^## (.*)$", page, re.MULTILINE)
    assert listed is not None
    file = f"tests/planning/packing/test_{name.replace('-', '_')}.py"
    known = {
        'README.md, in the list of "packs with the strategies"': f"`{name}`" in listed[1],
        "docs/strategies.md, as a heading": any(name in heading.split(" and ") for heading in headings),
        "SIMPLEST_FIRST in packtool/report/verdict.py": multi_bucket or name in SIMPLEST_FIRST,
        f"the tests, as {file}": (ROOT / file).exists(),
    }
    return [place for place, knows in known.items() if not knows]


@pytest.mark.parametrize("name", STRATEGIES)
def test_readme_page_and_verdict_know_it(name: str) -> None:
    places = missing(name, multi_bucket=STRATEGIES[name].multi_bucket)
    assert not places, f"{name} is missing from {'; '.join(places)}"


def test_each_place_that_lacks_one_is_named() -> None:
    assert len(missing("apart", multi_bucket=False)) == 4
    assert len(missing("apart", multi_bucket=True)) == 3
