"""The options of `tokenize`: check them, and find what they name before anything is written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import xxhash

from packtool.commands.inputs import find_files
from packtool.errors import DataError, UsageError
from packtool.formats.names import CHAT_TEMPLATES
from packtool.options.check import given, refuse
from packtool.options.declare import declared, flag
from packtool.options.kinds import parse_share
from packtool.options.record import recorded
from packtool.options.tokenize import ConversationOptions, FimOptions, TokenizeArguments
from packtool.outputs.claim import key_of
from packtool.support.installing import how_to_install
from packtool.support.version import __version__
from packtool.text.conversations.chat import DEFAULT, WITH_TOOLS, Chat, special_tokens_of, templates_of
from packtool.text.conversations.record import ConversationError, template_arguments
from packtool.text.corpus.discover import STDIN
from packtool.text.corpus.filters import OF_TEXTS, OF_TOKENS, Filters
from packtool.text.corpus.first import begins_with_conversation, peek_for_conversation
from packtool.text.corpus.records import CorpusFile, Fields
from packtool.text.encoding import load
from packtool.text.encoding.encoder_choice import choose
from packtool.text.encoding.encoders import EncoderRecipe
from packtool.text.encoding.families import marks_beginnings
from packtool.text.encoding.special import named as named_token
from packtool.text.encoding.special import sentinels
from packtool.text.tokenizing.fim import FillInTheMiddle

_AUTO = "auto"
"""The field of conversations, where it is one of the usual names."""


@dataclass(frozen=True)
class Source:
    """The input of a run, and how to tokenize it.

    Attributes:
        inputs: as they were named.
        found: the files of each; None for standard input.
        records: of a program, which are read once in place of standard input; None where it has none.
        fields, filters: what is read of a record, and which documents are left out.
        chat: how conversations become texts; None where documents are none.
        fim: how texts are rearranged to fill in the middle; None where they are not.
        tokenizer: with its EOS.
        encoder: the best there is for it.
        recorded: options, as the manifest has them.
    """

    inputs: Sequence[str]
    found: Sequence[Sequence[CorpusFile] | None]
    records: Any
    fields: Fields
    filters: Filters
    chat: Chat | None
    fim: FillInTheMiddle | None
    tokenizer: load.LoadedTokenizer
    encoder: EncoderRecipe
    recorded: dict[str, Any]

    @property
    def files(self) -> list[CorpusFile]:
        """List the files that were found."""
        return [file for files in self.found for file in files or ()]

    @property
    def locations(self) -> list[str]:
        """List the inputs as named, and the files they resolve to, links followed."""
        return [each for each in (*self.inputs, *(file.location for file in self.files)) if each != STDIN]

    @property
    def key(self) -> str:
        """Return a digest of everything that determines the output."""
        known = [
            None if files is None else [(file.name, file.bytes, file.modified) for file in files]
            for files in self.found
        ]
        return key_of(__version__, self.recorded, self.tokenizer.info, known)


def resolve(options: TokenizeArguments, records: Any) -> Source:
    """Check options, and find the files, the tokenizer and the encoder that they stand for.

    Args:
        records: of a program, in place of standard input; None where it has none.

    Raises:
        UsageError: options that make no sense, or do not fit together.
        DataError: a file or tokenizer is not there, or can't be read.
    """
    inputs = [str(each) for each in ([options.inputs] if isinstance(options.inputs, str | Path) else options.inputs)]
    _check_options(options, inputs, "standard input" if records is None else "what a program yields")
    limits = {name: getattr(options, name) for name in (*OF_TEXTS, *OF_TOKENS)}
    filters = Filters({name: limit for name, limit in limits.items() if limit is not None})
    by_input = [
        None if each == STDIN else find_files(each, options.format, options.include, options.exclude) for each in inputs
    ]
    files = [file for each in by_input for file in each or ()]
    chats, records = _hold_conversations(options, files, records)
    _check_conversations(options, chats=chats)
    _check_fim(options, chats=chats)
    tokenizer = load.load(
        options.tokenizer,
        revision=options.revision,
        eos_token=options.eos_token,
        bos=options.bos,
        bos_token=options.bos_token,
        chats=chats,
    )
    encoder = choose(tokenizer.found, options.encoder, special_as_text=options.special_tokens == "text" and not chats)
    described = recorded(options)
    chat = None
    if chats:
        chat, tokenizer = _chat_of(options, tokenizer)
        described |= _recorded_of(options, chat)
    fim = _fim_of(options, tokenizer.found)
    if fim is not None:
        described |= _recorded_fim(fim)
    fields = _fields(options, chats=chats)
    return Source(inputs, by_input, records, fields, filters, chat, fim, tokenizer, encoder, described)


def _check_options(options: TokenizeArguments, inputs: Sequence[str], stream: str) -> None:
    """Check that options fit together; `stream` is what messages call the standard input."""
    if options.max_errors is not None and options.on_error == "fail":
        remedy = "give --on-error skip or quarantine with it"
        raise UsageError("bad-option", "has no effect while --on-error is fail", remedy=remedy, where="--max-errors")
    if options.ids_field is not None:
        for name in OF_TEXTS:
            if getattr(options, name) is not None:
                what, remedy = "has no effect on token ids", "give --min-tokens or --max-tokens"
                raise UsageError("bad-option", what, remedy=remedy, where=flag(name))
    for each in given(options, ["ids_field", "conversations"]):
        refuse(options, ["text_field"], f"has no effect beside {each.flag}", "leave one of the two out")
    for name in ("id_field", "ids_field", "text_field", "columns", "conversations"):
        named = getattr(options, name)
        if "" in (named if name == "columns" else [named]):
            raise UsageError("bad-option", "an empty name", remedy="give the name of a field", where=flag(name))
    if not inputs:
        remedy = "name files, directories, globs or URLs, or - for standard input"
        raise UsageError("no-input", "no input is named", remedy=remedy)
    stdin = inputs.count(STDIN)
    if stdin > 1:
        raise UsageError("stdin-twice", "standard input is named twice", remedy="name it once", where=STDIN)
    if stdin and options.resume:
        remedy = "write it to a file first, or give --overwrite"
        raise UsageError("stdin-no-resume", f"{stream} can't be resumed", remedy=remedy, where="--resume")


def _hold_conversations(options: TokenizeArguments, files: Sequence[CorpusFile], records: Any) -> tuple[bool, Any]:
    """Return whether the input holds conversations, by its first record if no field is named; and all records."""
    if options.conversations is not None or options.ids_field is not None or given(options, ["text_field"]):
        return options.conversations is not None, records
    if records is not None:
        return peek_for_conversation(records, options.text_field)
    return begins_with_conversation(files, options.text_field), None


def _fields(options: TokenizeArguments, *, chats: bool) -> Fields:
    """List the fields of a record to read; of those to keep, the id comes first."""
    columns = dict.fromkeys([*([options.id_field] if options.id_field else []), *options.columns])
    text = options.ids_field or options.text_field
    if chats:
        text = options.conversations if options.conversations not in (None, _AUTO) else ""
    return Fields(text, options.ids_field is not None, tuple(columns), options.id_field or "", chats)


def _check_conversations(options: TokenizeArguments, *, chats: bool) -> None:
    """Refuse options of conversations where the input holds none, and options that make no sense with `chats`."""
    if not chats:
        for each in given(options, declared(ConversationOptions)):
            what, remedy = "has no effect on texts", "name the field of conversations with --conversations"
            raise UsageError("bad-option", what, remedy=remedy, where=each.flag)
        return
    template = "the chat template says what begins a conversation"
    against = (
        ("ids_field", options.ids_field is not None, "token ids cannot be conversations", "leave one of the two out"),
        ("bos", options.bos or options.bos_token is not None, template, "leave it out"),
        (
            "reasoning",
            options.train_on == "all" and "mask" in (options.reasoning, options.tool_calls),
            "nothing is masked with --train-on all",
            "give --train-on assistant",
        ),
    )
    for name, wrong, what, remedy in against:
        if wrong:
            raise UsageError("bad-option", what, remedy=remedy, where=flag(name))


def _chat_of(options: TokenizeArguments, loaded: load.LoadedTokenizer) -> tuple[Chat, load.LoadedTokenizer]:
    """Settle how conversations become text; return that, and the tokenizer with the template among its files.

    Raises:
        UsageError: there is no template, or it is not one; jinja2 is not installed.
        DataError: the template can't be read.
    """
    try:
        from packtool.text.conversations.template import ChatTemplate, literals
    except ImportError:
        what, remedy = "conversations need jinja2, which packtool[chat] brings", how_to_install("jinja2")
        raise UsageError("missing-extra", what, remedy=remedy, where="--conversations") from None
    where = str(options.tokenizer or "the default tokenizer")
    date = _date(options.template_date)
    arguments = _arguments(options.template_args)
    try:
        templates = templates_of(loaded.found.files)
        if options.chat_template is not None:
            where = str(options.chat_template)
            templates = {DEFAULT: templates.get(where) or _read(options.chat_template, templates)}
            kept = {name: data for name, data in loaded.found.files.items() if name not in CHAT_TEMPLATES}
            files = {**kept, CHAT_TEMPLATES[0]: templates[DEFAULT].encode()}
            loaded = replace(loaded, found=replace(loaded.found, files=files))
        if DEFAULT not in templates:
            known = f": there are {', '.join(sorted(templates))}" if templates else ""
            what = f"the tokenizer has no {'default ' * bool(templates)}chat template{known}"
            raise UsageError("no-chat-template", what, remedy="give one with --chat-template", where=where)
        used = {name: source for name, source in templates.items() if name in (DEFAULT, WITH_TOOLS)}
        tokens = special_tokens_of(loaded.found.files)
        for source in used.values():
            ChatTemplate(source, tokens, now=datetime.fromisoformat(date) if date else None)
        written = "\0".join(map(literals, used.values()))
        added = loaded.found.spec.get("added_tokens") or ()
        control = {each["content"] for each in added if each["content"] in written and not each["content"].isspace()}
    except ConversationError as error:
        remedy = "give another with --chat-template"
        raise UsageError("bad-chat-template", str(error), remedy=remedy, where=where) from None
    return (
        Chat(
            templates=tuple(sorted(used.items())),
            tokens=tuple(sorted(tokens.items())),
            special=loaded.special,
            control=tuple(sorted({*loaded.special, *control})),
            as_text=options.special_tokens == "text",
            arguments=json.dumps(arguments, sort_keys=True),
            train_on=options.train_on,
            reasoning=options.reasoning,
            tool_calls=options.tool_calls,
            date=date,
        ),
        loaded,
    )


def _check_fim(options: TokenizeArguments, *, chats: bool) -> None:
    """Refuse to fill in the middle of what is no text, and its options where it is not asked for."""
    if options.fim_rate is None:
        remedy = "give --fim-rate with it, such as 50%"
        refuse(options, declared(FimOptions), "has no effect without --fim-rate", remedy)
    elif chats or options.ids_field is not None:
        what = f"{'conversations' if chats else 'token ids'} are not rearranged"
        raise UsageError("bad-option", what, remedy="leave it out", where="--fim-rate")
    if options.fim_split == "":
        raise UsageError("bad-option", "an empty separator", remedy="give a text", where="--fim-split")


def _fim_of(options: TokenizeArguments, tokenizer: load.FoundTokenizer) -> FillInTheMiddle | None:
    """Settle how texts are rearranged to fill in the middle; None if they are not.

    Raises:
        UsageError: the tokenizer has no sentinels, or not those that are named.
    """
    if options.fim_rate is None:
        return None
    wanted = options.fim_tokens or sentinels(tokenizer.vocab)
    if wanted is None:
        what, remedy = "the tokenizer has no known sentinels to fill in the middle", "name three of its tokens"
        raise UsageError("no-sentinels", what, remedy=f"{remedy} with --fim-tokens PRE,SUF,MID", where="--fim-rate")
    named = [named_token("--fim-tokens", each, tokenizer.vocab) for each in wanted]
    if len(named) != 3 or len(set(named)) < 3:
        what, remedy = "three different tokens are needed", "name those of prefix, suffix and middle"
        raise UsageError("bad-option", what, remedy=remedy, where="--fim-tokens")
    (before, before_text), (after, after_text), (middle, middle_text) = named
    return FillInTheMiddle(
        rate=parse_share(options.fim_rate),
        spm_rate=parse_share(options.fim_spm_rate),
        seed=options.fim_seed,
        texts=(before_text, after_text, middle_text),
        ids=(before, after, middle),
        split=options.fim_split or "",
        joined=marks_beginnings(tokenizer.spec),
    )


def _recorded_fim(fim: FillInTheMiddle) -> dict[str, Any]:
    """Return what the manifest records about how texts were rearranged."""
    return {
        "fim_rate": str(fim.rate),
        "fim_spm_rate": str(fim.spm_rate),
        "fim_seed": fim.seed,
        "fim_tokens": list(fim.texts),
        **({"fim_split": fim.split} if fim.split else {}),
    }


def _recorded_of(options: TokenizeArguments, chat: Chat) -> dict[str, Any]:
    """Return what the manifest records about how conversations became text."""
    return {
        "conversations": options.conversations or _AUTO,
        "chat_template_xxh3_128": xxhash.xxh3_128_hexdigest(msgspec.json.encode(chat.templates)),
        "train_on": chat.train_on,
        "reasoning": chat.reasoning,
        "tool_calls": chat.tool_calls,
        **({"template_args": json.loads(chat.arguments)} if chat.arguments != "{}" else {}),
        **({"template_date": chat.date} if chat.date else {}),
    }


def _read(path: Path | str, templates: Mapping[str, str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        what, remedy = "not valid UTF-8", "give a Jinja template"
        raise DataError("bad-chat-template", what, remedy=remedy, where=str(path)) from None
    except OSError as error:
        what = f"can't be read ({(error.strerror or str(error)).lower()})"
        remedy = f"give a file, or one of {', '.join(sorted(templates))}" if templates else "give a file"
        raise DataError("missing-input", what, remedy=remedy, where=str(path)) from None


def _arguments(given: Any) -> dict[str, Any]:
    try:
        return template_arguments(given, "it")
    except ConversationError as error:
        remedy = "leave it out"
        raise UsageError("bad-option", str(error), remedy=remedy, where="--template-args") from None


def _date(given: str | None) -> str:
    if given is None:
        return ""
    try:
        return datetime.fromisoformat(given).isoformat()
    except ValueError:
        what, remedy = f"{given!r} is not a date", "give one such as 2026-07-01"
        raise UsageError("bad-option", what, remedy=remedy, where="--template-date") from None
