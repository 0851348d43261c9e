"""The options of strategies, which determine a plan."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, Literal, Self

from packtool.options.declare import Option
from packtool.options.kinds import COUNT, COUNTS, FLAG, ROW_LENGTH, SHARE, TEXT, parse_share
from packtool.options.shared import DEFAULT_SEED, LARGEST_ROW, Seed

EXTRA_CAPACITY = 50
_EXCHANGING = ("ffd", "bfd", "bfd-extra", "seamless", "buckets")
_rows = partial(Option, group="Rows", recorded=True)
_length = partial(_rows, COUNT, unit="tokens", high=LARGEST_ROW)
_tuning = partial(Option, group="Tuning of strategies", recorded=True)


@dataclass(frozen=True, kw_only=True)
class PackOptions:
    """The options that determine a plan, as strategies receive them."""

    sequence_length: Annotated[
        int | None,
        _rows(
            ROW_LENGTH,
            "Tokens in a row.",
            unit="tokens",
            high=LARGEST_ROW,
            short="-L",
            low=2,
            not_taken_by=("buckets", "length-buckets"),
            instead="give --buckets instead: its rows have several lengths",
            required=True,
        ),
    ] = None
    atom_size: Annotated[
        int | None,
        _length(
            "Tokens that move together.",
            short="-A",
            low=1,
            default="the sequence length",
            taken_by=("concat", "padding"),
            instead="leave it out: its atoms are rows; other atom sizes are for concat and padding",
        ),
    ] = None
    remainder: Annotated[
        Literal["pad", "drop"],
        _rows(
            TEXT,
            "What to do with tokens that do not fill the last row: pad it, or drop and count them.",
            taken_by=("concat", "padding", "bfd-extra", "seamless", "length-buckets"),
        ),
    ] = "pad"
    buckets: Annotated[
        Sequence[int],
        _rows(COUNTS, "Row lengths.", unit="tokens", low=2, high=LARGEST_ROW, taken_by=("buckets", "length-buckets")),
    ] = (2048, 4096, 8192, 16384)
    padding_threshold: Annotated[
        Fraction | float | str,
        _tuning(SHARE, "Share of a row that may stay padding.", low=0, high=1, default="1%", taken_by=("buckets",)),
    ] = Fraction(1, 100)
    max_repetition: Annotated[
        Fraction | float | str,
        _tuning(
            SHARE,
            "Share of a row that may repeat the one before.",
            low=0,
            high=1,
            default="30%",
            taken_by=("seamless",),
        ),
    ] = Fraction(3, 10)
    extra_capacity: Annotated[
        int,
        _tuning(
            COUNT,
            "Tokens by which a bin may exceed a row.",
            unit="tokens",
            low=0,
            default=f"{EXTRA_CAPACITY}, but less than a row",
            taken_by=("bfd-extra", "seamless"),
        ),
    ] = EXTRA_CAPACITY
    min_bucket: Annotated[int, _tuning(COUNT, "The shortest row.", unit="tokens", low=1, taken_by=("decompose",))] = 1
    mix_rows: Annotated[
        bool | None,
        _rows(
            FLAG,
            "Exchange documents between rows, so that each holds many lengths, at the same padding or less, and "
            "the same cuts.",
            default="yes for ffd and bfd, no for the others",
            taken_by=_EXCHANGING,
        ),
    ] = None
    document_multiple: Annotated[
        int | None,
        _length(
            "Begin each document, and each piece of one, at a multiple of this many tokens of its row, with padding "
            "in between; for context parallelism, twice its size.",
            low=1,
            default="1: anywhere",
        ),
    ] = None
    max_documents_per_row: Annotated[
        int | None,
        _rows(
            COUNT,
            "Most documents in a row, for trainers that capture graphs of fixed shapes; the shortest of a fuller row "
            "move to rows of their own.",
            unit="documents",
            low=1,
            taken_by=("ffd", "bfd", "first-fit-shuffle", "buckets"),
        ),
    ] = None
    open_rows: Annotated[
        int,
        _tuning(
            COUNT,
            "Rows that are filled at a time; fewer keep documents nearer to their neighbours, more leave less padding.",
            unit="rows",
            low=1,
            taken_by=("best-fit-in-order",),
        ),
    ] = 64
    seed: Seed = DEFAULT_SEED
    window_tokens: Annotated[
        int,
        _tuning(
            COUNT, "Tokens planned together; changes the output.", unit="tokens", low=1, default="16G, which is 2^34"
        ),
    ] = 1 << 34

    def normalized(self) -> Self:
        """Return options that are written in one way: buckets ascend, and a multiple of 1 is as none.

        >>> PackOptions(buckets=(8, 4), document_multiple=1).normalized() == PackOptions(buckets=(4, 8))
        True
        """
        multiple = self.document_multiple
        if multiple == 1:
            multiple = None
        return replace(self, buckets=tuple(sorted(self.buckets)), document_multiple=multiple)

    @property
    def row_length(self) -> int:
        """L, where the strategy requires it."""
        assert self.sequence_length is not None
        return self.sequence_length

    @property
    def atom(self) -> int:
        """A: L unless given."""
        return self.row_length if self.atom_size is None else self.atom_size

    @property
    def longest_row(self) -> int:
        """L, or the largest bucket of a strategy of several row lengths."""
        return self.sequence_length or max(self.buckets)

    @property
    def multiple(self) -> int:
        """M: 1 unless given."""
        return self.document_multiple or 1

    @property
    def threshold(self) -> Fraction:
        """P, exactly as written."""
        return parse_share(self.padding_threshold)

    @property
    def repetition(self) -> Fraction:
        """r_max, exactly as written."""
        return parse_share(self.max_repetition)

    @property
    def extra(self) -> int:
        """c_extra; the default is always less than a row."""
        given = self.extra_capacity
        return min(given, self.row_length - 1) if given == EXTRA_CAPACITY else given

    def in_effect(self, name: str) -> Any:
        """Return the value that a strategy goes by, as the manifest records it."""
        return self.extra if name == "extra_capacity" else getattr(self, name)
