"""Conversations of records by the names of the contract."""

from collections.abc import Mapping
from typing import Any

from packtool.text.conversations.conversation import Conversation
from packtool.text.conversations.layouts import BY_NAME
from packtool.text.conversations.record import conversation_of


def talk_of(record: Mapping[str, Any]) -> Conversation:
    """Return the conversation of a record, which its names alone tell."""
    return conversation_of(record, BY_NAME)
