"""zstd frames: how far they are whole, whatever lies between and behind them."""

from __future__ import annotations

import io

import pytest

from packtool.corpus.zstd import Zstd
from tests.corpus.archives import zstd, zstd_checked

SKIPPABLE = b"\x51\x2a\x4d\x18\x05\x00\x00\x00notes"
TEXT = b"a line of text\n" * 5000


def drain(stream: Zstd) -> bytes:
    return b"".join(iter(lambda: stream.read(1000), b""))


def test_frames_of_both_kinds_and_what_is_skipped_between_them() -> None:
    parts = [zstd(TEXT), SKIPPABLE, zstd_checked(TEXT), zstd(b""), SKIPPABLE]
    stream = Zstd(io.BytesIO(b"".join(parts)))
    assert drain(stream) == TEXT * 2
    assert (stream.whole_in, stream.whole_out) == (sum(map(len, parts)), 2 * len(TEXT))


@pytest.mark.parametrize(
    ("tail", "message"),
    [
        (zstd(TEXT)[:-1], "it ends too early"),
        (zstd(TEXT)[:3], "it ends too early"),
        (b"\x28\xb5\x2f\xfd\x04\x58\x07\x00\x00", "a block of an unknown kind"),
        (b"text", "what follows the last frame is not another one"),
        (SKIPPABLE[:-1], "it ends too early"),
    ],
)
def test_the_last_whole_frame_is_known(tail: bytes, message: str) -> None:
    whole = zstd(TEXT)
    stream = Zstd(io.BytesIO(whole + tail))
    with pytest.raises((EOFError, OSError), match=message):
        drain(stream)
    assert (stream.whole_in, stream.whole_out) == (len(whole), len(TEXT))
