"""The options of `shuffle` and `materialize`, which write the rows of a packed dataset again."""

from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from packtool.options.declare import Option
from packtool.options.kinds import COUNT, FLAG, NUMBER, PLACE, TEXT
from packtool.options.names import METHODS, MethodName, any_of
from packtool.options.shared import (
    KEEP,
    LARGEST_ROW,
    LARGEST_SEED,
    IndexOnly,
    KeptOption,
    MovingRows,
    OutputOption,
    StoresMoved,
)

_count = partial(Option, COUNT, group="Order", low=1)
_tokens = partial(_count, unit="tokens", high=LARGEST_ROW)


@dataclass(frozen=True)
class ShuffleArguments(MovingRows):
    """The arguments of `packtool.shuffle`."""

    source: Annotated[
        Path | str,
        Option(PLACE, "A packed dataset; for --method=partial a token store.", metavar="SOURCE", positional=True),
    ]
    output: OutputOption
    _: KW_ONLY
    method: Annotated[
        MethodName, Option(TEXT, f"{any_of(METHODS)}.", "Order", short="-m", metavar="NAME", suggestions=METHODS)
    ] = "atom"
    atom_size: Annotated[
        int | None,
        _tokens(
            "Tokens that move together; only a dataset packed with concat takes another number than the default.",
            short="-A",
            default="as it was packed",
            taken_by=("atom",),
        ),
    ] = None
    batch_size: Annotated[
        int | None,
        _count("Rows in a batch.", short="-B", unit="rows", high=LARGEST_ROW, taken_by=("partial",), required=True),
    ] = None
    rotate: Annotated[
        bool,
        Option(
            FLAG,
            "Rotate each lane by its own random number of tokens; or not, to evaluate or as the paper's baseline.",
            "Order",
            taken_by=("partial",),
        ),
    ] = True
    batch_tokens: Annotated[
        int | None,
        _count(
            "Tokens in a batch; a multiple of every row length.", unit="tokens", taken_by=("bucket",), required=True
        ),
    ] = None
    remainder: Annotated[
        Literal["pad", "drop"] | None,
        Option(
            TEXT,
            "What to do with rows that fill no batch: pad (smaller batches, shorter rows) or drop (in no batch).",
            "Order",
            default="pad for bucket, drop for partial",
            taken_by=("partial", "bucket"),
        ),
    ] = None
    sequence_length: Annotated[
        int | None, _tokens("Tokens in a row.", short="-L", taken_by=("partial",), required=True)
    ] = None
    keep: Annotated[KeptOption, replace(KEEP, taken_by=("partial",))] = ()
    seed: Annotated[
        int | None,
        Option(
            NUMBER,
            "Seed of every random choice.",
            "Order",
            low=0,
            high=LARGEST_SEED,
            default="the one the dataset was packed with, else 42",
        ),
    ] = None
    epoch: Annotated[
        int,
        Option(
            NUMBER,
            "Number of the order; the orders of a seed are independent of each other.",
            "Order",
            low=0,
            high=(1 << 32) - 1,
        ),
    ] = 0
    index_only: IndexOnly = False
    store: StoresMoved = ()


@dataclass(frozen=True)
class MaterializeArguments(MovingRows):
    """The arguments of `packtool.materialize`."""

    source: Annotated[
        Path | str,
        Option(
            PLACE,
            "A packed dataset without tokens; for --index-only, one with them.",
            metavar="SOURCE",
            positional=True,
        ),
    ]
    output: OutputOption
    _: KW_ONLY
    index_only: IndexOnly = False
    store: StoresMoved = ()
