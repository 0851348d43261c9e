"""First-fit and best-fit decreasing on histograms fill the bins that they fill item by item."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given

from packtool.planning.packing.bins.greedy import best_fit, first_fit
from packtool.planning.packing.bins.runs import Runs
from tests.examples import examples
from tests.planning.packing import oracles
from tests.planning.packing.cases import cases


def listed(runs: Runs) -> list[list[tuple[int, int]]]:
    """Each bin's items: the length, and the item's number among those of its length."""
    bins = []
    for run, number in enumerate(runs.bins.tolist()):
        entries = range(runs.offsets[run], runs.offsets[run + 1])
        for place in range(number):
            bins.append(
                [
                    (int(runs.length[e]), int(runs.first[e] + place * runs.count[e] + i))
                    for e in entries
                    for i in range(runs.count[e])
                ]
            )
    return bins


def numbered(bins: list[list[oracles.Piece]]) -> list[list[tuple[int, int]]]:
    """The same of the oracle's bins, whose items of one length are in the order of their documents."""
    seen: Counter[int] = Counter()
    number = {}
    for document, _, length in sorted(item for items in bins for item in items):
        number[document] = seen[length]
        seen[length] += 1
    return [[(length, number[document]) for document, _, length in items] for items in bins]


@pytest.mark.parametrize("algorithm", [first_fit, best_fit])
@examples(150)
@given(cases())
def test_bins_are_those_of_item_by_item(algorithm, case):
    size, lengths = case
    items = [(document, 0, 1 + (length - 1) % size) for document, length in enumerate(lengths)]
    counts = np.bincount([length for _, _, length in items], minlength=size + 1)
    naive = oracles.first_fit if algorithm is first_fit else oracles.best_fit
    assert listed(algorithm(counts, size)) == numbered(naive(items, size))


@pytest.mark.parametrize("algorithm", [first_fit, best_fit])
def test_no_items_no_bins_and_length_0_does_not_count(algorithm):
    assert listed(algorithm(np.zeros(9, np.int64), 8)) == []
    assert listed(algorithm(np.array([7, 0, 0]), 8)) == []
