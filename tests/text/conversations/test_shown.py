"""What a template does not show of a conversation is refused by name, and what a template shows in any form is not."""

from typing import Any

import pytest

from packtool.text.conversations.shown import shown_by
from packtool.text.conversations.template import ChatTemplate
from packtool.text.faults import Fault
from tests.text.conversations.rendering import PLAIN, renderer, showing
from tests.text.conversations.talks import talk_of

NAMES = "{{ tools | map(attribute='function.name') | join if tools }}"
SHOWING = showing("m.content }}{{ m.tool_calls | tojson if m.tool_calls")
ARGUMENTS = {"city": "Lima", "days": 2, "metric": True}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}]
USER = {"role": "user", "content": "How warm is it in Lima?"}
RESULT = {"role": "tool", "name": "weather", "content": "22"}
ANSWER = {"role": "assistant", "content": "It is 22 °C."}


def call(arguments: Any = ARGUMENTS, content: str | None = "") -> dict[str, Any]:
    function = {"name": "weather", "arguments": arguments}
    return {"role": "assistant", "content": content, "tool_calls": [{"type": "function", "function": function}]}


def refused(source: str, record: dict[str, Any], **options: Any) -> str:
    with pytest.raises(Fault) as error:
        renderer(source, **options).rendered(talk_of(record))
    return f"{error.value}: {error.value.remedy}"


CALLING = {"messages": [USER, call(), RESULT, ANSWER]}
WITH_TOOLS = {**CALLING, "tools": TOOLS}
SAYING = {"messages": [USER, call(content="Let me look."), RESULT, ANSWER]}
SYSTEM = {"messages": [{"role": "system", "content": "Be brief."}, USER, ANSWER]}
FUNCTIONS = {"messages": [{**USER, "functions": [{"name": "f"}]}, ANSWER]}
OF_TOOLS = "give --tool-calls=drop, which leaves out tools, calls and their results, or another template with --chat-t"
CONTENT_AND = "m.content }}{{ "
JOINING = (
    "{% for m in messages if m.role != 'tool' %}<{{ m.role }}>{{ m.content }}"
    "{% for c in m.tool_calls %}{{ c.function.name + c.function.arguments }}{% endfor %}</s>{% endfor %}"
)
"""Results are left out, and arguments of calls are joined to texts, so they have to be JSON."""
TOLD = [
    (PLAIN, CALLING, "a call of message 2"),
    (
        showing(CONTENT_AND + "m.tool_calls[0].function.name if m.tool_calls"),
        CALLING,
        "an argument of a call of message 2",
    ),
    (
        showing(CONTENT_AND + "(m.tool_calls | tojson)[:60] if m.tool_calls"),
        CALLING,
        "an argument of a call of message 2",
    ),
    (SHOWING, WITH_TOOLS, "a tool"),
    (NAMES + SHOWING.replace("m.content", "m.content if m.role != 'tool'"), WITH_TOOLS, "the content of message 3"),
    (SHOWING.replace("m.content", "m.content if not m.tool_calls"), SAYING, "the content of message 2 beside its call"),
    (JOINING, CALLING, "the content of message 3"),
    (showing("m.content if m.role != 'system'"), SYSTEM, "the content of message 1"),
]


@pytest.mark.parametrize(("source", "record", "what"), TOLD)
def test_what_a_template_does_not_show_is_refused(source: str, record: dict[str, Any], what: str) -> None:
    way = "give another template with --chat-t" if record == SYSTEM else OF_TOOLS
    assert refused(source, record).startswith(f"the chat template does not show {what}: {way}")
    assert refused(source, record, tool_calls="mask").startswith("the chat template does not show")
    if record != SYSTEM:
        [document] = renderer(source, tool_calls="drop").rendered(talk_of(record))
        assert "weather" not in document.text
        assert ANSWER["content"] in document.text


