"""The expressions of `--where`: Python's own, of comparisons of a field with constants, joined by and, or and not.

Only its text is looked at here, before a store is opened; packtool/choosing/condition.py finds the documents.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from packtool.errors import UsageError
from packtool.options.kinds import Kind, shown

BUILT_IN = ("store", "file", "line", "id", "tokens")
"""Names that every document has a value for, whatever was kept with it."""
OTHER_STORES = "say for which stores it counts, as in store == 'web' and ..."
"""What to do where a store did not keep a field."""
EXAMPLE = "score >= 3 and lang in ('en', 'de')"
_DEEPEST = 100  # levels of an expression: people write three or four, and Python ends at a thousand
_ORDERS: dict[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_MOST = 1 << 100  # whole numbers up to here are a float and a rest of 64 bits
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "in": "in"}
_NEGATIONS = (ast.NotEq, ast.NotIn, ast.IsNot)

Constant = bool | float | int | str | None


@dataclass(frozen=True)
class Field:
    """What is compared: a field that was kept, or a built-in name."""

    name: str  # name of the field; a dot for each level below an object, as `--columns` has it
    quoted: bool  # whether it was written as field['name'], which is never a built-in name

    @property
    def built_in(self) -> bool:
        """Whether it is a built-in name."""
        return not self.quoted and self.name in BUILT_IN


STORE = Field("store", quoted=False)
_FILE, _LINE = Field("file", quoted=False), Field("line", quoted=False)


@dataclass(frozen=True)
class Compared:
    """A comparison of a field with constants.

    Attributes:
        field: on its left.
        how: "in" where the field is one of the constants, "contains" where it has the only one in it, or the sign of an
            order, in which the only one is on the right.
        constants: all numbers, all texts or all booleans, but for None, which stands for a missing value. Numbers are
            floats, but for whole ones that no float holds.
        text: as it was written, for messages.
    """

    field: Field
    how: str
    constants: tuple[Constant, ...]
    text: str


@dataclass(frozen=True)
class Joined:
    """Conditions joined by `and` or by `or`; a later condition counts only where the earlier ones do not decide."""

    parts: tuple[Condition, ...]  # the conditions, in their order
    all: bool  # whether all must hold


@dataclass(frozen=True)
class Negated:
    """A condition that must not hold."""

    part: Condition


Condition = Compared | Joined | Negated


def condition_of(text: str) -> Condition:
    """Parse an expression.

    Raises:
        UsageError: it is no condition, or compares what can't be compared.

    >>> condition_of("score >= 3")
    Compared(field=Field(name='score', quoted=False), how='>=', constants=(3.0,), text='score >= 3')
    """
    if not isinstance(text, str):
        raise ValueError(text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Python: it would name a line of no file
            body = ast.parse(text.strip(), mode="eval").body
        _require_unicode(body)
        return _condition(body, _DEEPEST)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        remedy = f"write it like {EXAMPLE}, with == for equal; a field whose name is no word is field['the name']"
        raise _bad_where(f"{shown(text)} is not an expression", remedy) from None


def _require_unicode(body: ast.expr) -> None:
    """Refuse half of a surrogate pair in a constant or a name: no field that was kept can have it."""
    for node in ast.walk(body):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node.value.encode()
            except UnicodeEncodeError:
                raise _bad_where(f"{shown(node.value)} is no valid Unicode", "write whole characters") from None


def parse_where(value: str) -> str:
    """Check an expression, and return it as it was written."""
    condition_of(value)
    return value


def comparisons_of(condition: Condition) -> list[Compared]:
    """List the comparisons of a condition."""
    if isinstance(condition, Joined):
        return list(chain.from_iterable(map(comparisons_of, condition.parts)))
    if isinstance(condition, Negated):
        return comparisons_of(condition.part)
    return [condition]


def needs_origins(condition: Condition) -> bool:
    """Return whether a condition asks where documents came from."""
    return any(compared.field in (_FILE, _LINE) for compared in comparisons_of(condition))


def _condition(node: ast.expr, depth: int) -> Condition:
    """Parse a part of an expression, with at most so many levels below it."""
    if depth == 0:
        raise _bad_where("it is nested too deeply", f"write it with fewer than {_DEEPEST} levels")
    match node:
        case ast.BoolOp(op, values):
            parts = tuple(_condition(value, depth - 1) for value in values)
            return Joined(parts, isinstance(op, ast.And))
        case ast.UnaryOp(ast.Not(), operand):
            return Negated(_condition(operand, depth - 1))
        case ast.Compare(left, ops, others):
            sides = pairwise([left, *others])
            pairs = [_pair(first, op, second) for op, (first, second) in zip(ops, sides, strict=True)]
            if len(pairs) == 1:
                return pairs[0]
            return Joined(tuple(pairs), all=True)  # a chain: 1 < n < 5 is 1 < n and n < 5
        case ast.Constant():
            raise _bad_where(f"{ast.unparse(node)} alone takes all documents or none", "compare a field with it")
    field = _field(node)
    if field.built_in:
        what = f"{field.name} is neither true nor false"
        raise _bad_where(what, f"compare it with a constant, or write field[{field.name!r}] for a field of this name")
    return Compared(field, "in", (True,), ast.unparse(node))


def _pair(left: ast.expr, op: ast.cmpop, right: ast.expr) -> Condition:
    """Parse the comparison of two sides, one of which must be a field."""
    text = ast.unparse(ast.Compare(left, [op], [right]))
    how = _ORDERS.get(type(op), "in")
    wants_several = isinstance(op, ast.In | ast.NotIn)
    if isinstance(left, ast.Constant | ast.UnaryOp) and not isinstance(op, ast.Is | ast.IsNot):
        # The constant comes first: 3 <= score is score >= 3, and 'a' in name asks whether the name has it in it.
        left, right, how = right, left, _TURNED[how]
        if wants_several:
            how, wants_several = "contains", False
    constants = _constants(right, text, several=wants_several)
    _check(op, how, constants, text)
    compared = Compared(_field(left), how, constants, text)
    _check_built_in(compared)
    if isinstance(op, _NEGATIONS):
        return Negated(compared)
    return compared


def _constants(node: ast.expr, text: str, *, several: bool) -> tuple[Constant, ...]:
    """Evaluate the constants of a comparison: one, or several in parentheses."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        what = f"{text} computes"
        if isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
            what = f"{text} compares two fields"
        raise _bad_where(what, "compare a field with a constant, such as 3 or 'en'") from None
    if several != isinstance(value, tuple | list | set):
        raise _bad_where(f"{text}: in goes with several values", "write them in parentheses, such as in ('en', 'de')")
    values: Sequence[object] = [value]
    if isinstance(value, tuple | list | set):
        values = list(value)
    return tuple(_constant(each, text) for each in values)


