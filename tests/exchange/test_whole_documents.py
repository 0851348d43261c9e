"""Columns beside ids: obeyed where they are clear, else refused by name. A naive reader of rows is the oracle."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import packtool
from packtool.errors import DataError
from packtool.exchange.whole_documents import Column, RowReader
from packtool.formats.token_store import TokenStore
from tests.exchange.foreign import of_row
from tests.exchange.tables import WRITE
from tests.shell import Shell

IDS = [[5, 6, 7, 8], [9, 9], [4, 4, 4]]


def column(rows: list[list[Any]]) -> Column:
    return Column(np.array([value for row in rows for value in row]), np.array([len(row) for row in rows]))


def documents(ids: list[list[int]], columns: dict[str, list[list[Any]]]) -> Any:
    return RowReader().documents(column(ids), {name: column(rows) for name, rows in columns.items()}, "row {}".format)


def read(ids: list[list[int]], **columns: list[list[Any]]) -> list[list[int]]:
    found = documents(ids, columns)
    return [part.tolist() for part in np.split(found.tokens, np.cumsum(found.lengths)[:-1])]


FOUR = [[4, 4, 5, 5], [6, 6], [7] * 3]


@pytest.mark.parametrize(
    ("columns", "documents"),
    [
        ({"attention_mask": [[1, 1, 1, 0], [0, 1], [0, 1, 0]]}, [[5, 6, 7], [9], [4]]),
        ({"attention_mask": [[1, 1, 2, 2], [1, 0], [1, 2, 3]]}, [[5, 6], [7, 8], [9], [4], [4], [4]]),
        ({"attention_mask": [[0, 0, 0, 0], [1, 1], [1, 1, 1]]}, [[9, 9], [4, 4, 4], []]),
        ({"attention_mask": [[True, True, True, False], [True] * 2, [True] * 3]}, [[5, 6, 7], [9, 9], [4, 4, 4]]),
        ({"attention_mask": [[1.0, 1.0, 2.0, 2.0], [1.0] * 2, [1.0] * 3]}, [[5, 6], [7, 8], [9, 9], [4, 4, 4]]),
        ({"document_ids": [[0, 0, 1, -1], [0, 1], [0, 1, 2]]}, [[5, 6], [7], [9], [9], [4], [4], [4]]),
        ({"segment_ids": [[1, 1, 2, 0], [1, 0], [1, 1, 2]]}, [[5, 6], [7], [9], [4, 4], [4]]),
        ({"seq_idx": [[7, 7, 8, 9], [3, 3], [2, 2, 5]]}, [[5, 6], [7], [8], [9, 9], [4, 4], [4]]),
        ({"attention_mask": FOUR, "position_ids": [[0, 1, 0, 1], [0, 1], [0, 1, 2]]}, [[5, 6], [7, 8], *IDS[1:]]),
        ({"document_ids": FOUR, "seq_lengths": [[2, 2], [2], [3]]}, [[5, 6], [7, 8], *IDS[1:]]),
        ({"document_ids": FOUR, "cu_seqlens": [[0, 2, 4], [0, 2], [0]]}, [[5, 6], [7, 8], *IDS[1:]]),
        ({"position_ids": [[0, 1, 2, 3], [0, 1], [0, 1, 2]], "pad_mask": [[0] * 4, [0] * 2, [0] * 3]}, IDS),
        ({"score": [[1], [1], [2]]}, IDS),
        (
            {"segment_ids": [[0, 0, 1, 1], [0, 0], [0, 1, 1]], "attention_mask": [[1, 1, 1, 0], [1, 1], [1, 1, 1]]},
            [[5, 6], [7], [9, 9], [4], [4, 4]],
        ),
        (
            {"attention_mask": [[0, 0, 1, 1], [1, 1], [1] * 3], "position_ids": [[1, 1, 0, 1], [0, 1], [0, 1, 2]]},
            [[7, 8], *IDS[1:]],
        ),
    ],
)
def test_columns_are_obeyed(columns: dict[str, Any], documents: list[list[int]]) -> None:
    assert read(IDS, **columns) == documents


BAD_MASKS = [
    ({"attention_mask": [[1] * 4, [1, -1], [1] * 3]}, "row 1: attention_mask has the value -1, which is"),
    ({"attention_mask": [[1] * 4, [1, 0.5], [1] * 3]}, "row 1: attention_mask has the value 0.5 where"),
    ({"attention_mask": [[1] * 4, [1] * 3, [1] * 3]}, "row 1: column attention_mask has 3 values for 2 ids"),
]
LOSING = [
    ({"attention_mask": [[1, 0, 1, 1], [1] * 2, [1] * 3]}, "row 0: attention_mask: a document goes on"),
    ({"attention_mask": [[1, 2, 1, 2], [1] * 2, [1] * 3]}, "row 0: attention_mask: a document goes on"),
    ({"document_ids": [[7, 7, 8, 8], [8, 8], [9] * 3]}, "row 1: column document_ids: document 8 goes on"),
    ({"document_ids": [[1] * 4, [0, 0], [1, 0, 0]]}, "row 1: column document_ids has the number 0"),
    ({"segment_ids": [[1, 1, 2, 0], [1, 0], [0, 1, 1]]}, "row 2: column segment_ids has the number 0"),
    ({"segment_ids": [[2, 2, 0, 0], [1, 1], [1] * 3]}, "row 0: column segment_ids has the number 0"),
    ({"pad_mask": [[0, 0, 0, 1], [0] * 2, [0] * 3]}, "row 0: column pad_mask marks padding, but not"),
    ({"position_ids": [[0, 1, 0, 1], [0, 1], [0, 1, 2]]}, "row 0: column position_ids says that these"),
    ({"seq_lengths": [[4], [1, 1], [3]]}, "row 1: column seq_lengths says that these are packed rows"),
    ({"seq_start_id": [[0], [0], [0, 2]]}, "row 2: column seq_start_id says that these are packed"),
    ({"reward": [[1.5] * 4, [0] * 2, [1] * 3]}, "row 0: column reward has a number for each token, and"),
]


@pytest.mark.parametrize(("columns", "message"), [*BAD_MASKS, *LOSING])
def test_what_is_not_clear_is_refused(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read(IDS, **columns)
    assert caught.value.code == ("bad-mask" if (columns, message) in BAD_MASKS else "import-loses")
    assert "--ids-only" in caught.value.remedy


@given(
    st.lists(
        st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3), st.integers(-1, 2), st.booleans()), max_size=8),
        min_size=1,
        max_size=4,
    )
)
def test_rows_are_read_as_the_naive_reader_does(rows: list[list[tuple[int, int, int, bool]]]) -> None:
    """Ids, mask, numbers, and which train; with a mask, the number 0 is a document."""
    columns: dict[str, list[list[Any]]] = {
        "input_ids": [[token for token, *_ in row] for row in rows],
        "attention_mask": [[mask for _, mask, *_ in row] for row in rows],
        "document_ids": [[number for *_, number, _ in row] for row in rows],
        "labels": [[token if trains else -100 for token, *_, trains in row] for row in rows],
    }
    ids = columns.pop("input_ids")
    try:
        found = documents(ids, columns)
    except DataError:
        return  # the naive reader takes documents that go on from one row to the next, and zeros without a mask
    expected = [
        document
        for number, mine in enumerate(ids)
        for document in of_row({"input_ids": mine, **{name: values[number] for name, values in columns.items()}})
    ]
    kept = [part.tolist() for part in np.split(found.tokens, np.cumsum(found.lengths)[:-1]) if len(part)]
    trains = [part.tolist() for part in np.split(found.loss, np.cumsum(found.lengths)[:-1]) if len(part)]
    assert kept == [document.ids[:-1] for document in expected]
    assert trains == [document.trains[:-1] for document in expected]
    assert found.padding == sum(map(len, ids)) - len(found.tokens)


@pytest.mark.parametrize("name", WRITE)
def test_what_they_say_is_counted(tmp_path: Path, tokenizer: Path, name: str) -> None:
    """As LLaMA-Factory packs rows: the mask numbers documents, and is 0 for padding."""
    file, write = tmp_path / f"a.{name}", WRITE[name]
    mask = [[1, 1, 2, 0], [1, 1], [1, 2, 3]]
    write(file, {"input_ids": IDS, "attention_mask": mask, "document_id": ["a", "b", "c"]})
    options: dict[str, Any] = {"format": name, "tokenizer": tokenizer}
    result = packtool.import_(file, tmp_path / "store", **options)
    assert result.counts == {"documents": 6, "tokens": 14, "empty": 0, "eos_added": 6, "padding": 1, "divided": 2}
    assert result.run["read_as"] == ["attention_mask 0 is padding"]
    store = TokenStore(tmp_path / "store")
    assert [store.document(number)[:-1].tolist() for number in range(6)] == [[5, 6], [7], [9, 9], [4], [4], [4]]
    assert packtool.verify(tmp_path / "store").problems == []
    packtool.import_(file, tmp_path / "plain", ids_only=True, **options)
    assert TokenStore(tmp_path / "plain").lengths().tolist() == [5, 3, 4]
    write(file, {"input_ids": IDS, "labels": [1, 2, 3]})
    with pytest.raises(DataError, match=r"labels (is not a list of numbers|holds .*, not lists of numbers)"):
        packtool.import_(file, tmp_path / "no", **options)
    write(file, {"input_ids": IDS, "attention_mask": [[1] * 4, None, [1] * 3]})
    with pytest.raises(DataError, match=r"no column says more of the ids, but attention_mask in|no list in column"):
        packtool.import_(file, tmp_path / "no", **options)
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        ([[1, 1, 2, 2], [1, 1], [1, 1, 2]], ""),
        ([[1, 2, 2, -1], [1, 1], [1, 1, 2]], "segment_ids below 0 is padding"),
        ([[1, 2, 2, 0], [1, 1], [1, 1, 2]], "segment_ids 0 is padding, since it follows the documents of a row"),
        ([[0, 0, 1, 1], [0, 0], [0, 1, 1]], "segment_ids 0 is a document, since it begins a row"),
    ],
)
def test_a_guess_is_told(tmp_path: Path, tokenizer: Path, shell: Shell, numbers: list[list[int]], said: str) -> None:
    WRITE["jsonl"](tmp_path / "a.jsonl", {"input_ids": [[5, 6, 7, 9], [4, 8], [4, 5, 6]], "segment_ids": numbers})
    out = shell("import", tmp_path / "a.jsonl", "-o", tmp_path / "s", "--format", "jsonl", "--tokenizer", tokenizer)
    assert (f"\nRead so: {said}.\n" in out) == bool(said)
    assert ("Read so" in out) == bool(said)


@pytest.mark.parametrize("name", WRITE)
def test_a_loss_is_read_whichever_file_has_it(tmp_path: Path, tokenizer: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    WRITE[name](tmp_path / "in" / f"1.{name}", {"input_ids": [[5, 6]]})
    WRITE[name](tmp_path / "in" / f"2.{name}", {"input_ids": [[5, 6]], "labels": [[-100, 6]]})
    result = packtool.import_(tmp_path / "in", tmp_path / "store", format=name, tokenizer=tokenizer)
    assert result.counts["trained_tokens"] == 3 + 2  # with EOS
