"""What `pack` takes: the options of its strategies, and the others."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal

from packtool.options.declare import Option, flag
from packtool.options.documents import DocumentOptions
from packtool.options.kinds import COUNT, COUNTS, FLAG, NUMBER, PLACES, SHARE, TEXT, TEXT_OR_ID, exact
from packtool.options.names import STRATEGIES, listed
from packtool.options.shared import DEFAULT_SEED, LARGEST_ROW, IndexOnly, Many, MovingRows, Output, Seed

EXTRA_CAPACITY = 50


@dataclass(frozen=True, kw_only=True)
class PackOptions:
    """The options that decide a plan; what a strategy is given."""

    sequence_length: Annotated[
        int | None,
        Option(
            COUNT,
            "Tokens in a row.",
            "Rows",
            short="-L",
            unit="tokens",
            low=2,
            high=LARGEST_ROW,
            not_taken_by=("buckets", "length-buckets"),
            instead="give --buckets instead: its rows have several lengths",
            required=True,
            recorded=True,
        ),
    ] = None
    atom_size: Annotated[
        int | None,
        Option(
            COUNT,
            "Tokens that move together.",
            "Rows",
            short="-A",
            unit="tokens",
            low=1,
            high=LARGEST_ROW,
            default="the sequence length",
            taken_by=("concat", "padding"),
            instead="leave it out: its atoms are rows; other atom sizes are for concat and padding",
            recorded=True,
        ),
    ] = None
    remainder: Annotated[
        Literal["pad", "drop"],
        Option(
            TEXT,
            "What to do with tokens that do not fill the last row: pad it, or drop and count them.",
            "Rows",
            taken_by=("concat", "padding", "bfd-extra", "seamless", "length-buckets"),
            recorded=True,
        ),
    ] = "pad"
    buckets: Annotated[
        Sequence[int],
        Option(
            COUNTS,
            "Row lengths.",
            "Rows",
            unit="tokens",
            low=2,
            high=LARGEST_ROW,
            taken_by=("buckets", "length-buckets"),
            recorded=True,
        ),
    ] = (2048, 4096, 8192, 16384)
    padding_threshold: Annotated[
        Fraction | float | str,
        Option(
            SHARE,
            "Share of a row that may stay padding.",
            "Tuning of strategies",
            low=0,
            high=1,
            default="1%",
            taken_by=("buckets",),
            recorded=True,
        ),
    ] = Fraction(1, 100)
    max_repetition: Annotated[
        Fraction | float | str,
        Option(
            SHARE,
            "Share of a row that may repeat the one before.",
            "Tuning of strategies",
            low=0,
            high=1,
            default="30%",
            taken_by=("seamless",),
            recorded=True,
        ),
    ] = Fraction(3, 10)
    extra_capacity: Annotated[
        int,
        Option(
            COUNT,
            "Tokens by which a bin may exceed a row.",
            "Tuning of strategies",
            unit="tokens",
            low=0,
            default=f"{EXTRA_CAPACITY}, but less than a row",
            taken_by=("bfd-extra", "seamless"),
            recorded=True,
        ),
    ] = EXTRA_CAPACITY
    min_bucket: Annotated[
        int,
        Option(
            COUNT,
            "The shortest row.",
            "Tuning of strategies",
            unit="tokens",
            low=1,
            taken_by=("decompose",),
            recorded=True,
        ),
    ] = 1
    optimize: Annotated[
        bool,
        Option(
            FLAG,
            "Find near-optimal bins by linear programming; needs scipy.",
            "Tuning of strategies",
            taken_by=("ffd", "bfd"),
            recorded=True,
        ),
    ] = False
    mix_rows: Annotated[
        bool | None,
        Option(
            FLAG,
            "Exchange documents between rows, so that each holds many lengths; rows stay as full as they are.",
            "Rows",
            default="yes for ffd and bfd, no for the others",
            taken_by=("ffd", "bfd", "bfd-extra", "seamless", "buckets"),
            recorded=True,
        ),
    ] = None
    even_cost: Annotated[
        bool,
        Option(
            FLAG,
            "Let the exchange between rows also even out what rows cost in attention within documents.",
            "Rows",
            taken_by=("ffd", "bfd", "bfd-extra", "seamless", "buckets"),
            recorded=True,
        ),
    ] = False
    seed: Seed = DEFAULT_SEED
    window_tokens: Annotated[
        int,
        Option(
            COUNT,
            "Tokens planned together; changes the output.",
            "Tuning of strategies",
            unit="tokens",
            low=1,
            default="16G, which is 2^34",
            recorded=True,
        ),
    ] = 1 << 34

    def __post_init__(self) -> None:
        given: object = self.buckets
        if not isinstance(given, str):  # else what is said of it must show it as it is
            object.__setattr__(self, "buckets", tuple(sorted(self.buckets)))
        for name in ("padding_threshold", "max_repetition"):
            object.__setattr__(self, name, exact(getattr(self, name), flag(name)))

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
    def bucket_sizes(self) -> tuple[int, ...]:
        """Bucket sizes in ascending order."""
        return tuple(sorted(self.buckets))

    @property
    def threshold(self) -> Fraction:
        """P, exactly as written."""
        return Fraction(self.padding_threshold)

    @property
    def repetition(self) -> Fraction:
        """r_max, exactly as written."""
        return Fraction(self.max_repetition)

    @property
    def extra(self) -> int:
        """c_extra; the default is always less than a row."""
        given = self.extra_capacity
        return min(given, self.row_length - 1) if given == EXTRA_CAPACITY else given

    def in_effect(self, name: str) -> Any:
        """Return the value that a strategy goes by, as the manifest records it."""
        return self.extra if name == "extra_capacity" else getattr(self, name)


@dataclass(frozen=True)
class PackArguments(DocumentOptions, PackOptions, MovingRows):
    """The arguments of `packtool.pack`."""

    stores: Annotated[
        Many,
        Option(PLACES, "Token stores, in the order their documents are numbered.", metavar="STORE", positional=True),
    ]
    output: Output
    _: KW_ONLY
    strategy: Annotated[
        str,
        Option(
            TEXT,
            f"Strategy: {listed(STRATEGIES)}.",
            "Rows",
            metavar="NAME",
            suggestions=STRATEGIES,
        ),
    ]
    shuffle: Annotated[
        bool, Option(FLAG, "Shuffle the rows (for concat and padding: the atoms), or keep corpus order.", "Order")
    ] = True
    too_long: Annotated[
        Literal["error", "drop", "cut"],
        Option(
            TEXT,
            "What to do with conversations longer than a row: stop with an error, drop and count them, or cut them; "
            "strategies that cut what would fit need cut.",
            "Rows",
        ),
    ] = "error"
    pad_token: Annotated[
        str | int | None,
        Option(TEXT_OR_ID, "Padding token, by text or id.", "Rows", default="the EOS token", recorded=True),
    ] = None
    shard_tokens: Annotated[
        int,
        Option(
            COUNT,
            "Tokens after which a shard closes.",
            "Rarely needed",
            unit="tokens",
            low=1,
            default="256M, which is 2^28",
            recorded=True,
        ),
    ] = 1 << 28
    segments: Annotated[
        bool,
        Option(FLAG, "Write the table that says which document lies where, or leave it out.", "Output", recorded=True),
    ] = True
    epoch: Annotated[
        int,
        Option(
            NUMBER,
            "Draw documents into the order of this epoch before packing, so that rows have other neighbours.",
            "Order",
            low=0,
            high=(1 << 32) - 1,
            default="0, which is corpus order",
        ),
    ] = 0
    index_only: IndexOnly = False
