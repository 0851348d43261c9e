"""The regular expressions by which byte-level tokenizers split, and what is known of them."""

from __future__ import annotations

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""GPT-2, GPT-NeoX, RoBERTa; what ByteLevel splits by itself."""

_SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
_GPT4 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}%s| ?[^\s\p{L}\p{N}]+[\r\n]*" + _SPACES
GPT4 = _GPT4 % "{1,3}"
"""GPT-3.5 and GPT-4 (cl100k), Llama 3, OLMo 2."""
QWEN2 = _GPT4 % ""
"""Qwen 2 and 3."""

QWEN35 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + _SPACES
"""Qwen 3.5 and later, where marks go with letters."""

_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED = (
    rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+%(ending)s|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*%(ending)s"
    r"|\p{N}%(digits)s| ?[^\s\p{L}\p{N}]+[\r\n/]*" + _SPACES
)
O200K = _CASED % {"ending": "(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "digits": "{1,3}"}
"""GPT-4o and gpt-oss."""
TEKKEN = _CASED % {"ending": "", "digits": ""}
"""Mistral Nemo and later."""

DEEPSEEK = (
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|"""
    "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*" + _SPACES.replace(r"\r\n", "\r\n"),
)
"""The three of DeepSeek V3 and later, one after the other."""

COVERING = frozenset({GPT4, QWEN2, QWEN35, O200K, TEKKEN})
"""Every character is a letter (or a mark), a number, whitespace, or in the class of all others: no text is left between
two matches, so that keeping matches only is the same as isolating them."""

SETTLED = frozenset({(GPT2,), (GPT4,), (QWEN2,), (QWEN35,), (O200K,), (TEKKEN,), DEEPSEEK})
"""None of their alternatives goes on from a letter into whitespace, nor looks back."""
