"""Which strategies are tried, with which options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from packtool.errors import UsageError
from packtool.packing import STRATEGIES, PackOptions
from packtool.packing.options import check

ALL = "all"


@dataclass(frozen=True)
class Candidate:
    """A strategy and the options it is tried with.

    Attributes:
        strategy: its registered name.
        options: the sequence length for strategies that take one, else the buckets.
    """

    strategy: str
    options: PackOptions


def candidates(
    names: Sequence[str], sequence_lengths: Sequence[int], buckets: Sequence[int] | None = None
) -> list[Candidate]:
    """Every strategy with every sequence length, and those of several row lengths once.

    Args:
        names: strategies, or ``all`` among them for every one.
        sequence_lengths: for the strategies that take one.
        buckets: row lengths for the strategies that take those; None for their default.

    Raises:
        UsageError: an unknown strategy, or a sequence length is missing or makes no sense.
    """
    chosen = list(STRATEGIES) if ALL in names else list(dict.fromkeys(names))
    found = []
    for name in chosen:
        if name not in STRATEGIES:
            raise UsageError(
                "unknown-strategy",
                f"there is no strategy {name!r}",
                remedy=f"choose from {', '.join(STRATEGIES)}, or all",
                where="--compare",
            )
        strategy = STRATEGIES[name]
        base = PackOptions()
        if buckets is not None and "buckets" in strategy.accepts:
            base = replace(base, buckets=tuple(buckets))
        if "sequence_length" not in strategy.accepts:
            found.append(Candidate(name, base))
            continue
        if not sequence_lengths:
            raise UsageError(
                "missing-option",
                f"the strategy {name} needs the length of a row",
                remedy="give --sequence-length, such as 2048 or 2048,8192",
                where="--sequence-length",
            )
        found.extend(Candidate(name, replace(base, sequence_length=size)) for size in dict.fromkeys(sequence_lengths))
    for candidate in found:
        check(STRATEGIES[candidate.strategy], candidate.options)
    return found
