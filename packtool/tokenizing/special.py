"""The tokens that begin and end every document."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from packtool.errors import UsageError
from packtool.warnings import warn

CANDIDATES = {
    "eos": (
        ("<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>"),
        ("<｜end▁of▁sentence｜>", "<EOS_TOKEN>", "<EOT>", "[EOS]", "[SEP]"),
    ),
    "bos": (
        ("<s>", "<|begin_of_text|>", "<bos>", "<|startoftext|>"),
        ("<｜begin▁of▁sentence｜>", "<BOS_TOKEN>", "[BOS]", "[CLS]"),
    ),
}
"""Well-known texts; the second ones (DeepSeek, Command R, Claude, BERT) only where there is none of the first."""

ENDS_OF_TURNS = frozenset(
    {
        *("<end_of_turn>", "<|return|>", "<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|END_OF_TURN_TOKEN|>", "<|end|>"),
        *("<turn|>", "<|end_of_turn|>", "<|endofturn|>", "<|eot|>", "[/INST]"),
    }
)
"""What ends a turn of a chat, not a document: what the configurations of chat models name as their EOS."""


def marked(spec: Mapping[str, Any]) -> set[str]:
    """The special tokens of a parsed tokenizer.json: Gemma, for one, has an added ``</s>`` that is only HTML."""
    return {token["content"] for token in spec.get("added_tokens") or () if token.get("special")}


def candidates(kind: str, vocab: Mapping[str, int], added: Collection[str]) -> list[str]:
    """The well-known texts of a kind that a vocabulary has; those that are special tokens, if any are.

    >>> candidates("eos", {"</s>": 2, "<|endoftext|>": 7, "[SEP]": 9}, {"</s>"})
    ['</s>']
    """
    for group in CANDIDATES[kind]:
        present = [token for token in group if token in vocab]
        if present:
            return [token for token in present if token in added] or present
    return []


def warn_of_turns(eos: str, vocab: Mapping[str, int], where: str) -> None:
    """Warn where the EOS that a configuration names ends a turn of a chat."""
    if eos not in ENDS_OF_TURNS:
        return
    better = [token for group in CANDIDATES["eos"] for token in group if token in vocab]
    remedy = f"to pretrain, give --eos-token {better[0]!r}" if better else "to pretrain, name another with --eos-token"
    what = f"its configuration names {eos!r} as EOS, which ends a turn of a chat"
    warn("eos-ends-turns", what, remedy=remedy, where=where)


def special(
    kind: str,
    wanted: str | int | None,
    vocab: Mapping[str, int],
    configs: Sequence[Mapping[str, Any]],
    added: Collection[str] = (),
) -> tuple[int, str]:
    """Id and text of a token: the one asked for, or configured, or the only well-known one.

    Args:
        kind: ``eos`` or ``bos``.
        wanted: text or id; None to find it.
        vocab: every token's id.
        configs: the files beside the tokenizer, most telling first.
        added: texts of special tokens.

    Raises:
        UsageError: there is none, or none is known.
    """
    option = f"--{kind}-token"
    if wanted is not None:
        return _named(option, wanted, vocab)
    for config in configs:
        token = config.get(f"{kind}_token")
        if isinstance(token, dict):
            token = token.get("content")
        if isinstance(token, str):
            return _named(f"{kind}_token in the tokenizer's configuration", token, vocab)
    present = candidates(kind, vocab, added)
    if len(present) == 1:
        return vocab[present[0]], present[0]
    if present:
        what = f"the vocabulary has several {kind.upper()} candidates: {', '.join(present)}"
    else:
        what = f"no {kind.upper()} token is known for this tokenizer"
        bracketed = [token for token in vocab if token[:1] in "<[" and token[-1:] in ">]" and len(token) > 2]
        if bracketed:
            what += f"; its vocabulary has {', '.join(bracketed[:8])}"
    raise UsageError(f"no-{kind}", what, remedy=f"name it with {option} TEXT or {option} ID", where=option)


def _named(option: str, wanted: str | int, vocab: Mapping[str, int]) -> tuple[int, str]:
    """A token by its id (a number is always an id) or its text."""
    if isinstance(wanted, int) or wanted.isdecimal():
        number = int(wanted)
        for text, found in vocab.items():
            if found == number:
                return number, text
        what = f"no token has the id {number}"
    elif wanted in vocab:
        return vocab[wanted], wanted
    else:
        what = f"{wanted!r} is not in the vocabulary"
    raise UsageError("unknown-token", what, remedy="give the text or the id of a token in the vocabulary", where=option)
