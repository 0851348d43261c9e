"""`--where`: what Python makes of an expression, over a store of records with every kind of value; and its refusals."""

import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import packtool
from packtool.choosing.condition import Search
from packtool.choosing.documents import StoredDocuments
from packtool.errors import DataError, PacktoolError, UsageError
from packtool.formats.token_store import Corpus, TokenStore
from packtool.options.where import condition_of
from tests.choosing.web_and_wiki import pack, store_of
from tests.making import write_records

Record = dict[str, Any]
VALUES: dict[str, list[Any]] = {
    "score": [3, 2.5, -1, 100000.0, -0.0, 0, 7, None],
    "full": [3, 0, 4.25, -7, 1 << 53, (1 << 53) + 1, (1 << 64) + 3, -(1 << 63) - 1],
    "lang": ["en", "de", "", "é", "𝄞", "z", None],
    "code": [True, False, None],
}
NUMBERS = ["3", "0", "-1", "2.5", "100000", "-0.0", "4"]
WHOLE = ["9007199254740992", "9007199254740993", "9007199254740992.0", "18446744073709551619", "-9223372036854775809"]
"""Whole numbers that are compared exactly, beside a float that equals one of them."""
TEXTS = ["'en'", "'de'", "''", "'é'", "'n'", "'𝄞'"]
ORDERS = ["<", "<=", ">", ">=", "==", "!="]


@pytest.fixture(scope="module")
def records() -> list[Record]:
    draw = random.Random(0)
    made = []
    for number in range(300):
        record = {name: draw.choice(values) for name, values in VALUES.items()}
        made.append({"text": f"text {number} " * (1 + number % 5), "m": {"q": number % 3}, **record})
    return made


