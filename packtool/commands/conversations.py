"""Resolve how `tokenize` renders conversations, from its options and the tokenizer's files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import msgspec
import xxhash

from packtool.conversations.chat import DEFAULT, WITH_TOOLS, Chat, special_tokens_of, templates_of
from packtool.conversations.record import ConversationError
from packtool.errors import DataError, UsageError
from packtool.installing import how_to_install
from packtool.options.check import given
from packtool.options.declare import declared, flag
from packtool.options.tokenize import ConversationOptions, TokenizeArguments
from packtool.storage.names import CHAT_TEMPLATES
from packtool.tokenizing.load import LoadedTokenizer

AUTO = "auto"


def check_conversations(options: TokenizeArguments, *, chats: bool) -> None:
    """Refuse options of conversations where there are none, and what makes no sense with them.

    Args:
        chats: the input holds conversations.

    Raises:
        UsageError: naming the option.
    """
    if not chats:
        for each in given(options, declared(ConversationOptions)):
            what, remedy = "has no effect on texts", "name the field of conversations with --conversations"
            raise UsageError("bad-option", what, remedy=remedy, where=each.flag)
        return
    template = "the chat template says what begins a conversation"
    against = (
        ("ids_field", options.ids_field is not None, "ids are no conversations", "leave one of the two out"),
        ("bos", options.bos or options.bos_token is not None, template, "leave it out"),
        (
            "special_tokens",
            options.special_tokens != "token",
            "conversations are made of special tokens, which their chat template writes as text",
            "leave it out",
        ),
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


def chat_of(options: TokenizeArguments, loaded: LoadedTokenizer) -> tuple[Chat, LoadedTokenizer]:
    """Settle how conversations become text; return that, and the tokenizer with the template among its files.

    Raises:
        UsageError: there is no template, or it is not one; jinja2 is not installed.
        DataError: the template can't be read.
    """
    try:
        from packtool.conversations.template import ChatTemplate
    except ImportError:
        remedy = f"{how_to_install('jinja2')}"
        raise UsageError(
            "missing-extra", "conversations need the package jinja2", remedy=remedy, where="--conversations"
        ) from None
    where = str(options.tokenizer or "the default tokenizer")
    date = _date(options.template_date)
    try:
        templates = templates_of(loaded.files)
        if options.chat_template is not None:
            where = str(options.chat_template)
            templates = {DEFAULT: templates.get(where) or _read(options.chat_template, templates)}
            kept = {name: data for name, data in loaded.files.items() if name not in CHAT_TEMPLATES}
            loaded = replace(loaded, files={**kept, CHAT_TEMPLATES[0]: templates[DEFAULT].encode()})
        if DEFAULT not in templates:
            known = f": there are {', '.join(sorted(templates))}" if templates else ""
            what = f"the tokenizer has no {'default ' * bool(templates)}chat template{known}"
            raise UsageError("no-chat-template", what, remedy="give one with --chat-template", where=where)
        used = {name: source for name, source in templates.items() if name in (DEFAULT, WITH_TOOLS)}
        tokens = special_tokens_of(loaded.files)
        for source in used.values():
            ChatTemplate(source, tokens, now=datetime.fromisoformat(date) if date else None)
    except ConversationError as error:
        remedy = "give another with --chat-template"
        raise UsageError("bad-chat-template", str(error), remedy=remedy, where=where) from None
    return (
        Chat(
            templates=tuple(sorted(used.items())),
            tokens=tuple(sorted(tokens.items())),
            special=loaded.special,
            train_on=options.train_on,
            reasoning=options.reasoning,
            tool_calls=options.tool_calls,
            date=date,
        ),
        loaded,
    )


def recorded_of(options: TokenizeArguments, chat: Chat) -> dict[str, str]:
    """Return what the manifest records about how conversations became text."""
    date = {"template_date": chat.date} if chat.date else {}
    return {
        "conversations": options.conversations or AUTO,
        "chat_template_xxh3_128": xxhash.xxh3_128_hexdigest(msgspec.json.encode(chat.templates)),
        "train_on": chat.train_on,
        "reasoning": chat.reasoning,
        "tool_calls": chat.tool_calls,
        **date,
    }


def _read(path: Path | str, templates: Mapping[str, str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise DataError(
            "bad-chat-template", "not valid UTF-8", remedy="give a Jinja template", where=str(path)
        ) from None
    except OSError as error:
        known = f", or one of {', '.join(sorted(templates))}" if templates else ""
        raise DataError(
            "missing-input",
            f"can't be read ({(error.strerror or str(error)).lower()})",
            remedy=f"give a file{known}",
            where=str(path),
        ) from None


def _date(given: str | None) -> str:
    if given is None:
        return ""
    try:
        return datetime.fromisoformat(given).isoformat()
    except ValueError:
        raise UsageError(
            "bad-option", f"{given!r} is no date", remedy="give one such as 2026-07-01", where="--template-date"
        ) from None
