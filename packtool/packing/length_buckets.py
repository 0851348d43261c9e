"""Length buckets: each document in the bucket of its size; inside a bucket, documents joined and cut.

Documents of like length share rows, so attention costs less; documents are cut wherever a row ends.
Paper: the Multi-Bucket baseline of Bucket Pre-training is All You Need (4).
"""

from __future__ import annotations

import numpy as np

from packtool.packing.options import PackOptions, Strategy
from packtool.packing.plans.stream import StreamPlan
from packtool.plan import Ints, Plan, index_type, offsets_of


def plan(lengths: Ints, options: PackOptions) -> list[Plan]:
    """A stream for each bucket: the documents it holds and the next smaller one does not; the largest takes the rest.

    >>> small, large = plan(np.array([3, 7, 4, 20]), PackOptions(buckets=(4, 8)))
    >>> small.segments(np.arange(small.rows)).document, large.rows
    (array([0, 2, 2]), 4)
    """
    sizes = options.bucket_sizes
    bucket = np.searchsorted(np.array(sizes[:-1], np.int64), lengths).astype(np.uint8 if len(sizes) < 256 else np.int64)
    plans: list[Plan] = []
    for i, sequence_length in enumerate(sizes):
        documents = np.flatnonzero(bucket == i).astype(index_type(len(lengths)))
        ends = offsets_of(lengths[documents])
        plans.append(
            StreamPlan(sequence_length, sequence_length, ends, documents=documents, remainder=options.remainder)
        )
    return plans


STRATEGY = Strategy(
    name="length-buckets",
    summary="documents sorted into buckets by length, a stream in each",
    paper="Bucket Pre-training is All You Need, 4 (Multi-Bucket)",
    multi_bucket=True,
    windowed=False,
    plan=plan,
)
