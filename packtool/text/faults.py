"""What is wrong with input, and what to do about it: with a record, a field of one, a conversation, or a file."""

from __future__ import annotations

from functools import partial

from packtool.errors import DataError, visible

REASONS = {
    "invalid-json": "fix the record",
    "invalid-utf8": "convert it to UTF-8 from the encoding that it has, or leave it out where it is no text",
    "lone-surrogate": "fix the record",
    "missing-text": "name the field with --text-field or --conversations, or the fields with --prompt and --completion",
    "unclear-fields": "say which is meant",
    "preference-pairs": "name the answer that is to train",
    "unread-layout": "name the fields",
    "marks-beside": "name the conversation with --conversations",
    "bad-field": "name another field",
    "bad-ids": "name the field of ids and the tokenizer that made them",
    "bad-conversation": "fix the conversation",
    "nothing-trains": "leave the conversation out",
    "bad-table-row": "fix the row",
    "damaged-file": "replace the file",
    "foreign-file": "leave it out with --exclude",
    "record-too-large": "raise --max-record-bytes",
    "special-token": "remove it, or give --special-tokens=text to encode it as plain text",
}
"""Codes of faults, with what to do about each where nothing better is known."""
CONTRACT = ("unclear-fields", "preference-pairs", "unread-layout", "marks-beside")
"""Codes of records that are refused by the names of their fields; what is wrong follows after what names the record."""


class Fault(Exception):  # noqa: N818 - it is kept and told as often as it is raised
    """What is wrong with input. It is caught where the record is known, or else where the file is.

    Args:
        code: one of REASONS.
        what: is wrong, in words. Names in it are the input's; what a file or a terminal can't take of them is escaped.
        remedy: what to do about it, where it is not what the code says.
        alone: the record is at fault, not what all records share: others can be used without it.

    >>> print(Fault("bad-table-row", "3 values, where the header has 2").at("a.csv:7"))
    a.csv:7: 3 values, where the header has 2. Fix the row.
    """

    def __init__(self, code: str, what: str, remedy: str = "", *, alone: bool = True) -> None:
        self.code = code
        self.what = visible(what)
        self.remedy = visible(remedy or REASONS[code])
        self.alone = alone
        super().__init__(self.what)

    def at(self, where: str, more: str = "") -> DataError:
        """Return the error for the user.

        Args:
            where: the file, or ``file:line``.
            more: what else to do about it.
        """
        return DataError(self.code, self.what, remedy=self.remedy + more, where=where)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fault) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    def __reduce__(self) -> tuple[object, ...]:
        # A keyword-only parameter: pickling between worker processes needs help.
        return partial(type(self), alone=self.alone), (self.code, self.what, self.remedy)

    @property
    def _parts(self) -> tuple[str, str, str, bool]:
        return self.code, self.what, self.remedy, self.alone


def bad_conversation(what: str, remedy: str = "") -> Fault:
    """Return the fault of one conversation."""
    return Fault("bad-conversation", what, remedy)


def nothing_trains(what: str) -> Fault:
    """Return the fault of a conversation none of whose tokens would train."""
    return Fault("nothing-trains", f"nothing trains: {what}")


def unsuited(what: str, remedy: str = "give another template with --chat-template") -> Fault:
    """Return the fault of a template that can't render a conversation: it will fail for similar ones, too."""
    return Fault("bad-conversation", what, remedy, alone=False)
