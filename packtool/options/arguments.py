"""Write the arguments of a call as JSON, so that another directory or machine can repeat the call."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from packtool.errors import UsageError
from packtool.options.check import checked
from packtool.options.commands import WRITING, arguments_of
from packtool.options.declare import declared
from packtool.options.kinds import OF_PLACES, Records
from packtool.options.values import read_value
from packtool.spelling import flag


def plain_arguments(arguments: object) -> dict[str, Any]:
    """Return the arguments that the output depends on, without defaults; local paths become absolute.

    >>> from packtool.options.pack import PackArguments
    >>> plain_arguments(PackArguments(["/a", "/b"], "c", strategy="bfd", sequence_length=64, workers=3))
    {'stores': ['/a', '/b'], 'strategy': 'bfd', 'sequence_length': 64}
    """
    plain = {}
    for name, declaration in declared(type(arguments)).items():
        value = getattr(arguments, name)
        if not declaration.of_work or (not declaration.required and value == declaration.default):
            continue
        if isinstance(value, Records):
            value = "-"  # they are read in place of standard input
        path = declaration.option.kind in OF_PLACES or (name == "tokenizer" and Path(str(value)).exists())
        if isinstance(value, Sequence) and not isinstance(value, str):
            plain[name] = [_repeatable(item, path=path) for item in value]
        else:
            plain[name] = _repeatable(value, path=path)
    return plain


def changed(before: Mapping[str, Any], arguments: object) -> list[str]:
    """Say of each argument that was another one before what it was.

    Args:
        before: as `plain_arguments` returned them.
        arguments: as they are now.

    >>> from packtool.options.pack import PackArguments
    >>> changed({"stores": ["/a"], "strategy": "bfd", "shuffle": False}, PackArguments(["/a"], "c", strategy="ffd"))
    ['--strategy was bfd', '--no-shuffle was given']
    """
    now, differences = plain_arguments(arguments), []
    for name, declaration in declared(type(arguments)).items():
        if before.get(name) == now.get(name):
            continue
        if name not in before:
            differences.append(f"{declaration.flag} was not given")
        elif isinstance(before[name], bool):
            [typed] = _as_words(name, before[name], repeated=False)
            differences.append(f"{typed} was given")
        else:
            value = before[name]
            if isinstance(value, list):
                value = ",".join(map(str, value))
            differences.append(f"{declaration.flag} was {value}")
    return differences


def as_flags(arguments: object, names: Sequence[str]) -> list[str]:
    """Write some of the arguments as they are typed, without defaults.

    >>> from packtool.options.pack import PackArguments
    >>> given = PackArguments("a", "b", strategy="bfd", mix=["a=2"], shuffle=False, holdout="5%")
    >>> as_flags(given, ["mix", "holdout", "part", "shuffle"])
    ['--mix', 'a=2', '--holdout', '5%', '--no-shuffle']
    """
    words = []
    for name in names:
        value, declaration = getattr(arguments, name), declared(type(arguments))[name]
        if value is None or value == declaration.default:
            continue
        words += _as_words(name, value, repeated=declaration.option.kind.repeated)
    return words


def as_recorded_by(command: Any, given: Any) -> dict[str, Any] | None:
    """Return the arguments of a call that a file has recorded, if they fit the options that the command declares.

    Anybody may have written the file, and what is shown of it may be run.

    Args:
        command: that the file names.
        given: its arguments there, as `plain_arguments` returned them.

    Returns:
        None where they don't fit: what is not an option, or not of its kind, or makes no sense beside the others.

    >>> as_recorded_by("pack", {"stores": ["a"], "strategy": "bfd"})
    {'stores': ['a'], 'strategy': 'bfd'}
    >>> as_recorded_by("pack", {"stores": [1], "strategy": "bfd"}), as_recorded_by("rm", {"stores": ["a"]})
    (None, None)
    """
    if command not in WRITING or not isinstance(given, Mapping):
        return None
    arguments = arguments_of(command)
    options = declared(arguments)
    if "output" not in options:
        return None
    values: dict[str, Any] = {"output": "output"}
    try:
        for name, value in given.items():
            if name not in options or not options[name].of_work:
                return None
            values[name] = read_value(options[name].option.kind, name, value, "")
        checked(arguments(**values))
    except (UsageError, TypeError):  # a TypeError: one that must be given is missing
        return None
    return dict(given)


def command_line(command: str, given: Mapping[str, Any], output: str) -> str:
    """Write a call as its command line.

    Args:
        command: one that writes.
        given: its arguments, as `plain_arguments` or `as_recorded_by` returns them.
        output: where it writes.

    >>> command_line("pack", {"stores": ["my store"], "strategy": "bfd", "shuffle": False}, "packed")
    "packtool pack 'my store' -o packed --strategy bfd --no-shuffle"
    >>> command_line("pack", {"stores": ["a"], "keep": ["n", "lang"], "exclude": ["/eval", "/list"]}, "b")
    'packtool pack a -o b --exclude /eval --exclude /list --keep n,lang'
    """
    positional: list[str] = []
    named: list[str] = []
    for name, declaration in declared(arguments_of(command)).items():
        if name not in given:
            continue
        value = given[name]
        if not declaration.option.positional:
            named += _as_words(name, value, repeated=declaration.option.kind.repeated)
        elif isinstance(value, list):
            positional += map(_no_option, value)
        else:
            positional.append(_no_option(value))
    return shlex.join(["packtool", command, *positional, "-o", output, *named])


def _no_option(value: str) -> str:
    """Write a path so that it is not taken for an option; - alone is standard input.

    >>> _no_option("--overwrite"), _no_option("-"), _no_option("a")
    ('./--overwrite', '-', 'a')
    """
    if value.startswith("-") and value != "-":
        return f"./{value}"
    return value


def _as_words(name: str, value: Any, *, repeated: bool) -> list[str]:
    if value is False:
        return [flag(f"no_{name}")]
    if value is True:
        return [flag(name)]
    if repeated and isinstance(value, list | tuple):
        words = []
        for item in value:
            words += [flag(name), str(item)]
        return words
    if isinstance(value, list | tuple):
        return [flag(name), ",".join(map(str, value))]
    return [flag(name), str(value)]


def _repeatable(value: Any, *, path: bool) -> Any:
    """Return a value as JSON has it; a path becomes absolute, since the call may be repeated elsewhere."""
    if path and value is not None and str(value) != "-":
        from packtool.places.url import as_typed, is_remote

        location = as_typed(value)
        return location if is_remote(location) else str(Path(location).absolute())
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return json.dumps(value)
    return str(value)
