"""A function of declared arguments: called by name, checked, documented from the declaration."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from packtool.errors import UsageError
from packtool.options.inspecting import FindArguments
from packtool.options.shuffle import ShuffleArguments
from packtool.options.signature import takes


@takes(ShuffleArguments)
def shuffled(options: ShuffleArguments) -> ShuffleArguments:
    """What was given.

    Returns:
        All of it.
    """
    return options


def test_arguments_arrive_as_given_with_defaults_for_the_others() -> None:
    given = shuffled("packed", Path("out"), epoch=3)
    assert isinstance(given, ShuffleArguments)
    assert (given.output, given.epoch, given.overwrite) == (Path("out"), 3, False)
    with pytest.raises(TypeError, match="no_such"):
        shuffled("packed", "out", no_such=1)  # type: ignore[call-arg]


def test_values_are_checked_before_the_function_runs() -> None:
    with pytest.raises(UsageError, match="--epoch: -1 is out of range"):
        shuffled("packed", "out", epoch=-1)


def test_the_signature_is_that_of_the_arguments_without_their_declarations() -> None:
    signature = inspect.signature(shuffled)
    assert list(signature.parameters) == [*inspect.signature(ShuffleArguments).parameters]
    assert "Annotated" not in str(signature)
    assert signature.return_annotation in (ShuffleArguments, "ShuffleArguments")


def test_the_documentation_lists_every_argument_before_what_is_returned() -> None:
    for kind in (ShuffleArguments, FindArguments):
        made = takes(kind)(lambda options: options)
        assert made.__doc__ is not None
    text = inspect.getdoc(shuffled) or ""
    head, _, tail = text.partition("Returns:")
    assert "All of it." in tail
    for name in inspect.signature(ShuffleArguments).parameters:
        assert f"    {name}: " in head
    assert max(map(len, text.splitlines())) <= 108


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"output": "b", "epochs": 2}, "got an unexpected keyword argument 'epochs': did you mean epoch"),
        ({"output": "b"}, "missing a required argument: 'source'"),
    ],
)
def test_what_is_not_taken_is_said_of_the_function_that_was_called(given: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=rf"^shuffled\(\) {message}\??$"):
        shuffled(**given)


def test_a_traceback_says_how_python_writes_what_an_error_names() -> None:
    @takes(ShuffleArguments)
    def refuses(options: ShuffleArguments) -> None:
        raise UsageError("x", "is there", remedy="give --overwrite, or --batch-size", where=str(options.output))

    with pytest.raises(UsageError) as caught:
        refuses("a", "b", epoch="x")
    assert not hasattr(caught.value, "__notes__")
    with pytest.raises(UsageError) as caught:
        refuses("a", "b")
    assert caught.value.__notes__ == ["In Python: --overwrite is overwrite=True"]
    assert "In Python" not in str(caught.value), "the command line does not say it"
