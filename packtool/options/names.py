"""The names of strategies, shuffles and formats, in registries that are cheap to import."""

from __future__ import annotations

from typing import Literal, get_args

StrategyName = Literal[
    "concat",
    "padding",
    "ffd",
    "bfd",
    "first-fit-shuffle",
    "best-fit-in-order",
    "bfd-extra",
    "seamless",
    "buckets",
    "length-buckets",
    "decompose",
]
STRATEGIES: tuple[StrategyName, ...] = get_args(StrategyName)
"""Every strategy, in the order of the documentation; `bfd-extra` is `bfd_extra.py` in `packtool/planning/packing/`."""
FIRST = "first"
"""The value of `--too-long` with which a row has the first tokens of a longer document, and no row has the others."""
MethodName = Literal["atom", "partial", "bucket"]
METHODS: tuple[MethodName, ...] = get_args(MethodName)
"""Every shuffle."""
TextFormatName = Literal["jsonl", "json", "parquet", "arrow", "text", "lines", "csv", "tsv"]
"""Every format of input; `csv` is `csv.py` in `packtool/text/corpus/formats/`."""
TEXT_FORMATS: tuple[str, ...] = get_args(TextFormatName)
ExportName = Literal[
    "megatron",
    "nanogpt",
    "llmc",
    "olmo",
    "datatrove",
    "parquet",
    "arrow",
    "megatron-bridge",
    "mds",
    "litdata",
    "jsonl",
]
EXPORTED_FILES: dict[ExportName, tuple[str, ...]] = {
    "megatron": ("*.idx", "*.bin"),
    "nanogpt": ("*.bin",),
    "llmc": ("*.bin",),
    "olmo": ("*.npy",),
    "datatrove": ("*.ds", "*.ds.index", "*.ds.loss"),
    "parquet": ("data/*.parquet",),
    "arrow": ("*.arrow", "dataset_info.json", "state.json"),
    "megatron-bridge": ("*.idx.parquet", "packed_metadata.jsonl"),
    "mds": ("*.mds", "index.json"),
    "litdata": ("*.bin", "index.json"),
    "jsonl": ("*.jsonl",),
}
"""Every format that `export` writes, with its files; `mds` is `mds.py` in `packtool/exchange/formats/`.

A * stands for train, tokens, shard or chunk and up to two numbers of five digits, such as tokens-00003.
"""
EXPORTS: tuple[ExportName, ...] = get_args(ExportName)
ImportName = Literal["megatron", "nanogpt", "llmc", "olmo", "datatrove", "parquet", "arrow", "mds", "litdata", "jsonl"]
IMPORTS: tuple[ImportName, ...] = get_args(ImportName)
"""Every format that `import` reads."""


OTHER_OPTIONS = {
    "--batch": "--batch-size",
    "--block-size": "--sequence-length",
    "--context-length": "--sequence-length",
    "--ctx": "--sequence-length",
    "--max-length": "--sequence-length",
    "--max-seq-len": "--sequence-length",
    "--max-seq-length": "--sequence-length",
    "--model-max-length": "--sequence-length",
    "--seq-len": "--sequence-length",
    "--seq-length": "--sequence-length",
    "--algorithm": "--strategy",
    "--strategy": "--compare",
    "--packing": "--strategy",
    "-s": "--strategy",
    "--jobs": "--workers",
    "--num-proc": "--workers",
    "--num-workers": "--workers",
    "--processes": "--workers",
    "--threads": "--workers",
    "--model": "--tokenizer",
    "--tokenizer-path": "--tokenizer",
    "--vocab": "--tokenizer",
    "--vocab-file": "--tokenizer",
    "--out": "--output",
    "--out-dir": "--output",
    "--output-dir": "--output",
    "--output-prefix": "--output",
    "--force": "--overwrite",
    "--column": "--text-field",
    "--json-keys": "--text-field",
    "--key": "--text-field",
    "--text-column": "--text-field",
    "--append-eod": "--eos-token",
    "--eod": "--eos-token",
    "--eos": "--eos-token",
    "--shard-size": "--shard-tokens",
}
"""Names of options in other tools, and here."""


def any_of(names: tuple[str, ...]) -> str:
    """List names as a sentence does.

    >>> any_of(METHODS)
    'atom, partial or bucket'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
