"""What becomes of rows beside one that is left out; `tests/test_laws.py` has the law."""

from fractions import Fraction

import numpy as np

from packtool.planning.document_loss import DocumentLoss
from packtool.planning.packing import STRATEGIES, PackOptions
from packtool.planning.packing.windows import plan_corpus
from packtool.planning.plan import Segments


def test_a_row_repeats_nothing_of_a_row_that_is_left_out() -> None:
    """[a b c d e f g h] is left out: then e to h are text of [e f g h i J k E], in which J trains."""
    trains = (np.arange(12) == 9).astype(np.uint8)

    def read(pieces: Segments) -> np.ndarray:
        return np.concatenate([trains[a : a + n] for a, n in zip(pieces.start, pieces.length, strict=True)])

    options = PackOptions(sequence_length=8, max_repetition=Fraction(1))
    loss = DocumentLoss(read, [1], [True])
    [rows] = plan_corpus(STRATEGIES["seamless"], np.array([12]), options, loss=loss)
    segments = rows.segments(np.arange(rows.rows))
    assert (segments.start.tolist(), segments.length.tolist(), segments.repeated.tolist()) == ([4], [8], [0])
    assert (rows.untrained, rows.dropped, rows.eos_omitted) == (4, 0, 0)
