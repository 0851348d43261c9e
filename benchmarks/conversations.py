"""Chats to packed rows: packtool beside `apply_chat_template` and TRL's packing.

packtool tokenizes and packs the whole corpus; the peers, which take so much longer, the first of it, and their CPU
seconds are scaled by tokens. The same tokenizer and chat template, masks from its generation marks, rows of 4,096
tokens, best fit decreasing. CPU seconds: of packtool whole processes, of the peer what comes after its imports.

    python -m benchmarks.conversations --tokenizer DIR [--megabytes 100] [--sample 5]

DIR holds a tokenizer.json and a chat_template.jinja with generation marks.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.common import WORK, packtool, run, save
from scripts.stdlib_text import modules, reference

LENGTH = 4096

PEER = """
import json, resource, sys
from pathlib import Path
from datasets import Dataset, disable_progress_bars
from transformers import PreTrainedTokenizerFast
from trl.data_utils import pack_dataset

place, corpus, length = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
disable_progress_bars()

def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

def tokenized(example):
    found = tokenizer.apply_chat_template(
        example["messages"], tools=example.get("tools"), return_dict=True, return_assistant_tokens_mask=True
    )
    labels = [token if trains else -100 for token, trains in zip(found["input_ids"], found["assistant_masks"])]
    return {"input_ids": found["input_ids"], "labels": labels}

began = cpu()
tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(place / "tokenizer.json"))
tokenizer.chat_template = (place / "chat_template.jinja").read_text()
with open(corpus) as lines:
    chats = Dataset.from_list([json.loads(line) for line in lines])
chats = chats.map(tokenized, remove_columns=chats.column_names, load_from_cache_file=False)
tokens = sum(map(len, chats["input_ids"]))
rows = len(pack_dataset(chats, length, "bfd"))
print(json.dumps({"cpu": cpu() - began, "tokens": tokens, "rows": rows, "chats": len(chats)}))
"""


def chats(size: int) -> Iterator[str]:
    """Lines of chats, of one to four turns, until there are so many bytes."""
    draw = random.Random(0)
    whole = "\n".join(document.text for documents in (reference(), modules()) for document in documents)
    while size > 0:
        messages = [{"role": "system", "content": "You are a helpful assistant."}] if draw.random() < 0.3 else []
        for _ in range(draw.randint(1, 4)):
            for role, mean in (("user", 250), ("assistant", 900)):
                at = draw.randrange(len(whole) - 20_000)
                messages.append({"role": role, "content": whole[at : at + 20 + int(draw.expovariate(1 / mean))]})
        line = json.dumps({"messages": messages}, ensure_ascii=False) + "\n"
        size -= len(line.encode())
        yield line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--sample", type=float, default=5)
    parser.add_argument("--peer", type=Path, help="the Python that has Transformers and TRL")
    options = parser.parse_args()
    work = WORK / "conversations"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    for name, size in (("corpus", options.megabytes), ("sample", options.sample)):
        (work / f"{name}.jsonl").write_text("".join(chats(int(size * 1e6))), encoding="utf-8")
    tokenize = run(
        packtool("tokenize", work / "corpus.jsonl", "-o", work / "store", "--tokenizer", options.tokenizer, "--quiet")
    )
    pack = run(
        packtool(
            *("pack", work / "store", "-o", work / "packed", "--strategy", "bfd", "-L", str(LENGTH)),
            *("--too-long", "drop", "--quiet"),
        )
    )
    counts = json.loads((work / "store" / "manifest.json").read_text())["counts"]
    peer = options.peer
    if peer is None:
        made = subprocess.run(
            [sys.executable, "-m", "benchmarks.peers", "training"], stdout=subprocess.PIPE, check=True
        )
        peer = Path(made.stdout.decode().strip())
    theirs = json.loads(
        run(
            [peer, "-c", PEER, options.tokenizer, work / "sample.jsonl", str(LENGTH)],
            env={"TOKENIZERS_PARALLELISM": "false"},
        ).output.splitlines()[-1]
    )
    ours = tokenize.cpu + pack.cpu
    scaled = theirs["cpu"] * counts["tokens"] / theirs["tokens"]
    found = {
        "megabytes": options.megabytes,
        "conversations": counts["documents"],
        "tokens": counts["tokens"],
        "packtool_cpu": ours,
        "tokenize_cpu": tokenize.cpu,
        "pack_cpu": pack.cpu,
        "peer": theirs,
        "peer_cpu_scaled_by_tokens": scaled,
        "times": scaled / ours,
    }
    save("conversations", found)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
