"""What the pages say of trainers whose data is read here by their own code, down to the batch for the model."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from tests.interop.peers import HERE, ROOT, in_peer
from tests.stores import EOS, document_loss, write_store
from tests.test_docs import blocks

pytestmark = pytest.mark.interop
LENGTHS = np.random.default_rng(0).integers(2, 90, 400).tolist()


TORCHTITAN = """
from dataclasses import replace
from itertools import islice
import torch
import torch.distributed.checkpoint as dcp

CONFIG = PackedDataLoader.Config(dataset_path="rows", epochs=3)

def make(rank, world, rows=8, config=CONFIG):
    options = {"dp_world_size": world, "dp_rank": rank, "tokenizer": None, "seq_len": 32}
    return config.build(**options, local_batch_size=rows // world, snapshot_every_n_steps=1)

def rows(batches):
    return [row for inputs, labels in batches for row in torch.stack([inputs["input"], labels], 1).tolist()]

def pairs(tokens):
    return [[row[:-1], row[1:]] for row in tokens.tolist()]

def in_order(ranks):
    return [row for shares in zip(*ranks, strict=True) for row in shares]

dataset = packtool.open("rows", dtype="int64")
expected = [row for number in range(3) for row in pairs(dataset.epoch(number)[:])]
whole = rows(make(0, 1))
assert whole == expected[: len(expected) // 8 * 8]
inputs, labels = next(iter(make(0, 1)))
assert inputs["positions"].shape == inputs["input"].shape == labels.shape == (8, 32)
ends = inputs["input"][:, :-1] == EOS
assert ends.any() and (inputs["positions"][:, 1:] == torch.where(ends, 0, inputs["positions"][:, :-1] + 1)).all()

def validate():
    for rank in range(2):  # as its Validator has it: built anew each time, for some batches or for all
        some = make(rank, 2, config=replace(CONFIG, infinite=True))
        assert rows(islice(some, 2)) == expected[rank:16:2]
    assert rows(make(0, 1, config=replace(CONFIG, infinite=False))) == pairs(dataset[:])

steps = 2 * len(dataset) // 8 + 2  # in the third epoch
first = [make(rank, 2) for rank in range(2)]
parts = [[], []]
for number, each in enumerate(first):
    for step, batch in zip(range(steps), each):
        parts[number] += rows([batch])
        if step % 20 == 0:
            validate()
had = in_order(parts)
assert had == expected[: steps * 8]
dcp.save({"dataloader": first[1]}, checkpoint_id="saved", no_dist=True)
for world, size in ((2, 8), (2, 16), (1, 8), (4, 32)):
    ranks = [make(rank, world, size) for rank in range(world)]
    for each in ranks:
        dcp.load({"dataloader": each}, checkpoint_id="saved", no_dist=True)
    rest = expected[steps * 8 :]
    assert in_order([rows(each) for each in ranks]) == rest[: len(rest) // size * size]
"""


def test_torchtitan_reads_rows_validates_and_goes_on(tmp_path: Path) -> None:
    write_store(tmp_path / "store", LENGTHS)
    options: dict[str, Any] = {"strategy": "concat", "sequence_length": 33, "remainder": "drop", "shard_tokens": 3300}
    packtool.pack(tmp_path / "store", tmp_path / "rows", **options)
    (code,) = (code for _, name, code in blocks(ROOT / "docs" / "trainers.md") if name == "torchtitan_data.py")
    (tmp_path / "torchtitan_data.py").write_text(f"{code}EOS = {EOS}\n{TORCHTITAN}")
    in_peer("torchtitan", tmp_path, "torchtitan_data.py")


MEGATRON = """
from types import SimpleNamespace

import numpy as np
import torch
from megatron.core.datasets.blended_megatron_dataset_builder import BlendedMegatronDatasetBuilder
from megatron.core.datasets.gpt_dataset import GPTDataset, GPTDatasetConfig

torch.distributed.init_process_group("gloo", init_method="tcp://127.0.0.1:29501", rank=0, world_size=1)
config = GPTDatasetConfig(
    random_seed=1,
    sequence_length=128,
    blend=(["for-megatron/tokens"], None),
    split="90,10,0",
    tokenizer=SimpleNamespace(vocab_size=8192, eod=0, unique_identifiers={"eod": 0}),
    path_to_cache="megatron-cache",
    reset_position_ids=True,
    reset_attention_mask=True,
    eod_mask_loss=False,
)
train, valid, _ = BlendedMegatronDatasetBuilder(GPTDataset, [100, 5, 0], lambda: True, config).build()

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
    (tmp_path / "megatron_data.py").write_text(MEGATRON)
    in_peer("formats", tmp_path, "megatron_data.py")
    tokens = np.concatenate([np.load(file) for file in sorted(store.glob("tokens-*.npy"))])
    np.testing.assert_array_equal(np.load(tmp_path / "seen.npy"), tokens)


def arrived(
    trainer: str, format: str, length: int, place: Path, *, told: int, multiple: int = 1, **options: Any
) -> tuple[dict[str, np.ndarray], Path]:
    """Rows of `length` tokens, and the batches that a trainer of `told` tokens makes of their export."""
    store, rows = write_store(place / "store", LENGTHS, per_shard=150, **options), place / "rows"
    packtool.pack(store, rows, strategy="bfd", sequence_length=length, document_multiple=multiple, shard_tokens=2048)
    packtool.export(rows, place / "out", format=format)
    in_peer("readers", place, HERE / "what_arrives.py", trainer, "out", told, EOS, multiple, "out.npz")
    return dict(np.load(place / "out.npz")), rows


@pytest.mark.parametrize(("trainer", "format"), [("litgpt", "litdata"), ("nemo-automodel", "llmc")])
def test_rows_have_one_token_more_than_is_trained_on(trainer: str, format: str, tmp_path: Path) -> None:
    found, rows = arrived(trainer, format, 65, tmp_path, told=64)
    expected = packtool.open(rows, dtype="int64")[:]
    np.testing.assert_array_equal(found["input_ids"], expected[:, :-1])
    np.testing.assert_array_equal(found["labels"], expected[:, 1:])


@pytest.mark.parametrize("loss", [None, document_loss])
def test_megatron_bridge_keeps_documents_apart_and_trains_what_the_store_says(tmp_path: Path, loss: Any) -> None:
    found, rows = arrived("megatron-bridge", "megatron-bridge", 64, tmp_path, told=64, loss=loss)
    dataset = packtool.open(rows, dtype="int64")
    labels = dataset.batch(slice(0, len(dataset)))["labels"]
    assert len(found["tokens"]) == len(dataset)
    for number, row in enumerate(dataset[:]):
        segments, begin, at = dataset.segments(number), 0, 0
        assert segments["length"].sum() == len(row)
        for piece, document in zip(segments, np.split(row, np.cumsum(segments["length"])[:-1]), strict=True):
            here = slice(begin, begin + len(document) - 1)
            np.testing.assert_array_equal(found["tokens"][number, here], document[:-1])
            np.testing.assert_array_equal(found["labels"][number, here], document[1:])
            np.testing.assert_array_equal(found["position_ids"][number, here], np.arange(len(document) - 1))
            trained = labels[number, at : at + len(document) - 1] != -100
            np.testing.assert_array_equal(found["loss_mask"][number, here], trained)
            assert loss is not None or (trained == (piece["document"] >= 0)).all()
            begin, at = here.stop, at + len(document)
            assert begin in found["cu_seqlens_q"][number]
        assert not found["loss_mask"][number, begin:].any()


@pytest.mark.parametrize("loss", [None, document_loss])
def test_megatron_bridge_splits_documents_at_the_multiples(tmp_path: Path, loss: Any) -> None:
    found, rows = arrived("megatron-bridge", "megatron-bridge", 64, tmp_path, told=64, multiple=8, loss=loss)
    dataset = packtool.open(rows, dtype="int64")
    assert len(found["tokens"]) == len(dataset)
    for number, row in enumerate(dataset[:]):
        batch = dataset.batch([number], train_across_documents=False)
        np.testing.assert_array_equal(found["tokens"][number], row)
        own, trained = batch["document_ids"][0] >= 0, batch["labels"][0] != -100
        np.testing.assert_array_equal(found["position_ids"][number][own], batch["position_ids"][0][own])
        np.testing.assert_array_equal(found["loss_mask"][number], trained)
        np.testing.assert_array_equal(found["labels"][number][trained], batch["labels"][0][trained])
        padded, cu_seqlens = batch["cu_seqlens_padded"], batch["cu_seqlens"]
        assert np.unique(found["cu_seqlens_q_padded"][number]).tolist() == padded.tolist()
        assert found["max_seqlen_q"][number] == batch["max_seqlen_padded"]
        # Its reader takes EOS at the end of a document for padding, and so counts one token less than `seq_lengths`.
        ends = row[padded[:-1] + np.diff(cu_seqlens) - 1] == EOS
        lengths = np.diff(found["cu_seqlens_q"][number])[: len(ends)]
        np.testing.assert_array_equal(lengths, np.diff(cu_seqlens) - ends)


@pytest.mark.parametrize("multiple", [1, 8])
def test_megatron_bridge_pads_boundaries_as_the_metadata_says(tmp_path: Path, multiple: int) -> None:
    found, rows = arrived("megatron-bridge-graphs", "megatron-bridge", 64, tmp_path, told=64, multiple=multiple)
    dataset = packtool.open(rows, dtype="int64")
    most = max(len(dataset.batch([number])["cu_seqlens"]) - 1 for number in range(len(dataset)))
    names = ["cu_seqlens_q"] if multiple == 1 else ["cu_seqlens_q", "cu_seqlens_q_padded"]
    for name in names:
        assert found[name].shape == (len(dataset), most + 2)
        assert (np.diff(found[name]) <= found["max_seqlen_q"].reshape(-1, 1)).all()
    assert len(np.unique(found["max_seqlen_q"])) == 1
