"""Options of how conversations are read and rendered."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from packtool.options.declare import Option
from packtool.options.kinds import TEXT

Use = Literal["train", "mask", "drop"]


_option = partial(Option, TEXT, group="Conversations")


@dataclass(frozen=True, kw_only=True)
class ConversationOptions:
    """The options of conversations, which `tokenize` takes."""

    conversations: Annotated[
        str | None,
        _option(
            "Field or column with conversations; auto for messages, conversations, or prompt and completion, whichever "
            "a record has.",
            metavar="FIELD|auto",
            default="auto, if the first record has these and no text",
        ),
    ] = None
    chat_template: Annotated[
        str | Path | None,
        _option(
            "Chat template: a file, or the name of one of the tokenizer's.",
            metavar="FILE|NAME",
            default="the tokenizer's",
        ),
    ] = None
    train_on: Annotated[
        Literal["assistant", "last", "completion", "all"],
        _option(
            "Train on the assistant's messages, the last of them, the completion after a prompt, or all of the text: "
            "assistant, last, completion or all."
        ),
    ] = "assistant"
    reasoning: Annotated[Use, _option("Let the assistant's reasoning train, mask it, or drop it from the text.")] = (
        "train"
    )
    tool_calls: Annotated[
        Use,
        _option("Let messages that call tools train, mask them, or drop tools, calls and answers from the text."),
    ] = "train"
    template_date: Annotated[
        str | None,
        _option(
            "What a chat template that asks for the date gets, such as 2026-07-01.",
            metavar="DATE",
            default="none: such a template is refused",
        ),
    ] = None
