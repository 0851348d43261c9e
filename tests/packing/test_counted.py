"""Counting without listing gives what listing gives: every strategy, on any lengths, with any options."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from packtool.comparing import Candidate, count_rows, listed
from packtool.metrics.ledger import balance
from packtool.metrics.summary import measure
from packtool.metrics.tally import Tally
from packtool.packing import STRATEGIES, PackOptions, count, plan
from packtool.plan import I64

SIZES = (2, 3, 8, 16)
COUNTED = [name for name, strategy in STRATEGIES.items() if strategy.count is not None]


def everything(tally: Tally) -> dict[str, Any]:
    """All that a tally knows, with overlaps counted."""
    known = {
        name: value
        for name, value in vars(tally).items()
        if name not in ("lengths", "_overlaps", "_named", "homogeneity")
    }
    known["unlisted_overlaps"] += int(np.count_nonzero(tally.overlaps))
    known |= {f"homogeneity {name}": value for name, value in vars(tally.homogeneity).items()}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in known.items()}


@st.composite
def trials(draw: st.DrawFn, name: str) -> tuple[I64, Candidate]:
    accepts = STRATEGIES[name].accepts
    size = draw(st.sampled_from(SIZES))
    given: dict[str, Any] = {}
    if "sequence_length" in accepts:
        given["sequence_length"] = size
    if "buckets" in accepts:
        given["buckets"] = tuple(draw(st.sets(st.integers(2, 20), min_size=1, max_size=3)))
        size = max(given["buckets"])
    if "atom_size" in accepts:
        given["atom_size"] = size * draw(st.integers(1, 3))
    if "remainder" in accepts:
        given["remainder"] = draw(st.sampled_from(["pad", "drop"]))
    if "extra_capacity" in accepts:
        given["extra_capacity"] = draw(st.integers(0, size - 1))
    if "max_repetition" in accepts:
        given["max_repetition"] = Fraction(draw(st.integers(0, 10)), 10)
    if "padding_threshold" in accepts:
        given["padding_threshold"] = Fraction(draw(st.integers(0, 10)), 20)
    if "min_bucket" in accepts:
        given["min_bucket"] = draw(st.integers(1, size))
        top = 1 << (size.bit_length() - 1)
        given["min_bucket"] = min(given["min_bucket"], top)
    if "mix_rows" in accepts:
        given["mix_rows"] = False
    if STRATEGIES[name].windowed:
        given["window_tokens"] = draw(st.sampled_from([1 << 34, 4 * size, 20 * size]))
    kinds = st.integers(1, size) | st.integers(size, 5 * size) | st.sampled_from([1, 2, size, size + 1, 2 * size])
    lengths = draw(st.lists(kinds, max_size=40))
    return np.array(lengths, np.int64), Candidate(name, PackOptions(**given))


@pytest.mark.parametrize("name", COUNTED)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_counts_are_those_of_the_rows(name: str, data: st.DataObject) -> None:
    lengths, candidate = data.draw(trials(name))
    counted = count(name, lengths, candidate.options)
    assert counted is not None
    wanted = listed(lengths, plan(name, lengths, candidate.options))
    assert [c.sequence_length for c in counted] == [w.sequence_length for w in wanted]
    for one, other in zip(counted, wanted, strict=True):
        assert everything(one.tally) == everything(other.tally)
    for claim in ("dropped", "eos_omitted", "eos_inserted"):
        assert sum(getattr(c, claim) for c in counted) == sum(getattr(w, claim) for w in wanted), claim
    assert measure([c.tally for c in counted], 4) == measure([w.tally for w in wanted], 4)
    balance(int(lengths.sum()), len(lengths), counted, [c.tally for c in counted])


@pytest.mark.parametrize("name", COUNTED)
def test_large_corpora(name: str) -> None:
    lengths = np.random.default_rng(7).lognormal(5, 1.4, 400_000).astype(np.int64) + 1
    takes = STRATEGIES[name].accepts
    given: dict[str, Any] = {"sequence_length": 512} if "sequence_length" in takes else {"buckets": (256, 512, 2048)}
    options = PackOptions(**given, mix_rows=False if "mix_rows" in takes else None)
    counted = count(name, lengths, options)
    assert counted is not None
    for one, other in zip(counted, listed(lengths, plan(name, lengths, options)), strict=True):
        assert everything(one.tally) == everything(other.tally)


def test_small_atoms_are_listed() -> None:
    options = PackOptions(sequence_length=8, atom_size=4)
    lengths = np.array([5, 9])
    assert count("concat", lengths, options) is None
    assert count("padding", lengths, options) is None


def test_streams_and_random_orders_are_listed() -> None:
    assert set(STRATEGIES) - set(COUNTED) == {"concat", "length-buckets", "first-fit-shuffle"}


@pytest.mark.parametrize("name", ["ffd", "bfd", "seamless"])
def test_mixed_rows_are_counted_as_they_are_mixed(name: str) -> None:
    lengths = np.random.default_rng(7).lognormal(5, 1.2, 20_000).astype(np.int64) + 1
    mixed, plain = (Candidate(name, PackOptions(sequence_length=512, mix_rows=mix)) for mix in (True, False))
    found, unmixed = (count_rows(lengths, tried)[0][0].tally for tried in (mixed, plain))
    assert everything(found) == everything(listed(lengths, plan(name, lengths, mixed.options))[0].tally)
    for account in ("rows", "placed", "repeated", "eos", "eos_inserted", "padding", "output"):
        assert getattr(found, account) == getattr(unmixed, account)
    assert found.homogeneity.result().between_rows < 0.7 * unmixed.homogeneity.result().between_rows
