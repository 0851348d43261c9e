"""`tokenize` against `tokenizers`: JSON Lines to finished store, with vocabularies of 50k and 100k entries.

    python -m benchmarks.tokenize [--sizes 100,1000] [--large] [--rounds 1]

The corpus is built here: documents of lognormal length (median 2,000 characters) from paragraphs of the standard
library's sources and language reference, drawn at random with a fixed seed; one word in about fifty is replaced by two
halves of other words, so that unseen words keep coming, as in real text. Both vocabularies are byte-level BPE, trained
on the same text: 50,257 entries with the pattern of GPT-2, 100,256 with that of GPT-4.

Each figure is that of a process of its own, start-up included, in MB of text (UTF-8, without the JSON around it) per
CPU second. `tokenizers` is much slower, and its rate does not depend on the size, so it gets the first 24 MB.
"Encoder alone" is gigatoken on batches of strings that are in memory already, from a cold cache.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.common import WORK, fresh, median, packtool, rounds, run, save, table
from scripts.stdlib_text import modules, reference

REFERENCE_MB = 24
VOCABULARIES = {"50k": (50_257, "gpt2"), "100k": (100_256, "gpt4")}
START_UPS = ("gigatoken", "auto")
EOS = "<|endoftext|>"

REFERENCE = """
import json, os, sys
os.environ["TOKENIZERS_PARALLELISM"] = "false"
import numpy as np
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[1])
done, batch, parts = 0, [], []
def encode():
    for encoding in tokenizer.encode_batch_fast(batch, add_special_tokens=False):
        parts.append(np.array(encoding.ids, np.uint32))
for line in open(sys.argv[2], encoding="utf-8"):
    batch.append(json.loads(line)["text"])
    done += len(batch[-1].encode())
    if len(batch) == 1000:
        encode()
        batch = []
    if done > float(sys.argv[3]):
        break
encode()
np.save(sys.argv[4], np.concatenate(parts))
print(json.dumps({"bytes": done}))
"""

ALONE = """
import json, sys, time
from gigatoken.gigatoken_rs import load_hf_json
import awkward
backend = load_hf_json(open(sys.argv[1], "rb").read())
texts = [json.loads(line)["text"] for line in open(sys.argv[2], encoding="utf-8")]
size = sum(len(text.encode()) for text in texts)
batches = [texts[at : at + 1000] for at in range(0, len(texts), 1000)]
began = time.process_time()
for batch in batches:
    backend.encode_batch(batch, parallel=False)
