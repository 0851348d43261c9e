"""Options that a strategy does not take, lacks, or cannot obey."""

from fractions import Fraction

import numpy as np
import pytest

from packtool.errors import UsageError
from packtool.planning.packing import PackOptions, plan


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("decompose", {"sequence_length": 100, "min_bucket": 80}, r"min_bucket: no power of two lies between 80"),
        ("buckets", {"sequence_length": 8}, r"sequence_length: .* Give buckets instead"),
        ("buckets", {"buckets": (4, 4)}, r"buckets: the sizes must differ"),
        ("buckets", {"buckets": ()}, r"buckets: the sizes must differ"),
        ("buckets", {"buckets": (1, 4)}, r"buckets: 1 is out of range"),
        ("buckets", {"padding_threshold": Fraction(2)}, r"padding_threshold: 2 can't be used. Give a share"),
        ("buckets", {"remainder": "drop"},
         r'remainder: strategy="buckets" does not .* Leave it out, or use strategy="concat"'),
        ("length-buckets", {"remainder": "cut"}, r"remainder: 'cut' is not a known value\. Choose one of pad, drop"),
        ("concat", {"sequence_length": 8, "buckets": (4, 8)}, r'buckets: strategy="concat" does not take'),
        ("concat", {}, r'sequence_length: strategy="concat" needs this option\. Give sequence_length'),
        ("concat", {"sequence_length": 8, "atom_size": 3}, r"atom_size: 3 does not fit the sequence length 8"),
        ("concat", {"sequence_length": 0}, r"sequence_length: 0 is out of range"),
        ("ffd", {"sequence_length": 8, "atom_size": 4}, r"atom_size: .* other atom sizes are for concat and padding"),
        ("ffd", {"sequence_length": 8, "window_tokens": 0}, r"window_tokens: 0 is out of range"),
        ("seamless", {"sequence_length": 8, "extra_capacity": 8},
         r"extra_capacity: 8 is out of range\. Give a number from 0 to 7\."),
        ("padding", {"sequence_length": 4, "atom_size": 1},
         "an atom of padding holds text and an EOS, so at least 2 tokens"),
        ("bfd", {"sequence_length": 10, "document_multiple": 4},
         "sequence_length: 10 is not a multiple of 4, where documents are to begin. Give 12, or another document_m"),
        ("concat", {"sequence_length": 8, "atom_size": 2, "document_multiple": 4},
         "atom_size: 2 .* of 4, .* Give 4, or"),
        ("buckets", {"buckets": (8, 14), "document_multiple": 4}, "buckets: 14 .* of 4, .* Give 16, or another"),
        ("decompose", {"sequence_length": 12, "document_multiple": 6},
         "document_multiple: 6 is not a power of two, and decompose makes rows of powers of two. Give 8, or another"),
        ("tetris", {}, r"strategy: there is no strategy 'tetris'\. Choose one of concat, padding, ffd, bfd"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(name, options, message):
    with pytest.raises(UsageError, match=message) as caught:
        plan(name, np.array([3]), PackOptions(**options))
    assert caught.value.exit_code == 2
