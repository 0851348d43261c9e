"""The options of `tokenize`: check them, and find what they name before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packtool import __version__
from packtool.commands.conversations import AUTO, chat_of, check_conversations, recorded_of
from packtool.commands.inputs import find_files
from packtool.conversations.chat import Chat
from packtool.corpus.discover import STDIN
from packtool.corpus.filters import Filters
from packtool.corpus.first import begin_with_conversation, begins_with_conversation
from packtool.corpus.records import CorpusFile, Fields
from packtool.errors import UsageError
from packtool.options.check import given, refuse
from packtool.options.declare import flag, names_recorded
from packtool.options.tokenize import TokenizeArguments
from packtool.storage.claim import key_of
from packtool.tokenizing import findings, load
from packtool.tokenizing.encoder_choice import EncoderRecipe, settle


@dataclass(frozen=True)
class Source:
    """The input of a run, and how to tokenize it.

    Attributes:
        inputs: as they were named.
        found: the files of each; None for standard input.
        records: of a program, which are read once in place of standard input; None where it has none.
        fields, filters: what is read of a record, and which documents are left out.
        chat: how conversations become texts; None where documents are none.
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
    """Find the files, the tokenizer and the encoder that options stand for.

    Args:
        options: checked.
        records: of a program, in place of standard input; None where it has none.

    Raises:
        UsageError: options that make no sense, or do not fit together.
        DataError: a file or tokenizer is not there, or can't be read.
    """
    inputs = _inputs(options)
    filters = Filters(options.min_words, options.min_chars, options.max_chars, options.min_tokens, options.max_tokens)
    by_input = [
        None if each == STDIN else find_files(each, options.format, options.include, options.exclude) for each in inputs
    ]
    files = [file for each in by_input for file in each or ()]
    chats, records = _hold_conversations(options, files, records)
    check_conversations(options, chats=chats)
    kept = findings.directory()
    tokenizer = load.load(
        options.tokenizer,
        revision=options.revision,
        eos_token=options.eos_token,
        bos=options.bos,
        bos_token=options.bos_token,
        chats=chats,
        kept=kept,
    )
    size, as_text = sum(file.bytes for file in files), options.special_tokens == "text"
    encoder = settle(tokenizer, options.encoder, special_as_text=as_text, kept=kept, size=size)
    recorded = {name: getattr(options, name) for name in names_recorded(TokenizeArguments)}
    chat = None
    if chats:
        chat, tokenizer = chat_of(options, tokenizer)
        recorded |= recorded_of(options, chat)
    fields = _fields(options, chats=chats)
    return Source(inputs, by_input, records, fields, filters, chat, tokenizer, encoder, recorded)


def _inputs(options: TokenizeArguments) -> list[str]:
    return [str(each) for each in ([options.inputs] if isinstance(options.inputs, str | Path) else options.inputs)]


def check_options(options: TokenizeArguments, stream: str) -> None:
    """Check that options fit together.

    Args:
        stream: what is read in place of a file, for messages.

    Raises:
        UsageError: they make no sense, or do not fit together.
    """
    inputs = _inputs(options)
    if options.max_errors is not None and options.on_error == "fail":
        remedy = "give --on-error skip or quarantine with it"
        raise UsageError("bad-option", "has no effect while --on-error is fail", remedy=remedy, where="--max-errors")
    if options.ids_field is not None:
        for name in ("min_words", "min_chars", "max_chars"):
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
    if stdin and options.task is not None:
        remedy = "write it to a file first"
        raise UsageError("stdin-no-resume", f"{stream} can't be shared out", remedy=remedy, where="--task")
    if stdin and options.resume:
        remedy = "write it to a file first, or give --overwrite"
        raise UsageError("stdin-no-resume", f"{stream} can't be resumed", remedy=remedy, where="--resume")


def _hold_conversations(options: TokenizeArguments, files: Sequence[CorpusFile], records: Any) -> tuple[bool, Any]:
    """Tell whether the input holds conversations, as given or, where no field is, by its first record; return that,
    and a program's records."""
    if options.conversations is not None or options.ids_field is not None or given(options, ["text_field"]):
        return options.conversations is not None, records
    if records is not None:
        return begin_with_conversation(records, options.text_field)
    return begins_with_conversation(files, options.text_field), None


def _fields(options: TokenizeArguments, *, chats: bool) -> Fields:
    """List the fields of a record to read; of those to keep, the id comes first."""
    columns = dict.fromkeys([*([options.id_field] if options.id_field else []), *options.columns])
    text = options.ids_field or options.text_field
    if chats:
        text = options.conversations if options.conversations not in (None, AUTO) else ""
    return Fields(text, options.ids_field is not None, tuple(columns), options.id_field or "", chats)
