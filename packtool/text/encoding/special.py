"""Settle the tokens that begin and end every document."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from packtool.errors import UsageError
from packtool.text.conversations.chat import text_of_token


class TokenizerWarning(NamedTuple):
    """A warning about a tokenizer, as `packtool.warnings.warn` takes it."""

    code: str
    what: str
    remedy: str


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
"""Well-known texts in two groups; the second one (DeepSeek, Command R, Claude, BERT) counts only without the first."""

ENDS_OF_TURNS = frozenset(
    {
        *("<end_of_turn>", "<|return|>", "<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|END_OF_TURN_TOKEN|>", "<|end|>"),
        *("<turn|>", "<|end_of_turn|>", "<|endofturn|>", "<|eot|>", "[/INST]"),
    }
)
"""Tokens that end a turn of a chat, not a document, which configurations of chat models name as EOS."""

END_NOTHING = frozenset({"<pad>", "[PAD]", "<unk>", "[UNK]", "<mask>", "[MASK]", *CANDIDATES["bos"][0], "[CLS]"})
"""Special tokens that pad, mask or begin."""


class Sentinels(NamedTuple):
    """The tokens between the parts of a text that is to fill in the middle."""

    texts: tuple[str, ...]  # texts of those before prefix, suffix, middle, and after it: two to four
    suffix_leads: bool = False  # whether the model knows only the form in which the suffix comes first


SENTINELS = (
    Sentinels(("<fim_prefix>", "<fim_suffix>", "<fim_middle>")),  # StarCoder, Granite
    Sentinels(("<fim-prefix>", "<fim-suffix>", "<fim-middle>")),  # SantaCoder
    Sentinels(("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")),  # Qwen Coder, CodeGemma, Granite 4
    Sentinels(("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>")),  # DeepSeek-Coder
    Sentinels(("▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>")),  # Code Llama
    Sentinels(("▁<PRE>", "▁<SUF>", "▁<MID>")),
    Sentinels(("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>"), suffix_leads=True),  # Seed-Coder
    Sentinels(("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>")),  # CodeGeeX, GLM
    Sentinels(("[PREFIX]", "[SUFFIX]"), suffix_leads=True),  # Codestral
)
"""The sentinels of known models, in the order in which they are looked for."""


def sentinels(vocab: Collection[str]) -> Sentinels | None:
    """Return the sentinels of a known model that a vocabulary has; None if it has no known sentinels.

    >>> sentinels({"<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>"})
    Sentinels(texts=('<fim_prefix>', '<fim_suffix>', '<fim_middle>'), suffix_leads=False)
    """
    for model in SENTINELS:
        if all(text in vocab for text in model.texts):
            return model
    return None


def marked(spec: Mapping[str, Any]) -> set[str]:
    """List the special tokens of a parsed tokenizer.json: Gemma, for one, has an added ``</s>`` that is only HTML."""
    return {token["content"] for token in spec.get("added_tokens") or () if token.get("special")}


def candidates(kind: str, vocab: Mapping[str, int], added: Collection[str]) -> list[str]:
    """List the well-known texts of a kind that a vocabulary has: only special tokens, if any of them are special.

    >>> candidates("eos", {"</s>": 2, "<|endoftext|>": 7, "[SEP]": 9}, {"</s>"})
    ['</s>']
    """
    for group in CANDIDATES[kind]:
        present = [token for token in group if token in vocab]
        if present:
            return [token for token in present if token in added] or present
    return []


def doubt(eos: str, added: Collection[str]) -> str:
    """Return the reason to doubt a token as EOS; "" if there is no reason.

    >>> doubt("<|im_end|>", {"<|im_end|>", "<eos>"}), doubt("</s>", {"<eos>"}), doubt("<eos>", {"<eos>"})
    ('which ends a turn of a chat', 'an ordinary token, which texts may contain', '')
    """
    if eos in ENDS_OF_TURNS:
        return "which ends a turn of a chat"
    if added and eos not in added:
        return "an ordinary token, which texts may contain"
    return "which ends no document" if eos in END_NOTHING else ""


def doubtful_eos(eos: str, vocab: Mapping[str, int], added: Collection[str]) -> TokenizerWarning | None:
    """Warn where the EOS ends something other than documents, whether it was asked for, configured or found."""
    why = doubt(eos, added)
    if not why:
        return None
    better = [token for token in candidates("eos", vocab, added) if token != eos]
    remedy = f"give --eos-token={better[0]!r}" if better else "name another with --eos-token"
    return TokenizerWarning("eos-doubtful", f"EOS is {eos!r}, {why}", f"to pretrain, {remedy}")


def special(
    kind: str,
    wanted: str | int | None,
    vocab: Mapping[str, int],
    configs: Sequence[Mapping[str, Any]],
    added: Collection[str] = (),
) -> tuple[int, str]:
    """Find the id and text of a token: the one asked for, or configured, or the only well-known one.

    Args:
        kind: ``eos`` or ``bos``.
        wanted: text or id; None to find it.
        vocab: every token's id.
        configs: the configuration files of the tokenizer, most telling first.
        added: texts of special tokens.

    Raises:
        UsageError: there is no such token, or it can't be found.
    """
    option = f"--{kind}-token"
    if wanted is not None:
        return named(option, wanted, vocab)
    for config in configs:
        token = text_of_token(config.get(f"{kind}_token"))
        if token is not None:
            return named(f"{kind}_token in the tokenizer's configuration", token, vocab)
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
    raise UsageError(f"no-{kind}", what, remedy=f"name it with {option}=TEXT or {option}=ID", where=option)


def named(option: str, wanted: str | int, vocab: Mapping[str, int]) -> tuple[int, str]:
    """Find the id and text of a token, by its id (a number is always an id) or its text.

    Raises:
        UsageError: there is no such token; the message names the option.
    """
    if isinstance(wanted, int) or wanted.isdecimal():
        number = int(wanted)
        for text, entry in vocab.items():
            if entry == number:
                return number, text
        what = f"no token has the id {number}"
    elif wanted in vocab:
        return vocab[wanted], wanted
    else:
        what = f"{wanted!r} is not in the vocabulary"
    raise UsageError("unknown-token", what, remedy="give the text or the id of a token in the vocabulary", where=option)
