import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.planning.metrics import mixing
from packtool.planning.metrics.mixing import PairDistanceCounter
from packtool.planning.plan import PADDING, Segments
from tests.segments import segments


def rows_of(pieces: list[list[tuple[int, int]]]) -> Segments:
    """Rows of pieces of a token each: (document, start)."""
    return segments([[(document, start, 1, 0) for document, start in row] for row in pieces])


def whole(rows: list[list[int]]) -> Segments:
    """Rows of documents that begin in them."""
    return rows_of([[(document, 0) for document in row] for row in rows])


@given(st.data(), st.integers(1, 4), st.integers(1, 9))
def test_counts(data: st.DataObject, batch: int, cut: int) -> None:
    stores = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    total = sum(stores)
    # A document begins once, in any row; other rows hold more of it, or padding and inserted EOS.
    more = st.tuples(st.integers(0, total - 1), st.integers(1, 9)) | st.tuples(st.integers(-2, -1), st.just(0))
    rows = data.draw(st.lists(st.lists(more, max_size=4), min_size=1, max_size=12))
    first = {d: data.draw(st.integers(0, len(rows) - 1)) for d in data.draw(st.sets(st.integers(0, total - 1)))}
    for document, row in first.items():
        rows[row].insert(data.draw(st.integers(0, len(rows[row]))), (document, 0))
    counter = PairDistanceCounter(stores, 8, batch)
    counter.add(rows_of(rows[: cut * batch]))
    if rows[cut * batch :]:
        counter.add(rows_of(rows[cut * batch :]))
    found = counter.result()

    pairs = [(first[d], first[d + 1]) for d in first if d + 1 in first]
    assert found.pairs == len(pairs)
    if pairs:
        assert found.same_row == sum(a == b for a, b in pairs) / len(pairs)
        assert found.same_batch == sum(a // batch == b // batch for a, b in pairs) / len(pairs)
    apart = sorted(abs(a - b) for a, b in pairs if a != b)
    if apart:
        assert found.mean_distance == sum(apart) / len(apart)
        assert found.median_distance == apart[(len(apart) - 1) // 2]
    assert found.expected_distance == ((len(rows) + 1) / 3 if len(rows) > 1 else 0)
    batches = [rows[i : i + batch] for i in range(0, len(rows), batch)]
    if len(rows) >= batch:
        batches = [b for b in batches if len(b) == batch]
    source = np.repeat(np.arange(len(stores)), stores)
    distinct = [{d for row in b for d, _ in row if d >= 0} for b in batches]
    assert found.documents.max == max(map(len, distinct), default=0)
    assert found.documents.min == min(map(len, distinct), default=0)
    kinds = [len({int(source[d]) for d in held}) for held in distinct]
    assert found.sources.mean == (sum(kinds) / len(kinds) if kinds else 0)


def test_follows_a_sample_of_a_large_corpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixing, "_PAIRS", 10)
    order = np.random.default_rng(3).permutation(1000)
    counter = PairDistanceCounter([400, 600], 8, 10)
    counter.add(whole([[int(d)] for d in order]))
    found = counter.result()
    place = np.argsort(order)
    distances = [abs(place[d] - place[d + 1]) for d in range(0, 1000, 100)]
    assert found.pairs == 10
    assert found.mean_distance == np.mean(distances)


def test_rows_of_padding_alone_and_rows_after_a_part_batch() -> None:
    counter = PairDistanceCounter([3], 8, 4)
    counter.add(rows_of([[(PADDING, 0)]]))
    assert counter.result().documents.max == 0
    with pytest.raises(ValueError, match="fall short"):
        counter.add(whole([[0]]))
