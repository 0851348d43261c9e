"""The kinds of option values: how people write them on the command line, in a file and in Python.

A kind's `parse` takes what any of the three gives and is idempotent, so a value means the same wherever it comes from.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from packtool.errors import UsageError, without_secrets
from packtool.options.names import any_of
from packtool.support.sizes import parse_bytes, plural

_SHOWN = 60
_EXACT = re.compile(r"\s*[-+]?(?:\d[\d_]*/\d[\d_]*|(?:\d[\d_]*)?\.?[\d_]*(?:[eE]([-+]?\d{1,9}))?)\s*")
_COUNTED = re.compile(r"(\d+(?:\.\d+)?\s*[kmbgt]?)\s*(tokens?|documents?)?")
_LONGEST = 400  # digits of a number that is computed exactly; floats have at most 325 before or after the point


def shown(value: Any) -> str:
    """Write a refused value for a message, and not all of a long one.

    >>> shown("a"), shown(10**70), shown(Fraction(1, 3))
    ("'a'", '100000000000000000000000000000000000000000000000000000000000…', '1/3')
    """
    if isinstance(value, Fraction):
        return str(value)
    try:
        text = repr(value)
    except ValueError:  # Python's own limit on the digits of an integer
        return "a number of thousands of digits"
    text = without_secrets(text)  # of what is cut, an error would no longer know that it holds any
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Kind:
    """A kind of value."""

    words: str  # what it takes, as in "give a whole number"
    metavar: str  # placeholder of the value in help
    in_file: Any  # type that a value must have in a TOML file
    parse: Callable[[Any], Any] = _as_it_is  # what was written to the value; raises `ValueError`, or `UsageError`
    many: bool = False  # several values, separated by commas on the command line
    repeated: bool = False  # several values, each after the option's name on the command line
    read: Callable[[Any], Any] | None = None  # what a manifest records to the value, where more was taken once


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ValueError(value)


def _text_or_id(value: Any) -> str | int:
    """Parse a text, or a number that 63 bits hold; digits alone are one."""
    if isinstance(value, str):
        if value.isdecimal():
            _from(0)(value)
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value < 1 << 63:
        return value
    raise ValueError(value)


def parse_flag(value: object) -> bool:
    """Parse True or False; refuse a text such as "no", which would count as true."""
    if isinstance(value, bool):
        return value
    raise ValueError(value)


def parse_number(value: str | int) -> int:
    """Parse a whole number, or its digits.

    >>> parse_number("-3"), parse_number(7)
    (-3, 7)
    """
    if isinstance(value, bool | float):
        raise ValueError(value)
    return int(value)  # raises ValueError


def _from(low: int) -> Callable[[Any], int]:
    """Return the parser of whole numbers from `low` that 63 bits hold."""

    def parse(value: Any) -> int:
        number = parse_number(value)
        if not low <= number < 1 << 63:
            raise ValueError(value)
        return number

    return parse


def parse_count(value: str | int) -> int:
    """Parse a whole number, which may have a suffix k, M or G, in powers of 1024 as row lengths have.

    >>> parse_count("2048"), parse_count("1.5k"), parse_count("256M"), parse_count(7)
    (2048, 1536, 268435456, 7)
    """
    return _with_suffix(value, {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30})


def parse_row_length(value: str | int | Sequence[int | str]) -> int:
    """Parse the length of a row, as `parse_count` does.

    Raises:
        UsageError: there are several.
    """
    several = len(value) > 1 if isinstance(value, list | tuple) else "," in str(value)
    if several:
        what, remedy = f"rows have one length, not {shown(value)}", "give one; stats with --compare tries several"
        raise UsageError("bad-option", what, remedy=remedy, where="--sequence-length")
    return parse_count(value)  # type: ignore[arg-type]


def parse_amount(value: str | int) -> int:
    """Parse a number of tokens or documents; its suffixes are powers of 1000, as corpora are counted.

    >>> parse_amount("1.5M"), parse_amount("300B"), parse_amount(7)
    (1500000, 300000000000, 7)
    """
    number = _with_suffix(value, {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12})
    if not 1 <= number < 1 << 62:
        raise ValueError(value)
    return number


def _with_suffix(value: str | int, factors: Mapping[str, int]) -> int:
    match = re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*([a-z]?)\s*", str(value).lower().replace("_", ""))
    if match is None or match[2] not in factors:
        raise ValueError(value)
    number = Fraction(match[1]) * factors[match[2]]
    if number.denominator != 1:
        raise ValueError(value)
    return int(number)


def parse_exact(text: str) -> Fraction:
    """Parse a number exactly: a decimal, perhaps with an exponent, or a fraction.

    A few characters can name a number of a billion digits, which would take hours to compute. So what is longer than
    any float is refused.

    >>> parse_exact("1e-3"), parse_exact(" 3/10")
    (Fraction(1, 1000), Fraction(3, 10))
    """
    match = _EXACT.fullmatch(text)
    if match is None or len(text) > _LONGEST or abs(int(match[1] or 0)) > _LONGEST:
        raise ValueError(text)
    try:
        return Fraction(text)
    except ZeroDivisionError:
        raise ValueError(text) from None


def parse_share(value: Fraction | float | str) -> Fraction:
    """Parse a share exactly as written: 1%, 0.01 or 1/100. 0.3 is three tenths, not the binary number next to it.

    >>> parse_share("1%"), parse_share(0.3), parse_share("3/10")
    (Fraction(1, 100), Fraction(3, 10), Fraction(3, 10))
    """
    text = str(value).strip()
    share = parse_exact(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if isinstance(value, bool) or not 0 <= share <= 1:
        raise ValueError(value)
    return share


def parse_limit(value: Fraction | float | str) -> int | Fraction:
    """Parse a number of records, or their share, which has a point, a bar or a percent sign.

    >>> parse_limit(5), parse_limit("1%"), parse_limit(0.01)
    (5, Fraction(1, 100), Fraction(1, 100))
    """
    if isinstance(value, Fraction | float) or (isinstance(value, str) and set("%./") & set(value)):
        return parse_share(value)
    return parse_number(value)


def parse_temperature(value: Decimal | float | str) -> Decimal:
    """Parse a temperature exactly, as a decimal."""
    try:
        temperature = Decimal(str(value))
    except InvalidOperation:
        raise ValueError(value) from None
    if not temperature.is_finite() or not Decimal("0.01") <= temperature <= 1000:
        raise ValueError(value)
    return temperature


@dataclass(frozen=True)
class HoldoutAmount:
    """An amount to hold out: a share of the texts, or a number of documents or tokens."""

    text: str  # the amount as it was written
    share: Fraction | None = None  # share of the texts, or
    documents: int = 0  # number of documents, or
    tokens: int = 0  # number of tokens
    bound: int | None = None  # the hash below which a text is held out, once it is known

    def __str__(self) -> str:
        return self.text

    def in_words(self) -> str:
        """Write the amount with its unit.

        >>> parse_part("5 documents").in_words(), parse_part("0.5%").in_words()
        ('5 documents', '0.5%')
        """
        if self.documents:
            return plural(self.documents, "document")
        if self.tokens:
            return plural(self.tokens, "token")
        return self.text


def parse_part(value: HoldoutAmount | Fraction | float | str) -> HoldoutAmount:
    """Parse a part to hold out: a share, or a number of documents or tokens.

    Raises:
        ValueError: it is neither.
        UsageError: it is a number of 1 or more without a unit, which some take for documents and others for a share.

    >>> parse_part("0.5%").share, parse_part("2k tokens").tokens, parse_part(0.1).share
    (Fraction(1, 200), 2000, Fraction(1, 10))
    """
    if isinstance(value, HoldoutAmount):
        return value
    text = str(value).strip().lower()
    match = _COUNTED.fullmatch(text)
    if match is not None and match[2] is not None:
        amount = parse_amount(match[1])
        if match[2].startswith("token"):
            return HoldoutAmount(str(value), tokens=amount)
        return HoldoutAmount(str(value), documents=amount)
    try:
        share = parse_share(text)
    except ValueError:
        if match is None:
            raise
        raise _without_unit(text) from None
    if not {"%", "/"} & set(text) and not 0 < share < 1:
        raise _without_unit(text)
    return HoldoutAmount(str(value), share=share)


def _without_unit(text: str) -> UsageError:
    """Return the error for a number that is no share below 1, with the ways to write what it may mean."""
    ways = []
    with suppress(ValueError):
        parse_share(f"{text}%")
        ways.append(f"{text}%")
    with suppress(ValueError):
        parse_amount(text)
        ways += [f"{text} documents", f"{text} tokens"]
    remedy = f"write {any_of(tuple(ways) or ('a share such as 5%',))}"
    return UsageError("bad-option", f"{text} has no unit", remedy=remedy, where="--holdout")


def recorded_part(text: str) -> HoldoutAmount:
    """Read the part that a manifest records: a number without a unit, which `--holdout` took once, is of documents.

    >>> recorded_part("5").documents, recorded_part("5%").share
    (5, Fraction(1, 20))
    """
    try:
        return parse_part(text)
    except UsageError:
        return HoldoutAmount(text, documents=parse_amount(text))


def parse_object(value: Mapping[str, Any] | str) -> dict[str, Any]:
    """Parse a JSON object.

    >>> parse_object('{"enable_thinking": false}')
    {'enable_thinking': False}
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except RecursionError:
            raise ValueError(value) from None
    if not isinstance(value, Mapping):
        raise ValueError(value)
    return dict(value)


