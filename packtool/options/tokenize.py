"""The options of `tokenize`, for texts and for conversations."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from packtool.options.declare import Excludes, Needs, Only, Option
from packtool.options.kinds import (
    COUNT,
    FIELD,
    FIELDS,
    FLAG,
    GLOBS,
    INPUTS,
    LIMIT,
    LOCATION,
    NAMES,
    NUMBER,
    OBJECT,
    SHARD,
    SHARE,
    SIZE,
    TAGS,
    TEXT,
    TEXT_OR_ID,
    Kind,
    Records,
    parse_inputs,
    parse_limit,
)
from packtool.options.shared import (
    EosToken,
    FormatOption,
    Many,
    OutputOption,
    Revision,
    TokenizerOption,
    Working,
    Writing,
)
from packtool.support.sizes import parse_bytes

ReasoningUse = Literal["train", "mask", "drop"]
TEXT_FIELD = "text"
"""The field of texts that is read where no option names one."""
_OF_CONVERSATIONS = Only(("conversations",), "name the field of conversations with --conversations")
_conversation = partial(Option, group="Conversations", only=_OF_CONVERSATIONS)
_field = partial(Option, FIELD, group="Input", recorded=True)


@dataclass(frozen=True, kw_only=True)
class ConversationOptions:
    """The options of conversations, which `tokenize` takes."""

    conversations: Annotated[
        str | None,
        Option(
            FIELD,
            "Field or column with conversations, as lists of messages.",
            "Conversations",
            default="messages, conversations or conversation, where a record has one of them",
        ),
    ] = None
    message_fields: Annotated[
        Sequence[str],
        Option(
            FIELDS,
            "Who speaks, and what, in each message of --conversations, and perhaps whether it trains: fields such as "
            "speaker,text or role,content,loss.",
            "Conversations",
            metavar="SENDER,TEXT[,TRAIN]",
            default="role,content or from,value",
            needs=Needs("conversations", "name the field of the messages with --conversations"),
        ),
    ] = ()
    reasoning_field: Annotated[
        str | None,
        _conversation(
            FIELD,
            "Field or column with the assistant's reasoning before an answer.",
            default="reasoning_content",
        ),
    ] = None
    prompt: Annotated[
        Sequence[str],
        Option(
            FIELDS,
            "Fields or columns with the prompt, joined with a newline where they are not empty.",
            "Conversations",
            default="instruction (with input or context), prompt, question, query, problem or input",
            needs=Needs("completion", "name the field of the answer with --completion"),
            excludes=Excludes(("text_field", "ids_field", "conversations")),
        ),
    ] = ()
    completion: Annotated[
        str | None,
        Option(
            FIELD,
            "Field or column with the answer.",
            "Conversations",
            default="completion, response, answer, solution, generated_solution or output",
            needs=Needs("prompt", "name the fields of the prompt with --prompt"),
        ),
    ] = None
    system: Annotated[
        str | None,
        _conversation(
            FIELD,
            "Field or column with the text of the system, before the first message.",
            default="system or system_prompt",
        ),
    ] = None
    history: Annotated[
        str | None,
        _conversation(
            FIELD,
            "Field or column with what comes before a prompt: messages, or a list of [question, answer] pairs.",
            default="history",
        ),
    ] = None
    tools: Annotated[
        str | None,
        _conversation(FIELD, "Field or column with JSON schemas of tools.", default="tools"),
    ] = None
    chat_template: Annotated[
        str | Path | None,
        _conversation(
            LOCATION,
            "Chat template: a file, or the name of one of the tokenizer's.",
            metavar="FILE|NAME",
            default="the tokenizer's",
        ),
    ] = None
    train_on: Annotated[
        Literal["assistant", "last", "each", "completion", "all"],
        _conversation(
            TEXT,
            "Train on the assistant's messages, the last, each as the model saw it, the completion, or all text: "
            "assistant, last, each, completion or all.",
        ),
    ] = "assistant"
    reasoning: Annotated[
        ReasoningUse, _conversation(TEXT, "Let the assistant's reasoning train, mask it, or drop it from the text.")
    ] = "train"
    reasoning_tags: Annotated[
        str | Sequence[str],
        _conversation(
            TAGS,
            "Take what lies between these tags for reasoning, too; may be given several times.",
            default="<think>,</think> alone",
            needs=Needs("reasoning", "give --reasoning=mask, or drop, with it", ("mask", "drop")),
        ),
    ] = ()
    tool_calls: Annotated[
        ReasoningUse,
        _conversation(
            TEXT, "Let messages that call tools train, mask them, or drop tools, calls and answers from the text."
        ),
    ] = "train"
    template_args: Annotated[
        Mapping[str, Any] | str | None,
        _conversation(
            OBJECT,
            "Arguments of the chat template; those in a record's chat_template_kwargs come first.",
            default="none",
        ),
    ] = None
    template_date: Annotated[
        str | None,
        _conversation(
            TEXT,
            "Date for a chat template that asks for it, such as 2026-07-01.",
            metavar="DATE",
            default="none: such a template is refused",
        ),
    ] = None


_fim = partial(Option, group="Fill in the middle")
_with_fim = partial(_fim, needs=Needs("fim_rate", "give --fim-rate with it, such as 50%", code="option-not-taken"))


@dataclass(frozen=True, kw_only=True)
class FimOptions:
    """The options of filling in the middle, which `tokenize` takes."""

    fim_rate: Annotated[
        Fraction | float | str | None,
        _fim(
            SHARE,
            "Rearrange this share of the documents as prefix, suffix, middle.",
            default="none",
            only=Only(("texts",)),
        ),
    ] = None
    fim_spm_rate: Annotated[
        Fraction | float | str, _with_fim(SHARE, "Write this share of them suffix first.", default="50%")
    ] = Fraction(1, 2)
    fim_seed: Annotated[
        int,
        _with_fim(NUMBER, "Seed of which documents are rearranged, and where they are cut.", low=0, high=(1 << 63) - 1),
    ] = 42
    fim_tokens: Annotated[
        Sequence[str],
        _with_fim(
            NAMES,
            "Sentinels before prefix, suffix and middle, and after it, by text or id; only two are Codestral's form.",
            metavar="PRE,SUF[,MID[,END]]",
            default="the tokenizer's own, by their usual names",
        ),
    ] = ()
    fim_split: Annotated[
        str | None, _with_fim(TEXT, "Split at this separator and rearrange each part on its own.", metavar="SEPARATOR")
    ] = None


def _left_out(which: str, unit: str, kind: Kind = NUMBER, only: Only | None = None) -> Option:
    """Declare a limit of documents."""
    help = f"Leave out documents with {which}."
    return Option(kind, help, "Which documents", unit=unit, low=0, recorded=True, only=only)


_left_out_of_texts = partial(_left_out, only=Only(("texts", "conversations"), "give --min-tokens or --max-tokens"))


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
    output: OutputOption
    _: KW_ONLY
    tokenizer: TokenizerOption = None
    revision: Revision = None
    text_field: Annotated[
        str | None,
        _field(
            "Field or column with the text; a.b is the field b of an object a, and a[0] the first of a list. Several, "
            "such as title,body, are joined with a blank line.",
            default="text",
            excludes=Excludes(("ids_field", "conversations"), code="option-not-taken"),
        ),
    ] = None
    ids_field: Annotated[
        str | None,
        _field("Field or column with lists of token ids, to store as they are.", excludes=Excludes(("conversations",))),
    ] = None
    ids_only: Annotated[
        bool,
        Option(
            FLAG,
            "Take the ids alone where other fields say which train, which are padding, or where documents begin.",
            "Rarely needed",
            only=Only(("token ids",)),
        ),
    ] = False
    id_field: Annotated[str | None, _field("Field with the id of each document, to find it by.")] = None
    columns: Annotated[
        Sequence[str], Option(FIELDS, "Other scalar fields to keep with the tokens.", "Input", recorded=True)
    ] = ()
    format: FormatOption = None
    separator: Annotated[
        str | None,
        Option(
            TEXT,
            "Text between the documents of text files, which belongs to none; \\n is a newline, \\t a tab.",
            "Input",
            default="none: a text file is one document",
            recorded=True,
            only=Only(("texts",)),
        ),
    ] = None
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
    part: Annotated[
        str | None,
        Option(
            SHARD,
            "Take this part of the inputs, of N that jobs tokenize to a store each: K from 1 to N, such as 1/5. pack "
            "wants all of them.",
            "Input",
            default="all",
        ),
    ] = None
    eos_token: EosToken = None
    bos: Annotated[bool, Option(FLAG, "Begin every document with the BOS token.", "Tokens")] = False
    bos_token: Annotated[str | int | None, Option(TEXT_OR_ID, "BOS token, by text or id; implies --bos.", "Tokens")] = (
        None
    )
    special_tokens: Annotated[
        Literal["token", "text", "error"],
        Option(
            TEXT,
            "How to encode special tokens that appear in text: as tokens, or as plain text; error refuses the record.",
            "Tokens",
            recorded=True,
        ),
    ] = "token"
    min_words: Annotated[int | None, _left_out_of_texts("fewer words", "words")] = None
    min_chars: Annotated[int | None, _left_out_of_texts("fewer characters", "characters")] = None
    max_chars: Annotated[int | None, _left_out_of_texts("more characters", "characters")] = None
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
        Fraction | float | str | None,
        Option(
            LIMIT,
            "Fail if more records than this can't be used, or a larger share of all, such as 1%.",
            "Rarely needed",
            low=0,
            needs=Needs("on_error", "give --on-error=skip, or quarantine, with it", ("skip", "quarantine")),
        ),
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
            TEXT, "auto, tokenizers, gigatoken or fastokens; the output is the same.", "Rarely needed", metavar="NAME"
        ),
    ] = "auto"

    @property
    def names(self) -> list[str]:
        """The inputs by their names; a program's records take the place of standard input."""
        inputs = parse_inputs(self.inputs)
        return ["-"] if isinstance(inputs, Records) else list(map(str, inputs))

    @property
    def records(self) -> Iterable[Any] | None:
        """The records of a program; None if the inputs have names."""
        inputs = parse_inputs(self.inputs)
        return inputs.items if isinstance(inputs, Records) else None

    @property
    def most_errors(self) -> int | Fraction | None:
        """The records that may be unusable: their number, or their share."""
        return None if self.max_errors is None else parse_limit(self.max_errors)

    @property
    def record_bytes(self) -> int:
        """The largest record in bytes."""
        return parse_bytes(self.max_record_bytes, "--max-record-bytes")
