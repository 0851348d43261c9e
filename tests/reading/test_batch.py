"""What a training step reads, held against a reader that goes token by token."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import packtool
from packtool.errors import UsageError
from packtool.planning.plan import INSERTED_EOS, PADDING, Segments, offsets_of
from packtool.reading import Dataset, make_batch
from packtool.reading.batch import FIELDS, FIELDS_OF_MULTIPLES, IGNORED
from packtool.reading.stream import Stream
from tests.examples import examples
from tests.making import Make, drawn_lengths
from tests.reading.opening import batch_of
from tests.stores import document_loss

LENGTHS = drawn_lengths(60, 40, 5, 1)
Piece = tuple[int, int, int]  # document, length, repeated


def naive(row: list[int], segments: list[Piece], loss: list[int], options: dict[str, Any]) -> dict[str, Any]:
    """One row, token by token: labels, positions, documents, lengths of its sequences."""
    sequence, position, begins, padding, again = [], [], [], [], []
    number = -1
    for at, (document, length, repeated) in enumerate(segments):
        joins = document == INSERTED_EOS and at > 0 and segments[at - 1][0] != PADDING
        number += not joins
        for i in range(length):
            position.append(position[-1] + 1 if joins or i else 0)
            begins.append(i == 0 and not joins)
            sequence.append(number)
            padding.append(document == PADDING)
            again.append(i < repeated)
    labels = []
    for i in range(1, len(row)):
        ignored = padding[i] or not loss[i] or (again[i] and not options["train_on_repeated"])
        ignored |= begins[i] and not options["train_across_documents"]
        labels.append(-100 if ignored else row[i])
    for i in range(1, len(row)):
        if padding[i - 1] and not padding[i]:  # the last token that is no padding predicts this one
            before = max((k for k in range(i) if not padding[k]), default=None)
            target, labels[i - 1] = labels[i - 1], -100
            if before is not None:
                labels[before] = target
    if not options["documents"]:
        position, sequence, padding = list(range(len(row))), [0] * len(row), [False] * len(row)
    size = len(row)
    if options["extra_token"]:
        size -= 1
    elif options["labels"] == "next":
        labels.append(-100)
    else:
        labels.insert(0, -100)
    documents = [-1 if p else s for p, s in zip(padding, sequence, strict=True)]
    lengths = [sequence[:size].count(n) for n in sorted(set(sequence[:size]))]
    begins = [i for i in range(size) if not padding[i] and (i == 0 or sequence[i] != sequence[i - 1])]
    own = [sum(n == sequence[i] for n in sequence[:size]) for i in begins]
    return {
        "input_ids": row[:size],
        "labels": labels,
        "position_ids": position[:size],
        "document_ids": documents[:size],
        "lengths": lengths,
        "begins": begins,
        "own": own,
    }


@st.composite
def row_segments(draw: st.DrawFn, length: int) -> list[Piece]:
    segments: list[Piece] = []
    while (left := length - sum(segment[1] for segment in segments)) > 0:
        padding = [] if segments and segments[-1][0] == PADDING else [PADDING]  # runs of it are one segment
        document = draw(st.sampled_from([0, 1, 2, 3, *padding, INSERTED_EOS]))
        size = 1 if document == INSERTED_EOS else draw(st.integers(1, left))
        segments.append((document, size, draw(st.integers(0, size - 1)) if document >= 0 else 0))
    return segments


@examples(300)
@given(data=st.data())
def test_every_field_is_that_of_the_token_by_token_reader(data: st.DataObject) -> None:
    length, count = data.draw(st.integers(2, 9)), data.draw(st.integers(0, 4))
    rows = [data.draw(row_segments(length)) for _ in range(count)]
    options: dict[str, Any] = {
        name: data.draw(st.booleans(), label=name)
        for name in ("documents", "extra_token", "train_on_repeated", "train_across_documents")
    }
    options["labels"] = "next" if options["extra_token"] else data.draw(st.sampled_from(["next", "same"]))
    first, dtype = data.draw(
        st.sampled_from([(1, "u2"), (32_750, "u2"), (65_500, "u2"), (65_530, "u4"), (1 << 31, "u4")])
    )
    tokens = np.arange(first, first + count * length).reshape(count, length).astype(dtype)
    flat = [segment for row in rows for segment in row]
    columns = np.array(flat, np.int64).reshape(-1, 3)
    segments = Segments(
        columns[:, 0],
        np.zeros(len(flat), np.int64),
        columns[:, 1],
        columns[:, 2],
        offsets_of(np.array([len(r) for r in rows], np.int64)),
    )
    loss = np.ones(tokens.shape, np.uint8)
    if not data.draw(st.booleans(), label="all train"):
        loss = np.random.default_rng(data.draw(st.integers(0, 9))).integers(0, 2, tokens.shape)
    given = None if loss.all() else loss
    batch = make_batch(tokens, segments, given, **options)
    parts = zip(tokens.tolist(), rows, loss.tolist(), strict=True)
    expected = [naive(*each, options) for each in parts]
    for name in ("input_ids", "labels", "position_ids", "document_ids"):
        assert batch[name].tolist() == [each[name] for each in expected], name  # type: ignore[literal-required]
        assert batch[name].flags.c_contiguous  # type: ignore[literal-required]
    lengths = [n for each in expected for n in each["lengths"]]
    assert batch["cu_seqlens"].tolist() == [0, *np.cumsum(lengths).astype(int).tolist()]
    assert batch["max_seqlen"] == max(lengths, default=0)
    if not options["extra_token"]:
        padded = make_batch(tokens, segments, given, fields=FIELDS_OF_MULTIPLES, **options)
        begins = [n * length + place for n, each in enumerate(expected) for place in each["begins"]]
        own = [n for each in expected for n in each["own"]]
        assert padded["cu_seqlens_padded"].tolist() == [*begins, count * length]
        assert padded["cu_seqlens"].tolist() == [0, *np.cumsum(own).astype(int).tolist()]
        assert padded["max_seqlen"] == max(own, default=0)
        assert padded["max_seqlen_padded"] == max(np.diff([*begins, count * length]).tolist(), default=0)
        for name in ("input_ids", "labels", "position_ids", "document_ids"):
            np.testing.assert_array_equal(padded[name], batch[name])  # type: ignore[literal-required]
    types = {name: str(value.dtype) for name, value in batch.items() if isinstance(value, np.ndarray)}
    assert types.pop("document_ids") == types.pop("cu_seqlens") == "int32"
    assert set(types.values()) == {"int64"}
    fields = data.draw(st.sets(st.sampled_from([*FIELDS, "loss_mask"])))
    some = make_batch(tokens, segments, given, fields=fields, **options)
    assert set(some) == fields
    batch["loss_mask"] = (batch["labels"] != IGNORED).astype(np.float32)
    for name, value in some.items():
        np.testing.assert_array_equal(value, batch[name])  # type: ignore[literal-required,call-overload]


def test_without_segments_what_needs_none_is_read(make: Make) -> None:
    """Fields of tokens alone; and others where rows have no padding and all tokens train on all before them."""
    options: dict[str, Any] = {"strategy": "concat", "sequence_length": 16, "segments": False}
    place = make(LENGTHS, full={**options, "remainder": "drop"}, padded=options)
    full, padded = (packtool.open(place / name) for name in ("full", "padded"))
    batch = full.batch([0, 2], documents=False)  # type: ignore[arg-type]
    assert batch["position_ids"][1].tolist() == list(range(16))
    assert batch["cu_seqlens"].tolist() == [0, 16, 32]
    np.testing.assert_array_equal(padded.batch([0, 2], fields=("input_ids",))["input_ids"], padded[[0, 2]])  # type: ignore[arg-type]
    refused: list[tuple[Any, dict[str, Any]]] = [
        (full, {}),
        (full, {"documents": False, "train_on_repeated": False}),
        (padded, {"documents": False}),
        *((padded, {"fields": (field,)}) for field in set(FIELDS) - {"input_ids"}),
    ]
    for dataset, asked in refused:
        with pytest.raises(UsageError, match="written with segments=False"):
            dataset.batch([0], **asked)


def test_rows_that_go_on_later_have_a_target_for_their_last_token() -> None:
    one = np.array
    tokens = one([[1, 2, 3, 4], [5, 6, 7, 8]], np.uint16)
    two = Segments(one([0, 0]), one([0, 4]), one([4, 4]), one([0, 0]), one([0, 1, 2]))
    batch = make_batch(tokens, two, following=one([300, IGNORED]), train_across_documents=False)
    assert batch["labels"].tolist() == [[2, 3, 4, 300], [6, 7, 8, IGNORED]]
    same = make_batch(tokens, two, following=one([300, IGNORED]), labels="same")
    assert same["labels"].tolist() == [[IGNORED, 2, 3, 4], [IGNORED, 6, 7, 8]]
    assert make_batch(tokens[:0], two[:0], following=one([], np.int64))["labels"].shape == (0, 4)


def test_rows_are_cut_to_the_longest_of_their_batch(make: Make) -> None:
    lengths = [3, 9, 5, 2, 7, 12]
    place = make(lengths, rows={"strategy": "padding", "sequence_length": 16, "shuffle": False})
    dataset = packtool.open(place / "rows")
    assert isinstance(dataset, Dataset)
    for rows in ([0, 2, 3], [1, 4], [5], [0, 5], []):
        whole, cut = dataset.batch(rows), dataset.batch(rows, trim=True)
        width = max((lengths[row] - 1 for row in rows), default=16)  # without EOS, which `padding` leaves out
        for name in ("input_ids", "labels", "position_ids", "document_ids"):
            np.testing.assert_array_equal(cut[name], whole[name][:, :width])  # type: ignore[literal-required]
        sizes = [n for row in rows for n in (lengths[row] - 1, width - lengths[row] + 1) if n]
        assert cut["cu_seqlens"].tolist() == [0, *np.cumsum(sizes)]
    stream = Stream(place / "rows", epochs=2, shuffle=False, trim=True)
    both = batch_of(stream, [3, 6, 9])  # of two epochs: documents of 2, 3 and 2 tokens
    np.testing.assert_array_equal(both["input_ids"], dataset[[3, 0, 3]][:, :2])
    assert both["cu_seqlens"].tolist() == [0, 1, 2, 4, 5, 6]


@pytest.mark.parametrize("options", [{"fields": ("labels",)}, {"documents": False}])
def test_labels_are_the_same_whatever_else_is_asked_for(make: Make, options: dict[str, Any]) -> None:
    rows = make(LENGTHS, {"loss": document_loss}, rows={"strategy": "bfd", "sequence_length": 16}) / "rows"
    dataset: Any = packtool.open(rows)
    np.testing.assert_array_equal(dataset.batch(slice(None), **options)["labels"], dataset.batch(slice(None))["labels"])
