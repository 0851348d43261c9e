"""Train with an export, and hold what reaches the model against each document alone. Runs where the trainers are.

    python what_trains.py WAY EXPORT STORE

Prints JSON: `documents` seen, the largest `difference` between the model's last hidden states in a row and those of the
same document alone, `targets` that train, `labels` that arrived of documents, those that were `wrong`, and the `rows`
that arrived unchanged.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from datasets import Dataset, load_dataset, load_from_disk
from torch.nn.modules.module import register_module_forward_hook
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    default_data_collator,
)

LENGTH = 64
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


def transformers_trainer(model: Any, data: Dataset, place: Path, store: Path, *, evaluate: bool = False) -> None:
    arguments = TrainingArguments(str(place), **COMMON)
    made = Trainer(model, arguments, train_dataset=data, eval_dataset=data, data_collator=default_data_collator)
    made.evaluate() if evaluate else made.train()


def trl(model: Any, data: Dataset, place: Path, store: Path, **options: Any) -> None:
    from trl import SFTConfig, SFTTrainer

    arguments = SFTConfig(str(place), **COMMON, **options)
    SFTTrainer(model, args=arguments, train_dataset=data, processing_class=tokenizer(store)).train()


def lightning(model: Any, data: Dataset, place: Path, store: Path, **options: Any) -> None:
    """No export: the loader itself, of the rows that were exported."""
    from lightning import LightningModule, Trainer

    from packtool.torch import Loader

    class Training(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def training_step(self, batch: dict[str, Any], _: int) -> Any:
            return self.model(**batch, **options).loss

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.0)

    fields = ("input_ids", "labels", "position_ids")
    loader = Loader(store.parent / "packed", batch_size=4, labels="same", fields=fields)
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    Trainer(max_steps=3, use_distributed_sampler=False, default_root_dir=place, **quiet).fit(Training(), loader)


def axolotl(model: Any, data: Dataset, place: Path, store: Path, **options: Any) -> None:
    """Its trainer, with what it does to tokenized documents before, and the collator it has for them."""
    from axolotl.core.trainers.base import AxolotlTrainer
    from axolotl.core.training_args import AxolotlTrainingArguments
    from axolotl.monkeypatch.data.batch_dataset_fetcher import apply_multipack_dataloader_patch
    from axolotl.utils.collators.batching import DataCollatorForSeq2Seq, V2BatchSamplerDataCollatorForSeq2Seq
    from axolotl.utils.data.wrappers import get_dataset_wrapper
    from axolotl.utils.dict import DictDefault
    from axolotl.utils.trainer import process_datasets_for_packing

    apply_multipack_dataloader_patch()
    packing = options["sample_packing"]
    configuration = DictDefault(sequence_len=2 * LENGTH, model_config_type="llama", is_preprocess=True, **options)
    kept, _ = get_dataset_wrapper(DictDefault(path="here"), tokenizer(store), configuration, "", data)
    assert kept is data, "taken for what is tokenized already"
    ready, _ = process_datasets_for_packing(configuration, data, None)
    arguments = AxolotlTrainingArguments(
        str(place),
        **COMMON,
        **options,
        max_seq_length=2 * LENGTH,
        multipack_real_batches=packing,
        sample_packing_drop_attention_mask=packing,  # as its configuration has it for sdpa
        dataset_num_proc=1,
    )
    collator = V2BatchSamplerDataCollatorForSeq2Seq if packing else DataCollatorForSeq2Seq
    made = AxolotlTrainer(
        model, args=arguments, train_dataset=ready, data_collator=collator(tokenizer(store), return_tensors="pt")
    )
    made.axolotl_cfg = configuration
    made.train()


def llamafactory(model: Any, data: Dataset, place: Path, store: Path, **options: Any) -> None:
    """Its own command, with a model and a tokenizer on disk."""
    audio = ModuleType("torchaudio")  # imported for sounds, which there are none of
    audio.__spec__ = ModuleSpec("torchaudio", None)
    sys.modules["torchaudio"] = audio
    from llamafactory.train.tuner import run_exp

    for part in (model, tokenizer(store)):
        part.save_pretrained(place / "model")
    data.save_to_disk(str(place / "data"))
    run_exp(
        {
            **COMMON,
            **options,
            "model_name_or_path": str(place / "model"),
            "dataset": "rows",
            "tokenized_path": str(place / "data"),
            "output_dir": str(place / "trained"),
            "stage": "sft",
            "do_train": True,
            "finetuning_type": "full",
            "template": "empty",
            "report_to": "none",
        }
    )


WAYS: dict[str, Callable[..., None]] = {
    "trainer": transformers_trainer,
    "trainer eval": lambda *given: transformers_trainer(*given, evaluate=True),
    "trl padding_free": lambda *given: trl(*given, padding_free=True, max_length=None),
    "trl": trl,
    "trl packing": lambda *given: trl(*given, packing=True, max_length=LENGTH),
    "lightning": lambda *given: lightning(*given, use_cache=False),
    "lightning use_cache": lightning,
    "axolotl": lambda *given: axolotl(*given, sample_packing=True),
    "axolotl plain": lambda *given: axolotl(*given, sample_packing=False),
    "llamafactory": lambda *given: llamafactory(*given, neat_packing=True),
    "llamafactory plain": llamafactory,
}


def tokenizer(store: Path) -> PreTrainedTokenizerFast:
    end = "<|endoftext|>"
    return PreTrainedTokenizerFast(tokenizer_file=str(store / "tokenizer.json"), eos_token=end, pad_token=end)


def read(export: str) -> Dataset:
    place = Path(export)
    if (place / "state.json").exists():
        return load_from_disk(export)
    files = place if place.is_file() else place / "data" / "*.parquet"
    return load_dataset("parquet", data_files=str(files), split="train", cache_dir=f"{export}-cache")


def boundaries(data: Dataset) -> dict[tuple[int, ...], list[int]]:
    """Lengths of the documents in each row; a row that is a document has its own."""
    found = {}
    for row in data:
        ids, numbers = row["input_ids"], row.get("attention_mask") or [1] * len(row["input_ids"])
        found[tuple(ids)] = row.get("seq_lengths") or [len([*run]) for _, run in groupby(numbers)]
    return found


def documents_in(ids: list[int], known: dict[tuple[int, ...], list[int]]) -> Iterator[list[tuple[int, int]]]:
    """Where documents lie in what a model was given: the rows of `known`, one after the other, and padding."""
    first, longest = 0, max(map(len, known))
    while first < len(ids):
        sizes = [
            size for size in range(min(longest, len(ids) - first), 0, -1) if tuple(ids[first : first + size]) in known
        ]
        if sizes:
            ends = accumulate(known[tuple(ids[first : first + sizes[0]])], initial=first)
            yield list(pairwise(ends))
        first += sizes[0] if sizes else 1


def mislabeled(
    data: Dataset, known: dict[tuple[int, ...], list[int]], given: list[tuple[list[int], list[int]]]
) -> tuple[int, list[Any]]:
    """Targets that a model was given, and documents for which they are not those of the data.

    The first token of a document is no target, whatever its label: nothing comes before it.
    """
    expected = {tuple(row["input_ids"]): row.get("labels", row["input_ids"]) for row in data}
    count, wrong = 0, []
    for ids, labels in given:
        for found in documents_in(ids, known):
            whole = expected[tuple(ids[found[0][0] : found[-1][1]])]
            for begin, end in found:
                mine = whole[begin - found[0][0] + 1 : end - found[0][0]]
                count += sum(label != -100 for label in mine)
                if labels[begin + 1 : end] != mine:
                    wrong.append([ids[begin:end], labels[begin:end], mine])
    return count, wrong


def main(way: str, export: str, store: str) -> None:
    data = read(export)
    torch.manual_seed(0)
    shape: dict[str, Any] = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    model = LlamaForCausalLM(LlamaConfig(vocab_size=8192, max_position_embeddings=512, **shape)).eval()
    seen: list[tuple[list[int], Any]] = []
    given_labels: list[tuple[list[int], list[int]]] = []
    targets: list[int] = []

    def watch(module: Any, _: Any, given: dict[str, Any], out: Any) -> None:
        """Of any model, since some trainers load their own."""
        if type(module).__name__ == "LlamaModel":
            seen.extend(zip(given["input_ids"].tolist(), out.last_hidden_state.detach(), strict=True))
        elif "labels" in given and type(module).__name__ == "LlamaForCausalLM":
            targets.append(int((given["labels"] != -100).sum()))
            given_labels.extend(zip(given["input_ids"].tolist(), given["labels"].tolist(), strict=True))

    hook = register_module_forward_hook(watch, with_kwargs=True)
    place = Path(f"{export}-{way}".replace(" ", "-"))
    WAYS[way](model, data, place, Path(store))
    hook.remove()
    known = boundaries(data)
    difference, documents, rows = 0.0, 0, 0
    for ids, hidden in seen:
        for found in documents_in(ids, known):
            rows += 1
            for begin, end in found:
                with torch.no_grad():
                    alone = model.model(input_ids=torch.tensor([ids[begin:end]])).last_hidden_state[0]
                difference = max(difference, float((alone - hidden[begin:end]).abs().max()))
                documents += 1
    labels, wrong = mislabeled(data, known, given_labels)
    counted = {"documents": documents, "difference": difference, "targets": sum(targets), "rows": rows}
    counted |= {"labels": labels, "wrong": len(wrong), "first_wrong": wrong[:3]}
    sys.stdout.write(json.dumps(counted) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
