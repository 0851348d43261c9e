"""What the fields of records hold that have conversations, by their names: one table, from kinds to names."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple


class Known(NamedTuple):
    """A name under which prompts are known; the case of names does not matter."""

    prompt: str  # the name
    after: tuple[str, ...] = ()  # fields whose text follows it
    answers: tuple[str, ...] = ("answer", "response", "solution", "generated_solution", "output")  # names of its answer
    turns: tuple[str, ...] = ()  # the names of the answer if both are one turn in a list of turns


KNOWN = (
    Known(
        "instruction",
        ("input", "context"),
        ("output", "response", "answer", "completion", "target", "corrected"),
        ("output",),
    ),
    Known("definition", ("inputs",), ("targets",)),
    Known("question", turns=("answer",)),
    Known("query", turns=("response",)),
    Known("problem"),
    Known(
        "prompt",
        (),
        ("answer", "response", "solution", "output", "generation", "canonical_solution", "target"),
        ("response",),
    ),
    Known("inputs_pretokenized", (), ("targets_pretokenized",)),
    Known("inputs", (), ("targets", "outputs")),
    Known("input_text", (), ("output_text",)),
    Known("input", (), ("output", "target", "response", "answer"), ("output",)),
    Known("sql_prompt", ("sql_context",), ("sql",)),
    Known("user", (), ("assistant", "bot"), ("assistant", "bot")),
    Known("human", (), ("assistant", "bot"), ("assistant", "bot")),
    Known("context", (), ("response",)),
    Known("dialogue", (), ("summary",)),
    Known("document", (), ("summary",)),
    Known("article", (), ("highlights", "summary", "abstract")),
    Known("source", (), ("target",)),
)
"""Well-known layouts of a prompt and its answer; the first that a record has is taken."""

KINDS: dict[str, tuple[str, ...]] = {
    "messages": (
        *("messages", "conversations", "conversation", "dialog", "dialogue", "chat", "turns", "thread", "utterances"),
        *("contents", "chat_history"),
    ),
    "answer": (
        *("completion", "answer", "response", "output", "solution", "generated_solution", "generation", "reply"),
        *(name for known in KNOWN for name in known.answers),
        "attempt",
    ),
    "prompt": (*(known.prompt for known in KNOWN), "ctx", "goal", "sentence", "title", "history", "story", "message"),
    "context": ("input", "context", "passage", "article", "document", "documents", "choices", "options"),
    "material": (
        *("contexts", "reference", "references", "evidence", "facts", "knowledge", "table", "tables", "schema"),
        *("hint", "hints", "starter_code", "background", "supporting_facts", "story", "passages", "paragraphs", "ctxs"),
        *("premise", "scenario", "persona"),
    ),
    "question": ("question", "query", "problem"),
    "asked": ("instructions", *(known.prompt for known in KNOWN)),
    "choices": ("choices", "endings", "options"),
    "right choice": ("answer", "label", "answerKey", "answer_idx", "correct", "gold"),
    "history": (
        *("history", "chat_history", "conversation_history", "dialog_history", "dialogue_history"),
        "previous_turns",
    ),
    "system": (
        *("system", "system_prompt", "systemInstruction", "system_instruction", "system_message", "systemMessage"),
        *("systemPrompt", "preamble", "sys"),
    ),
    "reasoning": (
        *("reasoning_content", "thinking", "reasoning", "reasoning_text", "reasoning_details", "thinking_content"),
        *("thinking_blocks", "thought", "thoughts", "cot", "chain_of_thought"),
        *("think", "reflection", "scratchpad", "rationale"),
    ),
    "tools": (
        *("tools", "functions", "tool_defs", "tool_definitions", "available_tools"),
        *("tool_list", "tool_schemas", "function_list", "api_list"),
    ),
    "media": (
        *("image", "images", "image_path", "image_paths", "image_url", "image_urls"),
        *("video", "videos", "video_path", "audio", "audios", "audio_path"),
    ),
    "mark": ("train", "training", "trainable", "loss", "weight"),
    "list of marks": (
        *("loss_mask", "loss_masks", "loss_weights", "mask", "masks", "weights", "message_weights"),
        *("train_mask", "trains", "assistant_mask", "assistant_masks"),
    ),
    "label": ("label", "kto_tag"),
    "preference": ("chosen", "rejected"),
    "calls": ("tool_calls", "function_call", "function_calls", "calls", "call"),
    "channel": ("channel", "recipient"),
    "sender": ("role", "speaker", "author", "sender", "from", "user", "name", "type"),
    "text": ("content", "text", "message", "utterance", "value", "body", "data", "line"),
}
"""The names by which each kind of field is known, in lower case unless records have them otherwise."""
SYSTEM, HISTORY, TOOLS, MEDIA = KINDS["system"], KINDS["history"], KINDS["tools"], KINDS["media"]
"""Fields beside a conversation: the text of the system, what comes before a prompt, functions that may be called, and
what is no text."""
REASONING = KINDS["reasoning"][:11]
"""Fields of a message, or beside an answer, that hold the assistant's reasoning."""
ANSWERS = KINDS["answer"][:8]
"""Fields beside messages that may hold the answer to the last of them."""
MARKS, LOSS_MASKS, LABEL = KINDS["mark"], KINDS["list of marks"], KINDS["label"]
"""Fields beside a conversation that may say what trains."""
BESIDE = (
    *(*TOOLS, *SYSTEM, *REASONING, *MEDIA, *KINDS["preference"]),
    *(*MARKS, *LOSS_MASKS, *LABEL, "chat_template_kwargs"),
)
"""Fields that may say more of a conversation, or that it is not one to train on."""
LEFT_OUT = {
    "messages": "messages",
    "answer": "an answer",
    "reasoning": "reasoning",
    "system": "a system's text",
    "mark": "a mark",
    "list of marks": "marks",
    "history": "earlier turns",
    "context": "a context",
    "material": "a context",
    "asked": "a question",
    "tools": "tools",
    "calls": "calls",
}
"""Kinds of fields that are hardly left out on purpose, with what they are called; those from history on beside a
conversation."""
_OF_TEXTS = 6  # kinds of these that are hardly left out beside a text, too
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


@cache
def hardly_left_out(name: str, *, beside_text: bool = False) -> str:
    """Return the kind of a field that is hardly left out on purpose, by its name or a word in it; "" for any other.

    Args:
        beside_text: a text is read, not a conversation.

    >>> hardly_left_out("Complex_CoT"), hardly_left_out("human_answers"), hardly_left_out("systemMessage")
    ('reasoning', 'answer', 'system')
    >>> hardly_left_out("answer_id"), hardly_left_out("score")
    ('', '')
    """
    words = list(map(str.lower, _WORD.findall(name.replace("CoT", "Cot"))))
    kinds = list(LEFT_OUT)
    if beside_text:
        kinds = kinds[:_OF_TEXTS]
    for kind in kinds:
        asked = {name.lower()}
        if kind in ("reasoning", "system", "mark", "list of marks"):
            asked |= set(words)
        elif kind not in ("asked", "history", "tools", "calls"):
            asked |= set(words[-1:])
        for word in list(asked):
            asked.add(word.removesuffix("s"))
        if not asked.isdisjoint(KINDS[kind]):
            return kind
    return ""
