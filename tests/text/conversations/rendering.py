"""Conversations rendered by small templates, and the parts of their texts that train."""

from collections.abc import Sequence
from typing import Any

from packtool.text.conversations.chat import Chat
from packtool.text.conversations.conversation import Trained
from packtool.text.conversations.ends import Ends
from packtool.text.conversations.renderer import Renderer
from packtool.text.conversations.spans import Document, documents_of
from packtool.text.conversations.template import ChatTemplate
from tests.text.conversations.talks import talk_of

PROMPT = "{% if add_generation_prompt %}<assistant>{% endif %}"
PLAIN = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}" + PROMPT
MARKED = PLAIN.replace(
    "{{ m.content }}</s>",
    "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}</s>{% endgeneration %}"
    "{% else %}{{ m.content }}</s>{% endif %}",
)


def showing(content: str) -> str:
    """The plain template with another expression for the content of a message."""
    return PLAIN.replace("m.content", content)


ENDS = Ends(["</s>", "<user>", "<pad>"], ["<s>", "</s>"])


def documents(
    record: dict[str, Any], source: str, train_on: Trained = "assistant", control: Sequence[str] = (), **options: Any
) -> list[Document]:
    return documents_of(talk_of(record), ChatTemplate(source, control=control), train_on, ends=ENDS, **options)


def texts(document: Document) -> list[str]:
    """What trains of a document."""
    return [document.text[begin:end] for begin, end in document.spans]


def trained(record: dict[str, Any], source: str, train_on: Trained = "assistant", **options: Any) -> list[str]:
    [document] = documents(record, source, train_on, **options)
    return texts(document)


def renderer(source: str, **options: Any) -> Renderer:
    """The way of all records of a corpus."""
    return Renderer(Chat(**{"templates": (("default", source),), "special": ("</s>", "<s>"), **options}))
