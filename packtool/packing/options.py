"""The options of all strategies, what a strategy is, and the checks that need no lengths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction

from packtool.errors import UsageError
from packtool.plan import Ints, Plan

LARGEST_ROW = 1 << 24
"""The longest row (and atom) that is planned: planning time and memory grow with it."""
DEFAULT_BUCKETS = (2048, 4096, 8192, 16384)
DEFAULT_EXTRA_CAPACITY = 50


@dataclass(frozen=True)
class PackOptions:
    """The options that decide a plan. None (or the default) means "not given".

    Attributes:
        sequence_length: tokens in a row, L.
        atom_size: tokens in an atom, A; L when not given.
        remainder: what happens to tokens that do not fill the last row: ``pad`` or ``drop``.
        buckets: row lengths of multi-bucket strategies; `DEFAULT_BUCKETS` when not given.
        padding_threshold: share of a bucket that may stay empty, P.
        max_repetition: share of a row that sliding rows may repeat on average, r_max.
        extra_capacity: tokens by which a bin may exceed a row, c_extra; `DEFAULT_EXTRA_CAPACITY` when not given.
        min_bucket: the shortest row of ``decompose``; 1 when not given.
        window_tokens: tokens that are planned together at most.
        optimize: solve for near-optimal bins instead of the greedy ones.
    """

    sequence_length: int | None = None
    atom_size: int | None = None
    remainder: str = "pad"
    buckets: tuple[int, ...] | None = None
    padding_threshold: Fraction = Fraction(1, 100)
    max_repetition: Fraction = Fraction(3, 10)
    extra_capacity: int | None = None
    min_bucket: int | None = None
    window_tokens: int = 1 << 34
    optimize: bool = False

    @property
    def length(self) -> int:
        """L, where the strategy requires it."""
        assert self.sequence_length is not None
        return self.sequence_length

    @property
    def atom(self) -> int:
        """A: L unless given."""
        return self.length if self.atom_size is None else self.atom_size

    @property
    def bucket_sizes(self) -> tuple[int, ...]:
        """Bucket sizes in ascending order."""
        return DEFAULT_BUCKETS if self.buckets is None else tuple(sorted(self.buckets))

    @property
    def extra(self) -> int:
        """c_extra: its default unless given, and always less than a row."""
        return min(DEFAULT_EXTRA_CAPACITY, self.length - 1) if self.extra_capacity is None else self.extra_capacity

    @property
    def smallest_bucket(self) -> int:
        """The shortest row of ``decompose``."""
        return 1 if self.min_bucket is None else self.min_bucket


@dataclass(frozen=True)
class Strategy:
    """One way to turn document lengths into plans.

    Attributes:
        name: as on the command line.
        summary: what it does, in one line.
        paper: where it comes from.
        accepts: the options it takes. One that takes `sequence_length` requires it.
        multi_bucket: it gives one plan for each row length, in ascending order, rather than one plan.
        windowed: it plans windows of at most `window_tokens` tokens, one after the other.
        plan: lengths (each with its EOS, at least 1) and checked options to plans.
    """

    name: str
    summary: str
    paper: str
    accepts: frozenset[str]
    multi_bucket: bool
    windowed: bool
    plan: Callable[[Ints, PackOptions], list[Plan]]


def check(strategy: Strategy, options: PackOptions) -> None:
    """Refuse options that the strategy does not take, lacks, or cannot obey.

    Raises:
        UsageError: names the option and the remedy.
    """
    for field in fields(PackOptions):
        if getattr(options, field.name) != field.default:
            _check_taken(strategy, options, field.name)
    if "sequence_length" in strategy.accepts:
        if options.sequence_length is None:
            raise UsageError(
                "missing-option",
                f"the strategy {strategy.name} needs the length of a row",
                remedy="give --sequence-length, such as 2048",
                where="--sequence-length",
            )
        _within("sequence_length", options.sequence_length, 2, LARGEST_ROW)
    if options.atom_size is not None:
        _check_atom(options)
    if "buckets" in strategy.accepts:
        _check_buckets(options.bucket_sizes)
    if options.remainder not in ("pad", "drop"):
        raise UsageError(
            "bad-option", f"{options.remainder!r} is unknown", remedy="give pad or drop", where="--remainder"
        )
    _within("padding_threshold", options.padding_threshold, 0, 1)
    _within("max_repetition", options.max_repetition, 0, 1)
    if options.extra_capacity is not None:
        _within("extra_capacity", options.extra, 0, options.length - 1)
    _within("min_bucket", options.smallest_bucket, 1, options.sequence_length)
    _within("window_tokens", options.window_tokens, 1, None)


def flag(name: str) -> str:
    """The command-line spelling of an option's name.

    >>> flag("atom_size")
    '--atom-size'
    """
    return "--" + name.replace("_", "-")


def _check_taken(strategy: Strategy, options: PackOptions, name: str) -> None:
    atom_is_row = name == "atom_size" and options.atom_size == options.sequence_length
    if name in strategy.accepts | {"window_tokens"} or atom_is_row:
        return
    if name == "sequence_length":
        remedy = "give --buckets instead: its rows have several lengths"
    elif name == "atom_size":
        remedy = "leave it out: its atoms are rows; other atom sizes are for concat and padding"
    else:
        remedy = f"leave it out; {strategy.name} takes {', '.join(sorted(map(flag, strategy.accepts)))}"
    raise UsageError(
        "option-not-taken", f"the strategy {strategy.name} does not take this option", remedy=remedy, where=flag(name)
    )


def _within(name: str, value: int | Fraction, low: int, high: int | None) -> None:
    if value < low or (high is not None and value > high):
        span = f"from {low}" + ("" if high is None else f" to {high}")
        raise UsageError("bad-option", f"{value} is out of range", remedy=f"give a number {span}", where=flag(name))


def _check_atom(options: PackOptions) -> None:
    _within("atom_size", options.atom, 1, LARGEST_ROW)
    if options.length % options.atom and options.atom % options.length:
        raise UsageError(
            "bad-atom-size",
            f"{options.atom} does not fit the sequence length {options.length}",
            remedy="give a divisor or a multiple of the sequence length",
            where="--atom-size",
        )


def _check_buckets(sizes: tuple[int, ...]) -> None:
    for size in sizes:
        _within("buckets", size, 2, LARGEST_ROW)
    if not sizes or len(set(sizes)) < len(sizes):
        raise UsageError(
            "bad-option", "the sizes must differ", remedy="name each size once, such as 2048,4096", where="--buckets"
        )
