"""A count of what was packed, token by token."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from packtool.report.types import MeasuredReport


def as_json(report: msgspec.Struct) -> dict[str, Any]:
    """A report as its reader in another language sees it."""
    found: dict[str, Any] = json.loads(msgspec.json.encode(report))
    return found


def count_by_hand(path: Path, lengths: NDArray[np.int64], report: MeasuredReport) -> None:
    """Compare a report with a count over the shards as plain arrays, row by row."""
    manifest = json.loads((path / "manifest.json").read_bytes())
    rows = output = padding = text = inserted = 0
    intact: set[int] = set()
    seen: Counter[tuple[int, int]] = Counter()
    per_row = []
    for bucket in manifest["buckets"]:
        for shard in bucket["shards"]:
            base = path / bucket["directory"]
            tokens = np.load(base / shard["tokens"]["name"], mmap_mode="r")
            table = np.load(base / shard["segments"]["name"])
            offsets = np.load(base / shard["segment_offsets"]["name"])
            rows += len(tokens)
            output += tokens.size
            for row, (first, last) in enumerate(itertools.pairwise(offsets)):
                at = 0
                here = set()
                for document, start, length, _ in table[first:last]:
                    piece = tokens[row, at : at + length]
                    at += length
                    if document == -1:
                        padding += len(piece)
                    elif document == -2:
                        inserted += len(piece)
                        assert (piece == 0).all()
                    else:
                        here.add(int(document))
                        end = int(lengths[document]) - 1
                        for i in range(start, start + length):
                            seen[int(document), int(i)] += i < end
                        text += int((piece != 0).sum())
                        if start == 0 and start + length >= end:
                            intact.add(int(document))
                assert at == tokens.shape[1]
                per_row.append(len(here))
    placed = sum(1 for times in seen.values() if times)
    ledger, metrics = report.ledger, report.metrics
    assert (ledger.rows, ledger.output, ledger.padding) == (rows, output, padding)
    assert (ledger.placed, ledger.repeated) == (placed, text - placed)
    assert ledger.eos_inserted == inserted
    assert ledger.dropped == int((lengths - 1).sum()) - placed
    assert metrics.cut_documents == len(lengths) - len(intact)
    assert metrics.documents_per_row.max == max(per_row, default=0)
    assert metrics.documents_per_row.mean == pytest.approx(sum(per_row) / max(1, len(per_row)))
    overlapping = {document for (document, _), times in seen.items() if times > 1}
    assert metrics.overlapping_documents == len(overlapping)
