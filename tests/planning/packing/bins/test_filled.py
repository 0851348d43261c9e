"""Documents cut one by one, whatever the batch."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from packtool.planning.packing.bins import filled as module
from packtool.planning.packing.bins.filled import cut_documents


@given(st.lists(st.integers(1, 40), max_size=40), st.integers(2, 12), st.integers(1, 50))
def test_rows_and_tails_of_each_document(lengths, size, batch):
    before, module._BATCH = module._BATCH, batch
    try:
        found = cut_documents(np.array(lengths, np.int64), size)
    finally:
        module._BATCH = before
    tails = [length % size for length in lengths]
    packed = [0 if tail == 1 else tail for tail in tails]
    assert found.long.tolist() == [n for n, length in enumerate(lengths) if length >= size]
    assert found.rows.tolist() == [length // size for length in lengths if length >= size]
    assert found.shortfall.tolist() == [size - tail for tail in packed]
    assert found.counts.tolist() == [0, *(packed.count(tail) for tail in range(1, size))]
    assert found.eos_alone == tails.count(1)
    assert found.whole_rows == sum(length // size for length in lengths)
