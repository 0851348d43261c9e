"""Read what says whether something trains: marks of a record, of a message, of a part of its content, or of a call.

    {"weight": 0, …}   {"role": "assistant", "train": false, …}   {"type": "text", "loss": true, …}   {"mask": [0, 1]}

What a mark says is obeyed. A mark in another form is refused by its name, since nobody knows what it asks for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from packtool.formats.fields import LABEL, LOSS_MASKS, MARKS
from packtool.text.faults import bad_conversation

# A word alone, between characters that are no letters, or in camel case.
_OF_TRAINING = re.compile(
    r"(?:\A|[\W_]|(?<=[a-z])(?=[A-Z]))(?i:train(?:ing|ed|able)?|loss|mask(?:ed)?|weights?|supervised?|learn(?:ed)?)"
    r"(?=\Z|[\W_\d]|[A-Z])"
)
"""Names of fields that seem to be marks, too: `train_detail`, `loss_scale`, `trainOnTurn`. They are refused."""
_SAID = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
"""Values of marks, as JSON and tables write them, in lower case."""


@lru_cache(1 << 12)
def is_mark(name: str) -> bool:
    """Return whether a field seems to say what trains, by its name.

    >>> is_mark("loss_scale"), is_mark("glossary")
    (True, False)
    """
    return _OF_TRAINING.search(name) is not None


def marked(holder: Mapping[str, Any], where: str) -> bool | None:
    """Return whether something trains by the marks that it has, all of which must say so; None if it has no mark.

    Args:
        where: what has the marks, for error messages.

    Raises:
        Fault: a mark has an unknown name, or another value than true or false.

    >>> marked({"role": "assistant", "loss": False}, "message 1"), marked({"role": "assistant"}, "message 1")
    (False, None)
    """
    trains = None
    for name, value in holder.items():
        if value is None or value == "" or not is_mark(name):
            continue
        if name not in MARKS:
            raise bad_conversation(f"{where} has {name!r}, which is not read: mark it with train, true or false")
        trains = trains is not False and _said(value, name, where)
    return trains


def marked_together(holders: Sequence[Any], where: str, together: str) -> bool | None:
    """Return whether the parts of a message train, all of which must say the same; None if they have no mark.

    Args:
        where: a part, for error messages.
        together: what the parts are.

    Raises:
        Fault: parts say different things, or have marks that are not read.
    """
    said = set()
    for holder in holders:
        fields = holder if isinstance(holder, Mapping) else {}
        for name in filter(is_mark, fields):
            if name not in MARKS:
                raise bad_conversation(f"{where} has {name!r}: {together} train together")
        said.add(marked(fields, where))
    if len(said) > 1 and False in said:
        raise bad_conversation(f"{where} is not to train, and others are: {together} train together")
    return next(iter(said), None)


def require_trained(record: Mapping[str, Any]) -> None:
    """Refuse a record that its own fields keep from training: with marks, or as a bad answer of unpaired preferences.

    Raises:
        Fault: it is one.
    """
    for name in (*MARKS, *LABEL):
        value = record.get(name)
        if name in LABEL:
            trains = str(value).lower() != "false"  # numbers are classes
            what = "the label of an unpaired preference" if name == "label" else f"{name} of the record"
        elif isinstance(value, list):
            continue  # of its messages, see `marks_of_messages`
        else:
            trains = value is None or value == "" or _said(value, name, "the record")
            what = f"{name} of the record"
        if not trains:
            raise bad_conversation(f"{what} is false: keep the records whose {name} is true")


def marks_of_messages(record: Mapping[str, Any], messages: int) -> list[bool] | None:
    """Return for each message whether a list beside the messages says that it trains; None without such a list.

    Raises:
        Fault: the list has another length, or other values than true or false.

    >>> marks_of_messages({"loss_mask": [0, 1]}, 2)
    [False, True]
    """
    trains = None
    for name in (*MARKS, *LOSS_MASKS):
        values = record.get(name)
        if values is None or values == "" or (name in MARKS and not isinstance(values, list)):
            continue
        if not isinstance(values, list) or len(values) != messages:
            form = f"a list of {len(values)}" if isinstance(values, list) else "no list"
            raise bad_conversation(
                f"{name} of the record is {form}, not true or false for each of its {messages} messages"
            )
        said = [_said(value, name, "the record") for value in values]
        trains = [a and b for a, b in zip(said, trains or said, strict=True)]
    return trains


def _said(value: Any, name: str, where: str) -> bool:
    """Return what a mark says."""
    said = _SAID.get(str(value).lower())
    if said is None:
        raise bad_conversation(f"{where}: {name} is true or false, or 1 or 0")
    return said
