"""Concatenation: one stream of all documents, cut into atoms regardless of where documents end.

No padding but in the last row and no planning cost; documents are cut wherever a row ends.
Papers: Optimizing Packing and Shuffling Strategies for Enhanced Performance in Generative Language Models (A.3);
the fixed-length baseline of Bucket Pre-training is All You Need.
"""

from __future__ import annotations

from packtool.planning.arrays import IN_MEMORY, Arrays
from packtool.planning.packing.plans import StreamPlan
from packtool.planning.packing.strategy import PackOptions, Strategy
from packtool.planning.plan import Ints, Plan


def plan(lengths: Ints, options: PackOptions, arrays: Arrays = IN_MEMORY) -> list[Plan]:
    """Make one stream in corpus order, in units of min(A, L) tokens.

    >>> import numpy as np
    >>> stream, = plan(np.array([3, 6]), PackOptions(sequence_length=4, remainder="drop"))
    >>> stream.rows, stream.dropped, stream.eos_omitted
    (2, 0, 1)
    """
    ends = arrays.offsets(lengths)
    return [StreamPlan(options.row_length, options.atom, ends, remainder=options.remainder, arrays=arrays)]


STRATEGY = Strategy(
    name="concat",
    summary="join all documents to one stream and cut it",
    recommended=1,
    windowed=False,
    plan=plan,
    neighbours=True,
)
