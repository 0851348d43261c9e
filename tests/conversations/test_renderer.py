"""Conversations rendered by recipes, against the renderings of their template."""

from __future__ import annotations

import random
from typing import Any

import pytest

from packtool.conversations.record import ConversationError, Trained, conversation_of, texts_of
from packtool.conversations.renderer import Recipes, recipe_of, shape_of
from packtool.conversations.spans import rendered_with_spans
from packtool.conversations.symbols import Symbol, Trace, UnforeseenError
from packtool.conversations.template import ChatTemplate
from tests.conversations.fuzz import conversation

LOOP = (
    "{% for m in messages %}<{{ m.role }}>BODY{{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
BODIES = {
    "copied": "{{ m.content }}",
    "stripped": "{{ m.content.strip() }}{{ m['content'] | trim }}",
    "joined": "{{ '[' + m.content + ']' ~ m.content ~ 1 }}",
    "asked": (
        "{% if '</think>' in m.content %}T{% endif %}{% if m.content.startswith('hello') %}H{% endif %}{{ m.content }}"
    ),
    "split": "{{ m.content.split('</think>')[-1].lstrip('\\n') }}{{ m.content.partition('.')[0] }}",
    "empty": (
        "{% if m.content %}{{ m.content }}{% endif %}{% if m.content | length > 0 %}!{% endif %}{{ m.content == '' }}"
    ),
    "macro": "{% macro said(x) %}({{ x }}){% endmacro %}{% set y = said(m.content) %}{{ y | trim }}{{ y[1:-1] }}",
    "block": "{% set x %}  {{ m.content }} {% endset %}{{ x.strip() }}",
    "string": (
        "{% if m.content is string %}{{ m.content }}{% else %}"
        "{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}"
    ),
    "sequence": (
        "{{ m.content is iterable }}{{ m.content is mapping }}{{ m.content is sequence }}{{ m.content is none }}"
    ),
    "reasoning": "{% set ns = namespace(x=m.reasoning_content or '') %}{{ ns.x }}{{ m.content }}",
    "json": "{{ m.content | tojson }}",
    "lengths": "{{ m.content | length }}",
    "upper": "{{ m.content | upper }}",
    "items": "{% for c in m.content %}{{ c }}{% endfor %}",
    "first": "{{ m.content[0] }}{{ m.content[0]['type'] }}",
    "compared": "{{ m.content == messages[0].content }}{{ messages[0].content in m.content }}",
    "others": "{{ messages[-1].content if loop.last else loop.nextitem.content }}",
    "last": "{{ m.content if loop.last or m.role != 'assistant' }}",
    "keys": "{% if 'tool_calls' in m %}{{ m.tool_calls | tojson }}{% endif %}{{ m.content }}",
    "formatted": "{{ '%s' % m.content }}{{ '{}'.format(m.content) }}",
    "refusing": "{% if 'fox' in m.content %}{{ raise_exception('no foxes') }}{% endif %}{{ m.content }}",
    "written again": "{{ (m.content ~ '') * 2 }}",
    "marks": "{% if m.role == 'assistant' %}{% generation %}{{ m.content.strip() }}{% endgeneration %}{% endif %}",
    "symbols": "\U000f0000{{ m.content }}",
}


def outcome(render: Any, *arguments: Any) -> Any:
    try:
        return render(*arguments)
    except ConversationError as error:
        return type(error), str(error)


@pytest.mark.parametrize("count", [50, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("train_on", ["assistant", "last", "all"])
@pytest.mark.parametrize("body", BODIES)
def test_recipes_give_what_the_template_renders(body: str, train_on: Trained, count: int) -> None:
    source = LOOP.replace("BODY", BODIES[body])
    tokens = {"eos_token": "<|im_end|>"}
    recipes, template = Recipes(ChatTemplate(source, tokens), train_on), ChatTemplate(source, tokens)
    draw = random.Random(body)
    for _ in range(count):
        talk = conversation_of(conversation(draw))
        found = outcome(recipes.rendered, talk)
        assert found[:2] == outcome(rendered_with_spans, talk, template, train_on)
        if isinstance(found[0], str):
            assert sorted([*found[2], *(message["role"] for message in talk.messages)]) == sorted(
                texts_of(talk.messages)
            )


def talk(*contents: str) -> Any:
    roles = ("user", "assistant")
    return conversation_of({"messages": [{"role": roles[n % 2], "content": said} for n, said in enumerate(contents)]})


class Counting(ChatTemplate):
    """Counts what it renders."""

    count = 0

    def render(self, *args: Any, **kwargs: Any) -> Any:
        type(self).count += 1
        return super().render(*args, **kwargs)


@pytest.mark.parametrize("body", ["copied", "stripped", "asked", "macro", "block", "string", "empty", "split"])
def test_a_shape_is_rendered_twice_whatever_its_length(body: str) -> None:
    template = Counting(LOOP.replace("BODY", BODIES[body]))
    recipes = Recipes(template, "assistant")
    for text in "ab":
        recipes.rendered(talk(*[text] * 60))
    before = Counting.count
    for text in "cd":
        assert recipes.rendered(talk(*[text] * 60))[1]
    assert Counting.count == before


def test_a_recipe_is_no_way_around_the_meter() -> None:
    """A text that a template would look through too often is refused, whatever was rendered before."""
    source = LOOP.replace(
        "BODY", "{% for n in range(600) %}{% if 'x' in m.content %}{% endif %}{% endfor %}{{ m.content }}"
    )
    template = ChatTemplate(source)
    small, large = talk("a", "b"), talk("a" * 400_000, "b" * 400_000)
    recipes = Recipes(template, "assistant")
    for _ in range(4):
        assert recipes.rendered(small)[:2] == rendered_with_spans(small, template)
        refused = outcome(rendered_with_spans, large, template)
        assert refused[1] == "the chat template goes on for too long"
        assert outcome(recipes.rendered, large) == refused
    assert recipe_of(small, shape_of(small)[1], template, "assistant") is None


def test_symbols_do_what_texts_do_or_nothing() -> None:
    """Every method of texts is noted or refused, and so is every operator."""
    for name in dir(str):
        (symbol,) = Trace(["text"]).symbols()
        if name.startswith("_"):
            continue
        try:
            method = getattr(symbol, name)
        except UnforeseenError:
            continue
        arguments = ("t",) if name in ("startswith", "endswith", "removeprefix", "removesuffix") else ()
        arguments = ("e",) if "partition" in name else arguments
        found, expected = method(*arguments), getattr("text", name)(*arguments)
        assert type(found) is (Symbol if isinstance(expected, str) else type(expected))
    (symbol,) = Trace(["text"]).symbols()
    for use in (str, repr, hash, len, iter, float, "{}".format, lambda each: each < "x", lambda each: "x" in each * 2):
        with pytest.raises((UnforeseenError, TypeError)):
            use(symbol)
    assert symbol == "text"
    assert symbol != "other"
    assert symbol
    assert "ex" in symbol
    assert not hasattr(symbol, "nothing")


def test_shapes_tell_all_but_texts() -> None:
    one = {"messages": [{"role": "user", "content": "a", "n": 1, "parts": [{"type": "x"}]}]}
    others: list[dict[str, Any]] = [
        {"role": "tool", "content": "a", "n": 1, "parts": [{"type": "x"}]},
        {"role": "user", "n": 1, "content": "a", "parts": [{"type": "x"}]},
        {"role": "user", "content": "a", "n": True, "parts": [{"type": "x"}]},
        {"role": "user", "content": "a", "n": 1.0, "parts": [{"type": "x"}]},
        {"role": "user", "content": "a", "n": 1, "parts": ["x"]},
        {"role": "user", "content": "a", "n": 1, "parts": []},
        {"role": "user", "content": "a", "n": 1, "parts": {}},
        {"role": "user", "content": "a", "n": 1, "parts": [{"type": "x"}, {}]},
        {"role": "user", "content": "a", "n": 1, "parts": [{"type": "x"}], "train": False},
    ]
    shapes = {shape_of(conversation_of({"messages": [each]}))[0] for each in (*one["messages"], *others)}
    shapes |= {shape_of(conversation_of({**one, "tools": [{"x": n}]}))[0] for n in (1, "1")}
    assert len(shapes) == 12
    shape, texts = shape_of(conversation_of(one))
    assert texts == ["a", "x"]
    other = {"role": "user", "content": "longer", "n": 1, "parts": [{"type": "y"}]}
    assert shape_of(conversation_of({"messages": [other]}))[0] == shape
