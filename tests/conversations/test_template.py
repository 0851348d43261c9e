"""Templates render as Jinja does in Transformers, and can do no harm."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.conversations.record import ConversationError
from packtool.conversations.template import ChatTemplate

TALK = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]


def text(source: str, **options: object) -> str:
    return ChatTemplate(source, **options).render(TALK).text  # type: ignore[arg-type]


def test_what_templates_are_given() -> None:
    assert text("{{ messages[0] | tojson }}") == '{"role": "user", "content": "Hi"}'
    assert text("{{ '<é>' | tojson }}{{ {'b': 1, 'a': 2} | tojson(indent=1, sort_keys=true) }}") == (
        '"<é>"{\n "a": 2,\n "b": 1\n}'
    )
    assert text("{{ bos_token }}{{ eos_token }}", tokens={"bos_token": "<s>"}) == "<s>"
    assert text("{{ strftime_now('%Y-%m-%d') }}", now=datetime(2026, 1, 2)) == "2026-01-02"
    assert (
        text("{% for m in messages %}{% if loop.first %}{% continue %}{% endif %}{{ m.content }}{% endfor %}") == "Ho"
    )
    assert text("  {% if true %}\n a\n  {% endif %}\nb") == " a\nb"
    assert text("{% set n = namespace(x=1) %}{% set n.x = n.x + 1 %}{{ n.x }}{{ dict(a=1) }}") == "2{'a': 1}"
    assert text("{{ tools is none }}{{ documents is none }}{{ add_generation_prompt }}") == "TrueTrueFalse"
    assert text("{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f('a') ~ f(1) }}") == "<a><1>"


@given(st.lists(st.lists(st.text(st.characters(exclude_characters="\ufdd0\ufdd1"))), min_size=1))
def test_marks_are_where_the_marked_text_is(parts: list[list[str]]) -> None:
    source = (
        "{% for m in messages %}{{ m.before }}{% set held %}{% generation %}{{ m.said }}{% endgeneration %}"
        "{% endset %}{{ held }}{% endfor %}"
    )
    messages = [{"before": "|".join(part), "said": "".join(part)} for part in parts]
    found = ChatTemplate(source).render(messages)
    assert found.text == "".join(message["before"] + message["said"] for message in messages)
    assert [found.text[begin:end] for begin, end in found.marked] == [message["said"] for message in messages]


HOSTILE = [
    ("{{ ''.__class__.__mro__ }}", "access to attribute '__class__'"),
    ("{{ raise_exception.__globals__.x }}", "access to attribute '__globals__'"),
    ("{{ messages.append(1) }}", "access to attribute 'append'"),
    ("{{ namespace(__class__=1) }}", "has no '__class__'"),
    ("{% include 'x' %}", "no loader for this environment"),
    ("{% import 'os' as x %}", "no loader for this environment"),
    ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "goes on for too long"),
    ("{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}", "recursion"),
    ("{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(30) }}", "too long"),
    ("{{ 'a' * 10 ** 10 }}", "makes more than"),
    ("{{ 9 ** 999999999 }}", "large numbers"),
    ("{% set n = namespace(x='ab') %}{% for i in range(90) %}{% set n.x = n.x ~ n.x %}{% endfor %}", "makes more than"),
    ("{% set n = namespace(x='ab') %}{% for i in range(90) %}{% set n.x = n.x + n.x %}{% endfor %}", "makes more than"),
    ("{% for i in range(90000) %}{{ 'a' * 9000 }}{% endfor %}", "makes more than"),
    ("{{ raise_exception('no system role') }}", "the chat template failed: no system role"),
    ("{{ strftime_now('%Y') }}", "asks for today's date: give --template-date"),
    ("{{ messages[0] + 1 }}", "the chat template failed: unsupported operand"),
    ("{% for %}", "the chat template is no template"),
]


@pytest.mark.parametrize(("source", "message"), HOSTILE, ids=[source[:30] for source, _ in HOSTILE])
def test_hostile_and_broken_templates_end_in_one_error(source: str, message: str) -> None:
    with pytest.raises(ConversationError, match="chat template") as error:
        text(source)
    assert message in str(error.value)


def test_a_rendering_leaves_nothing_behind() -> None:
    template = ChatTemplate("{% for m in messages %}{{ m.pop('x') if false }}{{ m.content }}{% endfor %}", steps=2)
    assert [template.render(TALK).text for _ in range(3)] == ["HiHo"] * 3
    with pytest.raises(ConversationError, match="too long"):
        template.render([*TALK, *TALK])
