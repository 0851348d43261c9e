"""Runs in a peer's environment: JSON Lines to the token ids that the peer stores, as its own guide has it done.

PYTHON -m benchmarks.peers.tokenize PEER TEXT.jsonl TOKENIZER.json EOS_ID EOS_TOKEN WORKERS OUT
PYTHON -m benchmarks.peers.tokenize ids PEER OUT IDS.npy
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class Task(NamedTuple):
    """What is to be done."""

    text: Path
    tokenizer: Path
    eos: int
    eos_token: str
    workers: int
    out: Path


def _texts(task: Task) -> Iterator[list[str]]:
    """Batches of a thousand texts."""
    batch = []
    with task.text.open() as lines:
        for line in lines:
            batch.append(json.loads(line)["text"])
            if len(batch) == 1000:
                yield batch
                batch = []
    yield batch


def _flat(documents: Iterable[Iterable[int]], eos: int) -> Any:
    return np.concatenate([np.append(np.asarray(each, np.uint32), np.uint32(eos)) for each in documents])


def tokenizers(task: Task) -> dict[str, float]:
    """`encode_batch_fast`, one thread, ids as one array."""
    from tokenizers import Tokenizer

    encode = Tokenizer.from_file(str(task.tokenizer)).encode_batch_fast
    parts = [_flat((e.ids for e in encode(b, add_special_tokens=False)), task.eos) for b in _texts(task) if b]
    np.save(task.out / "ids.npy", np.concatenate(parts))
    return {}


def gigatoken(task: Task) -> dict[str, float]:
    """`encode_batch`, one thread, on strings in memory: its own time stands beside that of the process."""
    import awkward
    from gigatoken import Tokenizer

    tokenizer, batches = Tokenizer(str(task.tokenizer)), list(_texts(task))
    began = time.process_time()
    found = [tokenizer.encode_batch(batch, parallel=False) for batch in batches if batch]
    seconds = time.process_time() - began
    np.save(task.out / "ids.npy", np.concatenate([_flat(awkward.to_list(each), task.eos) for each in found]))
    return {"encoding_cpu": seconds}


def fastokens(task: Task) -> dict[str, float]:
    """`encode_batch`, one thread, on strings in memory: its own time stands beside that of the process."""
    from fastokens._native import Tokenizer

    tokenizer, batches = Tokenizer.from_file(str(task.tokenizer)), list(_texts(task))
    began = time.process_time()
    found = [tokenizer.encode_batch(batch, add_special_tokens=False) for batch in batches if batch]
    seconds = time.process_time() - began
    np.save(task.out / "ids.npy", np.concatenate([_flat((e.ids for e in each), task.eos) for each in found]))
    return {"encoding_cpu": seconds}


def datatrove(task: Task) -> dict[str, float]:
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.tokens import DocumentTokenizer

    steps = [
        JsonlReader(str(task.text.parent), glob_pattern=task.text.name),
        DocumentTokenizer(
            str(task.out / "tokens"),
            tokenizer_name_or_path=str(task.tokenizer),
            eos_token=task.eos_token,
            shuffle_documents=False,
        ),
    ]
    LocalPipelineExecutor(steps, logging_dir=str(task.out / "logs")).run()
    return {}


def datatrove_ids(out: Path) -> Any:
    return np.concatenate([np.fromfile(file, np.uint32) for file in sorted((out / "tokens").glob("*.ds"))])


def dolma(task: Task) -> dict[str, float]:
    from dolma.tokenizer import tokenize_in_parallel

    tokenize_in_parallel(
        sources=[str(task.text)],
        destination=str(task.out / "tokens"),
        num_writers=task.workers,
        tokenizer_name_or_path=str(task.tokenizer),
        eos_token_id=task.eos,
        pad_token_id=task.eos,
        dtype="uint32",
    )
    return {}


def dolma_ids(out: Path) -> Any:
    return np.concatenate([np.fromfile(file, np.uint32) for file in sorted((out / "tokens").glob("*.npy"))])


def _encode(tokenizer: Any, eos: int, text: str) -> list[int]:
    return [*tokenizer.encode(text, add_special_tokens=False).ids, eos]


def _lines(task: Task, first: int, step: int) -> Iterator[Any]:
    """Every `step`-th document, as ids with EOS; each process loads the tokenizer."""
    import torch
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(task.tokenizer))
    with task.text.open() as lines:
        for number, line in enumerate(lines):
            if number % step == first:
                yield torch.tensor(_encode(tokenizer, task.eos, json.loads(line)["text"]), dtype=torch.int32)


def litdata(task: Task) -> dict[str, float]:
    """`optimize` with `TokensLoader`, as for pre-training."""
    from litdata import TokensLoader, optimize

    optimize(
        fn=partial(_litdata_part, task),
        inputs=list(range(task.workers)),
        output_dir=str(task.out / "tokens"),
        num_workers=task.workers,
        chunk_bytes="64MB",
        item_loader=TokensLoader(),
    )
    return {}


def _litdata_part(task: Task, number: int) -> Iterator[Any]:
    yield from _lines(task, number, task.workers)


def litdata_ids(out: Path, block: int = 2048) -> Any:
    """What its reader gives in rows of 2048."""
    from litdata import StreamingDataset, TokensLoader

    rows = StreamingDataset(str(out / "tokens"), item_loader=TokensLoader(block_size=block), shuffle=False)
    return np.concatenate([np.asarray(rows[number]) for number in range(len(rows))]).astype(np.uint32)


def mosaicml(task: Task) -> dict[str, float]:
    """`MDSWriter`, a sample a document."""
    from tests.interop.peer_formats import _torchvision

    _torchvision()
    from streaming import MDSWriter

    with MDSWriter(out=str(task.out / "tokens"), columns={"tokens": "ndarray:uint32"}) as out:
        for each in _lines(task, 0, 1):
            out.write({"tokens": each.numpy().astype(np.uint32)})
    return {}


def mosaicml_ids(out: Path) -> Any:
    from tests.interop.peer_formats import _torchvision

    _torchvision()
    from streaming import StreamingDataset

    rows = StreamingDataset(local=str(out / "tokens"), shuffle=False, batch_size=1)
    return np.concatenate([rows[number]["tokens"] for number in range(len(rows))])


def datasets(task: Task) -> dict[str, float]:
    """`load_dataset(…).map(…, batched=True)`, as trainers' examples do."""
    from datasets import load_dataset
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(task.tokenizer))

    def encode(batch: dict[str, list[str]]) -> dict[str, list[list[int]]]:
        found = tokenizer.encode_batch_fast(batch["text"], add_special_tokens=False)
        return {"input_ids": [[*each.ids, task.eos] for each in found]}

    loaded = load_dataset("json", data_files=str(task.text), split="train", cache_dir=str(task.out / "cache"))
    workers = task.workers if task.workers > 1 else None
    mapped = loaded.map(encode, batched=True, remove_columns=loaded.column_names, num_proc=workers)
    mapped.save_to_disk(str(task.out / "tokens"))
    return {}


