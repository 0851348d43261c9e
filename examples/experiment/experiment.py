"""The papers' question of your own corpus: which atoms, packing and shuffling give the best model?

    python examples/experiment/experiment.py OUTPUT [--input corpus.jsonl] [--part controls|atoms|strategies|all]
                                             [--seeds 3] [--epochs 2] [--width 48] [--layers 1]

From text to shards (configs/experiment.toml), from shards to models, from models to OUTPUT/report.html. What is
finished is kept, so it may be stopped at any time and started again. Without --input the text is the language reference
and the docstrings of Python's own library, which every installation has.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import findings
import page
import torch
from training import Run, Size, train

import packtool

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "configs" / "experiment.toml"
LENGTHS = (32, 64)
ATOMS = (0.25, 0.5, 1, 2, 4)
BATCH_TOKENS = 1 << 13
"""128 rows of 64."""
HELD_OUT = 20
"""One document in so many is held out."""


def corpus(given: Path | None, tokenizer: Path | None, vocabulary: int, folder: Path) -> None:
    """Write the training and the held-out documents, and a tokenizer for them, unless they are there.

    A document is held out by a hash of its text, so that its copies are on the same side.
    """
    asked = {"input": given and str(given.resolve()), "tokenizer": tokenizer and str(tokenizer.resolve())}
    asked |= {} if tokenizer else {"vocabulary": vocabulary}
    done = folder / "corpus.json"
    if done.exists():
        if json.loads(done.read_text()) != asked:
            raise SystemExit(f"{done}: was made from another corpus or tokenizer; choose another output, or remove it")
        return
    folder.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(ROOT / "scripts"))
    from stdlib_text import docstrings, reference
    from train_tokenizer import train as train_tokenizer

    if given is None:
        texts = [document.text for part in (reference(), docstrings()) for document in part]
    else:
        with given.open(encoding="utf-8") as lines:
            texts = [json.loads(line)["text"] for line in lines]
    sides: dict[str, list[str]] = {"train": [], "valid": []}
    for text in texts:
        held = int(hashlib.sha256(text.encode()).hexdigest(), 16) % HELD_OUT == 0
        sides["valid" if held else "train"].append(text)
    for side, found in sides.items():
        (folder / f"{side}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in found))
    if tokenizer:
        shutil.copyfile(tokenizer, folder / "tokenizer.json")
    else:
        (folder / "tokenizer.json").write_text(train_tokenizer(sides["train"], vocabulary=vocabulary))
    done.write_text(json.dumps(asked))


def shards(folder: Path) -> None:
    """Pack both sides as the configuration says; what is finished stays."""
    config = folder / "experiment.toml"
    text = CONFIG.read_text(encoding="utf-8")
    tokenizer = json.dumps(str((folder / "tokenizer.json").resolve()))
    config.write_text(text.replace('# tokenizer = "tokenizer.json"', f"tokenizer = {tokenizer}"))
    for side in ("train", "valid"):
        packtool.run(config, input=(folder / f"{side}.jsonl").resolve(), output=folder / side, quiet=True)


def runs(part: str, folder: Path, seeds: int, epochs: int) -> Iterator[Run]:
    """What is trained: seed by seed, and of each what it is worth knowing first.

    Batches have as many tokens for all. Strategies take as many steps as concat in atoms of a row.
    """
    steps = epochs * len(packtool.open(folder / "train" / "concat-64-64")) * 64 // BATCH_TOKENS

    for seed in range(seeds):
        run = partial(_run, folder, epochs, seed)
        yield run("concat-64-64", 64)
        if part in ("controls", "all"):
            yield run("corpus-order-64", 64, shuffle=False)
            yield run("concat-64-64", 64, "half-padded-64", half_padded=True)
        if part in ("strategies", "all"):
            yield run("padding-64-64", 64, "padding-equal-64", steps=steps)
            for name in ("bfd-64", "bfd-unmixed-64", "first-fit-shuffle-64", "seamless-64", "buckets-64", "partial-64"):
                yield run(name, 64, steps=steps)
            yield run("concat-64-64", 64, "concat-masked-64", steps=steps, masks=True)
            yield run("bfd-64", 64, "bfd-masked-64", steps=steps, masks=True)
            yield run("concat-index-64", 64, "concat-fresh-64", steps=steps, repack=True)
            yield run("bfd-index-64", 64, "bfd-fresh-64", steps=steps, repack=True)
        if part in ("atoms", "all"):
            for length in LENGTHS:
                for atom in ATOMS:
                    shape = f"{length}-{int(atom * length)}"
                    if shape != "64-64":
                        yield run(f"concat-{shape}", length)
                    yield run(f"padding-{shape}", length)
                yield run(f"padding-{length}-{length}", length, f"padding-counted-{length}", on_padding=True)


def _run(folder: Path, epochs: int, seed: int, data: str, length: int, kind: str = "", **more: Any) -> Run:
    train, valid = folder / "train" / data, folder / "valid" / data
    return Run(kind or data, train, valid, BATCH_TOKENS, epochs, seed, length, **more)


def main(arguments: argparse.Namespace) -> None:
    """All of it, from text to page."""
    output: Path = arguments.output
    corpus(arguments.input, arguments.tokenizer, arguments.vocabulary, output)
    shards(output)
    size = Size(arguments.width, arguments.layers, arguments.heads, arguments.learning_rate)
    results = output / "results"
    results.mkdir(exist_ok=True)
    todo = list(runs(arguments.part, output, arguments.seeds, arguments.epochs))
    for number, run in enumerate(todo, 1):
        file = results / f"{run.name}.json"
        if file.exists():
            if json.loads(file.read_text())["asked"] != json.loads(json.dumps(run.asked(size))):
                raise SystemExit(f"{file}: was made with other options; choose another output, or remove it")
            continue
        began = time.process_time()
        found = train(run, size, output / "valid" / "tokens", results)
        found["cpu_seconds"] = time.process_time() - began
        unfinished = file.with_suffix(".partial")
        unfinished.write_text(json.dumps(found))
        unfinished.replace(file)
        print(f"{number} of {len(todo)}: {run.name}: {found['cpu_seconds']:.0f} CPU seconds", flush=True)
    read = findings.read(output)
    page.write(read, output / "report.html", arguments.docs)
    print(f"The page: {output / 'report.html'}")
    if not read.believed:
        raise SystemExit("The controls did not come out as they must, so the page has nothing but them.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="directory for text, shards, results and page")
    parser.add_argument("--input", type=Path, help="JSON Lines with a text in each")
    parser.add_argument("--tokenizer", type=Path, help="a tokenizer.json; by default one is trained on the corpus")
    parser.add_argument("--vocabulary", type=int, default=1024, help="of the tokenizer that is trained")
    parser.add_argument("--part", choices=("controls", "atoms", "strategies", "all"), default="all")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--width", type=int, default=48, help="GPT-2 124M: 768")
    parser.add_argument("--layers", type=int, default=1, help="GPT-2 124M: 12")
    parser.add_argument("--heads", type=int, default=4, help="GPT-2 124M: 12")
    parser.add_argument("--learning-rate", type=float, default=1e-2, help="larger models want a smaller one")
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch; sums differ a little between numbers")
    parser.add_argument(
        "--docs", type=Path, help="write a short page as Markdown with pictures and tables beside it, too"
    )
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    main(given)
