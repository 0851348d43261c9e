"""Declare options: the fields of a dataclass, one class for each command, each field with an `Option`.

    sequence_length: Annotated[int | None, Option(COUNT, "Tokens in a row.", short="-L", unit="tokens")] = None

Everything else follows from such a line: the keyword of the Python function and its documentation, `--sequence-length`
and its help, `sequence-length` in a TOML file, what is refused, what the manifest records, and docs/cli.md.
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields, replace
from typing import Any, Literal

from packtool.options.kinds import Kind
from packtool.options.names import any_of
from packtool.spelling import flag

Group = Literal[
    "Input",
    "Tokens",
    "Conversations",
    "Fill in the middle",
    "Rows",
    "Which documents",
    "Order",
    "Report",
    "Output",
    "Resources",
    "General",
    "Tuning of strategies",
    "Rarely needed",
]
"""Groups of options, in the order of `--help` and docs/cli.md."""
Input = Literal["texts", "token ids", "conversations", "text files", "token stores", "packed datasets", "exports"]
"""Kinds of input, where a command takes several: three of a corpus, and four of what lies at a path."""
Refusal = Literal["bad-option", "option-not-taken"]
"""Codes of the errors that rules raise."""


@dataclass(frozen=True)
class Needs:
    """A rule: an option has no effect without another one."""

    name: str  # name of the other option
    remedy: str  # what to give
    values: tuple[str, ...] = ()  # values of the other option, one of which is needed; empty if any will do
    code: Refusal = "bad-option"  # code of the error
    or_name: str | None = None  # name of an option that will do as well

    @property
    def names(self) -> tuple[str, ...]:
        """The options of which one is needed."""
        if self.or_name is None:
            return (self.name,)
        return (self.name, self.or_name)

    @property
    def help(self) -> str:
        """The rule as a sentence of the help.

        >>> Needs("on_error", "give it", ("skip", "quarantine")).help
        'Needs --on-error=skip or quarantine.'
        """
        values = f"={any_of(self.values)}" if self.values else ""
        return f"Needs {any_of(tuple(map(flag, self.names)))}{values}."


@dataclass(frozen=True)
class Excludes:
    """A rule: an option has no effect beside any of these."""

    names: tuple[str, ...]  # names of the other options
    remedy: str = "leave one of the two out"  # what to do instead
    code: Refusal = "bad-option"  # code of the error

    @property
    def help(self) -> str:
        """The rule as a sentence of the help.

        >>> Excludes(("ids_field", "conversations")).help
        'Not with --ids-field or --conversations.'
        """
        return f"Not with {any_of(tuple(map(flag, self.names)))}."


@dataclass(frozen=True)
class Only:
    """A rule: an option has an effect on these kinds of input alone."""

    inputs: tuple[Input, ...]  # the kinds
    remedy: str = "leave it out"  # what to do with another kind of input
    code: Refusal = "bad-option"  # code of the error

    @property
    def help(self) -> str:
        """The rule as a sentence of the help.

        >>> Only(("texts", "conversations")).help
        'Only for texts or conversations.'
        """
        return f"Only for {any_of(self.inputs)}."


@dataclass(frozen=True)
class Option:
    """An option, apart from the name, type and default that its field has."""

    kind: Kind  # how its value is written
    help: str  # what it does, in a sentence or two
    group: Group = "Input"  # what it is about
    short: str = ""  # its short flag
    unit: str = ""  # unit of the value
    metavar: str = ""  # placeholder of the value in help, where the kind's does not say enough
    low: int | None = None  # the smallest value allowed
    high: int | None = None  # the largest value allowed
    default: str = ""  # the default in words, where it is not the value alone
    taken_by: tuple[str, ...] = ()  # the strategies or methods that take it; all when empty
    not_taken_by: tuple[str, ...] = ()  # the few that do not take it
    instead: str = ""  # what to do where it is not taken; by default, to choose one that takes it
    required: bool = False  # strategies and methods that take it need it
    advice: str = ""  # which of the suggestions to take
    positional: bool = False  # without a name on the command line, and `input` in a file
    in_file: bool = True  # may stand in a TOML file: it is about the work, not about one call
    local: bool = False  # it says where the work is done, and with what: whoever repeats a call gives his own
    recorded: bool = False  # the output depends on it, so the manifest records it
    python_only: bool = False  # the command line has an option of its own for it
    suggestions: tuple[str, ...] = ()  # values for the shell to complete, where there may be others
    needs: Needs | None = None  # rule; an option that breaks it is refused if it is given
    excludes: Excludes | None = None  # rule, as `needs`
    only: Only | None = None  # rule, as `needs`


@dataclass(frozen=True)
class Declared:
    """An option with the name, type and default that its field gives it."""

    name: str  # name in Python
    type: Any  # type of the value, for Python
    default: Any  # value when the option is not given; `MISSING` if it must be given
    option: Option  # everything else

    @property
    def flag(self) -> str:
        """The spelling on the command line; the metavar of an argument."""
        return self.metavar if self.option.positional else flag(self.name)

    @property
    def key(self) -> str:
        """The key in a TOML file, with underscores."""
        return "input" if self.option.positional else self.name

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is MISSING

    @property
    def of_work(self) -> bool:
        """Whether it says what is made: a call that repeats another one gives it, too."""
        return self.option.in_file and not self.option.local

    @property
    def choices(self) -> tuple[str, ...]:
        """All possible values, if they are few and fixed; else an empty tuple.

        Suggestions are a registry of its own, which says more of an unknown name.
        """
        if self.option.suggestions:
            return ()
        members = [self.type, *typing.get_args(self.type)]
        values: list[str] = []
        for member in members:
            if typing.get_origin(member) is typing.Literal:
                values += map(str, typing.get_args(member))
        return tuple(values)

    @property
    def missing(self) -> str:
        """What to do where it must be given and is not; "" where the help says more."""
        if not self.option.suggestions:
            return ""
        known = f"give {any_of(self.option.suggestions)}"
        return "; ".join(filter(None, (known, self.option.advice)))

    @property
    def metavar(self) -> str:
        """The placeholder of the value in help."""
        return self.option.metavar or "|".join(self.choices) or self.option.kind.metavar

    @property
    def help(self) -> str:
        """The description, after the strategies or methods it applies to, and before its rules."""
        text = self.option.help
        if self.option.taken_by:
            text = f"{', '.join(self.option.taken_by)}: {text[:1].lower() + text[1:]}"
        for rule in (self.option.needs, self.option.excludes, self.option.only):
            if rule is not None:
                text += f" {rule.help}"
        return text

    def is_default(self, value: Any) -> bool:
        """Return whether this is the default; of several values, a list is as good as a tuple."""
        if isinstance(value, list):
            value = tuple(value)
        return bool(value == self.default)

    def taken(self, chosen: str) -> bool:
        """Return whether a strategy or method takes the option."""
        names = self.option.taken_by
        return (not names or chosen in names) and chosen not in self.option.not_taken_by


def declared(arguments: type[Any]) -> dict[str, Declared]:
    """List the options that a dataclass declares, by name: options that must be given come first.

    A class variable `only` adds rules to options that the class inherits, by their names: other commands take these
    options for all their inputs.

    >>> from packtool.options.pack import PackArguments
    >>> length = declared(PackArguments)["sequence_length"]
    >>> length.flag, length.option.unit, length.taken("bfd"), length.taken("buckets")
    ('--sequence-length', 'tokens', True, False)
    """
    key: Any = arguments
    return _declared(key)


@functools.cache
def _declared(arguments: Any) -> dict[str, Declared]:
    hints = typing.get_type_hints(arguments, include_extras=True)
    only = getattr(arguments, "only", {})
    by_name = {}
    for field in fields(arguments):
        plain, option = typing.get_args(hints[field.name])
        if field.name in only:
            option = replace(option, only=only[field.name])
        by_name[field.name] = Declared(field.name, plain, field.default, option)
    return dict(sorted(by_name.items(), key=lambda item: (not item[1].option.positional, not item[1].required)))


def given(arguments: object, names: Iterable[str]) -> list[Declared]:
    """List the options that differ from their defaults.

    >>> from packtool.options.plans import PackOptions
    >>> [declaration.flag for declaration in given(PackOptions(sequence_length=64), ["sequence_length", "seed"])]
    ['--sequence-length']
    """
    options = declared(type(arguments))
    return [options[name] for name in names if not options[name].is_default(getattr(arguments, name))]


def accepted(arguments: type, chosen: str) -> frozenset[str]:
    """List the options that this strategy or method takes but others do not."""
    return frozenset(
        name
        for name, declaration in declared(arguments).items()
        if (declaration.option.taken_by or declaration.option.not_taken_by) and declaration.taken(chosen)
    )


def names_recorded(arguments: type, chosen: str = "") -> list[str]:
    """List the options of a strategy or method that the manifest records."""
    return [
        name
        for name, declaration in declared(arguments).items()
        if declaration.option.recorded and declaration.taken(chosen)
    ]