def datasets_ids(out: Path) -> Any:
    from datasets import load_from_disk

    return load_from_disk(str(out / "tokens")).data.column("input_ids").combine_chunks().values.to_numpy()


def megatron(task: Task) -> dict[str, float]:
    """`IndexedDatasetBuilder` filled as `tools/preprocess_data.py` does, which megatron-core does not ship."""
    from multiprocessing import Pool

    import torch
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder

    builder = IndexedDatasetBuilder(str(task.out / "tokens.bin"), dtype=np.int32)
    with Pool(task.workers, _start, [task]) as pool, task.text.open() as lines:
        for ids in pool.imap(_megatron_line, lines, 32):
            builder.add_document(torch.IntTensor(ids), [len(ids)])
    builder.finalize(str(task.out / "tokens.idx"))
    return {}


def _start(task: Task) -> None:
    from tokenizers import Tokenizer

    globals()["_encoder"] = partial(_encode, Tokenizer.from_file(str(task.tokenizer)), task.eos)


def _megatron_line(line: str) -> list[int]:
    return globals()["_encoder"](json.loads(line)["text"])  # type: ignore[no-any-return]


def megatron_ids(out: Path) -> Any:
    return np.fromfile(out / "tokens.bin", np.int32).astype(np.uint32)


def main(peer: str, *rest: str) -> None:
    if peer == "ids":
        name, out, target = rest
        np.save(target, globals()[f"{name}_ids"](Path(out)).astype(np.uint32))
        return
    text, tokenizer, eos, eos_token, workers, out = rest
    task = Task(Path(text), Path(tokenizer), int(eos), eos_token, int(workers), Path(out))
    print(json.dumps(globals()[peer](task)))


if __name__ == "__main__":
    main(*sys.argv[1:])
