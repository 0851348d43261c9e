"""Numbers that were kept as text are what Python's `Fraction` makes of them, whatever file they came from."""

import csv
import operator
import random
from fractions import Fraction
from math import inf, isinf, nextafter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import packtool
from packtool.choosing.condition import Search
from packtool.choosing.documents import StoredDocuments
from packtool.choosing.order import documents_in_order
from packtool.formats.token_store import Corpus
from packtool.options.order import order_keys
from packtool.options.where import condition_of
from packtool.planning.selecting.mixture import Passes

COMPARED = {"<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt}
SPELLINGS = [repr, "{:.17g}".format, "{:.17e}".format, "{:.20E}".format, "{:.0f}".format, "{:.1f}".format]


def meant(text: str) -> Fraction:
    """The number that a text means: digits are a whole number, all else is a float."""
    if text.lstrip("-").isdigit():
        return Fraction(int(text))
    return Fraction(float(text))


def double(draw: random.Random) -> float:
    """A float of any size, many of them near each other and near those that hold whole numbers only."""
    near = draw.choice([1e23, 2.0**53, 2.0**62, 2.0**63, 1.7e18, 0.1, 1e-300, 1.7e308])
    value = draw.choice([near, draw.uniform(-9, 9), draw.uniform(-1, 1) * 10.0 ** draw.randint(-300, 300)])
    for _ in range(draw.randrange(3)):
        value = nextafter(value, draw.choice([-inf, inf]))
    return value


def whole(draw: random.Random) -> int:
    """A whole number that 64 bits hold, many of them next to a float that isn't it."""
    near = draw.choice([0, 1 << 53, 1 << 62, (1 << 63) - 9, -(1 << 53), 1_700_000_000_000_000_001])
    return near + draw.randint(-8, 8)


def written(draw: random.Random, value: float | int) -> str:
    """A text of a number that gives it back."""
    if isinstance(value, int):
        return str(value)
    texts = [repr(value)]
    for spell in SPELLINGS:
        text = spell(value)
        if not isinf(float(text)) and meant(text) == Fraction(value) and len(text) < 30:
            texts.append(text)
    return draw.choice(texts)


Kept = tuple[list[Path], list[list[Fraction]]]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """Stores of JSON, CSV, and Parquet with floats and with whole numbers; and the numbers in them."""
    top, draw = tmp_path_factory.mktemp("numbers"), random.Random(0)
    texts = [[written(draw, draw.choice([double, whole])(draw)) for _ in range(150)] for _ in range(2)]
    lines = [f'{{"text": "a", "n": {text}}}\n' for text in texts[0]]
    (top / "a.jsonl").write_text("".join(lines))
    with (top / "b.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["text", "n"], *(["a", text] for text in texts[1])])
    floats, wholes = [double(draw) for _ in range(150)], [whole(draw) for _ in range(150)]
    for name, column in {"c": pa.array(floats), "d": pa.array(wholes)}.items():
        pq.write_table(pa.table({"text": ["a"] * 150, "n": column}), top / f"{name}.parquet")
    for file in list(top.iterdir()):
        packtool.tokenize(file, top / file.stem, columns=["n"], workers=1)
    numbers = [list(map(meant, some)) for some in texts] + [list(map(Fraction, floats)), list(map(Fraction, wholes))]
    return [top / name for name in "abcd"], numbers


@pytest.mark.parametrize("cases", [60, pytest.param(500, marks=pytest.mark.slow)])
def test_a_number_is_to_a_constant_what_fractions_are(kept: Kept, cases: int) -> None:
    draw, (stores, numbers) = random.Random(cases), kept
    portions = [list(StoredDocuments(Corpus([store])).portions()) for store in stores]
    for _ in range(cases):
        constants = [written(draw, draw.choice([double, whole])(draw)) for _ in range(2)]
        if draw.random() < 0.7:  # one that is there
            place = draw.choice(numbers)
            value = draw.choice(place)
            constants[0] = str(int(value)) if value.denominator == 1 and abs(value) < 1 << 64 else repr(float(value))
        sign = draw.choice(list(COMPARED))
        for expression, holds in (
            (f"n {sign} {constants[0]}", lambda n: COMPARED[sign](n, meant(constants[0]))),  # noqa: B023 - called here
            (f"n in ({', '.join(constants)})", lambda n: n in list(map(meant, constants))),  # noqa: B023
        ):
            search = Search(condition_of(expression), {})
            for store, some in zip(portions, numbers, strict=True):
                found = np.concatenate([search.holds(portion, portion.left) for portion in store])
                assert found.tolist() == list(map(holds, some)), expression


def test_numbers_of_any_files_have_one_order(kept: Kept) -> None:
    stores, numbers = kept
    passes = [Passes(np.ones(150, np.bool_), 1, np.zeros(150, np.bool_)) for _ in stores]
    order = documents_in_order(StoredDocuments(Corpus(stores)), passes, order_keys(["n:number"]), 1 << 30)
    found = order.documents.tolist()
    every = [number for some in numbers for number in some]
    assert found == sorted(range(len(every)), key=every.__getitem__)


def test_keep_takes_a_float_of_any_size(kept: Kept, tmp_path: Path) -> None:
    (_, _, floats, _), (_, _, values, _) = kept
    packtool.pack(floats, tmp_path / "p", strategy="padding", sequence_length=16, keep=["n:number"])
    batch = packtool.open(tmp_path / "p").batch(slice(None), fields=("column.n",))
    assert set(batch["column.n"].tolist()) >= set(map(float, values))
