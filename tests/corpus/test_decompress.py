"""Archives of several members, whole and damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from packtool.corpus.open import open_raw, open_stream, sniff
from packtool.corpus.records import UnusableFileError
from tests.corpus.archives import COMPRESS

LINES = b"".join(b'{"text": "document %d"}\n' % n for n in range(20_000))


def drain(path: Path, kind: str) -> bytes:
    stream = open_stream(open_raw(str(path)), kind)
    try:
        parts = []
        while part := stream.read(1 << 16):
            parts.append(part)
        return b"".join(parts)
    finally:
        stream.close()


@pytest.mark.parametrize("kind", COMPRESS)
def test_streams_of_several_members_and_damaged_ones(tmp_path: Path, kind: str) -> None:
    whole = COMPRESS[kind](LINES)
    assert sniff(whole[:16]) == kind
    path = tmp_path / "x"
    path.write_bytes(whole + whole)
    assert drain(path, kind) == LINES * 2
    for damaged in (whole[:-3], whole[: len(whole) // 2], whole + whole[:20], whole + b"garbage"):
        path.write_bytes(damaged)
        with pytest.raises(UnusableFileError, match=f"damaged {kind} stream"):
            drain(path, kind)
