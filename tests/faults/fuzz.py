"""Random damage to what commands are given beside text: arrays' headers, tokenizers, configurations, options.

``python -m tests.faults.fuzz KIND CASES SEED`` runs commands in this process. Each must end with exit status 0, 1 or 2
and no traceback, what it accepts must be what an independent reader finds, and memory must stay bounded.
"""

import faulthandler
import io
import json
import random
import shutil
import sys
import tempfile
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import tokenizers

import packtool
from packtool.cli import run
from packtool.errors import PacktoolError
from packtool.formats.token_store import TokenStore
from tests.stores import write_store
from tests.text.corpus.fuzz import mutate, peak_memory
from tests.text.encoding.mutants import KNOWN

SECONDS = 600
"""A case may take as long; more is a hang."""
MEMORY = 1 << 30
ASSET = Path(packtool.__file__).parent / "assets" / "tokenizer.json"
CONFIG = """[pack]
input = "store"
output = "packed"
strategy = "concat"
sequence-length = 16
seed = 7
[shuffle]
input = "packed"
output = "shuffled"
epoch = 1
"""
BLEND = """rows = 400
batch-size = 4
[sources]
a = "rows"
[sources.b]
path = "others"
max-epochs = 400
seed = 7
[[stages]]
weights = { a = 0.5, b = 1 }
[[stages]]
from = "10%"
ramp = "80 rows"
weights = { a = 3, b = 1e-3 }
"""
BEYOND = [
    "1e999999999",
    "9" * 5000,
    "[" * 3000 + "]" * 3000,
    '"a\\u0000"',
    '"1e99999999%"',
    "0x" + "f" * 99,
    "nan",
    "-inf",
]
"""Values that no option takes, some of which take for ever to compute."""
VALUES = ["0", "1", "-1", "16", "2k", "1e3", "9223372036854775808", "nan", "", "é", "0.3", "concat", "8,16", "1/2"]
FLAGS = [
    *["--strategy=concat", "--strategy=bfd", "--strategy", "--sequence-length=16"],
    *["--sequence-length", "-L", "--atom-size", "--seed", "--memory", "--workers=1", "--shard-tokens"],
    *["--no-shuffle", "--no-segments", "--holdout", "--mix", "--tokens", "--max-epochs", "--buckets"],
    *["--max-repetition", "--extra-capacity", "--window-tokens", "--pad-token", "--remainder"],
    *["--overwrite", "--resume", "--dry-run", "--frobnicate"],
]


def command(arguments: list[str]) -> int:
    """Run a command line; its exit status, which is one of those that are documented."""
    said = io.StringIO()
    with redirect_stderr(said), redirect_stdout(io.StringIO()):
        status = run(arguments)
    assert status in (0, 1, 2), (arguments, status)
    assert "Traceback" not in said.getvalue(), (arguments, said.getvalue())
    assert status == 0 or "packtool: error[" in said.getvalue(), (arguments, said.getvalue())
    return status


def npy(draw: random.Random, folder: Path) -> int:
    """Headers and ends of a store's arrays: what is read is what NumPy reads, or an error."""
    target = folder / "store" / draw.choice(["tokens-00000.npy", "offsets-00000.npy"])
    whole = target.read_bytes()
    expected = np.load(target)
    data = mutate(draw, whole[:128]) + whole[128:] if draw.random() < 0.7 else mutate(draw, whole)
    target.write_bytes(data)
    try:
        status = command(["pack", str(folder / "store"), "-o", str(folder / "out"), "--strategy=concat", "-L16", "-q"])
        if status == 0:
            assert data == whole or np.array_equal(np.load(target), expected)
            assert packtool.verify(folder / "out", store=folder / "store").problems == []
    finally:
        target.write_bytes(whole)
    return status