@pytest.mark.parametrize(
    ("source", "record"),
    [
        (NAMES + SHOWING, WITH_TOOLS),
        ("{{ messages[0].functions }}" + PLAIN, FUNCTIONS),
        (SHOWING, {"messages": [USER, call('{"city": "Lima"}', None), RESULT, ANSWER]}),
        (SHOWING, {"messages": [USER, call({}), RESULT, ANSWER]}),
        (SHOWING, {"messages": [USER, call("not JSON"), RESULT, ANSWER]}),
        (showing("m.content | trim | upper | replace('.', '!')"), {"messages": [USER, ANSWER]}),
        (
            showing("m.content.split('</think>')[-1]"),
            {"messages": [USER, {**ANSWER, "content": "<think>Hm.</think>So."}]},
        ),
        (PLAIN, {"messages": [USER, {**ANSWER, "reasoning_content": "Hm."}]}),
        (PLAIN, {"messages": [USER, {**ANSWER, "content": ""}, USER, ANSWER]}),
    ],
)
def test_what_is_shown_in_any_form_is_not_refused(source: str, record: dict[str, Any]) -> None:
    assert renderer(source).rendered(talk_of(record))


def test_a_template_is_rendered_with_marks_once_for_each_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    template = ChatTemplate(SHOWING)
    talks = [talk_of({"messages": [{**USER, "content": text}, call({"city": text})]}) for text in "abc"]
    assert [shown_by(template, talk).missing for talk in talks] == [None] * 3
    assert len(template.known_shapes) == 1
    assert shown_by(template, talk_of({"messages": [{**USER, "content": ""}, call()]})).missing is None
    assert len(template.known_shapes) == 2


def test_whether_a_call_is_shown_does_not_depend_on_calls_before_it() -> None:
    """Arguments that are objects, and texts that are none, have different shapes; so have contents, empty and blank."""
    renders = renderer(
        showing(CONTENT_AND + "m.tool_calls[0].function.name ~ m.tool_calls[0].function.arguments.city if m.tool_calls")
    )
    assert renders.rendered(talk_of({"messages": [USER, call({"city": "Lima"}), RESULT, ANSWER]}))
    for broken in ('{"city": ', '["Lima"]'):
        with pytest.raises(Fault, match="does not show an argument of a call of message 2"):
            renders.rendered(talk_of({"messages": [USER, call(broken), RESULT, ANSWER]}))
    template = ChatTemplate(showing("m.content[0] + m.content[1:]"))
    answers = [{"messages": [USER, {**ANSWER, "content": content}]} for content in ("", " ", "a")]
    assert [shown_by(template, talk_of(record)).failed for record in answers] == [True, False, False]


LISTING = PLAIN.replace("{{ m.content }}", "{% for p in m.content %}{{ p.text or p | tojson }}{% endfor %}")
THINKING_IN_PARTS = (
    "{% for m in messages %}<{{ m.role }}>"
    "{% if m.content is string or m.role == 'tool' %}{{ m.content }}"
    "{% else %}{% for p in m.content %}{{ p.thinking or p.text }}{% endfor %}{% endif %}"
    "{{ m.tool_calls | tojson if m.tool_calls }}</s>{% endfor %}"
)
"""As Ministral has it: reasoning is shown in parts alone, and results are strings."""


def test_a_list_of_parts_is_never_written_as_a_list() -> None:
    """Some templates write as JSON, or as Python, whatever is no string: the parts are joined for them."""
    parts = {"messages": [USER, {"role": "assistant", "content": [{"type": "text", "text": 'So, "yes".'}]}]}
    thought = {"messages": [USER, {"role": "assistant", "content": "", "reasoning_content": "Hm."}, USER, ANSWER]}
    for source in (PLAIN, showing("m.content if m.content is string else m.content | tojson")):
        [document] = renderer(source).rendered(talk_of(parts))
        assert document.text == '<user>How warm is it in Lima?</s><assistant>So, "yes".</s>'
        [document] = renderer(source).rendered(talk_of(thought))
        assert "Hm." not in document.text
    between = [{"type": "text", "text": "So."}, {"type": "thinking", "thinking": "Hm."}]
    asked = {"role": "user", "content": [{"type": "text", "text": "Why?"}]}
    assert refused(LISTING, {"messages": [asked, {"role": "assistant", "content": between}]}) == (
        "the chat template does not show reasoning in parts of a content: "
        "give --reasoning=drop, which leaves it out, or another template with --chat-template"
    )


def test_reasoning_is_shown_in_parts_also_where_results_are_strings() -> None:
    calling = {**call(), "reasoning_content": "Hm."}
    [document] = renderer(THINKING_IN_PARTS).rendered(talk_of({"messages": [USER, calling, RESULT, ANSWER]}))
    assert "<assistant>Hm." in document.text
    assert "<tool>22</s>" in document.text
