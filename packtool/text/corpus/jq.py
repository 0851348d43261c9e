"""Write programs for jq, the command that makes other records of JSON Lines, for users to run."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

_TEXTS = ("text", "full_text", "content", "value", "answer", "response", "output", "input_text", "problem", "name")
"""Names of the text in an object."""


def command(program: str) -> str:
    """Write the command that runs a program over records.

    >>> command("{text:   .body}")
    "jq -c '{text: .body}'"
    """
    return f"jq -c {shlex.quote(' '.join(program.split()))}"


def path_to(name: str) -> str:
    """Write the path to a field.

    >>> path_to("answer"), path_to("the answer")
    ('.answer', '."the answer"')
    """
    if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        return f".{name}"
    return f".{json.dumps(name)}"


def path_to_text(value: Any, names: Sequence[str] = _TEXTS) -> str:
    """Write the path from a value to the first text in it; "" for a text, or if there is none.

    >>> path_to_text([{"id": 1, "text": "So."}]), path_to_text("So.")
    ('[0].text', '')
    """
    if isinstance(value, list) and value and not isinstance(value[0], int | float):
        return f"[0]{path_to_text(value[0], names)}"
    if isinstance(value, Mapping):
        return path_to_first(value, names, names)
    return ""


def path_to_first(record: Mapping[str, Any], names: Sequence[str], inner: Sequence[str] = _TEXTS) -> str:
    """Write the path to the text of the first of these fields that a record has; "" if it has no such field.

    Args:
        inner: names of the text, if the field is an object.
    """
    for name in names:
        if name in record:
            return path_to(name) + path_to_text(record[name], inner)
    return ""


def entry(name: str, path: str) -> str:
    """Write an entry of an object, in the short form where the field has the same name.

    >>> entry("prompt", ".prompt"), entry("prompt", ".question")
    ('prompt', 'prompt: .question')
    """
    if path == path_to(name):
        return name
    return f"{name}: {path}"
