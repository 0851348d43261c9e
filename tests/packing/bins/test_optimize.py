"""`--optimize`: never worse than the greedy packing, and a bound that holds."""

import json
import sys
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from packtool.cli import run
from packtool.errors import UsageError
from packtool.packing import PackOptions, plan
from packtool.packing.bins.greedy import best_fit
from packtool.packing.bins.optimize import near_optimal
from tests.stores import write_store


def fewest(items: tuple[int, ...], capacity: int) -> int:
    """The fewest bins, by trying everything."""

    @cache
    def search(left: tuple[int, ...], room: int) -> int:
        if not left:
            return 0
        options = [search(left[:i] + left[i + 1 :], room - n) for i, n in enumerate(left) if n <= room]
        # Some bin holds the first item: a new bin begins with it.
        return min([*options, 1 + search(left[1:], capacity - left[0])])

    return search(tuple(sorted(items, reverse=True)), 0)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(2, 20), min_size=1, max_size=7), st.integers(20, 24))
def test_the_bound_holds_and_the_bins_are_no_more_than_best_fit(items, capacity):
    counts = np.bincount(items, minlength=capacity + 1)
    runs, bound = near_optimal(counts, capacity)
    assert bound <= fewest(tuple(items), capacity) <= runs.bins.sum() <= best_fit(counts, capacity).bins.sum()


def test_a_case_on_which_greedy_packing_fails():
    # Best fit puts 6 with 6, where 6 + 4 + 3 fills a bin of 13.
    counts = np.bincount([6, 4, 3] * 1000, minlength=14)
    assert best_fit(counts, 13).bins.sum() > 1080
    runs, bound = near_optimal(counts, 13)
    assert (runs.bins.sum(), bound) == (1000, 1000)


def test_two_to_four_documents_to_a_row():
    # A quarter of the padding that best fit leaves, or less, above a bound that the plan carries.
    rng = np.random.default_rng(0)
    lengths = np.maximum(np.round(rng.lognormal(np.log(88), 0.5, 100_000)), 25).astype(np.uint32)
    rows, least = {}, 0
    for optimize in (False, True):
        (only,) = plan("bfd", lengths, PackOptions(sequence_length=256, optimize=optimize))
        rows[optimize] = only.rows
        least = only.least_rows or 0
    assert 0 <= rows[True] - least <= (rows[False] - least) / 4
    windows = PackOptions(sequence_length=256, optimize=True, window_tokens=6_000_000)
    (joined,) = plan("bfd", lengths, windows)
    assert rows[True] <= joined.rows < rows[False]
    assert joined.least_rows >= least


def test_without_scipy(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(
        UsageError, match=r"--optimize: optimising needs scipy, which is not installed. Install it: .* install scipy"
    ):
        plan("bfd", np.array([3]), PackOptions(sequence_length=8, optimize=True))


def test_pack_says_what_is_proven(tmp_path, capsys):
    store = write_store(tmp_path / "store", [6, 6, 4, 4, 3, 3])
    command = ["pack", str(store), "-o", str(tmp_path / "rows"), "--strategy", "bfd", "--sequence-length", "13"]
    assert run([*command, "--optimize"]) == 0
    assert "Proven: no packing of these pieces has fewer than 2 rows." in capsys.readouterr().out
    assert json.loads((tmp_path / "rows" / "run.json").read_text())["least_rows"] == 2
