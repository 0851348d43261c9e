"""The papers' question of your own corpus: which atoms, packing and shuffling give the best model?

    python examples/experiment/experiment.py OUTPUT [--input corpus.jsonl] [--part controls|atoms|strategies|all]
                                             [--seeds 3] [--epochs 4] [--width 48] [--layers 1]

From text to shards (configs/experiment.toml), from shards to models, from models to OUTPUT/report.html. What is
finished is kept, so it may be stopped at any time and started again. Without --input the text is the docstrings of
Python's own library, which every installation has.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import page
import torch
from training import Run, Size, train

import packtool

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "configs" / "experiment.toml"
LENGTHS = (32, 64)
ATOMS = (0.25, 0.5, 1, 2, 4)
HELD_OUT = 20
"""One document in so many is held out."""
VOCABULARY = 2048


def corpus(given: Path | None, folder: Path) -> None:
    """Write the training and the held-out documents, and a tokenizer for them, unless they are there.

    A document is held out by a hash of its text, so that its copies are on the same side.
    """
    if (folder / "tokenizer.json").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(ROOT / "scripts"))
    from stdlib_text import docstrings
    from train_tokenizer import train as train_tokenizer

    if given is None:
        texts = [document.text for document in docstrings()]
    else:
        texts = [json.loads(line)["text"] for line in given.open(encoding="utf-8")]
    sides: dict[str, list[str]] = {"train": [], "valid": []}
    for text in texts:
        held = int(hashlib.sha256(text.encode()).hexdigest(), 16) % HELD_OUT == 0
        sides["valid" if held else "train"].append(text)
    for side, found in sides.items():
        (folder / f"{side}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in found))
    (folder / "tokenizer.json").write_text(train_tokenizer(sides["train"], vocabulary=VOCABULARY))


def shards(folder: Path) -> None:
    """Pack both sides as the configuration says; what is finished stays."""
    config = folder / "experiment.toml"
    text = CONFIG.read_text(encoding="utf-8")
    tokenizer = json.dumps(str((folder / "tokenizer.json").resolve()))
    config.write_text(text.replace('# tokenizer = "tokenizer.json"', f"tokenizer = {tokenizer}"))
    for side in ("train", "valid"):
        packtool.run(config, input=(folder / f"{side}.jsonl").resolve(), output=folder / side, quiet=True)


def runs(part: str, folder: Path, seeds: int, epochs: int) -> Iterator[Run]:
    """What is trained, in the order in which it is worth knowing.

    Batches have as many tokens for all: 128 rows of 64. Strategies take as many steps as concat in atoms of a row.
    """

    def run(data: str, **more: object) -> Run:
        here = {"data": folder / "train" / data, "valid": folder / "valid" / data}
        return Run(**{**here, "batch_tokens": 1 << 13, "epochs": epochs, "seed": seed, **more})  # type: ignore[arg-type]

    dataset = packtool.open(folder / "train" / "concat-64-64")
    steps = epochs * (len(dataset) // 128)
    for seed in range(seeds):
        if part in ("controls", "all"):
            yield run("concat-64-64", name=f"shuffled-{seed}")
            yield run("corpus-order-64", name=f"corpus-order-{seed}", shuffle=False)
            yield run("concat-64-64", name=f"half-padded-{seed}", half_padded=True)
        if part in ("atoms", "all"):
            for length in LENGTHS:
                for atom in ATOMS:
                    shape = f"{length}-{int(atom * length)}"
                    yield run(f"concat-{shape}", name=f"concat-{shape}-{seed}")
                    yield run(f"padding-{shape}", name=f"padding-{shape}-{seed}")
                yield run(f"padding-{length}-{length}", name=f"padding-counted-{length}-{seed}", on_padding=True)
        if part in ("strategies", "all"):
            for name in ("concat-64-64", "bfd-64", "bfd-unmixed-64", "first-fit-shuffle-64", "seamless-64"):
                yield run(name, name=f"steps-{name}-{seed}", most_steps=steps, epochs=2 * epochs)
            yield run("bfd-64", name=f"steps-bfd-masked-{seed}", most_steps=steps, epochs=2 * epochs, masks=True)
            yield run("partial-64", name=f"steps-partial-{seed}", most_steps=steps, epochs=2 * epochs, shuffle=False)
            yield run("buckets-64", name=f"steps-buckets-{seed}", most_steps=steps, epochs=2 * epochs)


def main(arguments: argparse.Namespace) -> None:
    """All of it, from text to page."""
    output: Path = arguments.output
    corpus(arguments.input, output)
    shards(output)
    size = Size(width=arguments.width, layers=arguments.layers, heads=arguments.heads)
    results = output / "results"
    results.mkdir(exist_ok=True)
    todo = list(runs(arguments.part, output, arguments.seeds, arguments.epochs))
    for number, run in enumerate(todo, 1):
        file = results / f"{run.name}.json"
        known = json.loads(file.read_text()) if file.exists() else None
        named = {**asdict(run), "data": run.data.name, "valid": run.valid.name}
        asked = json.loads(json.dumps({**named, **asdict(size)}))
        if known is not None:
            if known["asked"] != asked:
                raise SystemExit(f"{file}: was made with other options; choose another output, or remove it")
            continue
        began = time.process_time()
        found = train(run, size, output / "valid" / "tokens", results)
        found |= {"asked": asked, "cpu_seconds": time.process_time() - began}
        file.write_text(json.dumps(found))
        same = f"same text {found['same_text']:.2f}, own rows {found['own_rows']:.2f}"
        print(f"{number} of {len(todo)}: {run.name}: {same}, {found['cpu_seconds']:.0f} CPU s", flush=True)
    page.write(output, results)
    print(f"The page: {output / 'report.html'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="directory for text, shards, results and page")
    parser.add_argument("--input", type=Path, help="JSON Lines with a text in each")
    parser.add_argument("--part", choices=("controls", "atoms", "strategies", "all"), default="all")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--width", type=int, default=48, help="GPT-2 124M: 768")
    parser.add_argument("--layers", type=int, default=1, help="GPT-2 124M: 12")
    parser.add_argument("--heads", type=int, default=4, help="GPT-2 124M: 12")
    parser.add_argument("--threads", type=int, default=0, help="of PyTorch; 0 for all")
    given = parser.parse_args()
    if given.threads:
        torch.set_num_threads(given.threads)
    main(given)
