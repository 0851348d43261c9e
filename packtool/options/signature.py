"""Give functions that take declared options their signature and the list of arguments in their docstring."""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

from packtool.options.check import checked, suggest
from packtool.options.declare import Declared, declared

P = ParamSpec("P")
A = TypeVar("A")
R = TypeVar("R")


def takes(arguments: Callable[P, A]) -> Callable[[Callable[[A], R]], Callable[P, R]]:
    """Make a function of one dataclass of arguments one that takes these arguments by name.

    Values are parsed and checked as declared. Type checkers and editors see the signature of the dataclass.

    >>> from packtool.options.inspecting import VerifyArguments
    >>> @takes(VerifyArguments)
    ... def where(arguments: VerifyArguments) -> str:
    ...     '''Where it is.
    ...
    ...     Raises:
    ...         UsageError: nowhere.
    ...     '''
    ...     return str(arguments.path)
    >>> where("packed")
    'packed'
    >>> print(where.__doc__.split("Raises")[0])
    Where it is.
    <BLANKLINE>
    Args:
        path: A token store, packed dataset, order or export.
        store: Also compare all rows with the store they were packed from; repeatable.
        quiet: Show no progress bar. Default: True.
    <BLANKLINE>
    <BLANKLINE>
    """

    def decorate(function: Callable[[A], R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                taken.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {_meant(str(error), kwargs, taken)}") from None
            return function(checked(arguments(*args, **kwargs)))

        assert isinstance(arguments, type)
        call.__doc__ = with_arguments(inspect.getdoc(function) or "", arguments)
        taken = signature(arguments, function)
        call.__signature__ = taken  # type: ignore[attr-defined]
        return call

    return decorate


def _meant(what: str, given: Iterable[str], taken: inspect.Signature) -> str:
    """Describe the fault of a call's arguments; for an unknown name, suggest the one that was meant."""
    for name in given:
        if name not in taken.parameters:
            return f"got an unexpected keyword argument {name!r}: {suggest(name, list(taken.parameters))}"
    return what


def signature(arguments: type, function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of a function with these arguments, without their declarations."""
    options = declared(arguments)
    plain = inspect.signature(arguments)
    parameters = [each.replace(annotation=options[name].type) for name, each in plain.parameters.items()]
    return plain.replace(parameters=parameters, return_annotation=inspect.signature(function).return_annotation)


def with_arguments(doc: str, arguments: type) -> str:
    """Insert the list of arguments into a docstring, before its results and errors."""
    lines = ["Args:"]
    for each in declared(arguments).values():
        lines += textwrap.wrap(
            f"{each.name}: {describe(each)}", 108, initial_indent="    ", subsequent_indent="        "
        )
    listed = "\n".join(lines)
    for section in ("\nReturns:", "\nRaises:"):
        if section in doc:
            head, tail = doc.split(section, 1)
            return f"{head}\n{listed}\n{section}{tail}"
    return f"{doc}\n\n{listed}\n"


def describe(each: Declared) -> str:
    """Describe an option for Python: its effect, unit and default."""
    text = each.help
    if each.option.unit and each.option.unit not in text.lower():
        text += f" In {each.option.unit}."
    default = each.option.default or ("" if each.default in (None, ()) else repr(each.default))
    return text if each.required or not default else f"{text} Default: {default}."
