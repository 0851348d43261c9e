"""Chat templates and special tokens are found in the files that lie beside a tokenizer."""

import json
from typing import Any

import pytest

from packtool.text.conversations.chat import special_tokens_of, templates_of
from packtool.text.faults import Fault


def files(**contents: Any) -> dict[str, bytes]:
    return {f"{name}.json": json.dumps(content).encode() for name, content in contents.items()}


@pytest.mark.parametrize(
    ("templates", "expected"),
    [
        ("x", {"default": "x"}),
        ({"default": "x", "tool_use": "y"}, {"default": "x", "tool_use": "y"}),
        ([{"name": "default", "template": "x"}, {"name": "rag", "template": "y"}], {"default": "x", "rag": "y"}),
        (None, {}),
    ],
)
def test_a_configuration_holds_one_template_or_several(templates: Any, expected: dict[str, str]) -> None:
    assert templates_of(files(tokenizer_config={"chat_template": templates})) == expected


def test_the_file_of_the_template_comes_first() -> None:
    several = files(tokenizer_config={"chat_template": "config"}, chat_template={"chat_template": "json"})
    assert templates_of(several) == {"default": "json"}
    assert templates_of({**several, "chat_template.jinja": b"jinja"}) == {"default": "jinja"}


@pytest.mark.parametrize("templates", [3, [3], [{"name": "default"}], {"default": 3}, True])
def test_what_is_no_template_is_one_error(templates: Any) -> None:
    with pytest.raises(Fault, match=r"^the chat_template of tokenizer_config\.json is neither a text nor"):
        templates_of(files(tokenizer_config={"chat_template": templates}))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("chat_template.jinja", b"\xff", "chat_template.jinja is not valid UTF-8"),
        ("chat_template.json", b"[", "chat_template.json is not valid JSON: "),
    ],
)
def test_a_file_that_cannot_be_read_is_one_error(name: str, content: bytes, message: str) -> None:
    with pytest.raises(Fault) as error:
        templates_of({name: content})
    assert str(error.value).startswith(message)


def test_special_tokens_are_those_of_the_configuration_then_of_the_map() -> None:
    given = files(tokenizer_config={"eos_token": "</s>"}, special_tokens_map={"eos_token": "<x>", "bos_token": "<s>"})
    assert special_tokens_of(given) == {"bos_token": "<s>", "eos_token": "</s>"}
