"""How conversations are read and rendered."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from packtool.options.declare import Option
from packtool.options.kinds import TEXT

Use = Literal["train", "mask", "drop"]


@dataclass(frozen=True, kw_only=True)
class ConversationOptions:
    """The options of conversations, which `tokenize` takes."""

    conversations: Annotated[
        str | None,
        Option(
            TEXT,
            "Field or column with conversations; auto for messages, conversations, or prompt and completion, whichever "
            "a record has.",
            "Conversations",
            metavar="FIELD|auto",
            default="auto, if the first record has these and no text",
        ),
    ] = None
    chat_template: Annotated[
        str | Path | None,
        Option(
            TEXT,
            "Chat template: a file, or the name of one of the tokenizer's.",
            "Conversations",
            metavar="FILE|NAME",
            default="the tokenizer's",
        ),
    ] = None
    train_on: Annotated[
        Literal["assistant", "last", "completion", "all"],
        Option(
            TEXT,
            "Train on the assistant's messages, the last of them, the completion after a prompt, or all of the text: "
            "assistant, last, completion or all.",
            "Conversations",
        ),
    ] = "assistant"
    reasoning: Annotated[
        Use, Option(TEXT, "Let the assistant's reasoning train, mask it, or drop it from the text.", "Conversations")
    ] = "train"
    tool_calls: Annotated[
        Use,
        Option(
            TEXT,
            "Let messages that call tools train, mask them, or drop tools, calls and answers from the text.",
            "Conversations",
        ),
    ] = "train"
    template_date: Annotated[
        str | None,
        Option(
            TEXT,
            "What a chat template that asks for the date gets, such as 2026-07-01.",
            "Conversations",
            metavar="DATE",
            default="none: such a template is refused",
        ),
    ] = None
