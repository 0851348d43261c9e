"""Check options by their declarations: ranges, choices, options of another strategy or method, and their rules."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, TypeVar

from packtool.errors import UsageError
from packtool.options.commands import arguments_of
from packtool.options.declare import Declared, Excludes, Input, Needs, Only, declared, given
from packtool.options.kinds import GLOBS, LOCATION, OF_FIELDS, OF_PLACES, PATHS, PLACES, shown
from packtool.options.names import any_of
from packtool.options.values import read_value
from packtool.options.where import WHERE
from packtool.spelling import flag

_LARGEST = (1 << 63) - 1
Arguments = TypeVar("Arguments")


def checked(arguments: Arguments) -> Arguments:
    """Return the arguments with every value parsed as its kind says, once they fit together by their rules.

    Raises:
        UsageError: a value is of the wrong kind, out of range or not among the choices; or an option has no effect
            beside the others; naming the option.

    >>> from packtool.options.plans import PackOptions
    >>> checked(PackOptions(sequence_length="2k", mix_rows=True)).sequence_length
    2048
    >>> checked(PackOptions(mix_rows="no"))
    Traceback (most recent call last):
    packtool.errors.UsageError: mix_rows: 'no' can't be used. Give true or false.
    """
    written: Any = arguments
    parsed = {}
    for declaration in declared(type(written)).values():
        value = getattr(written, declaration.name)
        if value is declaration.default or (value is None and not declaration.required):
            continue
        _require_unicode(declaration, value)
        value = _parsed(declaration, value)
        parsed[declaration.name] = value
        _check_values(declaration, value)
    changed: Arguments = replace(written, **parsed)
    check_together(changed)
    return changed


def check_together(arguments: object) -> None:
    """Refuse the first option, in the order of declaration, that has no effect beside the others.

    Raises:
        UsageError: naming it, and what to do.

    >>> from packtool.options.tokenize import TokenizeArguments
    >>> check_together(TokenizeArguments("a.jsonl", "out", fim_seed=1))
    Traceback (most recent call last):
    packtool.errors.UsageError: fim_seed: has no effect without fim_rate. Give fim_rate with it, such as 50%.
    """
    for declaration in given(arguments, declared(type(arguments))):
        needs, excludes = declaration.option.needs, declaration.option.excludes
        if needs is not None:
            _require(arguments, declaration, needs)
        if excludes is not None:
            for other in given(arguments, excludes.names):
                raise _no_effect(declaration, f"with {other.flag}", excludes)


def _require(arguments: object, declaration: Declared, needs: Needs) -> None:
    """Refuse an option without the one that it needs."""
    value = getattr(arguments, needs.name)
    if not needs.values and not given(arguments, needs.names):
        raise _no_effect(declaration, f"without {any_of(tuple(map(flag, needs.names)))}", needs)
    if needs.values and value not in needs.values:
        raise _no_effect(declaration, f"while {flag(needs.name)} is {value}", needs)


def check_input(arguments: object, held: Input) -> None:
    """Refuse the first option, in the order of declaration, that has no effect on the input found.

    Args:
        held: its kind.

    Raises:
        UsageError: naming the option, and what to do.

    >>> from packtool.options.tokenize import TokenizeArguments
    >>> check_input(TokenizeArguments("a.jsonl", "out", min_words=3), "token ids")
    Traceback (most recent call last):
    packtool.errors.UsageError: min_words: has no effect on token ids. Give min_tokens or max_tokens.
    """
    for declaration in given(arguments, declared(type(arguments))):
        only = declaration.option.only
        if only is not None and held not in only.inputs:
            raise _no_effect(declaration, f"on {held}", only)


def _no_effect(declaration: Declared, why: str, rule: Needs | Excludes | Only) -> UsageError:
    return UsageError(rule.code, f"has no effect {why}", remedy=rule.remedy, where=declaration.flag)


def _bad(declaration: Declared, what: str, remedy: str) -> UsageError:
    """Return the error for a value; the command line names an argument otherwise."""
    return UsageError("bad-option", what, remedy=remedy, where=flag(declaration.name))


def _require_unicode(declaration: Declared, value: Any) -> None:
    """Refuse text that is not UTF-8, as which bytes of the command line may come: only names of files may have it."""
    kind = declaration.option.kind
    if kind in (*OF_PLACES, GLOBS, LOCATION, WHERE):  # WHERE says more
        return
    try:
        json.dumps(value, ensure_ascii=False, default=str, skipkeys=True).encode()
    except UnicodeEncodeError:
        raise _bad(declaration, f"{shown(value)} is not valid UTF-8", "write it in UTF-8") from None
    except ValueError:  # a number of thousands of digits, which its kind refuses
        return


def _parsed(declaration: Declared, value: Any) -> Any:
    try:
        return declaration.option.kind.parse(value)
    except UsageError as error:
        raise UsageError(error.code, error.what, remedy=error.remedy, where=flag(declaration.name)) from None
    except (ValueError, TypeError):
        what, remedy = f"{shown(value)} can't be used", f"give {declaration.option.kind.words}"
        raise UsageError("bad-option", what, remedy=remedy, where=flag(declaration.name)) from None


def check_taken(arguments: object, chooser: str, chosen: str) -> None:
    """Refuse options that this strategy or method does not take, and the lack of options that it needs.

    Args:
        arguments: the options of a command.
        chooser: the option that chooses, such as ``--strategy``.
        chosen: its value.

    Raises:
        UsageError: naming the option.

    >>> from packtool.options.plans import PackOptions
    >>> check_taken(PackOptions(sequence_length=64, min_bucket=8), "--strategy", "concat")
    Traceback (most recent call last):
    packtool.errors.UsageError: min_bucket: strategy="concat" does not take this option. Leave it out, or use \
