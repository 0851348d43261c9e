"""Options that choose documents, and how often each is taken."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from packtool.options.declare import Excludes, Needs, Option
from packtool.options.kinds import (
    AMOUNT,
    COUNT,
    FIELD,
    FLAG,
    NUMBER,
    PART,
    PATHS,
    PLACE,
    SHARD,
    SHARE,
    TEMPERATURE,
    TEXT,
    WEIGHTS,
    HoldoutAmount,
)
from packtool.options.shared import DEFAULT_SEED, Many, Seed
from packtool.options.where import WHERE

_choosing = partial(Option, group="Which documents")


@dataclass(frozen=True, kw_only=True)
class DocumentOptions:
    """The options that choose documents, the same for `pack`, `stats` and `export`."""

    mix: Annotated[
        Sequence[str] | Mapping[str, str | float],
        _choosing(
            WEIGHTS,
            "Take of each store: epochs (web=1x,code=0.4x) or an amount (web=5000 documents); with --tokens, weights "
            "(web=3,code=1) or shares (web=75%,code=25%).",
            metavar="STORE=WEIGHT,...",
            default="each once",
        ),
    ] = ()
    tokens: Annotated[
        int | str | None,
        _choosing(
            AMOUNT,
            "Take this many tokens in all, such as 300B, divided among stores by --mix, by --temperature, or by size.",
        ),
    ] = None
    temperature: Annotated[
        Decimal | str | float | None,
        _choosing(
            TEMPERATURE,
            "Divide --tokens in proportion to each store's tokens to the power of 1/T: 1 keeps their proportions, more "
            "favours small stores.",
            needs=Needs("tokens", "say how many tokens it divides: --tokens=10B"),
        ),
    ] = None
    max_epochs: Annotated[
        int | None,
        Option(
            NUMBER,
            "Take no store more often than this.",
            "Rarely needed",
            low=1,
            default="1 for a share of --tokens or an amount",
        ),
    ] = None
    stop: Annotated[
        bool,
        Option(
            FLAG,
            "A store stops at --max-epochs, and the others give what it lacks of --tokens, in place of an error.",
            "Rarely needed",
            needs=Needs("tokens", "say how many tokens are divided: --tokens=10B"),
        ),
    ] = False
    holdout: Annotated[
        HoldoutAmount | str | float | None,
        _choosing(
            PART, "Hold out documents by the hash of their text: 0.5%, or 1000 documents or 2M tokens of all stores."
        ),
    ] = None
    holdout_by: Annotated[
        str | None,
        _choosing(
            FIELD,
            "Hold out by a kept field, not by text: documents of one repository, url or author are on one side.",
            needs=Needs("holdout", "say how much is held out: --holdout=0.5%"),
        ),
    ] = None
    holdout_of: Annotated[
        Path | str | None,
        _choosing(
            PLACE,
            "Hold out what a packed dataset did, by its hashes: the same side in these stores, too.",
            metavar="DATASET",
            excludes=Excludes(("holdout", "holdout_seed"), "leave it out: the dataset has them"),
        ),
    ] = None
    part: Annotated[
        Literal["train", "holdout"],
        _choosing(
            TEXT,
            "Take the train part or the holdout.",
            needs=Needs("holdout", "say how much is held out: --holdout=0.5%", or_name="holdout_of"),
        ),
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
        str | None, _choosing(SHARD, "Take one of several equal parts by the hash of the text, such as 1/8.")
    ] = None
    drop_duplicates: Annotated[bool, _choosing(FLAG, "Take each text once: the first of its copies.")] = False
    where: Annotated[
        str | None,
        _choosing(
            WHERE,
            "Take the documents for which this holds, as in Python: \"score >= 3 and lang in ('en', 'de')\". Of kept "
            "fields, store, file, line, id, tokens.",
        ),
    ] = None
    min_tokens: Annotated[
        int | None, _choosing(COUNT, "Leave out documents of fewer tokens, EOS included.", unit="tokens", low=1)
    ] = None
    max_tokens: Annotated[
        int | None, _choosing(COUNT, "Leave out documents of more tokens, EOS included.", unit="tokens", low=1)
    ] = None
    sample: Annotated[
        Fraction | str | float | None, _choosing(SHARE, "Take a share of the documents of each length, such as 17%.")
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
            needs=Needs("sample", "say how much to sample: --sample=25%"),
        ),
    ] = None
    exclude: Annotated[
        Many,
        _choosing(
            PATHS,
            "Leave out the documents that a file lists, one id or FILE:LINE a line, or whose text a token store has; "
            "may be repeated.",
            metavar="FILE|STORE",
        ),
    ] = ()
    seed: Seed = DEFAULT_SEED
