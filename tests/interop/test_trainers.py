"""What docs/training.md says of torchtitan and Megatron, beside the packages themselves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import packtool
from tests.stores import write_store
from tests.test_docs import ROOT, blocks

pytestmark = pytest.mark.interop
LENGTHS = np.random.default_rng(0).integers(2, 90, 400).tolist()


def run(peer: str, name: str, check: str, place: Path) -> str:
    """Run a check after a program of the page, in the environment of a peer."""
    made = subprocess.run(
        [sys.executable, "-m", "benchmarks.peers", peer], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    (code,) = (code for _, found, code in blocks(ROOT / "docs" / "training.md") if found == name)
    (place / name).write_text(code + check)
    done = subprocess.run(
        [made.stdout.decode().strip(), name],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


TORCHTITAN = """
import io, sys
import torch
import torch.distributed.checkpoint as dcp

def make(rank, world):
    config = PackedDataLoader.Config(dataset_path="rows", epochs=2)
    return config.build(
        dp_world_size=world, dp_rank=rank, tokenizer=None, seq_len=32, local_batch_size=8 // world,
        snapshot_every_n_steps=1,
    )

def rows(batches):
    return [row for inputs, labels in batches for row in torch.stack([inputs["input"], labels], 1).tolist()]

whole = rows(make(0, 1))
expected = packtool.open("rows", dtype="int64").epoch(0)
assert whole[0] == [expected[0][:-1].tolist(), expected[0][1:].tolist()]
inputs, labels = next(iter(make(0, 1)))
assert inputs["positions"].shape == inputs["input"].shape == labels.shape == (8, 32)

first = make(0, 1)
batches = iter(first)
before = rows(next(batches) for _ in range(3))
dcp.save({"dataloader": first}, checkpoint_id="saved", no_dist=True)
ranks = [make(rank, 2) for rank in range(2)]
for each in ranks:
    dcp.load({"dataloader": each}, checkpoint_id="saved", no_dist=True)
after = [row for shares in zip(*map(rows, ranks)) for row in shares]
assert before + after == whole
"""


def test_torchtitan_reads_rows_and_goes_on(tmp_path: Path) -> None:
    write_store(tmp_path / "store", LENGTHS)
    packtool.pack(
        tmp_path / "store",
        tmp_path / "rows",
        strategy="concat",
        sequence_length=33,
        remainder="drop",
        shard_tokens=3300,
    )
    run("torchtitan", "torchtitan_data.py", TORCHTITAN, tmp_path)


MEGATRON = """
import numpy as np
for part in (train, valid):
    documents = [part.dataset[int(number)] for number in part.document_index]
    stream = np.concatenate(documents)
    for number in range(len(part)):
        sample, at = part[number], 128 * int(part.shuffle_index[number])
        assert sample["tokens"].tolist() == stream[at : at + 128].tolist()
        assert sample["labels"].tolist() == stream[at + 1 : at + 129].tolist()
np.save("seen.npy", np.concatenate([train.dataset[int(number)] for number in range(len(train.dataset))]))
"""


def test_megatron_reads_documents(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", LENGTHS)
    packtool.export(store, tmp_path / "for-megatron", format="megatron")
    run("formats", "megatron_data.py", MEGATRON, tmp_path)
    tokens = np.concatenate([np.load(file) for file in sorted(store.glob("tokens-*.npy"))])
    np.testing.assert_array_equal(np.load(tmp_path / "seen.npy"), tokens)
