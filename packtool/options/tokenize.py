"""The options of `tokenize`: those of conversations, and the others."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from packtool.options.declare import Option
from packtool.options.kinds import (
    COUNT,
    FLAG,
    GLOBS,
    INPUTS,
    NAMES,
    NUMBER,
    OBJECT,
    SHARE,
    SIZE,
    TEXT,
    TEXT_OR_ID,
    Kind,
)
from packtool.options.shared import EosToken, Format, Many, Output, Revision, Tokenizer, Working, Writing
from packtool.support.sizes import parse_bytes

Use = Literal["train", "mask", "drop"]
_conversation = partial(Option, TEXT, group="Conversations")
_field = partial(Option, TEXT, group="Input", metavar="FIELD", recorded=True)


@dataclass(frozen=True, kw_only=True)
class ConversationOptions:
    """The options of conversations, which `tokenize` takes."""

    conversations: Annotated[
        str | None,
        _conversation(
            "Field or column with conversations; auto for messages, conversations, or prompt and completion, whichever "
            "a record has.",
            metavar="FIELD|auto",
            default="auto, if the first record has these and no text",
        ),
    ] = None
    chat_template: Annotated[
        str | Path | None,
        _conversation(
            "Chat template: a file, or the name of one of the tokenizer's.",
            metavar="FILE|NAME",
            default="the tokenizer's",
        ),
    ] = None
    train_on: Annotated[
        Literal["assistant", "last", "each", "completion", "all"],
        _conversation(
            "Train on the assistant's messages, the last, each as the model saw it, the completion, or all text: "
            "assistant, last, each, completion or all."
        ),
    ] = "assistant"
    reasoning: Annotated[
        Use, _conversation("Let the assistant's reasoning train, mask it, or drop it from the text.")
    ] = "train"
    tool_calls: Annotated[
        Use,
        _conversation("Let messages that call tools train, mask them, or drop tools, calls and answers from the text."),
    ] = "train"
    template_args: Annotated[
        Mapping[str, Any] | str | None,
        Option(
            OBJECT,
            "Arguments of the chat template; those in a record's chat_template_kwargs come first.",
            "Conversations",
            default="none",
        ),
    ] = None
    template_date: Annotated[
        str | None,
        _conversation(
            "Date for a chat template that asks for it, such as 2026-07-01.",
            metavar="DATE",
            default="none: such a template is refused",
        ),
    ] = None


_fim = partial(Option, group="Fill in the middle")


@dataclass(frozen=True, kw_only=True)
class FimOptions:
    """The options of filling in the middle, which `tokenize` takes."""

    fim_rate: Annotated[
        Fraction | float | str | None,
        _fim(SHARE, "Rearrange this share of the documents as prefix, suffix, middle.", default="none"),
    ] = None
    fim_spm_rate: Annotated[
        Fraction | float | str,
        _fim(SHARE, "Write this share of them suffix first.", default="50%"),
    ] = Fraction(1, 2)
    fim_seed: Annotated[
        int, _fim(NUMBER, "Seed of which documents are rearranged, and where they are cut.", low=0, high=(1 << 63) - 1)
    ] = 42
    fim_tokens: Annotated[
        Sequence[str],
        _fim(
            NAMES,
            "Sentinels before prefix, suffix and middle, by text or id.",
            metavar="PRE,SUF,MID",
            default="the tokenizer's own, by their usual names",
        ),
    ] = ()
    fim_split: Annotated[
        str | None,
        _fim(TEXT, "Rearrange each part between these separators by itself.", metavar="SEPARATOR"),
    ] = None


def _left_out(which: str, unit: str, kind: Kind = NUMBER) -> Option:
    """Declare a limit of documents."""
    return Option(kind, f"Leave out documents with {which}.", "Which documents", unit=unit, low=0, recorded=True)


@dataclass(frozen=True)
class TokenizeArguments(ConversationOptions, FimOptions, Writing, Working):
    """The arguments of `packtool.tokenize`."""

    inputs: Annotated[
        Many | Iterable[Any],
        Option(
            INPUTS,
            "Files, directories, globs or URLs (s3://, gs://, hf://); - is standard input.",
            metavar="INPUT",
            positional=True,
        ),
    ]
    output: Output
    _: KW_ONLY
    tokenizer: Tokenizer = None
    revision: Revision = None
    text_field: Annotated[str, _field("Field or column with the text; a.b is the field b of an object a.")] = "text"
    ids_field: Annotated[str | None, _field("Field or column with lists of token ids, to store as they are.")] = None
    id_field: Annotated[str | None, _field("Field with the id of each document, to find it by.")] = None
    columns: Annotated[
        Sequence[str],
        Option(NAMES, "Other scalar fields to keep with the tokens.", "Input", metavar="FIELD,...", recorded=True),
    ] = ()
    format: Format = None
    include: Annotated[
        Sequence[str],
        Option(
            GLOBS,
            'Read only files that match, whatever their suffix; may be repeated. Patterns without "/" match a file\'s '
            "name, others its path under the input.",
            "Input",
        ),
    ] = ()
    exclude: Annotated[Sequence[str], Option(GLOBS, "Leave out files that match; may be repeated.", "Input")] = ()
    eos_token: EosToken = None
    bos: Annotated[bool, Option(FLAG, "Begin every document with the BOS token.", "Tokens")] = False
    bos_token: Annotated[str | int | None, Option(TEXT_OR_ID, "BOS token, by text or id; implies --bos.", "Tokens")] = (
        None
    )
    special_tokens: Annotated[
        Literal["token", "text"],
        Option(
            TEXT,
            "Encode special tokens that a text or message spells as one token each, or as plain text.",
            "Tokens",
            recorded=True,
        ),
    ] = "token"
    min_words: Annotated[int | None, _left_out("fewer words", "words")] = None
    min_chars: Annotated[int | None, _left_out("fewer characters", "characters")] = None
    max_chars: Annotated[int | None, _left_out("more characters", "characters")] = None
    min_tokens: Annotated[int | None, _left_out("fewer tokens, EOS included", "tokens", COUNT)] = None
    max_tokens: Annotated[int | None, _left_out("more tokens, EOS included", "tokens", COUNT)] = None
    on_error: Annotated[
        Literal["fail", "skip", "quarantine"],
        Option(
            TEXT,
            "What to do with records that can't be used: fail, skip, or quarantine (copy them to rejected.jsonl).",
            "Which documents",
            metavar="WAY",
            recorded=True,
        ),
    ] = "fail"
    max_errors: Annotated[
        int | None,
        Option(NUMBER, "Stop after this many records that can't be used.", "Rarely needed", unit="records", low=0),
    ] = None
    max_record_bytes: Annotated[
        int | str,
        Option(
            SIZE,
            "Largest record, uncompressed; a text file is one document of any size.",
            "Rarely needed",
            default="64MiB",
            recorded=True,
        ),
    ] = 64 << 20
    provenance: Annotated[
        bool,
        Option(
            FLAG,
            "Keep where each document came from and a hash of its text, 20 bytes a document; hold-outs, exclusions and "
            "packtool find need it.",
            "Rarely needed",
            recorded=True,
        ),
    ] = True
    encoder: Annotated[
        Literal["auto", "tokenizers", "gigatoken", "fastokens"],
        Option(
            TEXT,
            "auto, tokenizers, gigatoken or fastokens; the output is the same.",
            "Rarely needed",
            metavar="NAME",
        ),
    ] = "auto"

    @property
    def record_bytes(self) -> int:
        """The largest record in bytes."""
        return parse_bytes(self.max_record_bytes, "--max-record-bytes")
