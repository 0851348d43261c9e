"""The token that ends a turn trains with it, wherever the template writes it."""

import pytest

from tests.text.conversations.fuzz import talk
from tests.text.conversations.rendering import MARKED, PLAIN, documents, texts, trained

BETWEEN = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ '\n</s>' if not loop.last }}{% endfor %}"
    "{{ '\n</s><assistant>' if add_generation_prompt }}"
)
NEVER = PLAIN.replace("</s>", "")
ENDS = {
    "behind": (PLAIN, ["b</s>", "d</s>"], False, "</s>", 0),
    "between": (BETWEEN, ["b\n</s>", "d"], True, "<s>", 0),
    "never": (NEVER, ["b", "d"], True, "<s>", 1),
    "header is a stop": (
        NEVER.replace("<{{ m.role }}>", "{{ '<s>' if m.role == 'user' }}"),
        ["b<s>", "d"],
        True,
        "<s>",
        0,
    ),
    "no stop": (PLAIN.replace("</s>", "<pad>\n"), ["b<pad>\n", "d<pad>\n"], False, "<pad>", 0),
    "marks": (MARKED, ["b</s>", "d</s>"], False, "</s>", 0),
    "marks, between": (
        MARKED.replace("</s>{% endgeneration %}", "{% endgeneration %}{{ '</s>' if not loop.last }}"),
        ["b", "d"],
        True,
        "<s>",
        1,
    ),
    "marks cut": (MARKED.replace("</s>{% endgeneration %}", "{% endgeneration %}."), ["b", "d"], False, "", 2),
}
"""Template, turns that train, whether the EOS does, the end of the last turn, and how many have none."""


@pytest.mark.parametrize("name", ENDS)
def test_a_turn_trains_with_its_end(name: str) -> None:
    source, turns, eos, end, no_end = ENDS[name]
    [document] = documents(talk("a", "b", "c", "d"), source)
    assert texts(document) == turns
    assert (document.eos, document.end, document.open) == (eos, end, no_end)


@pytest.mark.parametrize("source", [BETWEEN, NEVER])
def test_what_does_not_train_has_no_end_that_does(source: str) -> None:
    [document] = documents(talk("a", "b", "c", "d", train=False), source)
    assert "d" not in "".join(texts(document))
    assert not document.eos
    [document] = documents(talk("a", "b", "c", "d"), source, "last")
    assert (texts(document), document.eos) == (["d"], True)
    for record in (talk("a", "b", "c"), talk("a", "b", "c", "")):
        [document] = documents(record, source)
        assert document.eos is False


def test_each_turn_ends_in_the_document_that_ends_with_it() -> None:
    """In the first document the turn is the last text; the second shows it rewritten, and what follows."""
    source = BETWEEN.replace("{{ m.content }}", "{{ m.content if loop.last or m.role == 'user' else '-' }}")
    found = documents(talk("a", "b", "c", "d"), source, "each")
    assert [(texts(each), each.eos) for each in found] == [(["b"], True), (["d"], True)]


@pytest.mark.parametrize("source", [PLAIN, BETWEEN, MARKED])
def test_all_trains_with_the_eos_whatever_the_text_ends_with(source: str) -> None:
    [document] = documents(talk("a", "b"), source, "all")
    assert document.eos


def test_a_completion_trains_what_the_assistant_says() -> None:
    said = talk("x", "b", "c", "d")["messages"][1:]
    assert trained({"prompt": "a", "completion": said}, PLAIN, "completion") == ["b</s>", "d</s>"]
    assert trained({"prompt": "a", "completion": said[:1]}, PLAIN, "completion") == ["b</s>"]


def test_a_token_that_an_answer_only_spells_ends_nothing() -> None:
    """It is encoded as plain text, so the EOS that follows is the end."""
    for control, eos in (((), False), (["</s>", "<s>"], True)):
        [document] = documents(talk("a", "b</s>"), NEVER, control=control)
        assert (texts(document), document.eos) == (["b</s>"], eos)
        assert document.end == ("<s>" if eos else "</s>")
    bare, record = NEVER.replace("<{{ m.role }}>", ""), talk("a", "b", "</s>c", "d")
    assert trained(record, bare)[0] == "b</s>"
    assert trained(record, bare, control=["</s>"])[0] == "b"
