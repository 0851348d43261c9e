"""Estimate how many documents and tokens files of other tools hold, from their beginnings, for `--dry-run`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from packtool.exchange.documents import Counts, documents
from packtool.exchange.model import Format, Found, ReadOptions

SAMPLES = 16
"""Files that are looked into, equally far apart."""
SAMPLE_TOKENS = 1 << 20
"""Ids of a file that are read, at least, where it has so many."""


def estimate(
    files: Sequence[Path], chosen: Format, options: ReadOptions, eos_id: int, vocab_size: int
) -> tuple[int, int]:
    """Estimate documents and tokens of the store that an import would make; exact for short files.

    Raises:
        DataError: what was looked at is damaged, or not of this format.
    """
    sampled = files[:: max(1, -(-len(files) // SAMPLES))]
    counted = [_counted(file, chosen, options, eos_id, vocab_size) for file in sampled]
    scale = sum(file.stat().st_size for file in files) / max(sum(file.stat().st_size for file in sampled), 1)
    if len(sampled) == len(files):
        scale = 1.0
    return round(scale * sum(each for each, _ in counted)), round(scale * sum(each for _, each in counted))


def _counted(file: Path, chosen: Format, options: ReadOptions, eos_id: int, vocab_size: int) -> tuple[float, float]:
    assert chosen.read is not None
    share = 1.0

    def read(parts: Iterator[Found]) -> Iterator[Found]:
        nonlocal share
        tokens = 0
        for each in parts:
            yield each
            tokens += len(each.tokens)
            if tokens >= SAMPLE_TOKENS:
                share = max(each.share, 1e-12)
                return

    counts = Counts()
    for _ in documents(read(chosen.read(file, options)), eos_id, vocab_size, counts, str(file)):
        pass
    return counts.documents / share, counts.tokens / share
