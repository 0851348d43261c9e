"""Options that several commands have."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from packtool.options.declare import Option
from packtool.options.kinds import FLAG, NUMBER, PATH, PLACE, SIZE, TEXT, TEXT_OR_ID

LARGEST_ROW = 1 << 24
"""The longest row (and atom) that is planned: planning time and memory grow with it."""
LARGEST_SEED = (1 << 64) - 1

Many = Sequence[Path | str] | Path | str

Output = Annotated[
    Path | str, Option(PLACE, "Directory or URL to write; must be empty or new.", short="-o", metavar="DIR")
]
Staging = Annotated[
    Path | str | None,
    Option(
        PATH,
        "Local directory for what is fetched from URLs, and written until it is uploaded.",
        metavar="DIR",
        default="in the user's cache",
    ),
]
StagingLimit = Annotated[
    str | int | None,
    Option(
        SIZE,
        "Most that is kept of inputs at URLs; larger ones are fetched shard by shard, and rows move twice.",
        default="half of what is free there",
    ),
]
Seed = Annotated[int, Option(NUMBER, "Seed of every random choice.", low=0, high=LARGEST_SEED)]
DEFAULT_SEED = 42
Workers = Annotated[
    int | None,
    Option(
        NUMBER,
        "Parallel workers; the output does not depend on it.",
        short="-j",
        low=1,
        default="all CPUs",
    ),
]
Scheduler = Annotated[
    str | None,
    Option(
        TEXT,
        "Run on a Dask cluster: address or file of its scheduler, or local; the output is the same.",
        metavar="ADDRESS",
        default="this machine's processes",
    ),
]
Task = Annotated[
    str | None,
    Option(
        TEXT,
        "Do one of several shares of the work, such as 3/8, and no more: once all are done, packtool merge OUTPUT.",
        metavar="I/N",
        default="all of it",
        in_file=False,
    ),
]
Memory = Annotated[
    str | int | None,
    Option(
        SIZE,
        "Memory for tokens, and for plans: beyond it tokens move twice, and plans lie on disk.",
        default="half of the machine's",
    ),
]
CheckInput = Annotated[bool, Option(FLAG, "Hold what is read against its checksums, beside the copying, or trust it.")]
Overwrite = Annotated[bool, Option(FLAG, "Replace what a packtool command wrote to the output.", in_file=False)]
Resume = Annotated[
    bool,
    Option(FLAG, "Go on where an interrupted run stopped; nothing to do if it had finished.", in_file=False),
]
DryRun = Annotated[bool, Option(FLAG, "Say what would be done, with sizes, and write nothing.", in_file=False)]
Quiet = Annotated[bool, Option(FLAG, "No progress bar.", in_file=False, python_only=True)]

Tokenizer = Annotated[
    str | Path | None,
    Option(
        TEXT,
        "A tokenizer.json, a directory with one, or a hub id.",
        metavar="FILE|DIR|HUB_ID",
        default="a small byte-level BPE",
    ),
]
Format = Annotated[
    Literal["jsonl", "parquet", "text", "lines", "csv", "tsv"] | None,
    Option(
        TEXT,
        "jsonl, parquet, text (one document a file), lines (one a line), csv or tsv (with a header).",
        metavar="NAME",
        default="by content",
        recorded=True,
    ),
]
EosToken = Annotated[
    str | int | None,
    Option(TEXT_OR_ID, "Token that ends every document, by text or id.", default="as the tokenizer's files say"),
]
