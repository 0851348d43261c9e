"""Lines of a range of a file: every line once, whatever the range and the chunk, and none above the limit is held."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from packtool.corpus import lines
from packtool.corpus.lines import line_chunks
from packtool.corpus.text import read_lines


@given(
    st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=30),
    st.booleans(),
    st.lists(st.integers(0, 400), max_size=5),
    st.integers(1, 50),
)
def test_ranges_cover_every_line_once(parts: list[bytes], ended: bool, cuts: list[int], chunk: int) -> None:
    data = b"\n".join(parts) + (b"\n" if ended else b"")
    bounds = sorted({0, *(cut for cut in cuts if cut < len(data))})
    before, lines.CHUNK = lines.CHUNK, chunk
    try:
        read = [
            bytes(piece)
            for start, stop in zip(bounds, [*bounds[1:], -1], strict=True)
            for piece in line_chunks(io.BytesIO(data), start, stop)
        ]
    finally:
        lines.CHUNK = before
    assert b"".join(read) == data
    assert all(piece.endswith(b"\n") for piece in read[:-1])


@given(st.lists(st.integers(0, 60), max_size=30), st.integers(1, 40), st.integers(1, 20), st.lists(st.integers(0, 900)))
def test_lines_above_the_limit_are_rejected_and_not_held(
    lengths: list[int], limit: int, chunk: int, cuts: list[int]
) -> None:
    data = b"".join(b"%c" % (97 + n % 26) * n + b"\n" for n, length in enumerate(lengths) for n in [length])
    bounds = sorted({0, *(cut for cut in cuts if cut < len(data))})
    before, lines.CHUNK = lines.CHUNK, chunk
    try:
        kept: list[str] = []
        sizes: list[int] = []
        for start, stop in zip(bounds, [*bounds[1:], -1], strict=True):
            for piece in line_chunks(io.BytesIO(data), start, stop, limit):
                assert isinstance(piece, lines.LongLine) or len(piece) <= limit + 2 + 2 * chunk
            for batch in read_lines(io.BytesIO(data), start, stop, limit):
                kept += [str(text) for text in batch.documents]
                sizes += [batch.records]
                assert all(reject.code == "record-too-large" for reject in batch.rejects)
                assert len(batch.documents) + len(batch.rejects) <= batch.records
    finally:
        lines.CHUNK = before
    assert kept == [line for line in data.decode().split("\n") if 0 < len(line) <= limit]
    assert sum(sizes) == len(lengths)
