"""The recipe of a token store: all that its bytes depend on but the texts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from packtool.errors import UsageError
from packtool.formats.schema import StorePart, TokenizerInfo
from packtool.options.record import as_recorded, recorded
from packtool.options.tokenize import TEXT_FIELD, TokenizeArguments
from packtool.outputs.claim import key_of
from packtool.text.conversations.chat import Chat
from packtool.text.corpus.filters import OF_TEXTS, OF_TOKENS, Filters
from packtool.text.corpus.find import Texts
from packtool.text.corpus.records import Fields
from packtool.text.encoding.alphabet import Alphabet
from packtool.text.tokenizing.fim import FillInTheMiddle
from packtool.text.tokenizing.tokenizer import Tokenizer


class StoreRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """How to make a token store."""

    options: dict[str, Any]  # options as the manifest has them
    tokenizer: TokenizerInfo  # the tokenizer with its EOS, as the manifest has it
    fields: Fields  # what is read of a record
    filters: Filters  # which documents are left out
    on_error: str  # fail, skip or quarantine
    max_record_bytes: int  # limit of a record, uncompressed
    provenance: bool  # keep where documents came from
    special_ids: tuple[int, ...]  # ids of special tokens to count in texts, ascending; not of the unknown
    refused: tuple[str, ...]  # texts of the special tokens that no text may spell; empty if texts may
    alphabet: Alphabet | None  # the characters that the tokenizer has tokens for; None for token ids
    chat: Chat | None  # how conversations become texts; None if documents are no conversations
    fim: FillInTheMiddle | None  # how texts are rearranged to fill in the middle; None if they are not
    part: StorePart | None  # which part of the inputs is read; None for all
    key: str  # digest of all that the store follows from; a run resumes work of the same key

    @classmethod
    def of(cls, options: TokenizeArguments, texts: Texts, tokenizer: Tokenizer) -> StoreRecipe:
        """Return the recipe that options, input and tokenizer make together."""
        if texts.kind != "conversations":  # stores of token ids have the default, too, as they always had
            options = replace(options, text_field=options.text_field or TEXT_FIELD)
        written = recorded(options)
        if options.ids_only:
            written["ids_only"] = True
        if tokenizer.chat is not None:
            written |= as_recorded(tokenizer.chat.recorded())
        if texts.fields.layout is not None:
            written |= as_recorded(texts.fields.layout.options())
        if tokenizer.fim is not None:
            written |= as_recorded(tokenizer.fim.recorded())
        if texts.read_fields.read:
            written |= texts.read_fields.recorded()
        part = None
        if options.part is not None:
            if texts.once:
                what = "standard input, a pipe, or what a program gives, can't be divided"
                raise UsageError("bad-option", what, remedy="write it to a file first", where="--part")
            # What was divided: parts of other inputs or options do not make one store together.
            divided = key_of(written, tokenizer.info, [(file.name, file.bytes) for file in texts.files])
            number, parts = map(int, options.part.split("/"))
            part = StorePart(number, parts, divided)
            written |= {"part": str(part), "divided": divided}
        limits = {}
        for name in (*OF_TEXTS, *OF_TOKENS):
            limit = getattr(options, name)
            if limit is not None:
                limits[name] = limit
        special_ids: tuple[int, ...] = ()
        if options.special_tokens == "token" and texts.kind != "token ids":
            special_ids = _special_ids(tokenizer)
        refused: tuple[str, ...] = ()
        if options.special_tokens == "error":
            refused = tokenizer.special
        return cls(
            options=written,
            tokenizer=tokenizer.info,
            fields=texts.fields,
            filters=Filters(limits),
            on_error=options.on_error,
            max_record_bytes=options.record_bytes,
            provenance=options.provenance,
            special_ids=special_ids,
            refused=refused,
            alphabet=None if texts.kind == "token ids" else tokenizer.alphabet,
            chat=tokenizer.chat,
            fim=tokenizer.fim,
            part=part,
            # Of names, sizes and times of the files only the digest: the recipe goes to every worker.
            key=key_of(written, tokenizer.info, texts.stamps),
        )


def _special_ids(tokenizer: Tokenizer) -> tuple[int, ...]:
    """List the ids of the special tokens that texts may spell, ascending."""
    ids = tokenizer.info.added_tokens
    numbers: set[int] = set()
    for text in tokenizer.special:
        if text in ids:
            numbers.add(ids[text])
    return tuple(sorted(numbers - {tokenizer.alphabet.unknown}))