def tokenizer(draw: random.Random, folder: Path) -> int:
    """`tokenizer.json` with bytes or values changed: the ids are those of `tokenizers`, or there is an error."""
    path = folder / "tokenizer.json"
    spec = json.loads(ASSET.read_bytes())
    way = draw.random()
    if way < 0.4:
        for entry in ("normalizer", "pre_tokenizer"):
            spec[entry] = draw.choice(KNOWN)[entry]
        data = json.dumps(spec).encode()
    elif way < 0.8:
        node = spec
        while isinstance(node, dict) and node:
            key = draw.choice([name for name in node if len(node) < 100 or name != "merges"] or list(node))
            if not isinstance(node[key], dict) or draw.random() < 0.4:
                node[key] = draw.choice([None, 0, -1, 1 << 40, "", "x", [], {}, True, [[]], {"type": "ByteLevel"}])
                break
            node = node[key]
        data = json.dumps(spec).encode()
    else:
        data = mutate(draw, ASSET.read_bytes())
    path.write_bytes(data)
    status = command(
        ["tokenize", str(folder / "a.jsonl"), "-o", str(folder / "out"), "--tokenizer", str(path), "-q", "--workers=1"]
    )
    if status == 0:
        reference = tokenizers.Tokenizer.from_str(data.decode())
        reference.no_padding()
        store = TokenStore(folder / "out")
        eos = store.manifest.tokenizer.eos_id
        texts = [json.loads(line)["text"] for line in (folder / "a.jsonl").read_text().splitlines()]
        ids = [[*reference.encode(text, add_special_tokens=False).ids, eos] for text in texts]
        found = [store.document(number).tolist() for number in range(store.documents)]
        assert found == [each for each in ids if len(each) > 1]
    return status


def toml(draw: random.Random, folder: Path) -> int:
    """Configuration files with bytes changed: none that is not TOML is accepted."""
    path = folder / "c.toml"
    data = mutate(draw, CONFIG.encode())
    path.write_bytes(data)
    status = command(["run", str(path), "--dry-run"] if draw.random() < 0.9 else ["run", str(path), "-q"])
    if status == 0:
        tomllib.loads(data.decode())
    return status


def blend(draw: random.Random, folder: Path) -> int:
    """Files of blends with bytes or values changed: none that is not TOML is accepted."""
    data = mutate(draw, BLEND.encode())
    if draw.random() < 0.5:
        lines = BLEND.split("\n")
        number = draw.choice([at for at, line in enumerate(lines) if " = " in line])
        lines[number] = f"{lines[number].partition(' = ')[0]} = {draw.choice([*BEYOND, *VALUES])}"
        data = "\n".join(lines).encode()
    (folder / "b.toml").write_bytes(data)
    status = command(["stats", "b.toml"])
    if status == 0:
        tomllib.loads(data.decode())
    return status


def options(draw: random.Random, folder: Path) -> int:
    """Options of `pack` in any combination: what is packed balances, and verifies against its store."""
    given = ["--strategy=concat", "-L16"] if draw.random() < 0.5 else []
    for _ in range(draw.randrange(5)):
        flag = draw.choice(FLAGS)
        given.append(flag)
        if "=" not in flag and not flag.startswith("--no-") and draw.random() < 0.9:
            given.append(draw.choice(VALUES))
    status = command(["pack", str(folder / "store"), "-o", str(folder / "out"), "-q", *given])
    if status == 0 and (folder / "out" / "manifest.json").exists():
        found = packtool.verify(folder / "out", store=() if "--no-segments" in given else folder / "store")
        assert found.problems == [], given
    return status


KINDS: dict[str, Callable[[random.Random, Path], int]] = {
    "npy": npy,
    "tokenizer": tokenizer,
    "toml": toml,
    "blend": blend,
    "options": options,
}


def main(kind: str, cases: int, seed: int) -> None:
    """Run, and say how many ended how."""
    warnings.simplefilter("ignore")
    draw = random.Random(f"{kind} {seed}")
    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as made, chdir(made):
        folder = Path(made)
        write_store(folder / "store", [3, 9, 1, 40, 17, 16, 2])
        (folder / "a.jsonl").write_text('{"text": "some words"}\n{"text": "été 😀"}\n', encoding="utf-8")
        packtool.pack(folder / "store", folder / "rows", strategy="bfd", sequence_length=16)
        packtool.pack(folder / "store", folder / "others", strategy="padding", sequence_length=16)
        kept = {"store", "rows", "others", "a.jsonl"}
        for number in range(cases):
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            try:
                seen[f"exit {KINDS[kind](draw, folder)}"] += 1
            except (AssertionError, PacktoolError) as error:
                raise AssertionError(f"{kind} {seed}, case {number}: {error}") from error
            for each in folder.iterdir():
                if each.name not in kept:
                    shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
    faulthandler.cancel_dump_traceback_later()
    assert peak_memory() < MEMORY, f"{peak_memory():,} bytes of memory"
    sys.stdout.write(json.dumps({name: seen[name] for name in sorted(seen)} | {"peak_mib": peak_memory() >> 20}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
