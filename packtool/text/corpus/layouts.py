"""Layouts of records: with a prompt and its answer in fields of their own, or well known, but not read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from packtool.errors import UsageError


class FieldLayout(msgspec.Struct, frozen=True):
    """The fields of a record with a prompt and its answer.

    Attributes:
        prompt: their texts are joined with a newline where they are not empty, as LLaMA-Factory joins them.
        completion: the answer.
        system: what the system says, or "" for the usual names.
        history: a list of [question, answer] pairs that come before, or "" for no such field.
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

        >>> FieldLayout(("instruction", "input"), "output").shown()
        '--prompt instruction,input --completion output'
        """
        options = [f"--prompt {','.join(self.prompt)} --completion {self.completion}"]
        if self.system:
            options.append(f"--system {self.system}")
        if self.history:
            options.append(f"--history {self.history}")
        return " ".join(options)


class UnreadLayout(msgspec.Struct, frozen=True):
    """A layout that is not read.

    Attributes:
        what: the words for a record of it, after "the first record is".
        remedy: what to do first.
        pair: whether a record is a preference pair.
    """

    what: str
    remedy: str
    pair: bool = False


class _Known(msgspec.Struct, frozen=True):
    """A name under which prompts are known; the case of names does not matter.

    Attributes:
        prompt: the name.
        after: fields whose text follows it.
        answers: names of its answer.
    """

    prompt: str
    after: tuple[str, ...] = ()
    answers: tuple[str, ...] = ("answer", "response", "solution", "generated_solution", "output")


KNOWN = (
    _Known("instruction", ("input", "context"), ("output", "response", "answer", "completion", "target", "corrected")),
    _Known("definition", ("inputs",), ("targets",)),
    _Known("question"),
    _Known("query"),
    _Known("problem"),
    _Known("prompt", (), ("answer", "response", "solution", "output", "generation", "canonical_solution", "target")),
    _Known("inputs_pretokenized", (), ("targets_pretokenized",)),
    _Known("inputs", (), ("targets", "outputs")),
    _Known("input_text", (), ("output_text",)),
    _Known("input", (), ("output", "target", "response", "answer")),
    _Known("sql_prompt", ("sql_context",), ("sql",)),
    _Known("user", (), ("assistant", "bot")),
    _Known("human", (), ("assistant", "bot")),
    _Known("context", (), ("response",)),
    _Known("dialogue", (), ("summary",)),
    _Known("document", (), ("summary",)),
    _Known("article", (), ("highlights", "summary", "abstract")),
    _Known("source", (), ("target",)),
)
"""Well-known layouts; the first whose prompt and answer a record has is taken."""
MORE = ("input", "context", "passage", "article", "document", "documents", "choices", "options")
"""Fields without which a question may make no sense."""
_HISTORY = "history"


def known_layout(
    names: Collection[str],
    *,
    prompt: tuple[str, ...] = (),
    completion: str | None = None,
    texts: Collection[str] | None = None,
) -> FieldLayout | None:
    """Return the well-known layout of a record that has these fields; None for other fields.

    Args:
        prompt, completion: what is named of it; the other is found by its name.
        texts: names of the fields that hold texts, for the advice; None for all.

    Raises:
        UsageError: it is not clear which fields are meant.

    >>> known_layout(["id", "Question", "Answer"])
    FieldLayout(prompt=('Question',), completion='Answer', system='', history='')
    >>> known_layout(["question", "passage", "answer"], prompt=("passage", "question")).completion
    'answer'
    """
    spelled = {name.lower(): name for name in reversed(list(names))}
    if prompt:
        return _answered(prompt, spelled)
    for known in KNOWN:
        answers = [spelled[name] for name in known.answers if name in spelled]
        if completion is not None:
            answers = [completion]
        if known.prompt not in spelled or not answers:
            continue
        asked = tuple(spelled[name] for name in (known.prompt, *known.after) if name in spelled)
        others = [spelled[name] for name in MORE if name in spelled and spelled[name] not in (*asked, *answers)]
        if len(answers) > 1 or others:
            fit = [name for name in (*others, *asked) if texts is None or name in texts]
            raise _unclear((*asked, *answers, *others), FieldLayout(tuple(fit), answers[0]))
        return FieldLayout(asked, answers[0], history=spelled.get(_HISTORY, ""))
    return None


def _answered(prompt: tuple[str, ...], spelled: Mapping[str, str]) -> FieldLayout | None:
    """Return the layout of a prompt with the one answer that a record has; None if it has no answer.

    Args:
        spelled: the names of its fields, by themselves in lower case.
    """
    known = dict.fromkeys(name for layout in KNOWN for name in layout.answers)
    answers = [spelled[name] for name in known if name in spelled and spelled[name] not in prompt]
    if len(answers) > 1:
        raise _unclear((*prompt, *answers), FieldLayout(prompt, answers[0]))
    return FieldLayout(prompt, answers[0]) if answers else None


def _unclear(found: Collection[str], example: FieldLayout) -> UsageError:
    what = f"the first record has {', '.join(found)}: it is not clear which are the prompt and the answer"
    remedy = f"say it, for example {example.shown()}; one of the two is enough where the other is clear then"
    return UsageError("unclear-fields", what, remedy=remedy)


def has_conversation(names: Collection[str]) -> bool:
    """Return whether a record that has these fields has a conversation.

    >>> has_conversation(["prompt"]), has_conversation(["prompt", "completion"])
    (False, True)
    """
    return "messages" in names or "conversations" in names or {"prompt", "completion"} <= set(names)
