"""Random damage to arrays, tokenizers, configurations and options."""

import pytest

from tests.faults.fuzz import KINDS
from tests.shell import fuzzed


@pytest.mark.parametrize(("cases", "seed"), [(40, 0), pytest.param(5000, 1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_ends_in_a_traceback(kind: str, cases: int, seed: int) -> None:
    counts = fuzzed("tests.faults.fuzz", kind, cases, seed)
    assert sum(counts.values()) == cases + counts["peak_mib"]
