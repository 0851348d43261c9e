"""Write a sample corpus of real text, some 13 MB, from what every Python installation carries.

    python scripts/sample_corpus.py OUTPUT

It has three files, one of each kind that packtool reads, and of three kinds of text: long sources (`sources.jsonl`),
short docstrings (`docstrings.parquet`), and the language reference (`reference.jsonl.gz`). One Python version, with one
version of pyarrow, gives the same bytes every time. The text is under Python's own licence (PSF-2.0).
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from stdlib_text import Document, docstrings, modules, reference

LEAST_DOCUMENTS = 2_000
LEAST_BYTES = 10_000_000


def write(output: Path) -> tuple[int, int]:
    """Write the corpus into `output`; return its documents and its bytes of UTF-8 text."""
    output.mkdir(parents=True, exist_ok=True)
    parts = {
        "sources.jsonl": list(modules()),
        "docstrings.parquet": list(docstrings()),
        "reference.jsonl.gz": list(reference()),
    }
    documents = sum(map(len, parts.values()))
    size = sum(len(document.text.encode()) for part in parts.values() for document in part)
    if documents < LEAST_DOCUMENTS or size < LEAST_BYTES:
        raise SystemExit(
            f"{sys.executable}: its standard library has only {documents:,} documents and {size:,} bytes of text. "
            "Use a complete Python installation: make clean, then make demo PYTHON=/path/to/python3"
        )
    (output / "sources.jsonl").write_bytes(jsonl(parts["sources.jsonl"]))
    rows = [document._asdict() for document in parts["docstrings.parquet"]]
    pq.write_table(pa.Table.from_pylist(rows), output / "docstrings.parquet", row_group_size=2_000)
    # Without a name or a time in its header, the archive depends on its content alone. It is the file that make waits
    # for, so it comes last.
    (output / "reference.jsonl.gz").write_bytes(gzip.compress(jsonl(parts["reference.jsonl.gz"]), mtime=0))
    return documents, size


def jsonl(documents: Iterable[Document]) -> bytes:
    """One JSON object per line, with the fields of `Document`."""
    return b"".join(json.dumps(document._asdict(), ensure_ascii=False).encode() + b"\n" for document in documents)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: sample_corpus.py OUTPUT")
    written, text_bytes = write(Path(sys.argv[1]))
    print(f"{sys.argv[1]}: {written:,} documents, {text_bytes / 1e6:.1f} MB of text")  # noqa: T201
