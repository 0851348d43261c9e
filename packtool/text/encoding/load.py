"""Find the tokenizer.json that was asked for, and the tokens that begin and end every document."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from packtool.errors import DataError
from packtool.formats.made_by import default_tokenizer
from packtool.formats.names import CHAT_TEMPLATES, GENERATION_CONFIG, MORE_TEMPLATES, TOKENIZER, TOKENIZER_CONFIGS
from packtool.formats.schema import TokenizerInfo
from packtool.support.decoding import from_json
from packtool.support.sizes import plural
from packtool.text.encoding.added import (
    ADDED_TOKENS,
    added_tokens,
    moved_tokens,
    named_ids,
    named_special,
    with_added_tokens,
)
from packtool.text.encoding.encoders import shared_reference
from packtool.text.encoding.spec import not_applied, parse
from packtool.text.encoding.special import ENDS_OF_TURNS, doubtful_eos, marked, special
from packtool.warnings import warn

_BESIDE = (*TOKENIZER_CONFIGS, *CHAT_TEMPLATES, GENERATION_CONFIG, ADDED_TOKENS)
"""Files that may lie next to a tokenizer.json."""


@dataclass(frozen=True)
class FoundTokenizer:
    """A tokenizer.json and the files next to it, parsed when they are needed."""

    files: dict[str, bytes]  # files by name, as they are: the tokenizer.json and its configuration, most telling first
    where: str  # location of the files, for messages
    named_in: str = ""  # name of the file with the ids of its added tokens
    named: Mapping[str, int] = field(default_factory=dict)  # these ids, by text

    @property
    def data(self) -> bytes:
        """The bytes of the tokenizer.json."""
        return self.files[TOKENIZER]

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The tokenizer.json, parsed; without merges."""
        try:
            return parse(self.data)
        except ValueError as error:
            raise self._bad(f"not a tokenizer.json ({error})") from None

    @property
    def added(self) -> list[str]:
        """The texts of its added tokens, as the file lists them."""
        return [token["content"] for token in self.spec.get("added_tokens") or ()]

    @property
    def special(self) -> tuple[str, ...]:
        """The texts of its special tokens, ascending: also of added tokens that are special by their role in its
        configuration alone, as Command R+ has its EOS."""
        named = named_special(self.configs).intersection(self.added)
        return tuple(sorted(marked(self.spec) | named))

    @cached_property
    def vocab(self) -> dict[str, int]:
        """The ids of all tokens; added tokens have the ids that `tokenizers` gives them, whatever ids the file has."""
        vocab, added = self.spec["model"].get("vocab"), self.spec.get("added_tokens") or ()
        if isinstance(vocab, list) and self.spec["model"]["type"] == "Unigram":  # [token, score] pairs in id order
            vocab = {pair[0]: number for number, pair in enumerate(vocab)}
        if not isinstance(vocab, dict):
            raise self._bad("its model has no vocabulary")
        ids = _with_added(vocab, added)
        if ids is None:
            number_of = shared_reference(self.data).token_to_id
            added_ids = {token["content"]: number_of(token["content"]) for token in added}
            ids = vocab | {text: number for text, number in added_ids.items() if number is not None}
        if not ids:
            raise self._bad("its vocabulary is empty")
        return ids

    @cached_property
    def vocab_size(self) -> int:
        """One more than the largest id."""
        return 1 + max(self.vocab.values())

    @cached_property
    def configs(self) -> list[Mapping[str, Any]]:
        """The parsed configuration files, most telling first."""
        return [self._parsed(name) for name in TOKENIZER_CONFIGS if name in self.files]

    def stops(self, eos: str) -> tuple[str, ...]:
        """Return the texts of the tokens that generation stops at: `eos`, then the tokens in generation_config.json.

        Raises:
            DataError: the file is not JSON, or names what is no token.
        """
        named = None
        if GENERATION_CONFIG in self.files:
            named = self._parsed(GENERATION_CONFIG).get("eos_token_id")
        texts = {number: text for text, number in self.vocab.items()}
        stops = [eos]
        for number in named if isinstance(named, list) else [named]:
            if type(number) is int and number in texts:
                stops.append(texts[number])
            elif number is not None:
                raise self._bad_config(GENERATION_CONFIG, f"eos_token_id is {number!r}, which is no token")
        return tuple(dict.fromkeys(stops))

    def _parsed(self, name: str) -> dict[str, Any]:
        try:
            return from_json(self.files[name], dict[str, Any])
        except ValueError as error:
            raise self._bad_config(name, f"not valid JSON ({error})") from None

    def _bad_config(self, name: str, what: str) -> DataError:
        return DataError("bad-tokenizer-config", what, remedy="fix or remove it", where=f"{self.where}: {name}")

    def _bad(self, what: str) -> DataError:
        remedy = "give a tokenizer.json as the tokenizers library writes it"
        return DataError("bad-tokenizer", what, remedy=remedy, where=self.where)


