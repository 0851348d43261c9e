"""What strategies make of a corpus, counted without listing which document lies where.

Equal bins are counted once and multiplied; a strategy that treats every document alone is counted once for each length;
streams are counted as the lengths pass. The figures are those of the plan; a test holds that for every strategy here. A
strategy that is not here is planned and its rows are listed: slower, with the same result.
"""

from __future__ import annotations

from collections.abc import Callable

from packtool.comparing.counting import alone, bins, buckets, streams
from packtool.comparing.counting.counted import Counted
from packtool.packing import PackOptions
from packtool.plan import Ints

Counter = Callable[[Ints, PackOptions], list[Counted] | None]
"""From lengths and options to the counts of each row length; None where these options need the rows listed."""

COUNTERS: dict[str, Counter] = {
    "concat": streams.concat,
    "padding": alone.padding,
    "ffd": bins.ffd,
    "bfd": bins.bfd,
    "bfd-extra": bins.bfd_extra,
    "seamless": bins.seamless,
    "buckets": buckets.buckets,
    "length-buckets": streams.length_buckets,
    "decompose": alone.decompose,
}


def count(name: str, lengths: Ints, options: PackOptions) -> list[Counted] | None:
    """The counts of a strategy's rows, before they are mixed; None where they have to be listed."""
    return COUNTERS[name](lengths, options) if name in COUNTERS else None


__all__ = ["COUNTERS", "Counted", "count"]
