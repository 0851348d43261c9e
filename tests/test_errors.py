"""Errors keep all their parts on the way from a worker process, and read as two sentences; warnings are registered."""

import pickle

import pytest

from packtool.errors import DataError, PacktoolError, UsageError
from packtool.warnings import warn


@pytest.mark.parametrize(("kind", "status"), [(UsageError, 2), (DataError, 1), (PacktoolError, 1)])
def test_an_error_pickles_with_all_its_parts(kind: type[PacktoolError], status: int) -> None:
    made = kind("a-code", "what is wrong", remedy="do this", where="x:3")
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is kind
    assert (again.code, again.what, again.remedy, again.where) == ("a-code", "what is wrong", "do this", "x:3")
    assert (str(again), again.exit_code) == ("x:3: what is wrong. Do this.", status)


def test_a_remedy_that_asks_ends_with_its_question_mark() -> None:
    error = UsageError("a-code", "no such command", remedy="did you mean 'pack'?")
    assert str(error) == "no such command. Did you mean 'pack'?"


def test_a_warning_must_be_known() -> None:
    with pytest.raises(ValueError, match="not a known warning"):
        warn("something", "x", remedy="y")
