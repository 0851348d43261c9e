"""Count what became of conversations, and warn where it is likely not what was meant."""

from __future__ import annotations

from collections.abc import Sequence

from packtool.support.sizes import plural
from packtool.text.conversations.chat import Chat
from packtool.text.tokenizing.counts import SpanCounts
from packtool.warnings import warn


def chat_counts(total: SpanCounts, chat: Chat) -> dict[str, int]:
    """Return the counts of conversations as a manifest has them."""
    counts = {"trained_tokens": total.trained}
    if chat.train_on == "each" or chat.reasoning != "train" or chat.tool_calls != "train":
        counts["conversations"] = total.conversations
    if chat.train_on == "each":
        counts["repeated_context_tokens"] = total.context
    if chat.reasoning != "train":
        counts["reasoning_conversations"] = total.reasoning
    if chat.tool_calls != "train":
        counts["calling_conversations"] = total.calls
    if total.open_turns:
        counts["no_end_turns"] = total.open_turns
    if total.hidden:
        counts["hidden_reasoning_messages"] = total.hidden
    return counts


def ends_shown(ends: dict[str, int], stops: Sequence[str]) -> str:
    """Say which tokens end documents, and which of them generation has to be told.

    Args:
        ends: documents by the token that ends their last turn that trains, an empty text where nothing does.
        stops: the tokens that generation stops at, as far as the tokenizer's files say.

    >>> ends_shown({"<end>": 2, "": 1}, ["</s>"])
    'answers that end with <end>: 2, with nothing: 1; tell generation to stop at <end>, too: the tokenizer names </s>'
    """
    each = [f"with {token or 'nothing'}: {count:,}" for token, count in sorted(ends.items(), reverse=True)]
    listed = f"answers that end {', '.join(each)}"
    unknown = [token for token in sorted(ends) if token and token not in stops]
    if not unknown:
        return listed
    told = f"tell generation to stop at {', '.join(unknown)}, too: the tokenizer names {', '.join(stops)}"
    return f"{listed}; {told}"


def warn_of_conversations(where: str, total: SpanCounts, chat: Chat) -> None:
    """Warn if a model may not learn to stop, or if there is nothing to mask or drop.

    Args:
        where: the place of the output, for messages.
    """
    count = total.open_turns
    if count:
        what = f"no token trains that ends {plural(count, 'answer')} in {plural(total.documents, 'document')}"
        remedy = "a model may not learn to stop there: take a template that writes one behind each answer, and marks it"
        warn("no-end", what, remedy=remedy, where=where)
    if total.empty_answers:
        empty = plural(total.empty_answers, "answer")
        what = f"{empty} without text, calls and reasoning: the end of the turn trains alone"
        remedy = 'leave these answers out, or mark them with "train": false'
        warn("empty-answers", what, remedy=remedy, where=where)
    for option, use, found in (
        ("--reasoning", chat.reasoning, total.reasoning),
        ("--tool-calls", chat.tool_calls, total.calls),
    ):
        if use != "train" and total.conversations and not found:
            what = f"{option}={use} found none in {plural(total.conversations, 'conversation')}"
            warn("none-found", what, remedy="leave the option out, or see which forms are read", where=where)
