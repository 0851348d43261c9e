"""Load the tokenizer of a run, and settle all that depends on it: EOS and BOS, encoder, chat template, sentinels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from packtool.formats.names import TOKENIZER
from packtool.formats.schema import TokenizerInfo
from packtool.options.declare import Input
from packtool.options.tokenize import TokenizeArguments
from packtool.text.conversations.chat import Chat
from packtool.text.encoding.added import with_special
from packtool.text.encoding.alphabet import Alphabet, alphabet_of, warn_of_gaps
from packtool.text.encoding.encoder_choice import choose_encoder
from packtool.text.encoding.encoders import EncoderRecipe
from packtool.text.encoding.load import find_tokenizer, info_of
from packtool.text.tokenizing.fim import FillInTheMiddle, choose_fim
from packtool.warnings import warn


@dataclass(frozen=True)
class Tokenizer:
    """A tokenizer, and how documents become ids with it."""

    files: Mapping[str, bytes]  # files that the store keeps, by name: tokenizer.json, configuration, template
    data: bytes  # the tokenizer.json that encodes
    info: TokenizerInfo  # what the manifest records: EOS and BOS among it
    special: tuple[str, ...]  # texts of its special tokens, ascending
    encoder: EncoderRecipe  # encoder that encodes, and why
    chat: Chat | None  # how conversations become texts; None if documents are no conversations
    fim: FillInTheMiddle | None  # how texts are rearranged to fill in the middle; None if they are not
    alphabet: Alphabet  # characters that it has tokens for


def load(options: TokenizeArguments, kind: Input, text_bytes: int | None = None) -> Tokenizer:
    """Load the tokenizer that the options name, for this kind of input.

    Args:
        text_bytes: the most that there is to encode; None if that is not known.

    Raises:
        UsageError: no EOS or BOS is known, or a token that is named is not in the vocabulary; there is no chat
            template; an encoder can't be used.
        DataError: no such tokenizer, or a file of it can't be read.
    """
    chats = kind == "conversations"
    if chats:
        # What conversations need takes a while to load, and texts need none of it.
        from packtool.text.conversations.choose import check_conversations, choose_chat, with_template

        check_conversations(options)
    found = find_tokenizer(options.tokenizer, options.revision)
    info = info_of(found, eos_token=options.eos_token, bos=options.bos, bos_token=options.bos_token, chats=chats)
    # Of a conversation, what the template writes is encoded as special tokens in any case; `chat` tells what a message
    # spells from it.
    as_text = options.special_tokens == "text" and not chats
    special = tuple(sorted({*found.special, info.eos_token} & {*found.added}))
    if options.special_tokens == "token" and any(
        config.get("split_special_tokens") is True for config in found.configs
    ):
        what = "its configuration asks for split_special_tokens, which is not done by itself"
        remedy = "give --special-tokens=text to encode special tokens in texts as plain text"
        warn("tokenizer-options", what, remedy=remedy, where=found.where)
    encodes = found
    if as_text:  # encoders know special tokens by the file alone
        encodes = replace(found, files={**found.files, TOKENIZER: with_special(found.data, special)})
    encoder = choose_encoder(encodes, options.encoder, special_as_text=as_text, text_bytes=text_bytes)
    files, chat = found.files, None
    if chats:
        stops = found.stops(info.eos_token)
        chat = choose_chat(options, found.files, found.added, special, stops, found.where)
        if options.chat_template is not None:
            files = with_template(found.files, chat)
    alphabet = alphabet_of(found.spec, found.vocab)
    if kind != "token ids":
        warn_of_gaps(alphabet, found.where)
    return Tokenizer(files, encodes.data, info, special, encoder, chat, choose_fim(options, found), alphabet)
