"""Files of other tools, mostly damaged, each with what a naive reader makes of it.

    python -m tests.exchange.fuzz FORMAT,... CASES [SEED]

What is imported must be what the naive reader of `readers.py` reads, document for document; everything else must be one
clear error. Run it in a process of its own: memory and time are bounded, and a crash is seen.
"""

import json
import random
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import packtool
from packtool.errors import PacktoolError
from packtool.exchange import FORMATS
from packtool.exchange.imported import documents, files_of
from packtool.exchange.model import Format, ReadOptions
from packtool.formats.schema import TokenizerInfo
from packtool.formats.token_store import TokenStore
from tests.exchange.foreign import EOS, VOCAB, Document, read, write
from tests.exchange.streams import words
from tests.text.corpus.fuzz import peak_memory

MEMORY = 8 << 30
"""Bytes of addresses: a damaged size may ask Arrow for 2 GiB, which it does not touch."""
SECONDS = 600
TOKENIZER = TokenizerInfo(sha256="0" * 64, vocab_size=VOCAB, eos_id=EOS, eos_token="<eos>", added_tokens={"<eos>": EOS})
EDGES = (-(1 << 31), -2, -1, 0, 1, 2, 3, 5, 6, 7, 255, 256, 65535, 65536, (1 << 31) - 1, (1 << 32) - 1, 1 << 62)


def mutated(data: bytes, rng: random.Random) -> bytes:
    """The bytes of a file with one or a few things wrong."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(out) + 1)
        kind = rng.randrange(9)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(out):
            out[at] = rng.randrange(256)
        elif kind in (2, 3):
            size = rng.choice((1, 2, 4, 8))
            at -= at % size
            value = rng.choice(EDGES) & ((1 << 8 * size) - 1)
            out[at : at + size] = value.to_bytes(size, "little")
        elif kind == 4:
            del out[at : at + rng.choice((1, 2, 4, 8, 100))]
        elif kind == 5:
            out[at:at] = rng.randbytes(rng.choice((1, 2, 4, 8, 64)))
        elif kind == 6:
            del out[at:]
        elif kind == 7:
            out += out[at : at + rng.choice((2, 8, 64))] or b"\0\0"
        else:
            first = rng.randrange(len(out) + 1)
            size = rng.choice((2, 4, 8, 16))
            out[at : at + size] = out[first : first + size]
    return bytes(out)


def mutated_text(data: bytes, rng: random.Random) -> bytes:
    """A file of JSON with another number, or bytes that are wrong."""
    if rng.random() < 0.4:
        return mutated(data, rng)
    places = [at for at, byte in enumerate(data) if 48 <= byte <= 57]
    if not places:
        return data
    at = rng.choice(places)
    new = rng.choice((*map(str, EDGES), "null", "1.5", "[]", '"x"', "1e3", "true", "1" * 30, ""))
    return data[:at] + new.encode() + data[at + 1 :]


def damage(path: Path, rng: random.Random) -> str:
    """Damage one file of a directory, and say which."""
    file = rng.choice(sorted(path.iterdir()))
    change = mutated_text if file.suffix in (".json", ".jsonl") else mutated
    file.write_bytes(change(file.read_bytes(), rng))
    return file.name


def imported(path: Path, chosen: Format) -> list[Document]:
    """The documents that packtool reads."""
    options = ReadOptions(np.dtype("<u2"), asked=says_no_type(path))
    found: list[Document] = []
    for file in files_of(path, chosen):
        for part in documents(chosen.read(file, options), TOKENIZER, str(file), Counter()):
            ends = np.cumsum(part.lengths)[:-1]
            for ids, trains in zip(np.split(part.ids, ends), np.split(part.trains, ends), strict=True):
                found += [Document(ids.tolist(), (trains == 1).tolist())] if len(ids) else []
    return found


def says_no_type(path: Path) -> bool:
    """Whether no file is one of NumPy, which says of which type its ids are."""
    return not any(file.read_bytes().startswith(b"\x93NUMPY") for file in path.iterdir())


def stored(path: Path, name: str, place: Path) -> list[list[int]]:
    """The documents of a store that the whole command makes."""
    more: dict[str, Any] = {"dtype": "uint16"} if name in ("nanogpt", "olmo") and says_no_type(path) else {}
    packtool.import_(path, place / "store", format=name, tokenizer=place / "tokenizer.json", **more)
    assert packtool.verify(place / "store").problems == []
    store = TokenStore(place / "store")
    return [store.document(number).tolist() for number in range(store.documents)]


def expected(path: Path, name: str) -> list[Document] | None:
    try:
        return list(read(name, path))
    except Exception:  # whatever a naive reader stumbles over
        return None


def case(name: str, place: Path, number: int, seed: int) -> str:
    """Try one; return what became of it.

    Raises:
        AssertionError: something that nobody wrote.
    """
    rng = random.Random(f"{name}/{seed}/{number}")
    path = place / "files"
    path.mkdir()
    write(name, path, rng)
    whole = number % 10 == 0
    damaged = "" if whole else damage(path, rng)
    known = expected(path, name)
    try:
        found = imported(path, FORMATS[name])
    except PacktoolError as error:
        if whole or "\n" in str(error):
            raise AssertionError(f"{name} {number}") from error
        if number % 5 == 1:
            _require_no_output(path, name, place)
        return "refused"
    assert known is not None, f"{damaged}: taken for {found[:3]}"
    assert found == known, f"{damaged}: {found[:3]} instead of {known[:3]}"
    if number % 5 == 0:
        assert stored(path, name, place) == [document.ids for document in known]
    return "whole" if whole else "read"


def _require_no_output(path: Path, name: str, place: Path) -> None:
    """The whole command refuses it, too, and leaves nothing that a resumed one could not use."""
    try:
        stored(path, name, place)
    except PacktoolError:
        assert not (place / "store" / "manifest.json").exists()
    else:
        raise AssertionError("the command reads what the reader refuses")


def main(names: str, cases: str, seed: str = "0") -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.alarm(SECONDS)
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as directory:
        for name in names.split(","):
            for number in range(int(cases)):
                place = Path(directory, "case")
                place.mkdir()
                (place / "tokenizer.json").write_text(TOKENIZER_FILE)
                sys.stderr.write(f"{name} {number}\n")  # the last line says where a crash was
                sys.stderr.flush()
                try:
                    counts[case(name, place, number, int(seed))] += 1
                except Exception:
                    traceback.print_exc()
                    sys.exit(1)
                shutil.rmtree(place)
    json.dump({**counts, "peak_mib": peak_memory() >> 20}, sys.stdout)


TOKENIZER_FILE = words(VOCAB).to_str()

if __name__ == "__main__":
    main(*sys.argv[1:])
