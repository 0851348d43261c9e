"""Windows: bounded, whole documents, the same however the lengths arrive; and what is planned in them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from packtool.packing import STRATEGIES, PackOptions, plan, plan_windows
from packtool.packing.plans import windows
from tests.packing.tokens import bins_of


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_windows_do_not_depend_on_blocks(data):
    lengths = np.array(data.draw(st.lists(st.integers(1, 30), max_size=40)), np.int64)
    limit = data.draw(st.integers(1, 60))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(lengths)), max_size=6)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "_BATCH", data.draw(st.sampled_from([1, 2, 5, 1 << 18])))
        found = list(windows.in_windows(np.split(lengths, cuts), limit))
    np.testing.assert_array_equal(np.concatenate([lengths[:0], *found]), lengths)
    assert all(len(window) for window in found)
    assert all(window.sum() <= limit or len(window) == 1 for window in found)
    # As full as they can be.
    assert all(a.sum() + b[0] > limit for a, b in pairwise(found))


@pytest.mark.parametrize("name", [name for name, strategy in STRATEGIES.items() if strategy.windowed])
def test_a_corpus_is_planned_as_its_windows_are(name):
    lengths = np.round(np.random.default_rng(2).lognormal(4, 1.3, 4000)).astype(np.int64) + 1
    given = {"buckets": (64, 256)} if name == "buckets" else {"sequence_length": 128}
    options = PackOptions(window_tokens=50_000, **given)
    parts = list(plan_windows(name, np.array_split(lengths, 7), options))
    assert len(parts) > 5
    for bucket, whole in enumerate(plan(name, lengths, options)):
        rows = [
            [(document + first, start, length) for document, start, length in row]
            for first, plans in parts
            for row in bins_of(plans[bucket])
        ]
        assert sorted(rows) == sorted(bins_of(whole))
        assert whole.dropped == sum(plans[bucket].dropped for _, plans in parts)
        assert whole.eos_omitted == sum(plans[bucket].eos_omitted for _, plans in parts)
