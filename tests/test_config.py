"""Configuration files: every value reaches its option, and every mistake is named with its line."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from packtool.config import StageTable, read
from packtool.errors import DataError, PacktoolError, UsageError


def tables(tmp_path: Path, text: str | bytes) -> list[StageTable]:
    path = tmp_path / "c.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read(path)


def refused(tmp_path: Path, text: str | bytes) -> str:
    with pytest.raises(UsageError) as caught:
        tables(tmp_path, text)
    return str(caught.value).replace(str(tmp_path / "c.toml"), "FILE")


def test_values_arrive_as_the_function_takes_them(tmp_path: Path) -> None:
    """A list of one may be written as its item."""
    text = (
        "[pack]\ninput = ['a', 'b']\nsequence-length = 2_048\nmax_repetition = 0.3\n\"buckets\" = 64\nshuffle = false"
    )
    (table,) = tables(tmp_path, f"{text}\npad-token = 7\nshard-tokens = '1k'")
    assert table.stage == "pack"
    assert table.values == {
        "input": ["a", "b"],
        "sequence_length": 2048,
        "max_repetition": Fraction(3, 10),
        "buckets": [64],
        "shuffle": False,
        "pad_token": 7,
        "shard_tokens": 1024,
    }
    assert (table.line, table.lines) == (1, {name: line for line, name in enumerate(table.values, 2)})


def test_tables_come_in_the_order_of_the_stages(tmp_path: Path) -> None:
    found = tables(tmp_path, "[[shuffle]]\n[[pack]]\nstrategy = 'a'\n[tokenize]\n[[pack]]\n\nstrategy = 'b'\n")
    assert [(t.stage, t.line, t.values, t.lines) for t in found] == [
        ("tokenize", 4, {}, {}),
        ("pack", 2, {"strategy": "a"}, {"strategy": 3}),
        ("pack", 5, {"strategy": "b"}, {"strategy": 7}),
        ("shuffle", 1, {}, {}),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[pack]\nsequence_lenght = 1", ":2: pack has no option 'sequence_lenght'. Did you mean sequence-length?"),
        ("[pack]\nxyz = 1", ":2: pack has no option 'xyz'. Choose one of input, output, strategy, "),
        ("\n[pac]\n", ":2: there is no table 'pac'. Did you mean pack?"),
        (
            "seed = 1\n",
            ":1: there is no table 'seed'. Choose one of tokenize, pack, shuffle, materialize, export, stat",
        ),
        ("pack = 3\n", ":1: pack is not a table. Write [pack]."),
        ("[pack]\n\nshuffle = 1\n", ":3: shuffle can't be 1. Give true or false."),
        ("[pack]\nsequence-length = true\n", ":2: sequence-length can't be true. Give a whole number"),
        ("[pack]\nsequence-length = 1.5\n", ":2: sequence-length can't be 1.5. Give a whole number"),
        ("[pack]\nstrategy = 5\n", ":2: strategy can't be 5. Give a string."),
        ("[pack]\nbuckets = [1, 'a']\n", ":2: buckets can't be [1, 'a']. Give a list of whole numbers"),
        ("[pack]\npad-token = 1.5\n", ":2: pad-token can't be 1.5. Give a string or an id below 2^63."),
        ("[pack]\nstrategy = 2020-01-01\n", ":2: strategy can't be datetime.date(2020, 1, 1). Give a string."),
        (
            "[pack]\nmax-repetition.x = 1",
            ":2: max-repetition can't be {'x': 1}. Give a share of at most 1, such as 1%.",
        ),
        ("[pack]\noverwrite = true", ":2: overwrite is not for files. Leave it out and give overwrite on"),
        ("[pack]\npad-token = 1\npad_token = 2", ":3: pad_token is given twice. Keep one of them."),
        ("[pack]\nstrategy = concat", ":2: not TOML: invalid value. Write values as in TOML"),
        ("[pack]\n[pack]\n", ":2: not TOML: cannot declare ('pack',) twice."),
    ],
)
def test_mistakes_are_named_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    assert refused(tmp_path, text).startswith(f"FILE{message}")


def test_not_text(tmp_path: Path) -> None:
    assert refused(tmp_path, b"[pack]\n\nstrategy = '\xff'") == "FILE:3: not UTF-8 text. Save the file as UTF-8."
    assert tables(tmp_path, b"\xef\xbb\xbf[pack]\r\nstrategy = 'a'\r\n")[0].lines == {"strategy": 2}


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read(tmp_path / "c.toml")


def located(table: StageTable, error: PacktoolError) -> Any:
    return table.locate(error).where


def test_errors_about_options_point_into_the_file(tmp_path: Path) -> None:
    (table,) = tables(tmp_path, "[pack]\nsequence-length = 12\n")
    error = UsageError("bad-option", "12 is out of range", remedy="give more", where="--sequence-length")
    assert str(table.locate(error)).endswith("c.toml:2: sequence-length: 12 is out of range. Give more.")
    assert table.locate(error).code == "bad-option"
    assert located(table, UsageError("x", "y", remedy="z", where="--seed")) == "--seed"
    assert located(table, DataError("x", "y", remedy="z", where="sequence-length")) == "sequence-length"