print(json.dumps({"bytes": size, "seconds": time.process_time() - began}))
"""


def paragraphs() -> list[str]:
    """Paragraphs of the sources and the reference, long ones whole."""
    texts = [document.text for source in (modules(), reference()) for document in source]
    return [part for text in texts for part in text.split("\n\n") if part.strip()]


def documents(size: int, seed: int = 0) -> Iterator[str]:
    """Documents of about `size` bytes in all."""
    rng = random.Random(seed)
    parts = paragraphs()
    words = sorted({word for part in parts for word in part.split(" ") if word.isalpha() and len(word) > 3})
    done = 0
    while done < size:
        target = rng.lognormvariate(7.6, 1.0)
        chosen, length = [], 0
        while length < target:
            chosen.append(rng.choice(parts))
            length += len(chosen[-1]) + 2
        text = _with_new_words("\n\n".join(chosen), words, rng)
        done += len(text.encode())
        yield text


def _with_new_words(text: str, words: list[str], rng: random.Random) -> str:
    out, at = [], 0
    while (space := text.find(" ", at + rng.randrange(200, 500))) >= 0:
        end = text.find(" ", space + 1)
        first, second = rng.choice(words), rng.choice(words)
        out += [text[at : space + 1], first[: rng.randint(1, len(first))], second[rng.randrange(len(second)) :]]
        at = end if end >= 0 else len(text)
    return "".join([*out, text[at:]])


def corpus(megabytes: int) -> tuple[Path, int]:
    """A JSON Lines file with so many MB of text, and its exact bytes of text; kept from one run to the next."""
    path = WORK / f"text-{megabytes}.jsonl"
    note = path.with_suffix(".bytes")
    if not note.exists():
        WORK.mkdir(exist_ok=True)
        size = 0
        with path.open("w", encoding="utf-8") as file:
            for number, text in enumerate(documents(megabytes * 10**6)):
                file.write(json.dumps({"id": number, "text": text}, ensure_ascii=False) + "\n")
                size += len(text.encode())
        note.write_text(str(size))
    return path, int(note.read_text())


def tokenizer(name: str) -> Path:
    """A trained tokenizer.json, kept from one run to the next."""
    path = WORK / f"tokenizer-{name}.json"
    if not path.exists():
        from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

        size, pattern = VOCABULARIES[name]
        trained = Tokenizer(models.BPE())
        if pattern == "gpt2":
            trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        else:
            gpt4 = (
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
                r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
            )
            trained.pre_tokenizer = pre_tokenizers.Sequence(
                [
                    pre_tokenizers.Split(Regex(gpt4), "isolated"),
                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
                ]
            )
        trained.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=[EOS],
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        )
        trained.train_from_iterator(documents(40 * 10**6, seed=1), trainer)
        WORK.mkdir(exist_ok=True)
        trained.save(str(path))
    return path


def measure(vocabulary: str, megabytes: int, count: int) -> dict[str, Any]:
    """One row: packtool with one and two workers, the reference and the fast encoder alone."""
    spec = tokenizer(vocabulary)
    path, size = corpus(megabytes)
    out = WORK / "store"

    def store(workers: int) -> list[str]:
        shutil.rmtree(out, ignore_errors=True)
        return packtool("tokenize", path, "-o", out, "--tokenizer", spec, "--workers", str(workers), "--json", "-q")

    ids = WORK / "reference.npy"
    limit = str(REFERENCE_MB * 10**6)
    one, two, slow, alone = rounds(
        count,
        lambda: run(store(1)),
        lambda: run(store(2)),
        lambda: run([sys.executable, "-c", REFERENCE, spec, path, limit, ids]),
        lambda: run([sys.executable, "-c", ALONE, spec, path]),
    )
    same = _same_ids(out, ids)
    fast = [json.loads(each.output) for each in alone]
    reference_rate = json.loads(slow[0].output)["bytes"] / 1e6 / median(slow, "cpu")
    alone_rate = size / 1e6 / sorted(each["seconds"] for each in fast)[len(fast) // 2]
    rate = size / 1e6 / median(one, "cpu")
    shown = json.loads(one[0].output)
    shutil.rmtree(out, ignore_errors=True)
    return {
        "vocabulary": vocabulary,
        "text_mb": size / 1e6,
        "documents": shown["counts"]["documents"],
        "texts_checked": shown["run"]["texts_checked"],
        "packtool_mb_per_cpu_s": rate,
        "tokenizers_mb_per_cpu_s": reference_rate,
        "times_tokenizers": rate / reference_rate,
        "encoder_alone_mb_per_cpu_s": alone_rate,
        "share_of_encoder": rate / alone_rate,
        "speedup_2_workers": median(one, "wall") / median(two, "wall"),
        "peak_mb": max(each.peak_mb for each in [*one, *two]),
        "same_ids": same,
    }


def _same_ids(store: Path, ids: Path) -> bool:
    """Whether the store begins with the ids of the reference, each document followed by EOS."""
    import numpy as np

    from packtool.storage.token_store import TokenStore

    opened = TokenStore(store)
    expected = np.load(ids)
    at = number = 0
    while at < len(expected):
        document = opened.document(number)[:-1]
        if not np.array_equal(document, expected[at : at + len(document)]):
            return False
        at += len(document)
        number += 1
    return True


def start_up(vocabulary: str, encoder: str) -> float:
    """CPU seconds for one short document; with `gigatoken` both encoders are loaded, as for any larger input."""
    path = WORK / "short.jsonl"
    path.write_text('{"text": "short"}\n')
    out = fresh(WORK / "store")
    command = packtool("tokenize", path, "-o", out, "--tokenizer", tokenizer(vocabulary), "--workers", "1", "-q")
    command += ["--encoder", encoder]
    runs = [run([*command, "--overwrite"]) for _ in range(5)]
    return median(runs, "cpu")


def peaks(vocabulary: str) -> dict[str, float]:
    """Peak memory of a worker on 4 GB of corpus and on one document of 200 MB."""
    spec = tokenizer(vocabulary)
    path, _ = corpus(1000)
    long = WORK / "long.jsonl"
    if not long.exists():
        text = "\n\n".join(documents(200 * 10**6, seed=2))
        long.write_text(json.dumps({"text": text}) + "\n", encoding="utf-8")
    found = {}
    for name, inputs in (("one document of 200 MB", [long]), ("corpus of 4 GB", [path] * 4)):
        out = WORK / "store"
        shutil.rmtree(out, ignore_errors=True)
        command = packtool("tokenize", *inputs, "-o", out, "--tokenizer", spec, "--workers", "1", "-q")
        found[name] = run(command).peak_mb
        shutil.rmtree(out)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="100,1000", help="MB of text, separated by commas")
    parser.add_argument("--vocabularies", default=",".join(VOCABULARIES))
    parser.add_argument("--rounds", type=int, default=1, help="runs of each, in turn; medians are shown")
    parser.add_argument("--large", action="store_true", help="peak memory on 4 GB and on one document of 200 MB, too")
    options = parser.parse_args()

    vocabularies = options.vocabularies.split(",")
    sizes = [int(size) for size in options.sizes.split(",")]
    started = {f"{name}, {encoder}": start_up(name, encoder) for name in vocabularies for encoder in START_UPS}
    rows = [measure(name, size, options.rounds) for size in sizes for name in vocabularies]
    table(
        (
            "vocabulary",
            "text MB",
            "packtool MB/CPU s",
            "tokenizers MB/CPU s",
            "times",
            "encoder alone",
            "share of it",
            "2 workers",
            "peak MB",
            "same ids",
        ),
        [
            (
                row["vocabulary"],
                row["text_mb"],
                row["packtool_mb_per_cpu_s"],
                row["tokenizers_mb_per_cpu_s"],
                row["times_tokenizers"],
                row["encoder_alone_mb_per_cpu_s"],
                row["share_of_encoder"],
                f"{row['speedup_2_workers']:.2f}x",
                row["peak_mb"],
                row["same_ids"],
            )
            for row in rows
        ],
    )
    print()
    table(("start-up", "CPU s"), list(started.items()))
    memory = {}
    if options.large:
        memory = {name: peaks(name) for name in vocabularies}
        print()
        table(
            ("vocabulary", "on", "peak MB"),
            [(name, what, peak) for name, found in memory.items() for what, peak in found.items()],
        )
    save("tokenize", {"corpus": __doc__, "start_up_cpu_s": started, "rows": rows, "peak_mb": memory})


if __name__ == "__main__":
    main()
