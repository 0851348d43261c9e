"""Give functions that take declared options their signature and the list of arguments in their docstring."""

from __future__ import annotations

import functools
import inspect
import textwrap
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from packtool.options.check import checked, suggest
from packtool.options.declare import Declared, declared
from packtool.spelling import in_python

P = ParamSpec("P")
A = TypeVar("A")
R = TypeVar("R")


def takes(arguments: Callable[P, A]) -> Callable[[Callable[[A], R]], Callable[P, R]]:
    """Make a function of one dataclass of arguments one that takes these arguments by name.

    Values are parsed and checked as declared. Type checkers and editors see the signature of the dataclass.

    >>> from packtool.options.inspecting import InfoArguments
    >>> @takes(InfoArguments)
    ... def where(arguments: InfoArguments) -> str:
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
        path: A file or directory of any kind.
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
        options, parameters = declared(arguments), inspect.signature(arguments).parameters.values()
        plain = [parameter.replace(annotation=options[parameter.name].type) for parameter in parameters]
        taken = inspect.signature(function).replace(parameters=plain)
        call.__signature__ = taken  # type: ignore[attr-defined]
        call.__doc__ = _with_arguments(inspect.getdoc(function) or "", options.values())
        return call

    return decorate


def _meant(what: str, given: Iterable[str], taken: inspect.Signature) -> str:
    """Describe the fault of a call's arguments; for an unknown name, suggest the one that was meant."""
    for name in given:
        if name not in taken.parameters:
            return f"got an unexpected keyword argument {name!r}: {suggest(name, list(taken.parameters))}"
    return what


def _with_arguments(doc: str, options: Iterable[Declared]) -> str:
    """Insert the list of arguments into a docstring, before its results and errors."""
    lines = ["Args:"]
    for declaration in options:
        lines += textwrap.wrap(
            f"{declaration.name}: {_described(declaration)}", 108, initial_indent="    ", subsequent_indent="        "
        )
    listed = "\n".join(lines)
    for section in ("\nReturns:", "\nRaises:"):
        if section in doc:
            head, tail = doc.split(section, 1)
            return f"{head}\n{listed}\n{section}{tail}"
    return f"{doc}\n\n{listed}\n"


def _described(declaration: Declared) -> str:
    """Describe an option for Python: its effect, unit and default."""
    text = in_python(declaration.help)
    if declaration.option.unit and declaration.option.unit not in text.lower():
        text += f" In {declaration.option.unit}."
    if declaration.required:
        return text
    if declaration.option.default:
        return f"{text} Default: {declaration.option.default}."
    if declaration.default in (None, ()):
        return text
    return f"{text} Default: {declaration.default!r}."
