"""Train with an export, and hold what reaches the model against each document alone. Runs where the trainers are.

    python what_trains.py WAY EXPORT STORE

Prints JSON: `documents` seen, the largest `difference` between the model's last hidden states in a row and those of the
same document alone, `targets` that train, and the `rows` that arrived unchanged.
"""

from __future__ import annotations

import json
import sys
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset, load_dataset, load_from_disk
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    default_data_collator,
)

COMMON: dict[str, Any] = {
    "per_device_train_batch_size": 2,
    "per_device_eval_batch_size": 2,
    "max_steps": 3,
    "learning_rate": 0.0,
    "bf16": False,
    "report_to": [],
    "use_cpu": True,
    "save_strategy": "no",
    "disable_tqdm": True,
}
TRL: dict[str, dict[str, Any]] = {
    "trl padding_free": {"padding_free": True, "max_length": None},
    "trl": {},
    "trl packing": {"packing": True, "max_length": 64},
}


def trainer(way: str, model: Any, data: Dataset, place: Path, store: Path) -> Any:
    if not way.startswith("trl"):
        arguments = TrainingArguments(str(place), **COMMON)
        return Trainer(model, arguments, train_dataset=data, eval_dataset=data, data_collator=default_data_collator)
    from trl import SFTConfig, SFTTrainer

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(store / "tokenizer.json"), eos_token="<|endoftext|>", pad_token="<|endoftext|>"
    )
    arguments = SFTConfig(str(place), **COMMON, **TRL[way])
    return SFTTrainer(model, args=arguments, train_dataset=data, processing_class=tokenizer)


def main(way: str, export: str, store: str) -> None:
    parquet = str(Path(export) / "*.parquet")
    cache = f"{export}-cache"
    saved = (Path(export) / "state.json").exists()
    data = (
        load_from_disk(export) if saved else load_dataset("parquet", data_files=parquet, split="train", cache_dir=cache)
    )
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=8192, max_position_embeddings=512, **shape)).eval()
    seen: list[tuple[list[int], Any]] = []
    targets: list[int] = []
    hooks = [
        model.model.register_forward_hook(
            lambda _, __, given, out: seen.append((given["input_ids"].flatten().tolist(), out.last_hidden_state)),
            with_kwargs=True,
        ),
        model.register_forward_pre_hook(
            lambda _, __, given: targets.append(int((given["labels"] != -100).sum())), with_kwargs=True
        ),
    ]
    running = trainer(way, model, data, Path(f"{export}-trained"), Path(store))
    running.evaluate() if way == "trainer eval" else running.train()
    for hook in hooks:
        hook.remove()
    lengths = {tuple(row["input_ids"]): row["seq_lengths"] for row in data}
    difference, documents, rows = 0.0, 0, 0
    for ids, hidden in seen:
        states = hidden.detach().reshape(len(ids), -1)
        for first in range(0, len(ids), 64):
            row = ids[first : first + 64]
            if tuple(row) not in lengths:
                continue
            rows += 1
            ends = list(accumulate(lengths[tuple(row)]))
            for begin, end in zip([0, *ends], ends, strict=False):
                with torch.no_grad():
                    alone = model.model(input_ids=torch.tensor([row[begin:end]])).last_hidden_state[0]
                difference = max(difference, float((alone - states[first + begin : first + end]).abs().max()))
                documents += 1
    counted = {"documents": documents, "difference": difference, "targets": sum(targets), "rows": rows}
    sys.stdout.write(json.dumps(counted) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
