"""Chats to packed rows: packtool beside `apply_chat_template` and TRL's packing.

Both get the same corpus, tokenizer and chat template, masks from its generation marks, rows of 4,096 tokens, best fit
decreasing, and one process without workers; they take turns. CPU seconds: of whole processes, and of what comes after
imports. Tokens and rows are compared.

    python -m benchmarks.conversations [--tokenizer DIR] [--megabytes 100] [--rounds 3]

DIR holds a tokenizer.json and a chat_template.jinja with generation marks; by default those are Qwen 3's, with the
template that TRL trains it with.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import peers
from benchmarks.common import WORK, Run, fresh, median, rounds, run, save
from benchmarks.corpus import tokenizer
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
print(json.dumps({"cpu_after_imports": cpu() - began, "tokens": tokens, "rows": rows, "conversations": len(chats)}))
"""

OURS = """
import json, resource, sys
from pathlib import Path
import packtool
from packtool.commands import pack, tokenize

place, corpus, length = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
work = Path(sys.argv[4])

def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

began = cpu()
packtool.tokenize(corpus, work / "store", tokenizer=place, workers=1, overwrite=True)
packed = work / "packed"
packtool.pack(
    work / "store", packed, strategy="bfd", sequence_length=length, too_long="drop", workers=1, overwrite=True
)
after = cpu() - began
manifests = [json.loads((work / name / "manifest.json").read_text()) for name in ("store", "packed")]
counts = {"conversations": manifests[0]["counts"]["documents"], "tokens": manifests[0]["counts"]["tokens"]}
print(json.dumps({"cpu_after_imports": after, "rows": len(packtool.open(work / "packed")), **counts}))
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


def qwen(peer: Path) -> Path:
    """A directory with Qwen 3's tokenizer and the template that lies in TRL, in the environment of this Python."""
    here = fresh(WORK / "conversations-qwen")
    file, _, eos = tokenizer("Qwen 3")
    (here / "tokenizer.json").write_bytes(file.read_bytes())
    (here / "tokenizer_config.json").write_text(json.dumps({"eos_token": eos}))
    (template,) = peer.parent.parent.glob("lib/*/site-packages/trl/chat_templates/qwen3_training.jinja")
    (here / "chat_template.jinja").write_bytes(template.read_bytes())
    return here


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizer", type=Path)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", type=Path, help="the Python that has Transformers and TRL")
    options = parser.parse_args()
    work = fresh(WORK / "conversations")
    corpus = work / "corpus.jsonl"
    corpus.write_text("".join(chats(int(options.megabytes * 1e6))), encoding="utf-8")
    peer = options.peer or peers.environment("training")
    place = options.tokenizer or qwen(peer)
    environment = {"TOKENIZERS_PARALLELISM": "false"}

    def measured(python: str | Path, program: str) -> Callable[[], Run]:
        return lambda: run([python, "-c", program, place, corpus, str(LENGTH), work], env=environment)

    found: dict[str, Any] = {"megabytes": options.megabytes}
    turns = rounds(options.rounds, measured(sys.executable, OURS), measured(peer, PEER))
    for name, runs in zip(("packtool", "peer"), turns, strict=True):
        said = [json.loads(each.output.splitlines()[-1]) for each in runs]
        after = statistics.median(each["cpu_after_imports"] for each in said)
        found[name] = {**said[0], "cpu": median(runs, "cpu"), "cpu_after_imports": after}
    for figure in ("cpu", "cpu_after_imports"):
        found[f"times_{figure}"] = found["peer"][figure] / found["packtool"][figure]
    save("conversations", found)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