def _constant(value: object, text: str) -> Constant:
    """Return a constant, a number as the float that it is, if there is one."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int) and abs(value) > _MOST:
        raise _bad_where(f"{text}: {shown(value)} is too large to be exact", "compare the text that it is, in quotes")
    if isinstance(value, int) and int(float(value)) != value:
        return value
    if isinstance(value, int | float):
        return value + 0.0  # -0.0 becomes 0.0, as it does where fields are read
    raise _bad_where(f"{text}: {shown(value)} is no value of a field", "give numbers or text")


def _check(op: ast.cmpop, how: str, constants: Sequence[Constant], text: str) -> None:
    """Refuse a comparison that means nothing."""
    types = {_type(constant) for constant in constants if constant is not None}
    if len(types) > 1:
        raise _bad_where(
            f"{text} mixes numbers, text or True", "give constants of one type, which says how fields are read"
        )
    if isinstance(op, ast.Is | ast.IsNot) and types:
        raise _bad_where(f"{text}: is goes with None", "write == or !=")
    if how == "contains" and types != {str}:
        raise _bad_where(f"{text}: only text is in a text", "write the text in quotes")
    if how in _ORDERS.values() and types not in ({float}, {str}):
        raise _bad_where(f"{text}: only numbers and text have an order", "compare with a number or a text")


def _type(constant: Constant) -> type:
    """Return the type of a constant, one for all numbers."""
    if isinstance(constant, int) and not isinstance(constant, bool):
        return float
    return type(constant)


def _check_built_in(compared: Compared) -> None:
    """Refuse constants of a type that a built-in name never has: the comparison would be false for all documents."""
    field = compared.field
    if field == STORE:
        if compared.how != "in" or not {*map(type, compared.constants)} <= {str}:
            what = f"{compared.text}: store goes with ==, !=, in and not in, and the names of stores"
            raise _bad_where(what, "write store == 'web', or field['store'] for a field of this name")
        return
    if not field.built_in or field.name not in ("line", "tokens"):
        return
    if compared.how == "contains" or any(isinstance(constant, bool | str) for constant in compared.constants):
        what = f"{compared.text}: {field.name} is a number"
        raise _bad_where(what, f"compare it with one, or write field[{field.name!r}] for a field of this name")


def _field(node: ast.expr) -> Field:
    """Parse the name of a field."""
    match node:
        case ast.Name(name):
            return Field(name, quoted=False)
        case ast.Attribute():
            return Field(_path(node), quoted=True)
        case ast.Subscript(ast.Name("field"), ast.Constant(str(name))):
            return Field(name, quoted=True)
    remedy = "compare a field with constants; one whose name is no word is field['the name']"
    if isinstance(node, ast.Call | ast.BinOp):
        remedy = "nothing is computed: compute it before, and keep it with tokenize --columns"
    raise _bad_where(f"{shown(ast.unparse(node))} is not the name of a field", remedy)


def _path(node: ast.expr) -> str:
    """Parse a.b, the field b of an object a."""
    match node:
        case ast.Name(name):
            return name
        case ast.Attribute(inner, name):
            return f"{_path(inner)}.{name}"
    return _field(node).name


def _bad_where(what: str, remedy: str) -> UsageError:
    return UsageError("bad-where", what, remedy=remedy, where="--where")


WHERE = Kind("an expression, such as score >= 3", "EXPRESSION", str, parse_where)
