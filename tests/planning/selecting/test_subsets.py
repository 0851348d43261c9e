"""The first document with each text, however many texts are sorted at a time."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from packtool.planning.selecting.subsets import first_of_each


@given(st.lists(st.integers(0, 20), min_size=1, max_size=80))
def test_the_first_of_each_is_marked(texts: list[int]) -> None:
    hashes = np.array(texts, np.uint64) * np.uint64(0x9E3779B97F4A7C15)  # over all groups of hashes, as hashes are
    wanted = np.array([number for number, text in enumerate(texts) if text != 3], np.int64)
    half = len(texts) // 2
    parts = [wanted[wanted < half], wanted[wanted >= half]]
    for most in (1 << 22, 5):
        marked = first_of_each(lambda: ((hashes[n], n) for n in parts), len(texts), most=most)
        found = [texts[number] for number in np.flatnonzero(marked)]
        assert found == [text for text in dict.fromkeys(texts) if text != 3]
