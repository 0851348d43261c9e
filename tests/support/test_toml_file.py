"""TOML as people and machines write it: every value has its line, and so has what is refused."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.errors import UsageError
from packtool.support.toml_file import read_toml

MANY = 5000
"""More levels and digits than the limits of tomllib."""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"a = 1\nb = {'[' * MANY}{']' * MANY}", "FILE:2: nested too deeply"),
        (f"a = 1\nb = {'{a=' * MANY}1{'}' * MANY}", "FILE:2: nested too deeply"),
        (f"a = 1\n{'b.' * 2000}b = 1", "FILE:2: nested too deeply"),
        (f"a = 1\nb = {'9' * MANY}", "FILE:2: a number has too many digits"),
        ("a = 1\nb = x", "FILE:2: not TOML: invalid value"),
        (f"{'# comment' * 2_000_000}", "FILE: larger than 16.8 MB"),
    ],
    ids=range(6),
)
def test_what_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_toml(path)
    assert caught.value.code == "bad-config"
    assert str(caught.value).replace(str(path), "FILE").startswith(message)


STRINGS = ['"a [ # { b"', "'a ] \\'", '"""\n[x]\n# "quoted" \\""" y"""""', "'''\n]]\n'''''", '"\\"]"']
VALUES = st.recursive(
    st.sampled_from(["1", "-2.5", "true", "1979-05-27", "{ k0 = ']' }", *STRINGS]),
    lambda inner: st.lists(inner, max_size=3).map(lambda items: "[\n" + ",\n".join(items) + " # ]\n]"),
    max_leaves=4,
)


@given(tables=st.lists(st.tuples(st.booleans(), st.lists(VALUES, max_size=3)), max_size=4))
def test_every_value_has_the_line_that_it_begins_in(tmp_path_factory: pytest.TempPathFactory, tables: Any) -> None:
    """Written here line by line, so the lines are known; strings hold what looks like the end of a value."""
    text, lines = "", {}
    for number, (listed, values) in enumerate(tables):
        keys: tuple[str | int, ...] = (f"t{number}", 0) if listed else (f"t{number}",)
        lines[keys] = text.count("\n") + 1
        text += f"[[t{number}]] # [\r\n" if listed else f"[t{number}]\n"
        for name, value in enumerate(values):
            lines[*keys, f"k{name}"] = text.count("\n") + 1
            text += f"k{name} = {value} # {{\n"
    path = tmp_path_factory.getbasetemp() / "lines.toml"
    path.write_text(text)
    found = read_toml(path)
    assert found.values == tomllib.loads(text)
    assert {keys: found.lines[keys] for keys in lines} == lines