def info_of(
    tokenizer: FoundTokenizer,
    *,
    eos_token: str | int | None = None,
    bos: bool = False,
    bos_token: str | int | None = None,
    chats: bool = False,
) -> TokenizerInfo:
    """Return what manifests say of a tokenizer, once its EOS (and BOS) are settled; warn of what is odd about them.

    Args:
        eos_token: text or id; None to take what its files say, or the only well-known one.
        bos: begin every document with a BOS.
        bos_token: text or id; implies `bos`.
        chats: documents are conversations, whose template writes what begins them.

    Raises:
        DataError: a file of it can't be read.
        UsageError: no EOS or BOS is known, or the one asked for is not in the vocabulary.
    """
    vocab, configs, marks = tokenizer.vocab, tokenizer.configs, marked(tokenizer.spec)
    asked = not_applied(tokenizer.spec)
    if asked:
        what = f"the tokenizer.json asks for {' and '.join(asked)}, which is not done"
        remedy = "nothing is lost: whole documents are stored, always alike"
        warn("tokenizer-options", what, remedy=remedy, where=tokenizer.where)
    moved = moved_tokens(tokenizer.named, vocab)
    if moved:
        text, (said, given) = next(iter(moved.items()))
        count = plural(len(moved), "such token")
        what = f"{text} is {given}, as in Transformers, but {tokenizer.named_in} says {said} ({count})"
        remedy = "check that the model has embeddings for the ids that they have"
        warn("added-tokens-moved", what, remedy=remedy, where=tokenizer.where)
    eos_id, eos_text = special("eos", eos_token, vocab, configs, marks)
    doubtful = doubtful_eos(eos_text, vocab, marks)
    if doubtful and not (chats and eos_text in ENDS_OF_TURNS):  # it may end a conversation, too
        warn("eos-doubtful", doubtful.what, remedy=doubtful.remedy, where=tokenizer.where)
    bos_id = None
    if bos or bos_token is not None:
        bos_id, _ = special("bos", bos_token, vocab, configs, marks)
    elif not chats and any(config.get("add_bos_token") is True for config in configs):
        what = "its configuration says add_bos_token, but documents begin without a BOS"
        remedy = "give --bos=True to begin every document with it, as the model was trained"
        warn("bos-left-out", what, remedy=remedy, where=tokenizer.where)
    added = {content: vocab[content] for content in tokenizer.added if content in vocab}
    sha256 = hashlib.sha256(tokenizer.data).hexdigest()
    return TokenizerInfo(sha256, tokenizer.vocab_size, eos_id, eos_text, bos_id, added)


def find_tokenizer(source: str | Path | None = None, revision: str | None = None) -> FoundTokenizer:
    """Find a tokenizer.

    Args:
        source: a tokenizer.json, a directory that holds one, or the id of a hub repository; None for the small
            byte-level BPE that comes with packtool.
        revision: branch, tag or commit of a hub repository.

    Raises:
        DataError: no such tokenizer, or it can't be read; the hub can't be reached.
    """
    if source is None:
        return FoundTokenizer({TOKENIZER: default_tokenizer()}, "the default tokenizer")
    path, where = Path(source), str(source)
    if path.is_dir():
        directory, path = path, path / TOKENIZER
        others = chain.from_iterable(sorted(directory.glob(pattern)) for pattern in _NAMES)
        other = None if path.exists() else next(others, None)
        if other is not None:
            _tokenizer(other)
    if path.is_file():
        beside = {name: path.parent / name for name in _BESIDE}
        for file in sorted((path.parent / MORE_TEMPLATES).glob("*.jinja")):
            beside[f"{MORE_TEMPLATES}/{file.name}"] = file
        files = {TOKENIZER: _tokenizer(path)} | {name: _bytes(file) for name, file in beside.items() if file.is_file()}
        return _with_added_tokens(files, where)
    from packtool.places.hub import is_repository, repository_files  # most tokenizers are files

    if Path(source).exists() or not is_repository(where):
        remedy = "give a tokenizer.json, a directory that holds one, or a hub id such as openai-community/gpt2"
        raise DataError("missing-tokenizer", "no tokenizer.json there", remedy=remedy, where=where)
    same = _SAME_IDS.get(where)
    if same or _ENCODING.fullmatch(where):
        what = "an encoding of tiktoken, not a tokenizer.json"
        remedy = f"give {same}, which has the same ids" if same else _CONVERT
        raise DataError("missing-tokenizer", what, remedy=remedy, where=where)
    return _with_added_tokens(repository_files(where, (TOKENIZER, *_BESIDE), revision), where)


