"""How conversations become texts: what everything that renders them is told."""

from __future__ import annotations

import msgspec

from packtool.conversations.record import Trained, Use


class Chat(msgspec.Struct, frozen=True):
    """How conversations become texts.

    Attributes:
        templates: chat templates by name.
        tokens: what templates call special tokens, and their texts.
        special: texts of all special tokens of the tokenizer.
        train_on: what trains.
        reasoning, tool_calls: what becomes of them.
        date: what a template that asks gets for now, in ISO 8601; empty for none.
    """

    templates: tuple[tuple[str, str], ...]
    tokens: tuple[tuple[str, str], ...] = ()
    special: tuple[str, ...] = ()
    train_on: Trained = "assistant"
    reasoning: Use = "train"
    tool_calls: Use = "train"
    date: str = ""
