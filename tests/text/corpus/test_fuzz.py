"""Random inputs against an independent parse: a short form, and the long one (see fuzz.py)."""

import pytest

from tests.shell import fuzzed
from tests.text.corpus.reading import WRITERS


def fuzz(kind: str, cases: int, seed: int) -> dict[str, int]:
    counts = fuzzed("tests.text.corpus.fuzz", kind, cases, seed)
    assert counts[kind] == cases
    assert set(counts) <= {kind, "exit 0", "exit 1", "exit 2", "peak_mib"}
    return counts


@pytest.mark.parametrize("kind", ["jsonl", "archive", "parquet"])
def test_random_inputs(kind: str) -> None:
    assert fuzz(kind, 150, 0)["exit 1"] > 0


@pytest.mark.parametrize("cases", [60, pytest.param(6000, marks=pytest.mark.slow)])
def test_a_look_costs_no_command(cases: int) -> None:
    counts = fuzzed("tests.text.corpus.fuzz", "looks", cases, 0)
    assert set(counts) <= {"exit 0", "exit 1", "exit 2"}
    assert sum(counts.values()) == cases * len(WRITERS) + 114


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "cases"), [("jsonl", 70_000), ("archive", 15_000), ("parquet", 15_000)])
def test_a_hundred_thousand_random_inputs(kind: str, cases: int) -> None:
    counts = fuzz(kind, cases, 1)
    assert counts["exit 0"] > 0
    assert counts["exit 1"] > 0
