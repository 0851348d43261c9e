"""`best-fit-in-order`: the bins of its definition, item by item; a worked example."""

from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.planning.packing import oracles
from tests.planning.packing.cases import cases
from tests.planning.packing.tokens import bins_of, one, render


def by_definition(chunks: list[oracles.Piece], size: int, most: int) -> list[list[oracles.Piece]]:
    """Each chunk in the fullest open bin with room, else in a new one, for which the fullest of `most` is closed."""
    bins: list[list[oracles.Piece]] = []
    rooms: dict[int, int] = {}  # of open bins, by their number
    for chunk in chunks:
        fitting = [number for number, room in rooms.items() if room >= chunk[2]]
        if fitting:
            number = min(fitting, key=lambda each: (rooms[each], each))
        else:
            if len(rooms) == most:
                del rooms[min(rooms, key=lambda each: (rooms[each], each))]
            number = len(bins)
            bins.append([])
            rooms[number] = size
        bins[number].append(chunk)
        rooms[number] -= chunk[2]
        if rooms[number] == 0:
            del rooms[number]
    return bins


@examples(200)
@given(cases(), st.integers(1, 9))
def test_item_by_item(case, most):
    size, lengths = case
    chunks = oracles.chunks(lengths, size)
    whole = [[chunk] for chunk in chunks if chunk[2] == size]
    bins = by_definition([chunk for chunk in chunks if chunk[2] < size], size, most)
    assert bins_of(one("best-fit-in-order", lengths, sequence_length=size, open_rows=most)) == whole + bins


def test_by_hand():
    lengths = [5, 6, 3, 2, 9]
    only = one("best-fit-in-order", lengths, sequence_length=8)
    assert render(only, lengths) == [
        "e0 e1 e2 e3 e4 e5 e6 e7",
        "a0 a1 a2 a3 aE c0 c1 cE",
        "b0 b1 b2 b3 b4 bE d0 dE",
    ]
    assert only.eos_omitted == 1
