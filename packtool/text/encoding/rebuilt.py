"""Tokenizers that Transformers builds anew by their class, instead of reading the tokenizer.json as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_NAMES = """
Albert Barthez Bert BigBird Blenderbot CLIP Camembert CodeGen CodeLlama Cohere Cpm DPRContextEncoder
DPRQuestionEncoder DPRReader Deberta DebertaV2 DistilBert Esmc Funnel GPT2 GPTNeoX Gemma Herbert Lasr LayoutLMv2
LayoutLMv3 LayoutXLM Llama Luke MBart MBart50 MLuke MPNet MarkupLM Nllb Nougat OpenAIGPT Pegasus Qwen2
Qwen3_5 Reformer RemBert RoFormer Roberta SeamlessM4T Siglip2 Splinter T5 Tipsv2 Udop VideoPrism Whisper
XGLM XLMRoberta XLNet
"""
REBUILT = frozenset(f"{name}Tokenizer" for name in _NAMES.split())
"""Classes of Transformers 5 that take the vocabulary from a tokenizer.json, and the rest from their own code."""


def rebuilt_class(configs: Sequence[Mapping[str, Any]]) -> str:
    """Return the class that a tokenizer's configuration names, if Transformers 5 builds it anew; else an empty text.

    >>> rebuilt_class([{"tokenizer_class": "LlamaTokenizerFast"}])
    'LlamaTokenizer'
    """
    for config in configs:
        name = str(config.get("tokenizer_class", "")).removesuffix("Fast")
        if name in REBUILT:
            return name
    return ""
