"""Which documents are taken, and how often."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal

from packtool.options.declare import Option
from packtool.options.kinds import (
    AMOUNT,
    COUNT,
    FLAG,
    NUMBER,
    PART,
    PATH,
    SHARD,
    SHARE,
    TEMPERATURE,
    TEXT,
    WEIGHTS,
    Part,
)
from packtool.options.shared import DEFAULT_SEED, Seed


@dataclass(frozen=True, kw_only=True)
class DocumentOptions:
    """The options that choose documents; `pack`, `stats` and `export` take the same ones."""

    mix: Annotated[
        Sequence[str] | Mapping[str, str | float],
        Option(
            WEIGHTS,
            "Take each store so many times, such as web=1,wiki=3,code=0.4; with --tokens, its share of them, such as "
            "web=70%,wiki=30%.",
            "Which documents",
            metavar="STORE=WEIGHT,...",
            default="each once",
        ),
    ] = ()
    tokens: Annotated[
        int | str | None,
        Option(
            AMOUNT, "Take so many tokens in all, such as 300B, divided by --mix or --temperature.", "Which documents"
        ),
    ] = None
    temperature: Annotated[
        Decimal | str | float | None,
        Option(
            TEMPERATURE,
            "Divide --tokens in proportion to each store's tokens to the power of 1/T: 1 is as they are, more favours "
            "small stores.",
            "Which documents",
        ),
    ] = None
    max_epochs: Annotated[
        int, Option(NUMBER, "Take no store more often than this for its share of --tokens.", "Rarely needed", low=1)
    ] = 1
    holdout: Annotated[
        Part | str | float | None,
        Option(
            PART,
            "Hold out documents by the hash of their text: 0.5%, or 1000 documents or 2M tokens of all stores.",
            "Which documents",
        ),
    ] = None
    part: Annotated[
        Literal["train", "holdout"],
        Option(TEXT, "Take the train side or the holdout itself.", "Which documents"),
    ] = "train"
    holdout_seed: Annotated[
        int,
        Option(
            NUMBER,
            "Seed of the hold-out; another one holds out other documents.",
            "Rarely needed",
            low=0,
            high=(1 << 62) - 1,
        ),
    ] = 0
    shard_of: Annotated[
        str | None,
        Option(SHARD, "Take one of several equal parts by the hash of the text, such as 1/8.", "Which documents"),
    ] = None
    drop_duplicates: Annotated[
        bool, Option(FLAG, "Take each text once, the first of its copies.", "Which documents")
    ] = False
    min_tokens: Annotated[
        int | None,
        Option(COUNT, "Leave out documents of fewer tokens, EOS included.", "Which documents", unit="tokens", low=1),
    ] = None
    max_tokens: Annotated[
        int | None,
        Option(COUNT, "Leave out documents of more tokens, EOS included.", "Which documents", unit="tokens", low=1),
    ] = None
    sample: Annotated[
        Fraction | str | float | None,
        Option(SHARE, "Take a share of the documents of each length, such as 17%.", "Which documents"),
    ] = None
    sample_interval: Annotated[
        int | None,
        Option(
            COUNT,
            "Width of the intervals of lengths that --sample draws from.",
            "Rarely needed",
            unit="tokens",
            low=1,
            default="the sequence length",
        ),
    ] = None
    exclude: Annotated[
        Path | str | None,
        Option(
            PATH,
            "Leave out the documents that this file lists, one id or FILE:LINE a line.",
            "Which documents",
            metavar="FILE",
        ),
    ] = None
    seed: Seed = DEFAULT_SEED
