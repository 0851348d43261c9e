"""Options that several commands share: single options, groups that a command inherits, and terminal options."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from packtool.options.declare import Option
from packtool.options.kinds import FLAG, KEPT, LOCATION, NUMBER, PATH, PLACE, PLACES, SIZE, TEXT, TEXT_OR_ID, KeptField
from packtool.options.names import TextFormatName

LARGEST_ROW = 1 << 24
"""The longest row (and atom) that is planned: planning time and memory grow with it."""
LARGEST_SEED = (1 << 64) - 1
_of_call = partial(Option, FLAG, group="General", in_file=False)

Many = Sequence[Path | str] | Path | str

OutputOption = Annotated[
    Path | str,
    Option(PLACE, "Directory or URL to write; must be empty or new.", "Output", short="-o", metavar="DIR", local=True),
]
Staging = Annotated[
    Path | str | None,
    Option(
        PATH,
        "Local directory for files fetched from URLs, and for files until they are uploaded.",
        "Rarely needed",
        metavar="DIR",
        default="in the user's cache",
        local=True,
    ),
]
StagingLimit = Annotated[
    str | int | None,
    Option(
        SIZE,
        "Most disk space for inputs at URLs; larger inputs are fetched shard by shard, and rows move twice.",
        "Rarely needed",
        default="half of what is free there",
        local=True,
    ),
]
Seed = Annotated[int, Option(NUMBER, "Seed of every random choice.", "Order", low=0, high=LARGEST_SEED)]
DEFAULT_SEED = 42
SHARD_TOKENS = 1 << 28
"""Tokens after which a shard of rows closes, by default."""
WorkersOption = Annotated[
    int | None,
    Option(
        NUMBER,
        "Parallel workers; the output does not depend on it.",
        "Resources",
        short="-j",
        low=1,
        high=1 << 16,
        default="all CPUs",
        local=True,
    ),
]
Quiet = Annotated[bool, Option(FLAG, "Show no progress bar.", "General", in_file=False, python_only=True)]
IndexOnly = Annotated[
    bool, Option(FLAG, "Write where each document lies, but no tokens; readers gather them from the stores.", "Output")
]
StoresMoved = Annotated[
    Many,
    Option(
        PLACES,
        "A token store that a dataset without tokens was packed from; repeatable, in the same order.",
        "Input",
        metavar="STORE",
        default="where its manifest says",
    ),
]
KEEP = Option(
    KEPT,
    "Columns of the documents (tokenize --columns) that travel with the rows, as column.FIELD in a batch: categories, "
    "or with :number numbers.",
    "Which documents",
)
KeptOption = Sequence[KeptField | str] | str
CheckInput = Annotated[bool, Option(FLAG, "Verify input checksums while copying, or trust the input.", "Rarely needed")]
DryRun = Annotated[
    bool,
    Option(
        FLAG, "Say what would be read and written, and what is at the output; write nothing.", "Output", in_file=False
    ),
]

TokenizerOption = Annotated[
    str | Path | None,
    Option(
        LOCATION,
        "A tokenizer.json, a directory with one, or a hub id.",
        "Tokens",
        metavar="FILE|DIR|HUB_ID",
        default="a small byte-level BPE, for trying things out",
    ),
]
Revision = Annotated[
    str | None, Option(TEXT, "Branch, tag or commit of the hub repository.", "Rarely needed", metavar="NAME")
]
FormatOption = Annotated[
    TextFormatName | None,
    Option(
        TEXT,
        "jsonl, json (an array), parquet, arrow, text (one document a file), lines (one a line), csv or tsv (with a "
        "header).",
        "Input",
        metavar="NAME",
        default="by suffix",
        recorded=True,
    ),
]
EosToken = Annotated[
    str | int | None,
    Option(
        TEXT_OR_ID, "Token that ends every document, by text or id.", "Tokens", default="as the tokenizer's files say"
    ),
]


@dataclass(frozen=True, kw_only=True)
class Working:
    """Options of who does the work."""

    workers: WorkersOption = None
    scheduler: Annotated[
        str | None,
        Option(
            LOCATION,
            "Run on a Dask cluster: address or file of its scheduler, or local; the output is the same.",
            "Resources",
            metavar="ADDRESS",
            default="this machine's processes",
            local=True,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Writing:
    """Options of how an output is written."""

    staging: Staging = None
    overwrite: Annotated[
        bool,
        Option(
            FLAG,
            "Replace an earlier output of packtool. The old one is gone as soon as the run begins.",
            "Output",
            in_file=False,
        ),
    ] = False
    resume: Annotated[
        bool, Option(FLAG, "Continue an interrupted run; do nothing if it had finished.", "Output", in_file=False)
    ] = False
    dry_run: DryRun = False
    quiet: Quiet = True


@dataclass(frozen=True, kw_only=True)
class MovingRows(Writing, Working):
    """Options of commands that write rows, whose tokens may exceed the memory granted."""

    check_input: CheckInput = True
    memory: Annotated[
        str | int | None,
        Option(
            SIZE,
            "Memory for tokens and plans; larger jobs spill to disk.",
            "Resources",
            default="half of the machine's",
            local=True,
        ),
    ] = None
    staging_limit: StagingLimit = None


@dataclass(frozen=True, kw_only=True)
class Terminal:
    """Options of how a command is called and what it prints."""

    config: Annotated[
        Path | str | None,
        Option(
            PATH,
            "Take options from the command's table in this TOML file; flags win.",
            "General",
            metavar="FILE",
            in_file=False,
        ),
    ] = None
    progress: Annotated[
        Literal["auto", "bar", "log", "none"],
        Option(
            TEXT,
            "Show progress as bar, log (a line every 30 seconds), none, or auto: a bar on a terminal, else a log.",
            "General",
            in_file=False,
        ),
    ] = "auto"
    quiet: Annotated[bool, _of_call("Print no progress, no warnings, no summary.", short="-q")] = False
    verbose: Annotated[bool, _of_call("Log to standard error what is being done.", short="-v")] = False
    full: Annotated[bool, _of_call("Print every metric, not just the verdict.", group="Report")] = False
    ids: Annotated[bool, _of_call("Show the ids of the tokens, not their text.")] = False
    json: Annotated[bool, _of_call("Print the result as one JSON object on standard output.")] = False
