"""Damaged files of Arrow through `tokenize`: what becomes a document or a reject must stand in the file.

    python -m tests.text.corpus.arrow_fuzz CASES [SEED]

Run it in a process of its own: a crash is seen.
"""

import base64
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer

import packtool
from packtool.errors import PacktoolError
from packtool.formats.token_store import TokenStore
from tests.exchange.fuzz import mutated

TOKENIZER = Path(packtool.__file__).parent / "assets" / "tokenizer.json"
TEXTS = ["some text", "", "ä longer text than the others, which no view holds in itself", "x" * 70, "end"]
IDS = [[17, 18, 19], [], [20] * 9, [21], [22, 23]]
CHATS = [[{"role": "user", "content": text}, {"role": "assistant", "content": "b"}] for text in TEXTS]
COLUMNS: list[tuple[str, pa.Array]] = [
    ("text", pa.array(TEXTS)),
    ("text", pa.array(TEXTS, pa.large_string())),
    ("text", pa.array(TEXTS, pa.string_view())),
    ("text", pa.array(TEXTS, pa.binary())),
    ("text", pa.array(TEXTS).dictionary_encode()),
    ("messages", pa.array(CHATS)),
    ("input_ids", pa.array(IDS, pa.list_(pa.int32()))),
    ("input_ids", pa.array(IDS, pa.large_list(pa.int32()))),
]


def write(path: Path, name: str, column: pa.Array, *, is_stream: bool) -> bytes:
    """Write a column beside another one; return the bytes of the file."""
    table = pa.table({name: column, "n": pa.array(["a", "b", "c", "d", None])})
    writer = pa.ipc.new_stream if is_stream else pa.ipc.new_file
    with writer(path, table.schema) as out:
        out.write_table(table, max_chunksize=3)
    return path.read_bytes()


def texts_in(value: Any) -> list[str]:
    """Every text in a value of JSON, but for the names of fields."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [text for item in value for text in texts_in(item)]
    return [value] if isinstance(value, str) else []


def foreign(data: bytes, store: Path, name: str) -> list[bytes]:
    """What a store and its rejects hold that does not stand in a file."""
    found: list[bytes] = []
    if (store / "manifest.json").exists():
        opened = TokenStore(store)
        for number in range(opened.documents):
            ids = opened.document(number)[:-1]
            if name == "input_ids":
                found.append(ids.astype("<i4").tobytes())
            elif name == "text":
                found.append(Tokenizer.from_file(str(TOKENIZER)).decode(ids.tolist()).encode())
        if opened.kept_fields:
            found += [value.encode() for value in opened.column("n").to_pylist() if value]
    if (store / "rejected.jsonl").exists():
        for line in (store / "rejected.jsonl").read_bytes().splitlines():
            entry = json.loads(line)
            raw = entry.get("raw") or ""
            found += [base64.b64decode(entry.get("raw_base64") or "")]
            # A conversation is written as JSON: look at its texts.
            found += [text.encode() for text in texts_in(json.loads(raw) if raw and name == "messages" else raw)]
    return [part for part in found if part not in data]


def tokenized(path: Path, store: Path, name: str) -> str:
    """The code of the error, or what became of it."""
    options: dict[str, Any] = {"ids_field": name} if name == "input_ids" else {"columns": ["n"]}
    if name == "messages":
        options = {"conversations": name, "train_on": "all"}
        path.with_suffix(".jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
        options["chat_template"] = path.with_suffix(".jinja")
    try:
        packtool.tokenize(path, store, tokenizer=TOKENIZER, on_error="quarantine", workers=1, overwrite=True, **options)
    except PacktoolError as error:
        return error.code
    return "tokenized"


def fuzz(cases: int, seed: int) -> Counter[str]:
    """Try this many damaged files, and return what became of them."""
    rng, counts = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as directory:
        path, store = Path(directory) / "a.arrow", Path(directory) / "store"
        for case in range(cases):
            name, column = COLUMNS[case % len(COLUMNS)]
            data = mutated(write(path, name, column, is_stream=case % 3 > 0), rng)
            path.write_bytes(data)
            sys.stderr.write(f"{seed} {case}\n")
            counts[tokenized(path, store, name)] += 1
            strange = foreign(data, store, name)
            assert not strange, (seed, case, name, strange)
            shutil.rmtree(store, ignore_errors=True)
    return counts


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.stdout.write(f"{dict(fuzz(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1))}\n")
