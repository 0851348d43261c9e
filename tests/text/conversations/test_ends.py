"""The token that ends a turn trains with it, wherever the template writes it."""

from __future__ import annotations

from typing import Any

import pytest

from packtool.text.conversations.conversation import Trained
from packtool.text.conversations.ends import Ends
from packtool.text.conversations.record import conversation_of
from packtool.text.conversations.spans import Document, documents_of
from packtool.text.conversations.template import ChatTemplate
from tests.text.conversations.fuzz import talk

ENDS = Ends(["<e>", "<user>", "<pad>"], ["<s>", "<e>"])
PROMPT = "{% if add_generation_prompt %}<assistant>{% endif %}"
BEHIND = "{% for m in messages %}<{{ m.role }}>{{ m.content }}<e>{% endfor %}" + PROMPT
BETWEEN = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ '\n<e>' if not loop.last }}{% endfor %}"
    "{{ '\n<e><assistant>' if add_generation_prompt }}"
)
NEVER = BEHIND.replace("<e>", "")
PADDED = BEHIND.replace("<e>", "<pad>\n")
MARKED = (
    "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
    "{% endgeneration %}{% else %}{{ m.content }}{% endif %}{{ '<e>' if not loop.last }}{% endfor %}"
)
ENDED = MARKED.replace("{% endgeneration %}", "<e>{% endgeneration %}").replace(
    "{{ '<e>' if not loop.last }}", "{{ '\n' }}"
)


def made(record: dict[str, Any], source: str, train_on: Trained = "assistant", **options: Any) -> Document:
    template = ChatTemplate(source, **options)
    (document,) = documents_of(conversation_of(record), template, train_on, ends=ENDS)
    return document


def trained(document: Document) -> list[str]:
    return [document.text[begin:end] for begin, end in document.spans]


@pytest.mark.parametrize(
    ("source", "turns", "eos", "end", "no_end"),
    [
        (BEHIND, ["b<e>", "d<e>"], False, "<e>", 0),
        (BETWEEN, ["b\n<e>", "d"], True, "<s>", 0),
        (NEVER, ["b", "d"], True, "<s>", 1),
        (NEVER.replace("<user>", "<s>"), ["b", "d"], True, "<s>", 1),
        (
            NEVER.replace("<{{ m.role }}>", "{{ '<s>' if m.role == 'user' else '<assistant>' }}"),
            ["b<s>", "d"],
            True,
            "<s>",
            0,
        ),
        (PADDED, ["b<pad>\n", "d<pad>\n"], False, "<pad>", 0),
        (MARKED, ["b", "d"], True, "<s>", 1),
        (ENDED, ["b<e>", "d<e>"], False, "<e>", 0),
        (ENDED.replace("<e>", ""), ["b", "d"], False, "", 2),
    ],
    ids=[
        *("behind", "between", "never", "no header", "header is a stop", "no stop", "marks, between", "marks"),
        "marks cut",
    ],
)
def test_a_turn_trains_with_its_end(source: str, turns: list[str], eos: bool, end: str, no_end: int) -> None:
    document = made(talk("a", "b", "c", "d"), source)
    assert trained(document) == turns
    assert (document.eos, document.end, document.open) == (eos, end, no_end)


@pytest.mark.parametrize("source", [BETWEEN, NEVER])
def test_what_does_not_train_has_no_end_that_does(source: str) -> None:
    document = made(talk("a", "b", "c", "d", train=False), source)
    assert "d" not in "".join(trained(document))
    assert not document.eos
    document = made(talk("a", "b", "c", "d"), source, "last")
    assert (trained(document), document.eos) == (["d"], True)
    document = made(talk("a", "b", "c"), source)
    assert document.eos is False
    document = made(talk("a", "b", "c", ""), source)
    assert document.eos is False


def test_each_turn_ends_in_the_document_that_ends_with_it() -> None:
    """In the first document the turn is the last text; the second shows it rewritten, and what follows."""
    source = BETWEEN.replace("{{ m.content }}", "{{ m.content if loop.last or m.role == 'user' else '-' }}")
    found = documents_of(conversation_of(talk("a", "b", "c", "d")), ChatTemplate(source), "each", ends=ENDS)
    assert [(trained(one), one.eos) for one in found] == [(["b"], True), (["d"], True)]


def test_all_trains_with_the_eos_whatever_the_text_ends_with() -> None:
    for source in (BEHIND, BETWEEN, ENDED):
        assert made(talk("a", "b"), source, "all").eos


def test_a_completion_trains_what_the_assistant_says() -> None:
    record = {"prompt": "a", "completion": talk("x", "b", "c", "d")["messages"][1:]}
    assert trained(made(record, BEHIND, "completion")) == ["b<e>", "d<e>"]
    record["completion"] = record["completion"][:1]
    assert trained(made(record, BEHIND, "completion")) == ["b<e>"]


def test_a_token_that_an_answer_only_spells_ends_nothing() -> None:
    """It is encoded as plain text, so the EOS that follows is the end."""
    spelled = talk("a", "b<e>")
    assert not made(spelled, NEVER).eos
    document = made(spelled, NEVER, control=["<e>", "<s>"])
    assert (trained(document), document.eos, document.end) == (["b<e>"], True, "<s>")
    assert trained(made(talk("a", "b", "<e>c", "d"), NEVER.replace("<{{ m.role }}>", "")))[0] == "b<e>"
    assert trained(made(talk("a", "b", "<e>c", "d"), NEVER.replace("<{{ m.role }}>", ""), control=["<e>"]))[0] == "b"
