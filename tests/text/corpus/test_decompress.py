"""Archives of several members, whole and damaged."""

import bz2
import gzip
import io
import lzma
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from packtool.errors import DataError
from packtool.exchange.formats.samples import unpacked
from packtool.text.corpus.decompress import DecompressedStream, open_stream, read_whole, sniff
from packtool.text.faults import Fault
from tests.text.corpus.archives import zstd, zstd_checked
from tests.text.corpus.reading import salvage

SKIPPABLE = b"\x51\x2a\x4d\x18\x05\x00\x00\x00notes"
TEXT = b"a line of text\n" * 5000


def test_frames_of_zstd_and_what_is_skipped_between_them() -> None:
    parts = [zstd(TEXT), SKIPPABLE, zstd_checked(TEXT), zstd(b""), SKIPPABLE]
    stream = DecompressedStream(io.BytesIO(b"".join(parts)), "zstd")
    assert b"".join(iter(lambda: stream.read(1000), b"")) == TEXT * 2
    assert stream.consumed == sum(map(len, parts))


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


CHECKED = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstd_checked}
KINDS = {"gz": "gzip", "bz2": "bz2", "xz": "xz", "zst": "zstd"}
LENGTHS = [0, 1, *(times * step + more for step in (1 << 15, 1 << 16) for times in (1, 2, 3) for more in (-1, 0, 1))]


def flipped(whole: bytes) -> Iterator[bytes]:
    """A stream with a flipped bit near its end, or in the middle."""
    for at in (*range(-8, 0), len(whole) // 2):
        out = bytearray(whole)
        out[at] ^= 128 >> at % 8
        if sniff(out[:16]):
            yield bytes(out)


def cut(whole: bytes) -> Iterator[bytes]:
    """A stream that is cut, or has more behind it."""
    yield from (whole[:-size] for size in (1, 4, 8))
    yield whole + b"garbage"
    yield whole + whole[:12]


def read_or_refused(data: bytes, suffix: str, length: int, path: Path) -> set[bytes | None]:
    """What readers make of a stream of so many bytes; None for an error."""
    found: set[bytes | None] = set()
    try:
        found.add(read_whole(open_stream(io.BytesIO(data), KINDS[suffix]), length))
    except Fault:
        found.add(None)
    if suffix != "xz":
        path.write_bytes(data)
        try:
            found.add(unpacked(path, {"zst": "zstd"}.get(suffix, suffix), length).read())
        except DataError:
            found.add(None)
    return found


@pytest.mark.parametrize("suffix", CHECKED)
def test_a_stream_is_read_to_its_very_end(suffix: str, tmp_path: Path) -> None:
    """Whatever of it is read last, and whoever reads it: with the end of a member in a read of its own, too."""
    path = tmp_path / f"a.{suffix}"
    for length in LENGTHS:
        text = (b"ab c" * (length // 4 + 1))[:length]
        whole = CHECKED[suffix](text)
        assert read_or_refused(whole, suffix, length, path) == {text}
        assert length == 0 or read_or_refused(whole, suffix, length - 1, path) == {None}
        for damaged in flipped(whole):
            # Some bits of a header mean nothing, and the last byte of bz2 is padded.
            assert read_or_refused(damaged, suffix, length, path) <= {None, text}, (length, damaged)
        for damaged in cut(whole):
            assert read_or_refused(damaged, suffix, length, path) == {None}, (length, damaged)
    crc = bytearray(CHECKED[suffix](b"x" * (1 << 16)))
    crc[-6 if suffix != "zst" else -3] ^= 1
    assert read_or_refused(bytes(crc), suffix, 1 << 16, path) == {None}


@pytest.mark.parametrize("kind", ["br", "snappy"])
def test_so_it_is_where_arrow_decompresses(kind: str, tmp_path: Path) -> None:
    path, text = tmp_path / "a", b"some text " * 7000
    whole = pa.compress(text, codec={"br": "brotli"}.get(kind, kind), asbytes=True)
    path.write_bytes(whole)
    assert unpacked(path, kind, len(text)).read() == text
    for damaged in (whole[:-1], whole[: len(whole) // 2], whole + b"garbage", whole + whole):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"damaged|another size"):
            unpacked(path, kind, len(text))


@pytest.mark.parametrize("suffix", CHECKED)
@pytest.mark.parametrize("format", ["txt", "jsonl", "json", "csv"])
def test_no_reader_of_a_corpus_stops_before_the_end(suffix: str, format: str, tmp_path: Path) -> None:
    for length in (1 << 15, 1 << 16, (1 << 16) + 1):
        lines = {"jsonl": b'{"text": "%s"}\n', "json": b'[{"text": "%s"}]', "csv": b"text\n%s\n"}.get(format, b"%s\n")
        whole = CHECKED[suffix](lines % (b"x" * (length - len(lines) + 2)))
        path = tmp_path / f"a.{format}.{suffix}"
        path.write_bytes(whole)
        assert salvage(path)[1] == []
        for damaged in (whole[:-4], whole + b"garbage", whole[:-1] + bytes([whole[-1] ^ 128])):
            path.write_bytes(damaged)
            texts, [found], _ = salvage(path)
            assert (found.record, found.fault.code) == (0, "damaged-file"), (length, found)
            assert re.fullmatch(
                f"damaged {KINDS[suffix]} stream: .*; what follows is lost .read as .*", found.fault.what
            )
            assert format != "txt" or not texts, "a file that is one document is whole, or none"
