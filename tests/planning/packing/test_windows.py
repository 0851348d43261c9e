"""Windows: bounded, whole documents, the same however the lengths arrive; and what is planned in them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.planning.document_loss import DocumentLoss
from packtool.planning.packing import STRATEGIES, PackOptions, plan, windows
from packtool.planning.packing.windows import plan_corpus, plan_window, row_counts, window_ranges
from packtool.planning.plan import offsets_of, ranges
from tests.examples import examples
from tests.planning.packing.tokens import bins_of


@examples(200)
@given(st.data())
def test_windows_are_as_full_as_they_can_be(data):
    lengths = np.array(data.draw(st.lists(st.integers(1, 30), max_size=40)), np.int64)
    limit = data.draw(st.integers(1, 60))
    ends = data.draw(st.lists(st.integers(0, len(lengths)), max_size=3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "_BATCH", data.draw(st.sampled_from([1, 2, 5, 1 << 18])))
        found = window_ranges(lengths, limit, ends)
    assert [first for first, _ in found] == [0, *(last for _, last in found)][:-1]
    assert (found[-1][1] if found else 0) == len(lengths)
    assert {end for end in ends if 0 < end < len(lengths)} <= {first for first, _ in found}
    for first, last in found:
        assert last > first
        assert lengths[first:last].sum() <= limit or last == first + 1
    for (first, last), (_, _) in pairwise(found):
        assert lengths[first : last + 1].sum() > limit or last in ends


@pytest.mark.parametrize("name", [name for name, strategy in STRATEGIES.items() if strategy.windowed])
def test_a_corpus_is_planned_as_its_windows_are(name):
    lengths = np.round(np.random.default_rng(2).lognormal(4, 1.3, 4000)).astype(np.int64) + 1
    given: dict[str, object] = {"buckets": (64, 256)} if name == "buckets" else {"sequence_length": 128}
    if STRATEGIES[name].takes("mix_rows"):
        given["mix_rows"] = True
    options = PackOptions(window_tokens=50_000, **given)
    ranges = window_ranges(lengths, options.window_tokens)
    parts = [(window[0], plan_window(STRATEGIES[name], lengths, options, window)) for window in ranges]
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


@pytest.mark.parametrize("name", [name for name, strategy in STRATEGIES.items() if strategy.takes("mix_rows")])
def test_rows_are_counted_as_they_are_mixed(name):
    """Few documents in random order may take fewer bins. Limits, and what does not train, depend on what bins hold."""
    draws = np.random.default_rng(5)
    corpora = [np.array([7, 2, 2, 3, 2, 6, 7, 2, 4, 3]), *(draws.integers(2, 24, 25) for _ in range(60))]
    for lengths in corpora:
        base = offsets_of(lengths)
        trains = (draws.random(base[-1]) < 0.05).astype(np.uint8)

        def read(pieces, base=base, trains=trains):
            return trains[ranges(base[pieces.document] + pieces.start, pieces.length, offsets_of(pieces.length))]

        for most, loss in [(None, None), (2, None), (None, DocumentLoss(read, [len(lengths)], [True]))]:
            size = {"buckets": (8, 16)} if name == "buckets" else {"sequence_length": 8}
            options = PackOptions(**size, mix_rows=True, max_documents_per_row=most, seed=42)
            expected = [each.rows for each in plan_corpus(STRATEGIES[name], lengths, options, loss=loss)]
            assert row_counts(STRATEGIES[name], lengths, options, loss=loss) == expected
