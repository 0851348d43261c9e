"""Rows whose documents begin at multiples, as Megatron-Bridge's reader takes them."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import packtool
from packtool.errors import UsageError
from packtool.options.names import EXPORTS
from tests.stores import document_loss, write_store

LENGTHS = np.random.default_rng(6).integers(2, 90, 40).tolist()


def read(row: dict[str, list[int]]) -> tuple[list[int], list[int], list[int]]:
    """The tokens, mask and boundaries that its collator makes of a row: each piece loses its last token."""
    bounds = [*row["seq_start_id"], len(row["input_ids"])]
    tokens, mask, cu_seqlens = [], [], [0]
    for begin, end in pairwise(bounds):
        tokens += row["input_ids"][begin : end - 1]
        mask += row["loss_mask"][begin : end - 1]
        cu_seqlens.append(cu_seqlens[-1] + end - begin - 1)
    return tokens, mask, cu_seqlens


@pytest.mark.parametrize("strategy", ["bfd", "padding"])
@pytest.mark.parametrize("masked", [False, True])
def test_the_reader_gets_the_row_as_it_was_packed(tmp_path: Path, strategy: str, masked: bool) -> None:
    store = write_store(tmp_path / "store", LENGTHS, **({"loss": document_loss} if masked else {}))
    packtool.pack(store, tmp_path / "rows", strategy=strategy, sequence_length=64, document_multiple=8)
    packtool.export(tmp_path / "rows", tmp_path / "out", format="megatron-bridge")
    (file,) = (tmp_path / "out").glob("*.idx.parquet")
    rows, dataset = pq.read_table(file).to_pylist(), packtool.open(tmp_path / "rows")
    assert len(rows) == len(dataset)
    for number, row in enumerate(rows):
        batch = dataset.batch([number], train_across_documents=False)
        tokens, mask, cu_seqlens = read(row)
        assert tokens == dataset[number].tolist()
        assert cu_seqlens == batch["cu_seqlens_padded"].tolist()
        assert row["seq_lengths"] == np.diff(batch["cu_seqlens"]).tolist()
        assert mask == (batch["labels"][0] != -100).astype(int).tolist()


@pytest.mark.parametrize("name", [name for name in EXPORTS if name != "megatron-bridge"])
def test_other_formats_are_refused(tmp_path: Path, name: str) -> None:
    store = write_store(tmp_path / "store", LENGTHS[:5])
    packtool.pack(store, tmp_path / "rows", strategy="bfd", sequence_length=64, document_multiple=8)
    message = f"--format: {name} has no place for padding between documents, which begin at multiples here. Choose "
    with pytest.raises(UsageError, match=re.escape(message + "megatron-bridge, or pack without --document-multiple.")):
        packtool.export(tmp_path / "rows", tmp_path / "out", format=name)
    assert not (tmp_path / "out").exists()