strategy="decompose".
    """
    options = declared(type(arguments))
    for declaration in given(arguments, options):
        if declaration.taken(chosen) or _atoms_are_rows(arguments, declaration):
            continue
        remedy = declaration.option.instead or f"leave it out, or use {chooser}={any_of(declaration.option.taken_by)}"
        what = f"{chooser}={chosen} does not take this option"
        raise UsageError("option-not-taken", what, remedy=remedy, where=declaration.flag)
    needed = [each for each in options.values() if each.option.required and each.taken(chosen)]
    for declaration in needed:
        if getattr(arguments, declaration.name) is None:
            remedy = f"give {' and '.join(other.flag for other in needed)}"
            what = f"{chooser}={chosen} needs this option"
            raise UsageError("missing-option", what, remedy=remedy, where=declaration.flag)


def _atoms_are_rows(arguments: Any, declaration: Declared) -> bool:
    """Return whether this is an atom size of one row: then atoms are what strategies without them move, too."""
    return declaration.name == "atom_size" and arguments.atom_size == arguments.sequence_length


def refuse(arguments: object, names: Iterable[str], what: str, remedy: str) -> None:
    """Refuse options that have no effect here.

    Raises:
        UsageError: naming the first that is given.
    """
    for declaration in given(arguments, names):
        raise UsageError("option-not-taken", what, remedy=remedy, where=declaration.flag)


def is_whole(value: object) -> bool:
    """Return whether what a program gives is a whole number, NumPy's among them; True and False are none.

    >>> is_whole(7), is_whole(7.0), is_whole(True)
    (True, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool)


def suggest(word: str, known: Sequence[str]) -> str:
    """Suggest the name that was meant, or list all names.

    >>> suggest("sed", ["seed", "epoch"]), suggest("xyz", ["seed", "epoch"])
    ('did you mean seed?', 'choose one of seed, epoch')
    """
    close = difflib.get_close_matches(word, known, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"choose one of {', '.join(known)}"


def out_of_range(name: str, value: object, low: int, high: int | None) -> UsageError:
    """Return the error for a number that is too small or too large."""
    span = f"{low} or more"
    if high is not None:
        span = f"a number from {low} to {_round(high)}"
    return UsageError("bad-option", f"{shown(value)} is out of range", remedy=f"give {span}", where=name)


def unfit(recorded: Mapping[str, Any], commands: Iterable[str]) -> str:
    """Say which recorded option is not what one of these commands declares; "" if all are.

    Whoever works with a manifest believes its options, and a seal keeps nobody from writing others.

    Args:
        recorded: options by name, as a manifest has them; those that are no arguments are not looked at.
        commands: that record them.

    >>> unfit({"sequence_length": 64, "segments": True}, ["pack"]), unfit({"atom_size": 10**39}, ["pack"])
    ('', 'atom_size: 1000000000000000000000000000000000000000 is out of range')
    >>> unfit({"sequence_length": "64"}, ["pack"])
    "sequence_length can't be '64'"
    """
    options: dict[str, Declared] = {}
    for command in commands:
        options |= declared(arguments_of(command))
    for name, value in recorded.items():
        if name not in options:
            continue
        kind = options[name].option.kind
        if kind.read is not None:
            kind = replace(kind, parse=kind.read)
        try:
            taken = read_value(kind, name, value, "")
            if isinstance(taken, int) and type(value) is not type(taken):
                return f"{name} can't be {shown(value)}"
            _check_values(options[name], taken)
        except UsageError as error:
            if error.where:
                return f"{name}: {error.what}"
            return error.what
    return ""


def _check_values(declaration: Declared, value: Any) -> None:
    """Refuse a value that an option can't have; of a list, any of its values."""
    if isinstance(value, list | tuple):
        if declaration.required and not value and declaration.option.kind in (PATHS, PLACES):
            remedy = f"give {declaration.option.kind.words}"
            raise UsageError("bad-option", "nothing is named", remedy=remedy, where=flag(declaration.name))
        for item in value:
            _check_value(declaration, item)
    else:
        _check_value(declaration, value)


def _check_value(declaration: Declared, value: Any) -> None:
    option = declaration.option
    if option.kind in OF_PLACES and str(value) == "":  # Path("") would be the working directory
        raise _bad(declaration, "an empty name", "give a path")
    if option.kind in OF_FIELDS and value == "":
        raise _bad(declaration, "an empty name", "give the name of a field")
    if declaration.choices and value not in declaration.choices:
        raise _bad(declaration, f"{value!r} is not a known value", suggest(str(value), declaration.choices))
    if option.low is not None and value < option.low:
        raise out_of_range(declaration.flag, value, option.low, option.high)
    if option.high is not None and value > option.high:
        raise out_of_range(declaration.flag, value, option.low or 0, option.high)
    if option.high is None and isinstance(value, int) and value > _LARGEST:  # no array holds it
        raise out_of_range(declaration.flag, value, option.low or 0, _LARGEST)


def _round(high: int) -> str:
    """Write a bound as people know it.

    >>> _round(100), _round(2**64 - 1)
    ('100', '2^64 - 1')
    """
    exponent = (high + 1).bit_length() - 1
    if exponent > 30 and high + 1 == 1 << exponent:
        return f"2^{exponent} - 1"
    return str(high)