def _with_added_tokens(files: Mapping[str, bytes], where: str) -> FoundTokenizer:
    """Return the tokenizer with the added tokens that only its other files name."""
    kept = {name: data for name, data in files.items() if name != ADDED_TOKENS}
    found = FoundTokenizer(kept, where)
    names = [name for name in TOKENIZER_CONFIGS if name in kept]
    configs = dict(zip(names, found.configs, strict=True))
    try:
        if ADDED_TOKENS in files:
            configs[ADDED_TOKENS] = from_json(files[ADDED_TOKENS], dict[str, Any])
        wanted = added_tokens(configs)
        decoder = configs.get(TOKENIZER_CONFIGS[0], {}).get("added_tokens_decoder") or {}
        flagged = {token["content"] for token in decoder.values()}
        named_in, named = named_ids(configs)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        what = f"its added tokens can't be read ({error})"
        raise DataError("bad-tokenizer-config", what, remedy="fix or remove them", where=where) from None
    files = {**kept, TOKENIZER: with_added_tokens(found.data, wanted, flagged)}
    return replace(found, files=files, named_in=named_in, named=named)


def _tokenizer(path: Path) -> bytes:
    """Read a tokenizer.json; refuse other known formats, and say how to convert them."""
    data = _bytes(path)
    other = recognized(path.name, data)
    if other is not None:
        raise DataError("bad-tokenizer", other[0], remedy=other[1], where=str(path))
    return data


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(
            "unreadable-tokenizer", f"can't be read ({error.strerror})", remedy="check its permissions", where=str(path)
        ) from None


def _with_added(ids: Mapping[str, int], added: Sequence[Any]) -> dict[str, int] | None:
    """Return all ids, if added tokens have the ids that `tokenizers` gives them: the id in the vocabulary, or the next
    one. Return None if they differ, or if anything is unusual. Nearly every file is simple, and needs no library."""
    known = dict(ids)
    try:
        if max(known.values(), default=-1) + 1 != len(known):
            return None
        for token in added:
            if not token["content"] or token["id"] != known.setdefault(token["content"], len(known)):
                return None
    except (TypeError, KeyError):
        return None
    return known


# Files other than a tokenizer.json, and how to convert them.

_SAVE = (
    "load its directory with AutoTokenizer of transformers, call save_pretrained, and give the tokenizer.json it writes"
)
_PULL = "fetch it with git lfs pull"
_RAW = "download the raw file: on the hub, /resolve/ instead of /blob/"
_RANKS = re.compile(rb"\A[A-Za-z0-9+/]+=* \d+\r?\n")
_ENCODING = re.compile(r"[a-z]\d+k_[a-z]+")
_SAME_IDS = {
    "cl100k_base": "Xenova/gpt-4",
    "o200k_base": "Xenova/gpt-4o",
    "o200k_harmony": "openai/gpt-oss-20b",
    "r50k_base": "openai-community/gpt2",
}
"""Encodings of tiktoken, and a hub repository with a tokenizer.json of the same ids."""
_CONVERT = "call convert_tiktoken_to_fast of transformers.integrations.tiktoken, and give the tokenizer.json it writes"
_PARTS = ("vocab.txt", "merges.txt")
_NAMES = ("tekken.json", "*.tiktoken", "tokenizer.model*", "*.model", "*.gguf", *_PARTS)


def recognized(name: str, data: bytes) -> tuple[str, str] | None:
    """Recognise a file that is not a tokenizer.json, and say what to do; None if that is unknown.

    Args:
        name: of the file.
        data: its bytes.

    >>> recognized("tokenizer.json", b"version https://git-lfs.github.com/spec/v1\\noid sha256:00")
    ('a pointer of Git LFS, not the file itself', 'fetch it with git lfs pull')
    """
    start = data[:512].lstrip()
    tekken = start[:1] == b"{" and b'"token_bytes"' in data[: 1 << 16]
    kinds = (
        (start.startswith(b"version https://git-lfs"), "a pointer of Git LFS, not the file itself", _PULL),
        (start[:1] == b"<", "a web page, not the file itself", _RAW),
        (start.startswith(b"GGUF"), "a GGUF file", _SAVE.replace(" of", f" (gguf_file={name!r}) of", 1)),
        (_RANKS.match(start) is not None, "ranks of tiktoken, which lack their pattern and special tokens", _SAVE),
        (name.endswith((".model", ".spm")), "a model of SentencePiece", _SAVE),
        (name in _PARTS, "a part of a tokenizer, in an older format", _SAVE),
        (tekken, "a tekken.json of Mistral", "give the tokenizer.json of the same hub repository"),
    )
    return next(((what, remedy) for fits, what, remedy in kinds if fits), None)
