"""Rows whose documents begin at multiples, as Megatron-Bridge's reader takes them."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import UsageError
from packtool.options.names import EXPORTS
from tests.exchange.tables import rows_of
from tests.making import Make, drawn_lengths
from tests.stores import document_loss

LENGTHS = drawn_lengths(40, 89, 6)


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
def test_the_reader_gets_the_row_as_it_was_packed(make: Make, tmp_path: Path, strategy: str, masked: bool) -> None:
    options = {"strategy": strategy, "sequence_length": 64, "document_multiple": 8}
    packed = make(LENGTHS, {"loss": document_loss if masked else None}, rows=options) / "rows"
    packtool.export(packed, tmp_path / "out", format="megatron-bridge")
    rows, dataset = rows_of(tmp_path / "out"), packtool.open(packed)
    assert len(rows) == len(dataset)
    for number, row in enumerate(rows):
        batch = dataset.batch([number], train_across_documents=False)
        tokens, mask, cu_seqlens = read(row)
        assert tokens == dataset[number].tolist()
        assert cu_seqlens == batch["cu_seqlens_padded"].tolist()
        assert row["seq_lengths"] == np.diff(batch["cu_seqlens"]).tolist()
        assert mask == (batch["labels"][0] != -100).astype(int).tolist()


@pytest.mark.parametrize(
    "options",
    [
        {"strategy": "bfd", "document_multiple": 8},
        {"strategy": "padding", "document_multiple": 8},
        {"strategy": "bfd"},
        {"strategy": "padding"},
        {"strategy": "concat", "segments": False, "remainder": "drop"},
        None,
    ],
)
def test_its_metadata_is_of_what_the_reader_leaves(make: Make, tmp_path: Path, options: dict[str, Any] | None) -> None:
    """For `pad_cu_seqlens`: pieces in a row, the longest of them, and the fewest tokens of a row; of documents, too."""
    if options is None:
        source = make(LENGTHS, {"per_shard": 15}) / "store"
    else:
        source = make(LENGTHS, rows={**options, "sequence_length": 64, "shard_tokens": 256}) / "rows"
    packtool.export(source, tmp_path / "out", format="megatron-bridge")
    (about,) = json.loads((tmp_path / "out" / "packed_metadata.jsonl").read_bytes())
    rows = rows_of(tmp_path / "out")
    ends = [read(row)[2] for row in rows]
    assert about["max_samples_per_bin"] == max(len(each) - 1 for each in ends)
    assert about["dataset_max_seqlen"] == max(int(np.diff(each).max()) for each in ends)
    assert about["min_packed_seqlen"] == min(each[-1] for each in ends)
    assert about["pack_size"] == (64 if options else about["dataset_max_seqlen"])
    assert about["packing_factor"] == round(sum(len(each) - 1 for each in ends) / len(rows), 2)
    whole = 100 * sum(each[-1] for each in ends) / len(rows) / about["pack_size"]
    assert about["packing_efficiency"] == round(whole, 2)


@pytest.mark.parametrize("name", [name for name in EXPORTS if name != "megatron-bridge"])
def test_other_formats_are_refused(make: Make, tmp_path: Path, name: str) -> None:
    rows = make(LENGTHS[:5], rows={"strategy": "bfd", "sequence_length": 64, "document_multiple": 8}) / "rows"
    message = f"format: {name} has no place for padding between documents, which begin at multiples here. Choose "
    with pytest.raises(UsageError, match=re.escape(message + "megatron-bridge, or pack without document_multiple.")):
        packtool.export(rows, tmp_path / "out", format=name)
    assert not (tmp_path / "out").exists()