@pytest.fixture(scope="module")
def path(records: list[Record], tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("where") / "in"
    for name, part in (("a", records[:200]), ("b", records[200:])):
        write_records(directory / f"{name}.jsonl", part)
    columns = [*VALUES, "m.q"]
    packtool.tokenize(directory, directory.parent / "web", columns=columns, workers=1, encoder="tokenizers")
    return directory.parent / "web"


def taken(path: Path, expression: str) -> list[bool]:
    """Whether packtool takes each document."""
    found: list[bool] = []
    search = Search(condition_of(expression), {"web": 0})
    for portion in StoredDocuments(Corpus([path])).portions():
        found += search.holds(portion, portion.left).tolist()
    search.require_all_present()
    return found


def by_python(path: Path, records: list[Record], expression: str) -> list[bool] | None:
    """Whether Python does; None where it raises an error."""
    lengths, names = TokenStore(path).lengths().tolist(), {}
    found = []
    for number, record in enumerate(records):
        names = {name: record[name] for name in VALUES} | {"m": SimpleNamespace(**record["m"]), "field": record}
        line = 1 + number % 200
        names |= {"store": "web", "file": "ab"[number // 200] + ".jsonl", "line": line, "tokens": lengths[number]}
        try:
            found.append(bool(eval(expression, {}, names)))
        except TypeError:
            return None
    return found


def leaf(draw: random.Random) -> str:
    """A comparison."""
    order, number, text = draw.choice(ORDERS), draw.choice(NUMBERS), draw.choice(TEXTS)
    several = ", ".join(draw.choices([*TEXTS, "None"], k=draw.randrange(1, 4)))
    return draw.choice(
        [
            f"score {order} {number}",
            f"{draw.choice([number, *WHOLE])} {order} full",
            f"{number} <= full < {draw.choice(NUMBERS)}",
            f"lang {draw.choice(['==', '!='])} {text}",
            f"lang {draw.choice(['in', 'not in'])} ({several},)",
            f"{draw.choice([*VALUES])} {draw.choice(['is', 'is not', '==', '!='])} None",
            "code",
            f"code == {draw.choice(['True', 'False', 'None'])}",
            f"score in ({number}, {draw.choice(NUMBERS)})",
            f"m.q {order} {number}",
            f"{text} {draw.choice(['in', 'not in'])} lang",
            f"field['lang'] {draw.choice(['<', '>='])} {text}",
            f"tokens {order} {draw.randrange(20)}",
            f"{draw.randrange(200)} {order} line",
            f"file {draw.choice(['==', '!=', '<'])} 'a.jsonl'",
            f"store {draw.choice(['==', '!='])} 'web'",
        ]
    )


def expression(draw: random.Random, depth: int = 3) -> str:
    """Comparisons, joined."""
    if depth == 0 or draw.random() < 0.25:
        return leaf(draw)
    part = expression(draw, depth - 1)
    forms: list[Callable[[], str]] = [
        lambda: f"not ({part})",
        lambda: f"({part} {draw.choice(['and', 'or'])} {expression(draw, depth - 1)})",
        lambda: f"(lang is not None and {part})",
        lambda: f"(score is None or {part})",
    ]
    return draw.choice(forms)()


@pytest.mark.parametrize("cases", [80, pytest.param(5000, marks=pytest.mark.slow)])
def test_an_expression_means_what_python_makes_of_it(path: Path, records: list[Record], cases: int) -> None:
    draw = random.Random(cases)
    refused = 0
    for _ in range(cases):
        written = expression(draw)
        wanted = by_python(path, records, written)
        if wanted is None:
            refused += 1
            with pytest.raises(UsageError, match="is missing in"):
                taken(path, written)
        else:
            assert taken(path, written) == wanted, written
    assert 0 < refused < cases / 2


REFUSED = {
    "score >=": "'score >=' is not an expression. Write it like score >= 3 and lang in ('en', 'de'), with == for equal",
    "score = 3": "'score = 3' is not an expression",
    "": "'' is not an expression",
    "\0": "is not an expression",
    "'\ud800' in lang": "is not an expression",
    r"'\ud800' in lang": r"'\ud800' is no valid Unicode. Write whole characters",
    r"lang == '\ud800'": r"'\ud800' is no valid Unicode",
    r"lang in ('en', 'a\udfff')": r"'a\udfff' is no valid Unicode",
    r"field['\ud800'] == 3": r"'\ud800' is no valid Unicode",
    "(" * 3000 + "a" + ")" * 3000: "is not an expression",
    "not " * 200 + "a": "is nested too deeply. Write it with fewer than 100 levels",
    "score + 1 > 2": "'score + 1' is not the name of a field. Nothing is computed: compute it before, and keep it",
    "len(lang) > 3": "'len(lang)' is not the name of a field. Nothing is computed",
    "field[0] == 1": "'field[0]' is not the name of a field. Compare a field with constants; one whose name is no word",
    "score if code else lang": "is not the name of a field",
    "full": "which is neither true nor false",
    "lang == score": "lang == score compares two fields. Compare a field with a constant, such as 3 or 'en'",
    "-score > 2": "-score > 2 computes",
    "score is 3": "score is 3: is goes with None. Write == or !=",
    "lang in 'en'": "in goes with several values. Write them in parentheses, such as in ('en', 'de')",
    "score > (1, 2)": "in goes with several values",
    "score >= None": "only numbers and text have an order",
    "lang in (1, 'en')": "lang in (1, 'en') mixes numbers, text or True",
    "3 in score": "3 in score: only text is in a text",
    "score == 1j": "1j is no value of a field. Give numbers or text",
    "score == 1" + "0" * 40: "is too large to be exact. Compare the text that it is, in quotes",
    "store < 'web'": "store < 'web': store goes with ==, !=, in and not in, and the names of stores",
    "store is None": "store is None: store goes with",
    "'w' in store": "'w' in store: store goes with",
    "store != 'wiki'": "there is no store 'wiki' among the inputs. Name it as its path ends: web",
    "True": "True alone takes all documents or none",
    "tokens": "tokens is neither true nor false",
    "tokens == '5'": "tokens is a number. Compare it with one",
    "nosuch == 1": "'nosuch' was not kept with the documents of ",
    "id == 'a'": "id: its documents have none. Tokenize with id_field",
    "lang >= 3": "is not a number. Compare it as the text that it is",
    "score >= 3": "score >= 3: the field is missing in {missing} documents (first: a.jsonl:{first})",
}


@pytest.mark.parametrize("written", REFUSED)
def test_what_means_nothing_is_refused_with_what_to_do(path: Path, records: list[Record], written: str) -> None:
    missing = [number for number, record in enumerate(records) if record["score"] is None]
    wanted = REFUSED[written]
    if written in ("score >= 3",):
        wanted = wanted.format(missing=len(missing), first=missing[0] + 1)
    with pytest.raises(PacktoolError) as raised:
        packtool.stats(path, where=written)
    assert wanted in str(raised.value).replace("\\x00", "\0")
    code = {
        "full": "bad-value",
        "lang >= 3": "bad-value",
        "nosuch == 1": "field-not-kept",
        "store != 'wiki'": "store-name",
    }.get(written, "bad-where")
    assert raised.value.code == code
    assert isinstance(raised.value, DataError if code == "bad-value" else UsageError)


def test_a_part_that_is_decided_is_not_looked_at(path: Path, tmp_path: Path) -> None:
    other = store_of(tmp_path / "plain", ["without a score"] * 3)
    dataset = pack([path, other], tmp_path / "p", where="store == 'plain' or lang == 'en'")
    web, plain = dataset.manifest.choice.sources
    assert plain.chosen_documents == 3
    assert web.left_out["not_where"].documents == sum(not hit for hit in taken(path, "lang == 'en'"))


def test_numbers_that_are_wrong_name_their_document(tmp_path: Path) -> None:
    records = [{"text": "a", "s": 1}, {"text": "b", "s": "high"}, {"text": "c", "tokens": 2}]
    store = store_of(tmp_path / "in", records, columns=["s", "tokens"])
    with pytest.raises(DataError, match=r"in.jsonl:2: s == 1: s is 'high', which is not a number"):
        packtool.stats(store, where="s == 1")
    with pytest.raises(UsageError, match=r"Write field\['tokens'\] for the field, or keep it under another name"):
        packtool.stats(store, where="tokens >= 1")
    assert taken(store, "field['tokens'] == 2") == [False, False, True]


def test_without_provenance_files_and_lines_are_refused(tmp_path: Path) -> None:
    store = store_of(tmp_path / "in", [{"text": "a", "s": 1}, "b"], columns=["s"], provenance=False)
    with pytest.raises(UsageError, match="provenance=False"):
        packtool.stats(store, where="line > 1")
    with pytest.raises(UsageError, match=r"s > 0: the field is missing in 1 document \(first: .*document 1\)"):
        packtool.stats(store, where="s > 0")
    assert packtool.stats(store, where="s is None or s > 0")


def test_the_id_is_the_field_of_that_name_where_it_is_both(tmp_path: Path) -> None:
    records = [{"text": "a", "id": "x", "name": "y"}, {"text": "b", "id": "z", "name": "w"}]
    for field in ("id", "name"):
        store_of(tmp_path / field, records, id_field=field, columns=["id"])
    assert taken(tmp_path / "id", "id == 'z'") == taken(tmp_path / "id", "field['id'] == 'z'") == [False, True]
    with pytest.raises(UsageError, match="id is a field that was kept, and a name that packtool gives"):
        taken(tmp_path / "name", "id == 'z'")
