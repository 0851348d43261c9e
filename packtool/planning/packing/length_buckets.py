"""Length buckets: each document in the bucket of its size; inside a bucket, documents joined and cut.

Documents of like length share rows, so attention costs less; documents are cut wherever a row ends.
Paper: the Multi-Bucket baseline of Bucket Pre-training is All You Need (4).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from packtool.planning.arrays import IN_MEMORY, Arrays
from packtool.planning.packing.plans import StreamPlan
from packtool.planning.packing.strategy import PackOptions, Strategy
from packtool.planning.plan import Ints, Plan, index_type


def plan(lengths: Ints, options: PackOptions, arrays: Arrays = IN_MEMORY) -> list[Plan]:
    """Make a stream of each bucket: documents too long for the next smaller one; the largest takes the rest.

    >>> small, large = plan(np.array([3, 7, 4, 20]), PackOptions(buckets=(4, 8)))
    >>> small.segments(np.arange(small.rows)).document, large.rows
    (array([0, 2, 2]), 4)
    """
    sizes = options.buckets

    def stream(bucket: int) -> Plan:
        def is_here(a: int, b: int) -> npt.NDArray[np.bool_]:
            here: npt.NDArray[np.bool_] = lengths[a:b] > (sizes[bucket - 1] if bucket else 0)
            return here if bucket == len(sizes) - 1 else here & (lengths[a:b] <= sizes[bucket])

        documents = arrays.where(len(lengths), is_here, index_type(len(lengths)))
        ends = arrays.totals(len(documents), lambda a, b: lengths[documents[a:b]])
        size = sizes[bucket]
        return StreamPlan(size, size, ends, documents=documents, remainder=options.remainder, arrays=arrays)

    return list(map(stream, range(len(sizes))))


STRATEGY = Strategy(
    name="length-buckets",
    summary="documents sorted into buckets by length, a stream in each",
    recommended=8,
    multi_bucket=True,
    windowed=False,
    plan=plan,
    neighbours=True,
)
