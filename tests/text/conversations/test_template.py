"""Templates render as Jinja does in Transformers, and can do no harm."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packtool.text.conversations.template import ChatTemplate, literals
from packtool.text.faults import Fault

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
    assert text("{{ messages[0].name is defined }}") == "False"


def test_dots_prefer_methods_to_items() -> None:
    """As Jinja has it, also where reading an item of an object takes the short way."""
    template = ChatTemplate(
        "{% set m = messages[0] %}{{ m.items is callable }}{{ m['items'] }}{{ m.item }}{{ m.other }}"
    )
    assert template.render([{"items": 1, "item": 2}]).text == "True12"


@given(st.lists(st.lists(st.text()), min_size=1))
def test_marks_are_where_the_marked_text_is(parts: list[list[str]]) -> None:
    source = (
        "{% for m in messages %}{{ m.before }}{% set held %}{% generation %}{{ m.said }}{% endgeneration %}"
        "{% endset %}{{ held }}{% endfor %}"
    )
    messages = [{"before": "|".join(part), "said": "".join(part)} for part in parts]
    found = ChatTemplate(source).render(messages)
    assert found.text == "".join(message["before"] + message["said"] for message in messages)
    assert [found.text[begin:end] for begin, end in found.marked] == [message["said"] for message in messages]


def test_no_text_forges_a_mark() -> None:
    """Characters that could be marks are text, and the marks themselves are random."""
    source = "{% for m in messages %}{{ m.content }}{% generation %}{{ m.role }}{% endgeneration %}{% endfor %}"
    forged = "\ufdd0\ufdd1\ufdd0" + "0" * 18 + "\ufdd1(trained\ufdd0" + "0" * 18 + "\ufdd1)"
    found = ChatTemplate(source).render([{"role": "user", "content": forged}])
    assert found.text == forged + "user"
    assert found.marked == ((len(forged), len(forged) + 4),)


@pytest.mark.parametrize("cut", ["held[1:]", "held[:9]", "held | replace('(', '')", "held | replace(')', '')"])
def test_marks_that_a_template_cuts_are_refused(cut: str) -> None:
    held = "{% set held %}{% generation %}said{% endgeneration %}{% endset %}"
    with pytest.raises(Fault, match="the chat template cuts what is marked in its text"):
        ChatTemplate(held + "{{ " + cut + " }} {{ held }}").render(TALK)
    assert ChatTemplate(held + "{{ held | trim | upper }}").render(TALK).marked == ((0, 4),)


def test_arguments_reach_the_template() -> None:
    source = "{{ style is defined }}{{ style }}{{ bos_token }}{{ add_generation_prompt }}"
    template = ChatTemplate(source, {"bos_token": "<s>"})
    assert template.render(TALK).text == "False<s>False"
    assert template.render(TALK, arguments={"style": "x", "bos_token": "<b>"}, prompt=True).text == "Truex<b>True"


def apart(source: str, content: str) -> tuple[str, list[str]]:
    found = ChatTemplate(source, control=["<a>", "<a", "</t>"]).render([{"role": "user", "content": content}])
    return found.text, [found.text[begin:end] for begin, end in found.apart]


def test_control_tokens_of_a_conversation_are_kept_apart() -> None:
    whole = "<a>{{ messages[0].content }}"
    assert apart(whole, "x<a>y<a</t>") == ("<a>x<a>y<a</t>", ["<a>", "<a", "</t>"])
    assert apart(whole, "\ufdd0}<a\ufdd1{") == ("<a>\ufdd0}<a\ufdd1{", ["<a"])
    # Where the template splits at a token, its ends stay apart.
    assert apart("{{ messages[0].content.split('</t>')[-1] }}", "x</t>y") == ("y", [""])
    assert apart("{% generation %}{{ messages[0].content }}{% endgeneration %}", "<a>") == ("<a>", ["<a>"])
    with pytest.raises(Fault, match="cuts"):
        apart("{{ messages[0].content[3:] }}", "<a>b")
    for escaped in ("{{ messages }}", "{{ messages | tojson(ensure_ascii=true) }}"):
        with pytest.raises(Fault, match="cuts"):
            apart(escaped, "<a>")


HOSTILE = [
    ("{{ ''.__class__.__mro__ }}", "access to attribute '__class__'"),
    ("{{ raise_exception.__globals__.x }}", "access to attribute '__globals__'"),
    ("{{ cycler.__init__.__globals__ }}", "access to attribute '__init__'"),
    ("{{ messages.append(1) }}", "access to attribute 'append'"),
    ("{% include 'x' %}", "no loader for this environment"),
    ("{% import 'os' as x %}", "no loader for this environment"),
    ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "takes more than 1 seconds"),
    ("{% for i in range(10**9) %}x{% endfor %}", "the chat template failed: Range too big"),
    ("{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}", "recursion"),
    ("{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}", "takes more than"),
    ("{% for i in [1,2] recursive %}{{ loop([1,2]) }}{% endfor %}", "recursion"),
    ("{% for i in range(90000) %}{{ 'a' * 9000 }}{% endfor %}", "makes more than 67,108,864 characters"),
    ("{{ raise_exception('no system role') }}", "the chat template failed: no system role"),
    ("{{ raise_exception('x' * 9000) }}", "the chat template failed: " + "x" * 300),
    ("{{ strftime_now('%Y') }}", "asks for today's date"),
    ("{{ messages[0] + 1 }}", "the chat template failed: unsupported operand"),
    ("{{ 1 | tick }}", "invalid chat template: No filter named 'tick'"),
    ("{{ messages[0].update({}) }}", "access to attribute 'update'"),
    ("{{ messages[0].other.more }}", "'dict object' has no attribute 'other'"),
    ("{{ [1, 2] | random }}", "invalid chat template: No filter named 'random'"),
    ("{{ lipsum() }}", "'lipsum' is undefined"),
    ("{% for %}", "invalid chat template"),
    ("{% for i in [1] %}" * 25 + "{% endfor %}" * 25, "invalid chat template: too many statically nested blocks"),
    ("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", "invalid chat template: maximum recursion depth exceeded"),
    ("{{ " + "-" * 100_000 + "1 }}", "invalid chat template: maximum recursion depth exceeded"),
]


@pytest.mark.parametrize(("source", "message"), HOSTILE, ids=[source[:30] for source, _ in HOSTILE])
def test_hostile_and_broken_templates_end_in_one_error(source: str, message: str) -> None:
    with pytest.raises(Fault, match="chat template") as error:
        ChatTemplate(source, seconds=1).render(TALK)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


def test_the_renderings_of_a_conversation_share_its_seconds() -> None:
    template = ChatTemplate("{% for i in range(messages[0].turns) %}{% endfor %}", seconds=0.05)
    template.render([{"turns": 1}])
    with pytest.raises(Fault, match=r"takes more than 0\.05 seconds for this conversation"):
        for _ in range(10_000):
            template.render([{"turns": 1000}])
    with pytest.raises(Fault, match="seconds"):
        template.render([{"turns": 1}])
    template.begin()
    template.render([{"turns": 1}])


@pytest.mark.parametrize("source", ["{{ m", "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}"])
def test_the_texts_of_an_invalid_template_are_one_clear_error(source: str) -> None:
    with pytest.raises(Fault, match="invalid chat template: "):
        literals(source)
