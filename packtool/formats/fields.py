"""What the fields of records hold that have conversations, by their names: one table, from kinds to names."""

from __future__ import annotations

import re
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
    ),
    "prompt": (*(known.prompt for known in KNOWN), "ctx", "goal", "sentence", "title", "history", "story", "message"),
    "context": ("input", "context", "passage", "article", "document", "documents", "choices", "options"),
    "question": ("question", "query", "problem"),
    "choices": ("choices", "endings", "options"),
    "right choice": ("answer", "label", "answerKey", "answer_idx", "correct", "gold"),
    "history": ("history", "chat_history"),
    "system": ("system", "system_prompt", "systemInstruction", "system_instruction", "system_message", "preamble"),
    "reasoning": (
        *("reasoning_content", "thinking", "reasoning", "think", "thought", "reflection", "scratchpad", "rationale"),
        *("cot", "chain_of_thought"),
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
    "sender": ("role", "speaker", "author", "sender", "from", "user", "name", "type"),
    "text": ("content", "text", "message", "utterance", "value", "body", "data", "line"),
}
"""The names by which each kind of field is known, in lower case unless records have them otherwise."""
SYSTEM = KINDS["system"][:4]
"""Fields beside a conversation that hold the text of the system."""
REASONING = KINDS["reasoning"][:3]
"""Fields of a message, or beside an answer, that hold the assistant's reasoning."""
ANSWERS = KINDS["answer"][:8]
"""Fields beside messages that may hold the answer to the last of them."""
TOOLS, MEDIA = KINDS["tools"], KINDS["media"]
MARKS, LOSS_MASKS, LABEL = KINDS["mark"], KINDS["list of marks"], KINDS["label"]
"""Fields beside a conversation: functions that may be called, what is no text, and what may say what trains."""
BESIDE = (
    *(*TOOLS, *SYSTEM, *REASONING, *MEDIA, *KINDS["preference"]),
    *(*MARKS, *LOSS_MASKS, *LABEL, "chat_template_kwargs"),
)
"""Fields that may say more of a conversation, or that it is not one to train on."""
_LEFT_OUT = ("messages", "answer", "reasoning", "system", "mark", "list of marks")
"""Kinds of fields that are hardly left out on purpose."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def hardly_left_out(name: str) -> str:
    """Return the kind of a field that is hardly left out on purpose, by its name or a word in it; "" for any other.

    >>> hardly_left_out("Complex_CoT"), hardly_left_out("human_answers"), hardly_left_out("systemMessage")
    ('reasoning', 'answer', 'system')
    >>> hardly_left_out("answer_id"), hardly_left_out("score")
    ('', '')
    """
    words = list(map(str.lower, _WORD.findall(name.replace("CoT", "Cot"))))
    for kind in _LEFT_OUT:
        asked = [name.lower(), *words[-1:]]
        if kind in ("reasoning", "system"):
            asked += words
        singular = {word.removesuffix("s") for word in asked}
        if not singular.union(asked).isdisjoint(KINDS[kind]):
            return kind
    return ""
