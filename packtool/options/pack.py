"""What `pack` takes: the options of its strategies, and the others."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from packtool.options.declare import Option, flag
from packtool.options.kinds import (
    COUNT,
    COUNTS,
    FLAG,
    NUMBER,
    PATH,
    PLACES,
    SHARE,
    TEXT,
    TEXT_OR_ID,
    TEXT_OR_NUMBER,
    WEIGHTS,
    exact,
)
from packtool.options.names import STRATEGIES, listed
from packtool.options.shared import (
    LARGEST_ROW,
    CheckInput,
    DryRun,
    Many,
    Memory,
    Output,
    Overwrite,
    Quiet,
    Resume,
    Scheduler,
    Seed,
    Staging,
    StagingLimit,
    Task,
    Workers,
)

EXTRA_CAPACITY = 50


@dataclass(frozen=True, kw_only=True)
class PackOptions:
    """The options that decide a plan; what a strategy is given."""

    sequence_length: Annotated[
        int | None,
        Option(
            COUNT,
            "Tokens in a row.",
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
            "Tokens that do not fill the last row: pad it, or drop them (counted).",
            taken_by=("concat", "padding", "bfd-extra", "seamless", "length-buckets"),
            recorded=True,
        ),
    ] = "pad"
    buckets: Annotated[
        Sequence[int],
        Option(
            COUNTS,
            "Row lengths.",
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
            low=0,
            high=1,
            default="0.01",
            taken_by=("buckets",),
            recorded=True,
        ),
    ] = Fraction(1, 100)
    max_repetition: Annotated[
        Fraction | float | str,
        Option(
            SHARE,
            "Share of a row that may repeat the one before.",
            low=0,
            high=1,
            default="0.3",
            taken_by=("seamless",),
            recorded=True,
        ),
    ] = Fraction(3, 10)
    extra_capacity: Annotated[
        int,
        Option(
            COUNT,
            "Tokens by which a bin may exceed a row.",
            unit="tokens",
            low=0,
            default=f"{EXTRA_CAPACITY}, but less than a row",
            taken_by=("bfd-extra", "seamless"),
            recorded=True,
        ),
    ] = EXTRA_CAPACITY
    min_bucket: Annotated[
        int, Option(COUNT, "The shortest row.", unit="tokens", low=1, taken_by=("decompose",), recorded=True)
    ] = 1
    optimize: Annotated[
        bool,
        Option(
            FLAG,
            "Near-optimal bins by linear programming; needs scipy.",
            taken_by=("ffd", "bfd"),
            recorded=True,
        ),
    ] = False
    mix_rows: Annotated[
        bool | None,
        Option(
            FLAG,
            "Exchange documents between rows, so that each holds many lengths; rows stay as full as they are.",
            default="yes for ffd and bfd, no for the others",
            taken_by=("ffd", "bfd", "bfd-extra", "seamless", "buckets"),
            recorded=True,
        ),
    ] = None
    seed: Seed = 42
    window_tokens: Annotated[
        int,
        Option(
            COUNT,
            "Tokens planned together; changes the output.",
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
        """The value that a strategy goes by, as the manifest records it."""
        return self.extra if name == "extra_capacity" else getattr(self, name)


@dataclass(frozen=True)
class PackArguments(PackOptions):
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
            f"{listed(STRATEGIES)}.",
            metavar="NAME",
            suggestions=STRATEGIES,
        ),
    ]
    mix: Annotated[
        Sequence[str],
        Option(
            WEIGHTS,
            "How often each store is packed, such as web=1,wiki=3,code=0.4; with --tokens, its share of them.",
            metavar="STORE=WEIGHT,...",
            default="each once",
        ),
    ] = ()
    tokens: Annotated[
        int | str | None,
        Option(TEXT_OR_ID, "Tokens in all, such as 300B, of which --mix gives the shares.", metavar="N"),
    ] = None
    max_epochs: Annotated[int, Option(NUMBER, "Epochs of a store that a share of --tokens may take.", low=1)] = 1
    holdout: Annotated[
        str | int | None,
        Option(
            TEXT_OR_ID,
            "Hold out documents by the hash of their text: 0.5%, or 1000 documents or 2M tokens of all stores.",
            metavar="PART",
        ),
    ] = None
    part: Annotated[Literal["train", "holdout"], Option(TEXT, "Pack the train side or the holdout itself.")] = "train"
    holdout_seed: Annotated[
        int, Option(NUMBER, "Another seed holds out other documents.", low=0, high=(1 << 62) - 1)
    ] = 0
    shard_of: Annotated[
        str | None,
        Option(TEXT, "One of several equal parts by the hash of the text, such as 1/8.", metavar="I/N"),
    ] = None
    drop_duplicates: Annotated[bool, Option(FLAG, "Pack each text once, the first of its copies.")] = False
    min_tokens: Annotated[
        int | None, Option(COUNT, "Leave out documents of fewer tokens, EOS included.", unit="tokens", low=1)
    ] = None
    max_tokens: Annotated[
        int | None, Option(COUNT, "Leave out documents of more tokens, EOS included.", unit="tokens", low=1)
    ] = None
    sample: Annotated[
        str | float | None,
        Option(TEXT_OR_NUMBER, "Pack a share of the documents of each length, such as 17%.", metavar="SHARE"),
    ] = None
    sample_interval: Annotated[
        int | None,
        Option(
            COUNT,
            "Width of the intervals of lengths that --sample draws from.",
            unit="tokens",
            low=1,
            default="the sequence length",
        ),
    ] = None
    exclude: Annotated[
        Path | str | None, Option(PATH, "Leave out the documents that this file lists, one id or FILE:LINE a line.")
    ] = None
    shuffle: Annotated[bool, Option(FLAG, "Permute atoms, or keep corpus order.")] = True
    pad_token: Annotated[
        str | int | None,
        Option(TEXT_OR_ID, "Padding token, by text or id.", default="the EOS token", recorded=True),
    ] = None
    shard_tokens: Annotated[
        int,
        Option(
            COUNT,
            "Tokens after which a shard closes.",
            unit="tokens",
            low=1,
            default="256M, which is 2^28",
            recorded=True,
        ),
    ] = 1 << 28
    segments: Annotated[bool, Option(FLAG, "Write the table of which document lies where, or not.", recorded=True)] = (
        True
    )
    memory: Memory = None
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
