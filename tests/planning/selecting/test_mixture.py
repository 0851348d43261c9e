"""The law of mixtures: nearest to what was asked. `tests/choosing/test_recount.py` says which documents these are."""

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from packtool.planning.selecting.mixture import passes

LENGTHS = st.lists(st.integers(1, 50), min_size=1, max_size=60).map(np.array)


EPOCHS = st.fractions(0, 4, max_denominator=100)


@given(LENGTHS, EPOCHS, st.integers(0, 5), st.data())
def test_a_mixture_is_within_a_document_of_what_is_asked(
    lengths: Any, epochs: Fraction, seed: int, data: st.DataObject
) -> None:
    kept = np.array(data.draw(st.lists(st.sampled_from(range(len(lengths))), unique=True, min_size=1)))
    kept.sort()
    mask = np.zeros(len(lengths), np.bool_)
    mask[kept] = True
    chosen = passes(lengths, mask, epochs, seed).documents()
    wanted = epochs * int(lengths[kept].sum())
    assert abs(int(lengths[chosen].sum()) - wanted) <= Fraction(int(lengths[kept].max()), 2)
    times = np.bincount(chosen, minlength=len(lengths))
    assert set(times[kept]) <= {int(epochs // 1), int(epochs // 1) + 1}
    assert not times[np.setdiff1d(np.arange(len(lengths)), kept)].any()
    whole = len(kept) * int(epochs // 1)
    assert (chosen[:whole] == np.tile(kept, int(epochs // 1))).all()
    assert (np.diff(chosen[whole:]) > 0).all()
