"""The calls of tools in a message: templates take their arguments as an object, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from packtool.text.faults import Fault, bad_conversation

CALL = "function_call"
"""The sender, in `conversations`, of a tool call, whose value is JSON; a field of messages, in OpenAI's older form."""


def calls_of(value: Any, number: int) -> list[Any]:
    """Return the tool calls in a value, JSON of one call or of a list, in the form that templates take.

    Args:
        number: of the message, from 1, for error messages.

    >>> calls_of('{"name": "add", "arguments": {"a": 1}}', 2)
    [{'type': 'function', 'function': {'name': 'add', 'arguments': {'a': 1}}}]
    """
    calls = json_in(value)
    if not isinstance(calls, list):
        calls = [calls]
    if not calls:
        raise _no_call(number)
    written = []
    for call in calls:
        if not isinstance(call, dict) or "name" not in call or "arguments" not in call:
            raise _no_call(number)
        written.append({"type": "function", "function": with_object(call)})
    return written


def of_function(call: Any, change: Callable[[Mapping[str, Any]], Any]) -> Any:
    """Return a call, or the schema of a tool, with a change made to the object inside of `function`, if it has one.

    >>> of_function({"type": "function", "function": {"name": "add"}}, lambda function: {**function, "name": "sum"})
    {'type': 'function', 'function': {'name': 'sum'}}
    """
    if not isinstance(call, Mapping):
        return call
    if isinstance(call.get("function"), Mapping):
        return {**call, "function": of_function(call["function"], change)}
    return change(call)


def with_object(call: Any) -> Any:
    """Return a call whose arguments are an object: interfaces write them as JSON, as tables do all."""
    return of_function(call, _with_object)


def with_json(call: Any) -> Any:
    """Return a call with its arguments as JSON, if they are an object."""
    return of_function(call, _with_json)


def _with_object(function: Mapping[str, Any]) -> Mapping[str, Any]:
    arguments = json_in(function.get("arguments"))
    if not isinstance(arguments, dict):
        return function
    return {**function, "arguments": arguments}


def _with_json(function: Mapping[str, Any]) -> Mapping[str, Any]:
    arguments = function.get("arguments")
    if not isinstance(arguments, dict):
        return function
    return {**function, "arguments": json.dumps(arguments, ensure_ascii=False)}


def _no_call(number: int) -> Fault:
    return bad_conversation(f"message {number} is a {CALL} whose value is not JSON with name and arguments")


def json_in(value: Any) -> Any:
    """Return a value, parsed if it is a text that is JSON.

    >>> json_in('{"a": 1}'), json_in("a"), json_in(1)
    ({'a': 1}, 'a', 1)
    """
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
