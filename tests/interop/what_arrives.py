"""Read an export with a trainer's own dataset and collator, down to the batch that its model is given.

    python what_arrives.py TRAINER EXPORT LENGTH EOS MULTIPLE OUT.npz

Runs where the trainers are. LENGTH is what the trainer is told, as is the MULTIPLE at which documents begin. Writes
arrays by their names in the batch.
"""

from __future__ import annotations

import os
import sys
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import torch
import typing_extensions

Batches = Iterator[Mapping[str, Any]]


def litgpt(export: Path, length: int, *_: int) -> Batches:
    from litgpt.data.lit_data import LitData

    data = LitData(data_path=export, num_workers=0)
    data.connect(batch_size=1, max_seq_length=length)
    for rows in data.val_dataloader():
        yield {"input_ids": rows[:, :length], "labels": rows[:, 1 : length + 1]}  # as its training loop cuts them


def nemo_automodel(export: Path, length: int, *_: int) -> Batches:
    from nemo_automodel.components.datasets.llm.nanogpt_dataset import NanogptDataset, load_bin_shard
    from nemo_automodel.components.datasets.utils import default_collater

    rows = sum(len(load_bin_shard(file)) for file in export.glob("*.bin")) // (length + 1)
    data = iter(NanogptDataset(str(export / "*.bin"), seq_len=length))  # without end
    for _ in range(rows):
        yield default_collater([next(data)])


def megatron_bridge(export: Path, length: int, eos: int, multiple: int, **more: Any) -> Batches:
    _without_models()
    from megatron.bridge.data.packing.parquet import GPTSFTPackedParquetDataset

    tokenizer = SimpleNamespace(eos_id=eos)
    unused = {"prompt_template": "{input} {output}", "label_key": "output", "truncation_field": "input"}
    data = GPTSFTPackedParquetDataset(
        str(export),
        tokenizer,
        max_seq_length=length,
        pad_to_max_length=True,
        pad_seq_to_mult=multiple,
        **unused,
        **more,
    )
    for number in range(len(data)):
        yield data.collate_fn([data[number]])


def megatron_bridge_graphs(export: Path, length: int, eos: int, multiple: int) -> Batches:
    """As for CUDA graphs: all rows have boundaries of one shape."""
    metadata = str(export / "packed_metadata.jsonl")
    return megatron_bridge(export, length, eos, multiple, pad_cu_seqlens=True, pack_metadata_file_path=metadata)


def _without_models() -> None:
    """Make the data packages of Megatron-Bridge importable without its models, which need a GPU's libraries."""
    typing.override = typing_extensions.override  # type: ignore[attr-defined]  # Python 3.12
    import megatron

    (place,) = (Path(each) / "bridge" for each in megatron.__path__ if (Path(each) / "bridge").is_dir())
    for name in ("megatron.bridge", "megatron.bridge.data", "megatron.bridge.training"):
        package = ModuleType(name)
        package.__path__ = [os.fspath(place.joinpath(*name.split(".")[2:]))]
        sys.modules[name] = package


TRAINERS = {
    "litgpt": litgpt,
    "nemo-automodel": nemo_automodel,
    "megatron-bridge": megatron_bridge,
    "megatron-bridge-graphs": megatron_bridge_graphs,
}


def main(trainer: str, export: str, length: str, eos: str, multiple: str, out: str) -> None:
    batches = list(TRAINERS[trainer](Path(export), int(length), int(eos), int(multiple)))
    names = [name for name, value in batches[0].items() if isinstance(value, torch.Tensor)]
    ends = {name: max(batch[name].shape[-1] for batch in batches) for name in names}
    arrays = {}
    for name in names:
        rows = [np.atleast_1d(row) for batch in batches for row in batch[name].numpy()]
        # Lists of boundaries differ in length from row to row: the last one is repeated.
        arrays[name] = np.stack([np.pad(row, (0, ends[name] - len(row)), mode="edge") for row in rows])
    np.savez(out, **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
