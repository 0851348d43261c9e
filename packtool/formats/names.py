"""The names of a dataset's files, and the element types of its arrays."""

from __future__ import annotations

import re
from itertools import chain
from typing import Any

import numpy as np

from packtool.options.names import EXPORTED_FILES

TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIGS = ("tokenizer_config.json", "special_tokens_map.json")
"""Configurations that may lie next to it, most telling first."""
MORE_TEMPLATES = "additional_chat_templates"
"""Directory of templates that have names, as `save_pretrained` of Transformers writes them."""
CHAT_TEMPLATES = ("chat_template.jinja", "chat_template.json", f"{MORE_TEMPLATES}/tool_use.jinja")
GENERATION_CONFIG = "generation_config.json"
"""Names the tokens that generation stops at."""
TOKENIZER_FILES = (TOKENIZER, *TOKENIZER_CONFIGS, *CHAT_TEMPLATES, GENERATION_CONFIG)
"""All files of a tokenizer."""
LENGTHS = "lengths.npy"
CHOSEN = "chosen.npy"
BATCHES = "batches.npy"
REPORT = "report.json"
REJECTED = "rejected.jsonl"
UNFINISHED = "unfinished"
"""Directory for what only an unfinished output has."""
LOCK = "lock"
MARKER = f"{UNFINISHED}/state.json"
"""The file with the command that works here."""
PIECES = f"{UNFINISHED}/pieces"
"""Directory for the records of finished pieces."""
SCRATCH = f"{UNFINISHED}/scratch"
"""Directory for files that go when the output is whole."""

SMALL = np.dtype("<u2")
LARGE = np.dtype("<u4")
OFFSET = np.dtype("<i8")
SEGMENT = np.dtype([("document", "<i8"), ("start", "<u4"), ("length", "<u4"), ("repeated", "<u4")])
"""One segment of a row as stored. `document` -1 is padding, -2 an EOS that the strategy inserted."""

LOSS = np.dtype("|u1")
"""Whether a token trains: 1, or 0 where its loss is left out. A dataset without this column trains on all tokens."""

NUMBER = np.dtype("<f8")
"""Type of the values of a kept column of numbers; a missing value is NaN."""
CATEGORY = np.dtype("<i4")
"""Type of the values of a kept column of categories: places in the list of names; a missing value is `MISSING`."""
MISSING = -1
MOST_CATEGORIES = 1 << 16
"""The most different values of a column of categories."""

ORIGIN = np.dtype([("file", "<u4"), ("record", "<u8"), ("hash", "<u8")])
"""Where a document came from: its file by number, its record there counted from 1 after those before the shard, and the
xxh3-64 of its UTF-8 text."""


def token_dtype(vocab_size: int) -> np.dtype[Any]:
    """Return the smaller of uint16 and uint32 that holds every id below `vocab_size`.

    >>> token_dtype(65536).str, token_dtype(65537).str
    ('<u2', '<u4')
    """
    return SMALL if vocab_size <= 1 << 16 else LARGE


def shard_file(kind: str, number: int | tuple[int, int]) -> str:
    """Return the name of one file of a shard, by its number, or by that of the piece that has it and its number there.

    Columns, the scalars kept with the tokens, are in Parquet.

    >>> shard_file("tokens", 7), shard_file("columns", (12, 0))
    ('tokens-00007.npy', 'columns-00012-000.parquet')
    """
    if isinstance(number, int):
        name = f"{kind}-{number:05d}"
    else:
        piece, inside = number
        name = f"{kind}-{piece:05d}-{inside:03d}"
    suffix = "parquet" if kind == "columns" else "npy"
    return f"{name}.{suffix}"


def column_file(number: int) -> str:
    """Return the name of the values of a column that a packed dataset keeps of its documents.

    >>> column_file(0)
    'column-00000.npy'
    """
    return shard_file("column", number)


def categories_file(number: int) -> str:
    """Return the name of the list of names of such a column.

    >>> categories_file(0)
    'categories-00000.json'
    """
    return f"categories-{number:05d}.json"


def bucket_directory(sequence_length: int) -> str:
    """Return the name of the directory of one bucket of a multi-bucket dataset.

    >>> bucket_directory(2048)
    'bucket-02048'
    """
    return f"bucket-{sequence_length:05d}"


_EXPORTED = [
    re.escape(file).replace(r"\*", r"(?:train|tokens|shard|chunk)(?:-\d{5,}){0,2}")
    for file in chain.from_iterable(EXPORTED_FILES.values())
]
OTHERS = "|".join(
    [
        *map(re.escape, (REPORT, REJECTED, *TOKENIZER_FILES)),
        rf"{MORE_TEMPLATES}/[^/]+\.jinja",
        r"columns-\d{5,}(-\d{3,})?\.parquet",
        r"categories-\d{5,}\.json",
        *_EXPORTED,
    ]
)
"""Names of the files that a manifest may list, apart from arrays."""
_OF_DATASET = rf"(bucket-\d{{5,}}/)?[a-z_]+(-\d{{5,}}(-\d{{3,}})?)?\.npy|{OTHERS}|(run|manifest)\.json"
_OF_WORK = rf"{UNFINISHED}/({LOCK}|state\.json|(pieces|scratch)/.*)"
_PARTIAL = r"(\.[0-9a-f]{8})?\.partial"


def is_ours(name: str) -> bool:
    """Return whether packtool may have written a file of this name in an output.

    >>> is_ours("tokens-00000.npy"), is_ours("unfinished/state.json"), is_ours("notes.txt")
    (True, True, False)
    """
    return re.fullmatch(f"({_OF_DATASET}|{_OF_WORK})({_PARTIAL})?", name) is not None


def is_begun(name: str) -> bool:
    """Return whether a file shows that a run has begun here; a run that was killed before that leaves only its lock.

    >>> [is_begun(f"unfinished/{name}") for name in ("lock", "state.json.0123abcd.partial", "state.json")]
    [False, False, True]
    """
    return re.fullmatch(rf"{UNFINISHED}/({LOCK}|state\.json{_PARTIAL})", name) is None
