"""Count what became of conversations, and warn where it is likely not what was meant."""

from __future__ import annotations

from collections.abc import Sequence

from packtool.support.sizes import plural
from packtool.text.conversations.chat import Chat
from packtool.text.tokenizing.counts import SpanCounts
from packtool.warnings import warn

_NAMED = 12  # most fields that a warning names


def chat_counts(total: SpanCounts, chat: Chat) -> dict[str, int]:
    """Return the counts of conversations as a manifest has them."""
    counts = {"trained_tokens": total.trained}
    if chat.train_on == "each" or chat.reasoning != "train":
        counts["conversations"] = total.conversations
    if chat.train_on == "each":
        counts["repeated_context_tokens"] = total.context
    if chat.reasoning != "train":
        counts["reasoning_conversations"] = total.reasoning
        counts["other_reasoning_conversations"] = total.other_reasoning
    counts["no_end_turns"] = total.open_turns
    counts["spelled_tool_calls"] = total.spelled_calls
    counts["hidden_reasoning_messages"] = total.hidden
    for name in ("no_end_turns", "spelled_tool_calls", "hidden_reasoning_messages"):
        if not counts[name]:
            del counts[name]
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


def warn_of_conversations(where: str, total: SpanCounts, files: Sequence[tuple[str, SpanCounts]], chat: Chat) -> None:
    """Warn if a model may not learn to stop, or if reasoning or a tool call has a form that is not recognised.

    Args:
        where: the place of the output, for messages.
        files: names and counts of the files, in order.
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
    if chat.reasoning != "train" and total.conversations and not total.reasoning:
        what = f"--reasoning={chat.reasoning} found none in {plural(total.conversations, 'conversation')}"
        warn("no-reasoning", what, remedy="leave the option out, or see which forms are read", where=where)
    if total.other_reasoning:
        seen = place = ""
        for file, counts in files:
            if counts.first_other is not None and not seen:
                record, seen = counts.first_other
                place = f"{file}:{record}"
        hold = "holds" if total.other_reasoning == 1 else "hold"
        what = (
            f"{plural(total.other_reasoning, 'conversation')} of {total.conversations:,} {hold} what looks like "
            f"reasoning in a form that is not read: first {seen!r} in {place}"
        )
        remedy = "name its tags with --reasoning-tags=OPEN,CLOSE, or write it to reasoning_content"
        warn("other-reasoning", what, remedy=remedy, where=where)
    if total.unread:
        listed: list[str] = []
        for name, count in total.unread.items():
            listed.append(f"{name} ({plural(count, 'conversation')})")
        if len(listed) > _NAMED:
            listed[_NAMED:] = ["…"]
        what = f"nothing reads {', '.join(listed)}"
        remedy = "name what belongs to a conversation; a field that says which messages train is called train"
        warn("fields-left-out", what, remedy=remedy, where=where)
    count = total.spelled_calls
    if count:
        spell = "spells" if count == 1 else "spell"
        what = f"the content of {plural(count, 'message')} {spell} a call of a tool, which --tool-calls does not parse"
        remedy = "write calls to tool_calls"
        warn("tool-calls-in-text", what, remedy=remedy, where=where)
