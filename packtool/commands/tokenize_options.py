"""The options of `tokenize`: check them, and find the files, tokenizer and encoder that they name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from packtool.errors import UsageError
from packtool.options.check import check_input, given
from packtool.options.record import as_recorded, recorded
from packtool.options.tokenize import TokenizeArguments
from packtool.outputs.claim import key_of
from packtool.support.version import __version__
from packtool.text.conversations.choose import AUTO, check_conversations, choose_chat, with_template
from packtool.text.corpus.discover import STDIN
from packtool.text.corpus.filters import OF_TEXTS, OF_TOKENS, Filters
from packtool.text.corpus.find import find_files
from packtool.text.corpus.first import begins_with_conversation, peek_for_conversation
from packtool.text.corpus.records import CorpusFile, Fields
from packtool.text.encoding import load
from packtool.text.encoding.encoder_choice import choose
from packtool.text.tokenizing.block import Settings
from packtool.text.tokenizing.fim import choose_fim


@dataclass(frozen=True)
class Source:
    """The input of a run, and how to tokenize it.

    Attributes:
        inputs: as they were named.
        found: the files of each; None for standard input.
        records: of a program, which are read once in place of standard input; None where it has none.
        tokenizer: with its files.
        settings: of the tasks.
        recorded: options, as the manifest has them.
    """

    inputs: Sequence[str]
    found: Sequence[Sequence[CorpusFile] | None]
    records: Any
    tokenizer: load.LoadedTokenizer
    settings: Settings
    recorded: dict[str, Any]

    @property
    def files(self) -> list[CorpusFile]:
        """List the files that were found."""
        return [file for files in self.found for file in files or ()]

    @property
    def locations(self) -> list[str]:
        """List the inputs as named, and the files they resolve to, links followed."""
        return [location for location in (*self.inputs, *(file.location for file in self.files)) if location != STDIN]

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
    inputs = [str(path) for path in ([options.inputs] if isinstance(options.inputs, str | Path) else options.inputs)]
    _check_inputs(options, inputs, "standard input" if records is None else "a stream of records")
    by_input = [
        None if path == STDIN else find_files(path, options.format, options.include, options.exclude) for path in inputs
    ]
    files = [file for found in by_input for file in found or ()]
    chats, records = _hold_conversations(options, files, records)
    check_input(options, "conversations" if chats else "texts" if options.ids_field is None else "token ids")
    if chats:
        check_conversations(options)
    tokenizer = load.load(
        options.tokenizer,
        revision=options.revision,
        eos_token=options.eos_token,
        bos=options.bos,
        bos_token=options.bos_token,
        chats=chats,
    )
    as_text = options.special_tokens == "text"
    recipe = choose(tokenizer.found, options.encoder, special_as_text=as_text and not chats)
    chat, described = None, {}
    if chats:
        found = tokenizer.found
        added = [token["content"] for token in found.spec.get("added_tokens") or ()]
        chat = choose_chat(options, found.files, added, tokenizer.special, found.where)
        if options.chat_template is not None:
            tokenizer = replace(tokenizer, found=replace(found, files=with_template(found.files, chat)))
        described = chat.recorded(options.conversations or AUTO)
    fim = choose_fim(options, tokenizer.found)
    if fim is not None:
        described = fim.recorded()
    limits = {name: getattr(options, name) for name in (*OF_TEXTS, *OF_TOKENS)}
    settings = Settings(
        tokenizer=tokenizer.info,
        recipe=recipe,
        fields=_fields(options, chats=chats),
        filters=Filters({name: limit for name, limit in limits.items() if limit is not None}),
        on_error=options.on_error,
        max_errors=options.max_errors,
        max_record_bytes=options.record_bytes,
        provenance=options.provenance,
        special_ids=() if as_text or options.ids_field is not None else _special_ids(tokenizer),
        chat=chat,
        fim=fim,
    )
    return Source(inputs, by_input, records, tokenizer, settings, recorded(options) | as_recorded(described))


def _special_ids(tokenizer: load.LoadedTokenizer) -> tuple[int, ...]:
    """List the ids of the special tokens that texts may spell, ascending."""
    known = tokenizer.info.added_tokens
    return tuple(sorted({known[text] for text in tokenizer.special if text in known}))


def _check_inputs(options: TokenizeArguments, inputs: Sequence[str], stream: str) -> None:
    """Check that there is an input; `stream` is what messages call the standard input."""
    if not inputs:
        remedy = "name files, directories, globs or URLs, or - for standard input"
        raise UsageError("no-input", "no input is given", remedy=remedy)
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
        text = options.conversations if options.conversations not in (None, AUTO) else ""
    return Fields(text, options.ids_field is not None, tuple(columns), options.id_field or "", chats)
