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


def test_a_list_of_parts_is_never_written_as_a_list() -> None:
    """Some templates write as JSON, or as Python, whatever is no string: the parts are joined for them."""
    parts = {"messages": [USER, {"role": "assistant", "content": [{"type": "text", "text": 'So, "yes".'}]}]}
    for source in (PLAIN, showing("m.content if m.content is string else m.content | tojson")):
        [document] = renderer(source).rendered(talk_of(parts))
        assert document.text == '<user>How warm is it in Lima?</s><assistant>So, "yes".</s>'
