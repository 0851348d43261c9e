"""`--mix-rows`: the laws of mixed rows, over every strategy that takes the option."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from packtool.packing import STRATEGIES, PackOptions, plan, plan_windows
from packtool.plan import Segments
from tests.test_laws import corpora, options_of

MIXING = [name for name, strategy in STRATEGIES.items() if "mix_rows" in strategy.accepts]


def segments_of(rows: Segments) -> list[tuple[int, int, int, int]]:
    columns = (rows.document, rows.start, rows.length, rows.repeated)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def test_the_strategies_of_bins_mix_and_two_do_unasked():
    assert MIXING == ["ffd", "bfd", "bfd-extra", "seamless", "buckets"]
    assert [name for name in MIXING if STRATEGIES[name].mixes] == ["ffd", "bfd"]


@pytest.mark.parametrize("name", MIXING)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_only_places_change(name, data):
    size = data.draw(st.sampled_from([8, 16, 33]), label="size")
    lengths = data.draw(corpora(size), label="lengths")
    options = replace(options_of(name, size, data), optimize=False)
    plain, mixed, again, other = (
        plan(name, lengths, replace(options, **change))
        for change in (
            {"mix_rows": False},
            {"mix_rows": True, "seed": 3},
            {"mix_rows": True, "seed": 3},
            {"mix_rows": True, "seed": 4},
        )
    )
    for before, after, same, differs in zip(plain, mixed, again, other, strict=True):
        units = np.arange(before.units)
        old = before.segments(units)
        for one in (after, differs):
            new = one.segments(units)
            assert segments_of(new) == segments_of(old)
            np.testing.assert_array_equal(new.tokens(), old.tokens())
            for figure in ("rows", "dropped", "eos_omitted", "eos_inserted", "least_rows"):
                assert getattr(one, figure) == getattr(before, figure)
        np.testing.assert_array_equal(after.segments(units).document, same.segments(units).document)


@pytest.mark.parametrize("name", MIXING)
def test_a_window_is_mixed_on_its_own(name):
    lengths = np.round(np.random.default_rng(2).lognormal(4, 1.3, 3000)).astype(np.int64) + 1
    given = {"buckets": (64, 256)} if name == "buckets" else {"sequence_length": 128}
    options = PackOptions(window_tokens=50_000, mix_rows=True, **given)

    def windows(lengths: np.ndarray) -> list[list[list[int]]]:
        parts = plan_windows(name, [lengths], options)
        return [[only.segments(np.arange(only.rows)).document.tolist() for only in plans] for _, plans in parts]

    first = windows(lengths)
    assert len(first) > 3
    # What changes in the last window leaves the others as they are.
    assert windows(np.append(lengths, 9))[: len(first) - 1] == first[:-1]
