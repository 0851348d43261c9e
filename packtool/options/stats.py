"""The options of `stats`: those of plans, each with several values to try, and the choice of documents."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

from packtool.options.declare import Option, declared
from packtool.options.documents import DocumentOptions
from packtool.options.kinds import (
    AMOUNT,
    COUNT,
    COUNT_LISTS,
    COUNTS,
    FLAG,
    FLAGS,
    NAMES,
    PATH,
    PLACES,
    SHARE,
    SHARES,
    TEXT,
)
from packtool.options.names import STRATEGIES
from packtool.options.pack import PackOptions
from packtool.options.shared import EosToken, Format, Many, Quiet, Tokenizer, Working

Value = TypeVar("Value")
Several: TypeAlias = Value | Sequence[Value] | None
Share = str | float | Fraction
_SEVERAL = {COUNT: COUNTS, COUNTS: COUNT_LISTS, SHARE: SHARES, FLAG: FLAGS}
"""The kind of several values of a kind."""
_count = partial(Option, COUNT, group="Report", low=1)


def _to_try(name: str) -> Option:
    """Declare an option of plans that may have several values to try."""
    one = declared(PackOptions)[name].option
    text = f"{one.help[:-1]}; one or several to try."
    return replace(
        one, kind=_SEVERAL[one.kind], help=text, not_taken_by=(), instead="", required=False, recorded=False, default=""
    )


@dataclass(frozen=True)
class StatsArguments(DocumentOptions, Working):
    """The arguments of `packtool.stats`."""

    path: Annotated[
        Many,
        Option(
            PLACES,
            "Text files as tokenize reads them, token stores (packed together), a packed dataset, or a blend.",
            metavar="PATH",
            positional=True,
        ),
    ]
    _: KW_ONLY
    compare: Annotated[
        Several[str],
        Option(
            NAMES,
            "Strategies to try on documents, such as concat,bfd; or all.",
            "Rows",
            suggestions=("all", *STRATEGIES),
        ),
    ] = None
    sequence_length: Annotated[Several[int | str], _to_try("sequence_length")] = None
    buckets: Annotated[Several[int | str | Sequence[int]], _to_try("buckets")] = None
    atom_size: Annotated[Several[int | str], _to_try("atom_size")] = None
    extra_capacity: Annotated[Several[int | str], _to_try("extra_capacity")] = None
    max_repetition: Annotated[Several[Share], _to_try("max_repetition")] = None
    padding_threshold: Annotated[Several[Share], _to_try("padding_threshold")] = None
    min_bucket: Annotated[Several[int | str], _to_try("min_bucket")] = None
    mix_rows: Annotated[Several[bool | str], _to_try("mix_rows")] = None
    even_cost: Annotated[Several[bool | str], _to_try("even_cost")] = None
    batch_size: Annotated[
        int | None,
        _count(
            "Rows in a batch (with several row lengths: of the longest), for steps per epoch and mixing.",
            short="-B",
            unit="rows",
        ),
    ] = None
    parameters: Annotated[
        int | str | None,
        Option(
            AMOUNT, "Estimate the training cost of a model of this size, such as 7B.", "Report", metavar="SIZE", low=1
        ),
    ] = None
    ranks: Annotated[
        int | None,
        _count(
            "Estimate how long this many ranks wait for the slowest, with rows as they are dealt and dealt evenly.",
            unit="ranks",
        ),
    ] = None
    global_batch: Annotated[
        int | None,
        _count("Rows of a step over all ranks (with several row lengths: of the longest), for --ranks.", unit="rows"),
    ] = None
    hidden_size: Annotated[
        int | None,
        _count(
            "Hidden size of the model, for --ranks: adds the linear cost of tokens; else attention alone counts.",
            unit="channels",
        ),
    ] = None
    token_cost: Annotated[
        int | None,
        _count(
            "Measured linear cost of a token in query-key pairs, instead of --hidden-size.",
            unit="pairs",
        ),
    ] = None
    html: Annotated[
        Path | str | None,
        Option(PATH, "Also write the report to this file, as one self-contained page.", "Report", metavar="FILE"),
    ] = None
    tokenizer: Tokenizer = None
    eos_token: EosToken = None
    text_field: Annotated[
        str | None, Option(TEXT, "Field or column with the text.", metavar="FIELD", default="text")
    ] = None
    format: Format = None
    quiet: Quiet = True
