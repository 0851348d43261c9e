"""Find the tokenizer.json that was asked for, and the tokens that begin and end every document."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from packtool.errors import DataError
from packtool.storage.names import CHAT_TEMPLATES, TOKENIZER, TOKENIZER_CONFIGS
from packtool.storage.schema import TokenizerInfo
from packtool.storage.tokenizer_files import default_tokenizer
from packtool.tokenizing import findings, other_formats
from packtool.tokenizing.encoders import reference_tokenizer
from packtool.tokenizing.spec import merges_fit, not_applied, parse
from packtool.tokenizing.special import TokenizerWarning, marked, special, warnings_of_bos, warnings_of_eos
from packtool.warnings import warn


@dataclass(frozen=True)
class LoadedTokenizer:
    """A tokenizer.json and what packtool must know of it.

    Attributes:
        data: the bytes of the tokenizer.json.
        info: what the manifest records.
        special: texts of its special tokens, in order.
        files: what to keep with the tokens, by name: the tokenizer.json and the configuration files beside it.
        parsed: the tokenizer.json, where it was parsed.
    """

    data: bytes
    info: TokenizerInfo
    special: tuple[str, ...]
    files: dict[str, bytes]
    parsed: dict[str, Any] | None = field(default=None, repr=False, compare=False)

    @property
    def spec(self) -> dict[str, Any]:
        """The tokenizer.json, parsed if it was not; without merges."""
        return parse(self.data) if self.parsed is None else self.parsed


class _Settled(msgspec.Struct, frozen=True):
    """What is found by parsing the files."""

    info: TokenizerInfo
    special: tuple[str, ...]
    warnings: list[TokenizerWarning]


@dataclass(frozen=True)
class FoundTokenizer:
    """A tokenizer as it was found.

    Attributes:
        data: the bytes of the tokenizer.json.
        spec: the same, parsed; without merges.
        vocab: every token's id.
        configs: the parsed configuration files beside it, most telling first.
        files: all of these files as they are, by name.
    """

    data: bytes
    spec: dict[str, Any]
    vocab: dict[str, int]
    configs: list[Mapping[str, Any]]
    files: dict[str, bytes]


def load(
    source: str | Path | None = None,
    *,
    revision: str | None = None,
    eos_token: str | int | None = None,
    bos: bool = False,
    bos_token: str | int | None = None,
    chats: bool = False,
    kept: Path | None = None,
) -> LoadedTokenizer:
    """Load a tokenizer and settle its EOS (and BOS).

    Args:
        source: a tokenizer.json, a directory that holds one, or the id of a hub repository; None for the small
            byte-level BPE that comes with packtool.
        revision: branch, tag or commit of a hub repository.
        eos_token: text or id; None to take what the files beside the tokenizer say, or the only well-known one.
        bos: begin every document with a BOS.
        bos_token: text or id; implies `bos`.
        chats: documents are conversations, whose template says what begins them.
        kept: where earlier runs kept what they found (see findings.py).

    Raises:
        DataError: no such tokenizer, or it can't be read; the hub can't be reached.
        UsageError: no EOS or BOS is known, or the one asked for is not in the vocabulary.
    """
    files = _read(source, revision)
    where = _where(source)
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}

    parsed = None

    def settle() -> _Settled:
        nonlocal parsed
        found = _found(files, where)
        parsed = found.spec
        spec, vocab, configs, marks = found.spec, found.vocab, found.configs, marked(found.spec)
        warnings: list[TokenizerWarning] = []
        if asked := not_applied(spec):
            what = f"the tokenizer.json asks for {' and '.join(asked)}, which is not done"
            remedy = "nothing is lost: whole documents are stored, always alike"
            warnings.append(TokenizerWarning("tokenizer-options", what, remedy))
        eos_id, eos_text = special("eos", eos_token, vocab, configs, marks)
        warnings += warnings_of_eos(eos_text, vocab, marks)
        bos_id = None
        if bos or bos_token is not None:
            bos_id, _ = special("bos", bos_token, vocab, configs, marks)
        elif not chats:
            warnings += warnings_of_bos(configs)
        contents = (token["content"] for token in spec.get("added_tokens") or ())
        added = {content: vocab[content] for content in contents if content in vocab}
        info = TokenizerInfo(digests[TOKENIZER], max(vocab.values()) + 1, eos_id, eos_text, bos_id, added)
        return _Settled(info, tuple(sorted(marks)), warnings)

    finding = findings.finding(kept, digests, eos_token, bos, bos_token, chats)
    settled = findings.found(finding, _Settled, settle)
    for each in settled.warnings:
        warn(each.code, each.what, remedy=each.remedy, where=where)
    return LoadedTokenizer(files[TOKENIZER], settled.info, settled.special, files, parsed)


def inspect(source: str | Path | None = None, revision: str | None = None) -> FoundTokenizer:
    """Find and read a tokenizer; see `load`, which also settles its EOS.

    Raises:
        DataError: no such tokenizer, or it can't be read; the hub can't be reached.
    """
    return _found(_read(source, revision), _where(source))


def _where(source: str | Path | None) -> str:
    return str(source) if source is not None else "the default tokenizer"


def _found(files: dict[str, bytes], where: str) -> FoundTokenizer:
    data = files[TOKENIZER]
    spec = _parse(data, where)
    configs = [_config(files[name], f"{where}: {name}") for name in TOKENIZER_CONFIGS if name in files]
    return FoundTokenizer(data, spec, _vocabulary(spec, data, where), configs, files)


def _read(source: str | Path | None, revision: str | None) -> dict[str, bytes]:
    """Read the tokenizer.json and the configuration files beside it, most telling first."""
    if source is None:
        return {TOKENIZER: default_tokenizer()}
    path = Path(source)
    if path.is_dir():
        if not (path / TOKENIZER).exists() and (name := other_formats.beside(path)):
            _tokenizer(path / name)
        path = path / TOKENIZER
    if path.is_file():
        beside = {name: path.with_name(name) for name in (*TOKENIZER_CONFIGS, *CHAT_TEMPLATES)}
        return {TOKENIZER: _tokenizer(path)} | {name: _bytes(file) for name, file in beside.items() if file.is_file()}
    from packtool.places.hub import is_repository, repository_files  # most tokenizers are files

    if Path(source).exists() or not is_repository(str(source)):
        raise DataError(
            "missing-tokenizer",
            "no tokenizer.json there",
            remedy="give a tokenizer.json, a directory that holds one, or a hub id such as openai-community/gpt2",
            where=str(source),
        )
    if remedy := other_formats.remedy_for_encoding(str(source)):
        what = "an encoding of tiktoken, not a tokenizer.json"
        raise DataError("missing-tokenizer", what, remedy=remedy, where=str(source))
    return repository_files(str(source), (TOKENIZER, *TOKENIZER_CONFIGS, *CHAT_TEMPLATES), revision)


def _tokenizer(path: Path) -> bytes:
    """Read a tokenizer.json; refuse what is known to be something else, with the way to one."""
    data = _bytes(path)
    found = other_formats.recognized(path.name, data)
    if found is not None:
        raise DataError("bad-tokenizer", found[0], remedy=found[1], where=str(path))
    return data


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(
            "unreadable-tokenizer", f"can't be read ({error.strerror})", remedy="check its permissions", where=str(path)
        ) from None


def _config(data: bytes, where: str) -> Mapping[str, Any]:
    try:
        return msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DataError(
            "bad-tokenizer-config", f"not valid JSON ({error})", remedy="fix or remove it", where=where
        ) from None


def _parse(data: bytes, where: str) -> dict[str, Any]:
    try:
        spec = parse(data)
        fits = merges_fit(data, spec)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _bad_tokenizer(f"not a tokenizer.json ({error})", where) from None
    if not fits:
        raise _bad_tokenizer("merges without the prefix of continuing subwords that it has", where)
    return spec


def vocabulary_size(spec: Mapping[str, Any], data: bytes) -> int:
    """Return one more than the largest id, for a parsed tokenizer.json and its bytes."""
    return 1 + max(_vocabulary(spec, data, "tokenizer.json").values())


def _bad_tokenizer(what: str, where: str) -> DataError:
    remedy = "give a tokenizer.json as the tokenizers library writes it"
    return DataError("bad-tokenizer", what, remedy=remedy, where=where)


def _vocabulary(spec: Mapping[str, Any], data: bytes, where: str) -> dict[str, int]:
    """Return every token's id; added tokens have those that `tokenizers` gives them, whatever the file says."""
    vocab = spec["model"].get("vocab")
    if isinstance(vocab, list):  # Unigram: [token, score] pairs in id order
        ids = {pair[0]: number for number, pair in enumerate(vocab)}
    elif isinstance(vocab, dict):
        ids = vocab
    else:
        raise _bad_tokenizer("its model has no vocabulary", where)
    added = spec.get("added_tokens") or ()
    simple = _with_added(ids, added)
    if simple is None:
        ids = dict(ids)
        tokenizer = reference_tokenizer(data)
        for token in added:
            if (number := tokenizer.token_to_id(token["content"])) is not None:
                ids[token["content"]] = number
    else:
        ids = simple
    if not ids:
        raise _bad_tokenizer("its vocabulary is empty", where)
    return ids


def _with_added(ids: Mapping[str, int], added: Sequence[Any]) -> dict[str, int] | None:
    """Return all ids, if those in the file are the ones that `tokenizers` gives: that of the vocabulary, or the next
    one.

    None where they are not, or anything is odd: then the library must tell. Nearly every file is simple, and a process
    that only hands out work need not load it.
    """
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
