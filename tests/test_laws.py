"""The laws that every registered strategy obeys, for every corpus and every choice of its options."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.planning.document_loss import DocumentLoss
from packtool.planning.packing import STRATEGIES, PackOptions, plan, row_counts
from packtool.planning.packing.untrained import first_tokens, trimmed
from packtool.planning.packing.windows import plan_corpus
from packtool.planning.plan import INSERTED_EOS, PADDING, Plan, Segments, offsets_of
from packtool.planning.shuffling.permutation import permutation
from packtool.rows.layout import Layout
from tests.examples import examples

SIZES = [2, 3, 8, 16, 33]


def drawn_multiple(name: str, size: int, data: st.DataObject) -> int:
    """A multiple at which documents may begin in rows of about `size` tokens."""
    fit = [multiple for multiple in (2, 4, 6, 8, 11, 16, 48) if size % multiple == 0]
    if name == "decompose":
        fit = [multiple for multiple in fit if multiple & (multiple - 1) == 0]
    return data.draw(st.sampled_from(fit or [1]), label="multiple")


def options_of(name: str, size: int, draw: st.DataObject | None = None, *, multiple: int = 1) -> PackOptions:
    """Options of a strategy for rows of about `size` tokens, whose documents begin at multiples: drawn, or the
    plainest."""
    accepts = STRATEGIES[name].accepts

    def choose(option: str, choices: list[object]) -> dict[str, object]:
        if option not in accepts:
            return {}
        return {option: choices[0] if draw is None else draw.draw(st.sampled_from(choices), label=option)}

    divisors = [size // n for n in range(1, size) if size % n == 0 and size // n > 1]
    options = PackOptions(
        document_multiple=multiple,
        **choose("sequence_length", [size]),
        **choose("atom_size", [size, *(n for n in divisors if n % multiple == 0), 2 * size, 4 * size]),
        **choose("remainder", ["pad", "drop"]),
        **choose("buckets", [(size, 2 * size), (size,), (3 * size, size, 4 * size)]),
        **choose("padding_threshold", [Fraction(1, 100), Fraction(0), Fraction(1, 4), Fraction(1)]),
        **choose("max_repetition", [Fraction(3, 10), Fraction(0), Fraction(1), Fraction("0.123456789123456789")]),
        **choose("extra_capacity", [1, 0, size - 1]),
        **choose("mix_rows", [None, True, False]),
        **choose("min_bucket", [1, 2, 1 << size.bit_length() - 1]),
        **choose("max_documents_per_row", [None, 1, 3]),
        **choose("open_rows", [64, 1, 3]),
        seed=42 if draw is None else draw.draw(st.integers(0, 1 << 63), label="seed"),
        window_tokens=1 << 34 if draw is None else draw.draw(st.sampled_from([1 << 34, 40, 7]), label="window"),
    )
    return options.normalized()  # plans of windows take no others


def rows_of(only: Plan, shuffled: bool = False) -> Segments:
    order = permutation(only.movable_atoms, seed=7) if shuffled else None
    layout = Layout(only, order)
    return layout.segments(0, layout.rows)


def check_laws(lengths: np.ndarray, plans: list[Plan], multiple: int = 1) -> None:
    """Coverage, ledger, capacity, and where documents begin: of all row lengths together."""
    seen = np.zeros(int(lengths.sum()), np.int64)
    base = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    output = padding = inserted = stored_eos = repeated = placed = 0
    for only in plans:
        for shuffled in (True, False):
            pieces = rows_of(only, shuffled)
            assert (pieces.tokens() == only.sequence_length).all()
            begins = offsets_of(pieces.length)[:-1]
            assert (begins[pieces.document >= 0] % multiple == 0).all()
            # What rounds a piece up is all that is added: longer runs of padding end a unit.
            between = (pieces.document == PADDING) & ((begins + pieces.length) % only.unit != 0)
            assert (pieces.length[between] < multiple).all()
        row_is_padding = np.ones(pieces.groups, bool)
        row_is_padding[pieces.group_of()[pieces.document != PADDING]] = False
        assert not row_is_padding.any()
        output += only.rows * only.sequence_length
        for document, start, length, again in zip(
            pieces.document, pieces.start, pieces.length, pieces.repeated, strict=True
        ):
            assert length > 0
            if document == PADDING:
                padding += length
            elif document == INSERTED_EOS:
                inserted += length
            else:
                assert start >= 0
                assert start + length <= lengths[document]
                assert 0 <= again < length
                begin = base[document] + start
                assert (seen[begin : begin + again] > 0).all()
                seen[begin : begin + again] += 1
                fresh = seen[begin + again : begin + length]
                assert (fresh == 0).all()
                fresh += 1
                has_eos = start + length == lengths[document]
                stored_eos += has_eos
                repeated += again
                placed += length - again - has_eos
    text = int(lengths.sum()) - len(lengths)
    assert text == placed + sum(p.dropped + p.untrained for p in plans)
    assert len(lengths) == stored_eos + sum(p.eos_omitted for p in plans)
    assert inserted == sum(p.eos_inserted for p in plans)
    assert output == placed + repeated + stored_eos + inserted + padding
    assert all(min(p.dropped, p.eos_omitted, p.eos_inserted, p.untrained) >= 0 for p in plans)


@st.composite
def corpora(draw: st.DrawFn, size: int) -> np.ndarray:
    edges = st.sampled_from([1, 2, size - 1, size, size + 1, 2 * size, 3 * size + 1, 7 * size])
    lengths = draw(
        st.one_of(
            st.lists(st.integers(1, 5 * size), max_size=30),
            st.lists(st.one_of(edges, st.integers(1, size)), max_size=60),
            st.builds(lambda length, times: [length] * times, st.integers(1, 3 * size), st.integers(1, 40)),
        )
    )
    return np.maximum(np.array(lengths, draw(st.sampled_from([np.int64, np.uint32]))), 1)


@pytest.mark.parametrize("name", STRATEGIES)
@examples(160)
@given(data=st.data())
def test_laws(name, data):
    size = data.draw(st.sampled_from([s for s in (*SIZES, 48) if s > 2 or name != "padding"]), label="size")
    multiple = 1
    if data.draw(st.booleans(), label="at multiples"):
        multiple = drawn_multiple(name, size, data)
    lengths = data.draw(corpora(size), label="lengths")
    options = options_of(name, size, data, multiple=multiple)
    plans = plan(name, lengths, options)
    check_laws(lengths, plans, multiple)
    assert row_counts(STRATEGIES[name], lengths, options) == [only.rows for only in plans]


@pytest.mark.parametrize("name", STRATEGIES)
@examples(60)
@given(data=st.data())
def test_what_is_cut_of_conversations_has_a_target(name, data):
    """Whatever is cut: no row is made of pieces alone in which nothing trains, and what is left out does not train."""
    size = data.draw(st.sampled_from([s for s in SIZES if s > 2]), label="size")
    lengths, options = data.draw(corpora(size), label="lengths"), options_of(name, size, data)
    chats = data.draw(st.integers(0, len(lengths)), label="conversations; the others are texts")
    base = offsets_of(lengths)
    draws = np.random.default_rng(data.draw(st.integers(0, 1 << 32), label="draws"))
    trains = draws.random(base[-1]) < data.draw(st.sampled_from([0, 0.02, 0.2, 1]), label="share that trains")

    def held(document: int, start: int, length: int) -> np.ndarray:
        return trains[base[document] + start :][:length] | (document >= chats)

    def read(pieces: Segments) -> np.ndarray:
        return np.concatenate(list(map(held, pieces.document, pieces.start, pieces.length))).astype(np.uint8)

    loss = DocumentLoss(read, [chats, len(lengths) - chats], [True, False])
    most = options.longest_row if data.draw(st.booleans(), label="first tokens alone") else None
    plans = plan_corpus(STRATEGIES[name], lengths, options, loss=loss, most=most)
    assert row_counts(STRATEGIES[name], lengths, options, loss=loss, most=most) == [only.rows for only in plans]
    check_laws(lengths, plans)
    left_out = np.ones(base[-1], np.bool_)
    for only in plans:
        for shuffled in (True, False):
            rows = rows_of(only, shuffled)
            for row in range(rows.groups):
                pieces = [(d, s, n) for d, s, n in columns_of(rows[row : row + 1]) if d >= 0]
                whole = any(d >= chats or (s == 0 and n >= lengths[d] - 1) for d, s, n in pieces)
                assert whole or any(held(d, s, n)[1:].any() for d, s, n in pieces)
        for document, start, length in columns_of(rows):
            if document >= 0:
                left_out[base[document] + start :][:length] = False
    beyond = lengths.astype(np.int64) * 0
    if most is not None:
        beyond = lengths.astype(np.int64) - first_tokens(lengths, most)
    for document in np.flatnonzero(beyond).tolist():
        end = base[document + 1]
        assert left_out[end - beyond[document] : end].all()
    if sum(only.dropped for only in plans) == (beyond - (beyond > 0)).sum():
        idle = left_out & trains
        idle[base[1:] - 1] = False  # the EOS, which some strategies leave out
        planned = lengths
        if most is not None:
            planned = first_tokens(lengths, most)
        elif STRATEGIES[name].keeps_eos:
            planned = trimmed(lengths, loss, options.longest_row)
        for document in np.flatnonzero(beyond).tolist():
            end = base[document + 1]
            idle[end - beyond[document] - 1 : end] = False  # the last that is planned stands where an EOS would
        for every in plan_corpus(STRATEGIES[name], planned, options):
            for document, start, _ in columns_of(every.segments(np.arange(every.units))):
                if document >= 0:
                    idle[base[document] + start] = False  # nothing predicts the first token of a piece
        assert not idle.any()


def columns_of(rows: Segments) -> list[tuple[int, int, int]]:
    return list(zip(rows.document.tolist(), rows.start.tolist(), rows.length.tolist(), strict=True))


@pytest.mark.parametrize("name", STRATEGIES)
@examples(60)
@given(data=st.data())
def test_of_long_documents_the_first_tokens_are_planned(name, data):
    """As many as a row has, as if there were no others; these are counted as dropped."""
    size = data.draw(st.sampled_from([s for s in SIZES if s > 2]), label="size")
    multiple = 1
    if data.draw(st.booleans(), label="at multiples"):
        multiple = drawn_multiple(name, size, data)
    lengths, options = data.draw(corpora(size), label="lengths"), options_of(name, size, data, multiple=multiple)
    plans = plan_corpus(STRATEGIES[name], lengths, options, most=options.longest_row)
    assert row_counts(STRATEGIES[name], lengths, options, most=options.longest_row) == [only.rows for only in plans]
    check_laws(lengths, plans, multiple)
    clipped = np.minimum(lengths, options.longest_row).astype(lengths.dtype)
    alone = plan_corpus(STRATEGIES[name], clipped, options)
    for one, other in zip(plans, alone, strict=True):
        assert columns_of(rows_of(one)) == columns_of(rows_of(other))
    lost = sum(only.dropped + only.eos_omitted for only in plans) - int((lengths - clipped).sum())
    assert lost == sum(only.dropped + only.eos_omitted for only in alone)


@pytest.mark.parametrize("name", [name for name, each in STRATEGIES.items() if each.whole])
@examples(40)
@given(data=st.data())
def test_a_strategy_that_keeps_documents_whole_never_cuts_one_that_fits(name, data):
    size = data.draw(st.sampled_from([s for s in SIZES if s > 2 or name != "padding"]), label="size")
    lengths = data.draw(corpora(size), label="lengths")
    options = options_of(name, size, data)
    [only] = plan(name, lengths, options)
    rows = rows_of(only)
    stored = rows.document >= 0
    pieces = np.bincount(rows.document[stored], minlength=len(lengths))
    held = np.bincount(rows.document[stored], rows.length[stored], minlength=len(lengths))
    fits = (lengths <= min(options.atom, size)) & (pieces > 0)
    assert (pieces[fits] == 1).all()
    assert (held[fits] >= lengths[fits].astype(np.int64) - 1).all(), "its text, if not its EOS"


@pytest.mark.parametrize("name", [name for name, each in STRATEGIES.items() if not each.random])
@examples(20)
@given(data=st.data())
def test_the_seed_changes_nothing_where_a_strategy_is_not_random(name, data):
    size = data.draw(st.sampled_from(SIZES[1:]), label="size")
    lengths = data.draw(corpora(size), label="lengths")
    options = options_of(name, size, data)
    if "mix_rows" in STRATEGIES[name].accepts:
        options = replace(options, mix_rows=False)  # which draws
    for one, other in zip(*(plan(name, lengths, replace(options, seed=seed)) for seed in (1, 2)), strict=True):
        units = np.arange(one.units)
        for column in ("document", "start", "length", "repeated", "offsets"):
            np.testing.assert_array_equal(getattr(one.segments(units), column), getattr(other.segments(units), column))


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize(
    "lengths",
    [[], [1], [1, 1, 1], [2], [7], [8], [9], [16], [17], [80], [8] * 50, [5] * 50, [3] * 49 + [5000]],
    ids=lambda lengths: f"{len(lengths)}x{lengths[-1] if lengths else 0}",
)
def test_laws_at_the_edges(name, lengths):
    lengths = np.array(lengths, np.int64)
    check_laws(lengths, plan(name, lengths, options_of(name, 8)))


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_document_of_ten_million_tokens(name):
    lengths = np.array([300, 10_000_000, 5], np.uint32)
    plans = plan(name, lengths, options_of(name, 2048))
    check_laws(lengths, plans)
    assert sum(p.rows * p.sequence_length for p in plans) < 10_200_000


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_same_input_gives_the_same_plan_whatever_its_type(name):
    lengths = np.round(np.random.default_rng(3).lognormal(4, 1.3, 3000)).astype(np.int64) + 1
    options = options_of(name, 256)
    wide, narrow = (plan(name, lengths.astype(kind), options) for kind in (np.int64, np.uint32))
    for a, b in zip(wide, narrow, strict=True):
        left, right = rows_of(a), rows_of(b)
        for column in ("document", "start", "length", "repeated", "offsets"):
            np.testing.assert_array_equal(getattr(left, column), getattr(right, column))
        assert (a.dropped, a.eos_omitted, a.eos_inserted) == (b.dropped, b.eos_omitted, b.eos_inserted)


@pytest.mark.parametrize("name", STRATEGIES)
@examples(25)
@given(data=st.data())
def test_pieces_of_a_unit_do_not_depend_on_the_order_asked(name, data):
    size = data.draw(st.sampled_from(SIZES[1:]), label="size")
    lengths = data.draw(corpora(size), label="lengths")
    for only in plan(name, lengths, options_of(name, size, data)):
        whole = only.segments(np.arange(only.units))
        asked = data.draw(st.permutations(range(only.units)), label="asked")[:20]
        some = only.segments(np.array(asked, np.int64))
        for i, unit in enumerate(asked):
            for column in ("document", "start", "length", "repeated"):
                expected = getattr(whole[unit : unit + 1], column)
                np.testing.assert_array_equal(getattr(some[i : i + 1], column), expected)
