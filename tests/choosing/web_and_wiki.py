"""Two stores that share texts, and have copies of their own; and what is packed of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import packtool
from packtool.choosing.asked import Asked
from packtool.choosing.settle import settle
from packtool.formats.known import known
from packtool.formats.packed import PackedDataset
from packtool.options.documents import DocumentOptions
from tests.making import write_records


def web_and_wiki(directory: Path) -> list[Path]:
    """The stores, and beside each the lines that it was made of."""
    shared = [f"a text that both have, number {n}" for n in range(40)]
    web = [f"web page {n} " * (1 + n % 7) for n in range(150)]
    wiki = [f"article {n} " * (1 + n % 11) for n in range(60)]
    return [
        store_of(directory / "web", [*web, *shared, *web[:10]]),
        store_of(directory / "wiki", [*shared[::-1], *wiki]),
    ]


def store_of(path: Path, documents: Sequence[str | dict[str, Any]], **options: Any) -> Path:
    """A store of these texts or records, from a file beside it."""
    records = [{"text": document} if isinstance(document, str) else document for document in documents]
    file = write_records(path.with_suffix(".jsonl"), records)
    packtool.tokenize(file, path, **{"workers": 1, "encoder": "tokenizers", **options})
    return path


def asked_of(stores: Sequence[Path], options: DocumentOptions) -> Asked:
    """What options ask of these stores."""
    return settle(Asked.of(options, 16), list(map(known, stores)), known)


def pack(stores: list[Path], output: Path, **options: Any) -> PackedDataset:
    """Rows of 32 tokens."""
    packtool.pack(stores, output, **{"strategy": "bfd", "sequence_length": 32, **options})
    return PackedDataset(output)