def parse_shard(value: str) -> str:
    """Parse one of several equal parts, counted from 1.

    >>> parse_shard("1/8"), parse_shard("08/8")
    ('1/8', '8/8')
    """
    match = re.fullmatch(r"(\d+)/(\d+)", str(value).strip())
    if match is None or not 1 <= int(match[1]) <= int(match[2]) < 1 << 31:
        raise ValueError(value)
    return f"{int(match[1])}/{int(match[2])}"


def _items(value: Any) -> list[Any]:
    """Split a list given as a list or separated by commas; one value makes a list of one."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    return list(value) if isinstance(value, Iterable) else [value]


def _each(parse: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    return lambda value: list(map(parse, _items(value)))


def _parse_weights(value: Any) -> list[str]:
    """Parse NAME=WEIGHT of each store, also from a table."""
    if isinstance(value, Mapping):
        return [f"{name}={weight}" for name, weight in value.items()]
    return list(map(str, _items(value)))


def _several(value: Any) -> list[Any]:
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | os.PathLike | Mapping):
        return list(map(_place, value))
    return [_place(value)]


def _place(value: Any) -> Any:
    """Refuse what is no place, a path with a NUL character, which no file system takes, and a URL with credentials."""
    if isinstance(value, str | os.PathLike):
        from packtool.places.url import require_no_secret  # --help needs none of it

        if "\0" in str(value):
            raise ValueError(value)
        require_no_secret(str(value))
        return value
    from packtool.places.place import Place

    if isinstance(value, Place):
        return value
    raise ValueError(value)


def parse_tags(value: str | Iterable[str]) -> list[str]:
    """Parse pairs of two different texts, each as OPEN,CLOSE.

    >>> parse_tags("<a>, </a>"), parse_tags(["<a>,</a>", "[B],[/B]"])
    (['<a>,</a>'], ['<a>,</a>', '[B],[/B]'])
    """
    pairs = []
    for pair in _several(value):
        opening, closing = map(str.strip, pair.split(","))
        if not opening or not closing or opening == closing:
            raise ValueError(pair)
        pairs.append(f"{opening},{closing}")
    return pairs


def names_files(value: Any) -> bool:
    """Return whether `tokenize` is given names of files, as a string or a list of strings, rather than records.

    >>> names_files("a.jsonl"), names_files(["a.jsonl"]), names_files([{"text": "a"}]), names_files(iter(["a"]))
    (True, True, False, False)
    """
    if isinstance(value, list | tuple):
        return not any(isinstance(item, Mapping) for item in value)
    return isinstance(value, str | os.PathLike)


@dataclass(frozen=True)
class KeptField:
    """A column that a packed dataset keeps of its documents."""

    name: str  # name of the field
    number: bool = False  # its values are numbers; else categories

    def __str__(self) -> str:
        return self.name + ":number" * self.number


def kept_field(text: str) -> KeptField:
    """Parse the name of one field, which ``:number`` may follow.

    Raises:
        ValueError: it has no name.

    >>> str(kept_field("score:number")), kept_field("lang").number
    ('score:number', False)
    """
    name = text.removesuffix(":number")
    if not name:
        raise ValueError(text)
    return KeptField(name, number=name != text)


def parse_kept(value: Any) -> list[KeptField]:
    """Parse names of fields, each as categories or, with ``:number``, as numbers.

    >>> parse_kept("score:number, lang")
    [KeptField(name='score', number=True), KeptField(name='lang', number=False)]
    """
    fields: dict[str, KeptField] = {}
    for item in _items(value):
        field = kept_field(str(item))
        if field.name in fields:
            what = f"{field.name} is named twice"
            raise UsageError("bad-option", what, remedy="keep each column once", where="--keep")
        fields[field.name] = field
    return list(fields.values())


@dataclass(frozen=True)
class Records:
    """What a program gives to `tokenize` in place of names of files: its records, which are read once."""

    items: Iterable[Any]  # texts, or mappings with the fields


def parse_inputs(value: Any) -> list[Any] | Records:
    """Parse the inputs of `tokenize`: names of files, or the records themselves.

    >>> parse_inputs("a.jsonl"), parse_inputs([{"text": "a"}])
    (['a.jsonl'], Records(items=[{'text': 'a'}]))
    """
    if isinstance(value, Records):
        return value
    if names_files(value):
        return _several(value)
    if isinstance(value, bytes | bytearray):
        what, remedy = "bytes are neither names of files nor records", 'give a text as [{"text": data.decode()}]'
        raise UsageError("bad-records", what, remedy=remedy, where="inputs")
    if hasattr(value, "readline"):
        what, remedy = "an open file, whose lines would be taken for texts", "write it to a file, and give its name"
        if isinstance(getattr(value, "name", None), str):
            remedy = f"give its name: packtool.tokenize({value.name!r}, ...)"
        raise UsageError("bad-records", what, remedy=remedy, where="inputs")
    if not isinstance(value, Iterable) and not hasattr(value, "__arrow_c_stream__"):
        raise ValueError(value)
    return Records(value)


def _local(value: Any) -> Any:
    """Refuse URLs of object stores where a file of this machine is needed."""
    from packtool.places.url import as_typed, is_remote  # --help needs none of it

    items = value if isinstance(value, list | tuple) else [value]
    for item in items:
        _place(item)
        if is_remote(as_typed(item)):
            what, remedy = "does not take the URL of an object store", "give a local path"
            raise UsageError("unsupported-store", what, remedy=remedy, where=str(item))
    return value


_MANY = list[int | str] | int | str
_PATHS = list[str] | str
CALL = Kind("a function", "", None)
FLAG = Kind("true or false", "", bool, parse_flag)
WHOLE = Kind("a whole number from 0", "N", int, _from(0))
POSITIVE = Kind("a whole number from 1", "N", int, _from(1))
NUMBER = Kind("a whole number", "N", int, parse_number)
COUNT = Kind("a whole number, such as 2048 or 2k", "N", int | str, parse_count)
ROW_LENGTH = Kind(COUNT.words, "N", int | str, parse_row_length)
COUNTS = Kind("a list of whole numbers, such as 2048,8192", "N,...", _MANY, _each(parse_count), many=True)
AMOUNT = Kind("a number, such as 300B, 5M or 1000000", "N", int | str, parse_amount)
SHARE = Kind("a share of at most 1, such as 1%", "SHARE", int | float | str, parse_share)
LIMIT = Kind("a whole number, or a share such as 1%", "N|SHARE", int | float | str, parse_limit)
TEMPERATURE = Kind("a number from 0.01 to 1000, such as 3.3", "T", int | float | str, parse_temperature)
PART = Kind(
    "a part, such as 0.5%, 1000 documents or 2M tokens", "PART", int | float | str, parse_part, read=recorded_part
)
SHARD = Kind("a part by its number, from 1/8 to 8/8", "K/N", str, parse_shard)
SIZE = Kind("a size, such as 512MiB or 4GiB", "SIZE", int | str, parse_bytes)
OBJECT = Kind('a JSON object, such as {"enable_thinking": false}', "JSON", dict[str, Any] | str, parse_object)
TEXT = Kind("a string", "TEXT", str, _text)
LOCATION = Kind("a string", "TEXT", str, _place)
"""A name, a path or a URL."""
TEXT_OR_ID = Kind("a string or an id below 2^63", "TEXT|ID", int | str, _text_or_id)
WEIGHTS = Kind(
    'a table, such as {web = "1x", wiki = "3x"}, or a list of strings, such as web=1x,wiki=3x',
    "NAME=WEIGHT,...",
    dict[str, int | float | str] | list[str] | str,
    _parse_weights,
    many=True,
)
NAMES = Kind("a list of strings", "NAME,...", list[str] | str, _each(_text), many=True)
FIELD = Kind("a string", "FIELD", str, _text)
FIELDS = Kind(NAMES.words, "FIELD,...", list[str] | str, _each(_text), many=True)
KEPT = Kind("a list of fields, such as score:number,lang", "FIELD[:number],...", list[str] | str, parse_kept, many=True)
TAGS = Kind("two different tags, as OPEN,CLOSE", "OPEN,CLOSE", list[str] | str, parse_tags, repeated=True)
PATH = Kind("a path, as a string", "PATH", str, _local)
PATHS = Kind(
    "a path, as a string, or a list of them", "PATH", _PATHS, lambda value: _local(_several(value)), repeated=True
)
PLACE = Kind("a path or URL, as a string", "PATH", str, _place)
PLACES = Kind("a path or URL, as a string, or a list of them", "PATH", _PATHS, _several, repeated=True)
INPUTS = Kind(PLACES.words, "PATH", _PATHS, parse_inputs, repeated=True)
GLOBS = Kind("a pattern, as a string, or a list of them", "GLOB", _PATHS, _several, repeated=True)
OF_PLACES = (PATH, PATHS, PLACE, PLACES, INPUTS)
"""The kinds whose values are paths or URLs."""
OF_FIELDS = (FIELD, FIELDS)
"""The kinds whose values name fields of records."""
