"""Archives of several members, whole and damaged."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from packtool.text.corpus.decompress import DecompressedStream, open_stream, sniff
from packtool.text.corpus.file_bytes import open_raw
from packtool.text.faults import Fault
from tests.text.corpus.archives import COMPRESS, zstd, zstd_checked
from tests.text.corpus.reading import LINES

SKIPPABLE = b"\x51\x2a\x4d\x18\x05\x00\x00\x00notes"
TEXT = b"a line of text\n" * 5000


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
        with pytest.raises(Fault, match=f"damaged {kind} stream"):
            drain(path, kind)


def test_frames_of_zstd_and_what_is_skipped_between_them() -> None:
    parts = [zstd(TEXT), SKIPPABLE, zstd_checked(TEXT), zstd(b""), SKIPPABLE]
    stream = DecompressedStream(io.BytesIO(b"".join(parts)), "zstd")
    assert b"".join(iter(lambda: stream.read(1000), b"")) == TEXT * 2


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        (zstd(TEXT)[:-1], "it ends too early"),
        (zstd(TEXT)[:3], "it ends too early"),
        (b"\x28\xb5\x2f\xfd\x04\x58\x07\x00\x00", "Data corruption detected"),
        (b"text", "Unknown frame descriptor"),
        (SKIPPABLE[:-1], "it ends too early"),
    ],
)
def test_what_zstd_finds_wrong_is_said(tail: bytes, message: str) -> None:
    whole = zstd(TEXT)
    stream = DecompressedStream(io.BytesIO(whole + tail), "zstd")
    with pytest.raises(Fault, match=message):
        b"".join(iter(lambda: stream.read(1000), b""))


@pytest.mark.parametrize("kind", COMPRESS)
def test_what_a_decompressor_is_ahead_does_not_count_as_read(kind: str) -> None:
    text = b"".join(b"%d: the end of it all\n" % number for number in range(300_000))
    packed = COMPRESS[kind](text)
    stream = DecompressedStream(io.BytesIO(packed), kind)
    stream.read(len(text) // 2)
    assert 0.35 < stream.consumed / len(packed) < 0.8
    while stream.read(1 << 16):
        pass
    assert stream.consumed == len(packed)
