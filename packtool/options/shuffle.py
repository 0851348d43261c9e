"""What `shuffle` takes."""

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Literal

from packtool.options.declare import Option
from packtool.options.kinds import COUNT, FLAG, NUMBER, PLACE, SIZE, TEXT
from packtool.options.names import METHODS, listed
from packtool.options.shared import (
    LARGEST_ROW,
    LARGEST_SEED,
    CheckInput,
    DryRun,
    Output,
    Overwrite,
    Quiet,
    Resume,
    Scheduler,
    Staging,
    StagingLimit,
    Task,
    Workers,
)


@dataclass(frozen=True)
class ShuffleArguments:
    """The arguments of `packtool.shuffle`."""

    source: Annotated[
        Path | str,
        Option(
            PLACE,
            "A packed dataset; for --method partial a token store, or with --order-only what it made of one.",
            metavar="SOURCE",
            positional=True,
        ),
    ]
    output: Output
    _: KW_ONLY
    method: Annotated[str, Option(TEXT, f"{listed(METHODS)}.", short="-m", metavar="NAME", suggestions=METHODS)] = (
        "atom"
    )
    atom_size: Annotated[
        int | None,
        Option(
            COUNT,
            "Tokens that move together; for concat, other than when packed.",
            short="-A",
            unit="tokens",
            low=1,
            high=LARGEST_ROW,
            taken_by=("atom",),
        ),
    ] = None
    batch_size: Annotated[
        int | None,
        Option(
            COUNT,
            "Rows in a batch.",
            short="-B",
            unit="rows",
            low=1,
            high=LARGEST_ROW,
            taken_by=("partial",),
            required=True,
        ),
    ] = None
    batch_tokens: Annotated[
        int | None,
        Option(
            COUNT,
            "Tokens in a batch; a multiple of every row length.",
            unit="tokens",
            low=1,
            taken_by=("bucket",),
            required=True,
        ),
    ] = None
    remainder: Annotated[
        Literal["pad", "drop"] | None,
        Option(
            TEXT,
            "What fills no batch: smaller batches and shorter rows, padded (pad), or in no batch (drop).",
            default="pad for bucket, drop for partial",
            taken_by=("partial", "bucket"),
        ),
    ] = None
    sequence_length: Annotated[
        int | None,
        Option(
            COUNT,
            "Tokens in a row.",
            short="-L",
            unit="tokens",
            low=1,
            high=LARGEST_ROW,
            taken_by=("partial",),
            required=True,
        ),
    ] = None
    seed: Annotated[
        int | None,
        Option(
            NUMBER,
            "Seed of every random choice.",
            low=0,
            high=LARGEST_SEED,
            default="the one the dataset was packed with, else 42",
        ),
    ] = None
    epoch: Annotated[
        int,
        Option(NUMBER, "Another order from the same seed, independent of the others.", low=0, high=(1 << 32) - 1),
    ] = 0
    order_only: Annotated[
        bool,
        Option(FLAG, "Write the order alone, for packtool.open(SOURCE, order=OUTPUT)."),
    ] = False
    memory: Annotated[str | int, Option(SIZE, "Memory for tokens, such as 512MiB; beyond it they move twice.")] = "1GiB"
    workers: Workers = None
    scheduler: Scheduler = None
    task: Task = None
    check_input: CheckInput = True
    staging: Staging = None
    staging_limit: StagingLimit = None
    overwrite: Overwrite = False
    resume: Resume = False
    dry_run: DryRun = False
    quiet: Quiet = True
