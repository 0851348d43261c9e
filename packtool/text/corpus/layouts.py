"""Layouts of records that hold a prompt and its answer in fields of their own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from packtool.errors import UsageError
from packtool.formats.fields import PREFERENCE


class Layout(msgspec.Struct, frozen=True):
    """The fields of a record with a prompt and its answer.

    Attributes:
        prompt: their texts are joined with a newline where they are not empty, as LLaMA-Factory joins them.
        completion: the answer.
        system: what the system says, or "" for the usual names.
        history: a list of [question, answer] pairs that come before, or "" for none.
    """

    prompt: tuple[str, ...]
    completion: str
    system: str = ""
    history: str = ""

    @property
    def fields(self) -> tuple[str, ...]:
        """Every field that it names."""
        return tuple(filter(None, (*self.prompt, self.completion, self.system, self.history)))

    def recorded(self) -> dict[str, Any]:
        """Return the options that ask for it, as the manifest has them."""
        return {
            "prompt": self.prompt,
            "completion": self.completion,
            "system": self.system or None,
            "history": self.history or None,
        }

    def shown(self) -> str:
        """Write it as options.

        >>> Layout(("instruction", "input"), "output").shown()
        '--prompt instruction,input --completion output'
        """
        options = [f"--prompt {','.join(self.prompt)} --completion {self.completion}"]
        if self.system:
            options.append(f"--system {self.system}")
        if self.history:
            options.append(f"--history {self.history}")
        return " ".join(options)


class _Known(msgspec.Struct, frozen=True):
    """A name under which prompts are known.

    Attributes:
        prompt: the name.
        after: fields whose text follows it.
        answers: names of its answer.
    """

    prompt: str
    after: tuple[str, ...] = ()
    answers: tuple[str, ...] = ("answer", "response", "solution", "output")


KNOWN = (
    _Known("instruction", ("input", "context"), ("output", "response", "answer", "completion")),
    _Known("question"),
    _Known("query"),
    _Known("problem"),
    _Known("prompt"),
    _Known("inputs", (), ("targets", "outputs")),
    _Known("input", (), ("output", "target", "response", "answer")),
)
"""Well-known layouts; the first whose prompt and answer a record has is taken."""
_MORE = ("input", "context", "passage", "article", "document", "documents", "choices", "options")
"""Fields without which a question may make no sense."""
_HISTORY = "history"


def known_layout(names: Collection[str]) -> Layout | None:
    """Return the well-known layout of a record that has these fields; None if it has none.

    Raises:
        UsageError: it is not clear which fields are meant.

    >>> known_layout(["id", "question", "answer"])
    Layout(prompt=('question',), completion='answer', system='', history='')
    """
    for known in KNOWN:
        answers = [name for name in known.answers if name in names]
        if known.prompt not in names or not answers:
            continue
        prompt = (known.prompt, *(name for name in known.after if name in names))
        others = [name for name in _MORE if name in names and name not in (*prompt, *answers)]
        if len(answers) > 1 or others:
            found = ", ".join((*prompt, *answers, *others))
            what = f"the first record has {found}: it is not clear which are the prompt and the answer"
            remedy = f"say it, for example {Layout((*others, *prompt), answers[0]).shown()}"
            raise UsageError("unclear-fields", what, remedy=remedy)
        return Layout(prompt, answers[0], history=_HISTORY if _HISTORY in names else "")
    return None


def has_conversation(names: Collection[str]) -> bool:
    """Return whether a record that has these fields has a conversation.

    >>> has_conversation(["prompt"]), has_conversation(["prompt", "completion"])
    (False, True)
    """
    return "messages" in names or "conversations" in names or {"prompt", "completion"} <= set(names)


def preference(record: Mapping[str, Any]) -> str:
    """Return how to make records to train on of preference pairs; "" if a record is none.

    >>> preference({"prompt": "1 + 1", "chosen": "2", "rejected": "3"})
    "make a conversation of each: jq -c '{prompt, completion: .chosen}'"
    """
    if not all(map(record.get, PREFERENCE)) or record.get("messages"):
        return ""
    if isinstance(record["chosen"], str):
        if not record.get("prompt"):
            return "make a text of each: jq -c '{text: .chosen}'"
        return "make a conversation of each: jq -c '{prompt, completion: .chosen}'"
    return "make a conversation of each: jq -c '{messages: .chosen}'"
