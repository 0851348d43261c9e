"""What `stats` takes."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal

from packtool.options.declare import Option
from packtool.options.kinds import COUNT, COUNT_LISTS, COUNTS, NAMES, PATH, PLACE, PLACES, SHARES, TEXT, TEXT_OR_ID
from packtool.options.names import STRATEGIES
from packtool.options.shared import Many, Quiet, Scheduler, Workers

Share = str | float | Fraction


@dataclass(frozen=True)
class StatsArguments:
    """The arguments of `packtool.stats`."""

    path: Annotated[
        Many,
        Option(
            PLACES,
            "Text files as tokenize reads them, a packed dataset, or token stores (several are packed together).",
            metavar="PATH",
            positional=True,
        ),
    ]
    _: KW_ONLY
    compare: Annotated[
        str | Sequence[str] | None,
        Option(NAMES, "Strategies to try on documents, such as concat,bfd; or all.", suggestions=("all", *STRATEGIES)),
    ] = None
    sequence_length: Annotated[
        int | Sequence[int] | None,
        Option(COUNTS, "Row lengths to try, such as 2048,8192.", short="-L", unit="tokens"),
    ] = None
    buckets: Annotated[
        Sequence[int] | Sequence[str] | None,
        Option(
            COUNT_LISTS,
            "Row lengths of buckets and length-buckets; several lists to try are set apart by a slash.",
            unit="tokens",
            default="2048,4096,8192,16384",
        ),
    ] = None
    atom_size: Annotated[
        int | Sequence[int] | None,
        Option(
            COUNTS,
            "Atom sizes to try.",
            short="-A",
            unit="tokens",
        ),
    ] = None
    extra_capacity: Annotated[
        int | Sequence[int] | None,
        Option(
            COUNTS,
            "Tokens by which bins may exceed a row, to try.",
            unit="tokens",
        ),
    ] = None
    max_repetition: Annotated[
        Share | Sequence[Share] | None,
        Option(
            SHARES,
            "Largest shares of a row to repeat, to try.",
        ),
    ] = None
    padding_threshold: Annotated[
        Share | Sequence[Share] | None,
        Option(
            SHARES,
            "Shares of a bucket that may stay empty, to try.",
        ),
    ] = None
    min_bucket: Annotated[
        int | Sequence[int] | None,
        Option(
            COUNTS,
            "Shortest rows to try.",
            unit="tokens",
        ),
    ] = None
    mix_rows: Annotated[
        str | Sequence[str] | None,
        Option(NAMES, "Mixed rows to try, unmixed ones, or both: yes,no.", metavar="yes,no"),
    ] = None
    batch_size: Annotated[
        int | None,
        Option(
            COUNT,
            "Rows in a batch (with several row lengths: of the longest), for steps per epoch and mixing.",
            short="-B",
            unit="rows",
            low=1,
        ),
    ] = None
    parameters: Annotated[
        str | int | None,
        Option(TEXT_OR_ID, "Work out the training cost of a model of this size, such as 7B.", metavar="SIZE"),
    ] = None
    html: Annotated[
        Path | str | None,
        Option(PATH, "Also write the report to this file, as one self-contained page.", metavar="FILE"),
    ] = None
    order: Annotated[
        Path | str | None,
        Option(PLACE, "Packed dataset: measure it in this order, from shuffle --order-only.", metavar="DIR"),
    ] = None
    tokenizer: Annotated[
        str | Path | None,
        Option(
            TEXT,
            "Text files: count tokens with it; with --compare, default the one of packtool.",
            metavar="FILE|DIR|HUB_ID",
        ),
    ] = None
    eos_token: Annotated[str | int | None, Option(TEXT_OR_ID, "Text files: as tokenize takes it.")] = None
    text_field: Annotated[
        str | None, Option(TEXT, "Text files: field or column with the text.", metavar="NAME", default="text")
    ] = None
    format: Annotated[
        Literal["jsonl", "parquet", "text", "lines"] | None,
        Option(TEXT, "Text files: jsonl, parquet, text or lines.", metavar="NAME", default="by content"),
    ] = None
    workers: Workers = None
    scheduler: Scheduler = None
    quiet: Quiet = True
