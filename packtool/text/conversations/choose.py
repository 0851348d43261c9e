"""Choose how conversations become text: by the options, and by the template among a tokenizer's files."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from packtool.errors import DataError, UsageError
from packtool.formats.names import CHAT_TEMPLATES
from packtool.options.tokenize import TokenizeArguments
from packtool.support.installing import how_to_install
from packtool.text.conversations.chat import DEFAULT, WITH_TOOLS, Chat, special_tokens_of, templates_of
from packtool.text.conversations.reasoning import THINK
from packtool.text.conversations.record import template_arguments
from packtool.text.faults import Fault


def check_conversations(options: TokenizeArguments) -> None:
    """Refuse options that make no sense with conversations.

    Raises:
        UsageError: naming the option.
    """
    if options.bos or options.bos_token is not None:
        what = "the chat template says what begins a conversation"
        raise UsageError("bad-option", what, remedy="leave it out", where="--bos")
    if options.train_on == "all" and "mask" in (options.reasoning, options.tool_calls):
        what, remedy = "nothing is masked with --train-on=all", "give --train-on=assistant"
        raise UsageError("bad-option", what, remedy=remedy, where="--reasoning")


def choose_chat(
    options: TokenizeArguments,
    files: Mapping[str, bytes],
    added: Collection[str],
    special: Collection[str],
    stops: tuple[str, ...],
    where: str,
) -> Chat:
    """Choose how conversations become text.

    Args:
        files: files of the tokenizer, by name.
        added: texts of its added tokens.
        special: texts of its special tokens.
        stops: texts of the tokens that generation stops at, the EOS of the store first.
        where: location of the tokenizer, for messages.

    Raises:
        UsageError: there is no template, or an invalid one; jinja2 is not installed.
        DataError: the template can't be read.
    """
    try:
        from packtool.text.conversations.template import ChatTemplate, literals
    except ImportError:
        what, remedy = "conversations need jinja2, which packtool[chat] brings", how_to_install("jinja2")
        raise UsageError("missing-extra", what, remedy=remedy, where="--conversations") from None
    date, arguments = _date(options.template_date), _arguments(options.template_args)
    try:
        templates = templates_of(files)
        if options.chat_template is not None:
            where = str(options.chat_template)
            # The name of one of the tokenizer's templates, or a file.
            templates = {DEFAULT: templates.get(where) or _read(options.chat_template, templates)}
        if DEFAULT not in templates:
            raise _no_default(templates, where)
        used = {name: source for name, source in templates.items() if name in (DEFAULT, WITH_TOOLS)}
        tokens = special_tokens_of(files)
        now = datetime.fromisoformat(date) if date else None
        ChatTemplate(used[DEFAULT], tokens, now=now)  # raises if it is invalid
        written = literals(used[DEFAULT])
        with suppress(Fault):  # a fault of this template matters only if a conversation has tools
            written += f"\0{literals(used.get(WITH_TOOLS, ''))}"
    except Fault as error:
        remedy = "give another with --chat-template"
        raise UsageError("bad-chat-template", str(error), remedy=remedy, where=where) from None
    # An added token that the template writes has a meaning in conversations, such as the end of a turn.
    control = {text for text in added if text in written and not text.isspace()}
    return Chat(
        templates=tuple(sorted(used.items())),
        tokens=tuple(sorted(tokens.items())),
        special=tuple(sorted(special)),
        control=tuple(sorted({*special, *control})),
        stops=stops,
        as_text=options.special_tokens == "text",
        arguments=json.dumps(arguments, sort_keys=True),
        train_on=options.train_on,
        reasoning=options.reasoning,
        tool_calls=options.tool_calls,
        tags=_tags(options.reasoning_tags),
        date=date,
    )


def with_template(files: Mapping[str, bytes], chat: Chat) -> dict[str, bytes]:
    """Return a tokenizer's files, by name, with the default template of a chat in place of their own."""
    kept = {name: data for name, data in files.items() if name not in CHAT_TEMPLATES}
    return {**kept, CHAT_TEMPLATES[0]: dict(chat.templates)[DEFAULT].encode()}


def _tags(pairs: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of tags of reasoning: `THINK`, then the named pairs, without repetitions."""
    tags = [THINK]
    for pair in pairs:
        opening, _, closing = pair.partition(",")
        tags.append((opening, closing))
    return tuple(dict.fromkeys(tags))


def _no_default(templates: Mapping[str, str], where: str) -> UsageError:
    known = f": there are {', '.join(sorted(templates))}" if templates else ""
    what = f"the tokenizer has no {'default ' * bool(templates)}chat template{known}"
    remedy = "give the model's own --tokenizer, whose files have one, or else --chat-template=FILE"
    if templates:
        remedy = "give the name of one: --chat-template=NAME"
    return UsageError("no-chat-template", what, remedy=remedy, where=where)


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
    except Fault as error:
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
