"""Conversations of every shape, drawn by a seed: what real ones hold, and what upsets tokenizers and templates."""

import random
from typing import Any

WORDS = (
    *("hello", "The quick brown fox", "  spaced ", "don't", "1999", "x = {'a': [1, 2]}", "\n\nline\n", "\t"),
    *("été", "naïve"),
    *("日本語", "한국어", "мир", "שלום", "😀", "👩‍👩‍👧‍👦", "🇨🇭", "e\u0301", "\u00a0", "ﬁ", "½", "\u200d", "\u0e33"),
    "a\r\nb",
    *("{{ x }}", "{% if %}", "&<>'\"", "\\n", "</s>", "<s>", "<think>", "</think>", "<|im_end|>"),
    *("<|eot_id|>", "[INST]"),
    *("<end_of_turn>", "<|endoftext|>", "<tool_call>", "```py\nprint('hi')\n```", "$x^2_{ij}$", "https://a.b/c?d=e#f"),
)
KINDS = ("plain", "system", "tools", "reasoning", "parts", "empty", "long", "thought")
_PARAMETERS = {"type": "object", "properties": {"x": {"type": "string", "description": "é"}}, "required": ["x"]}
_TOOLS = [{"type": "function", "function": {"name": "get", "description": "d <b>", "parameters": _PARAMETERS}}]


def talk(*contents: str, **last: Any) -> dict[str, Any]:
    """Messages of a user and an assistant by turns; the last one says more."""
    messages = [{"role": ("user", "assistant")[number % 2], "content": said} for number, said in enumerate(contents)]
    return {"messages": [*messages[:-1], {**messages[-1], **last}]}


def conversation(draw: random.Random, kind: str | None = None) -> dict[str, Any]:
    """A record with messages."""
    kind = kind or draw.choice(KINDS)

    def text(most: int = 6) -> str:
        return draw.choice((" ", "")).join(draw.choices(WORDS, k=draw.randint(1, most))) + draw.choice((".", "", "!\n"))

    def said() -> Any:
        if kind == "parts":
            return [{"type": "text", "text": text()} for _ in range(draw.randint(1, 2))]
        if kind == "empty" and draw.random() < 0.3:
            return ""
        return text(200 if kind == "long" else 6)

    messages: list[dict[str, Any]] = []
    if kind != "plain" and draw.random() < 0.7:
        messages.append({"role": "system", "content": said()})
    for number in range(draw.randint(1, 4)):
        messages.append({"role": "user", "content": said()})
        if kind == "tools" and draw.random() < 0.7:
            arguments = {"x": text(), "n": draw.choice((1, 2.5, True, None, [1], {"y": "é"}))}
            call = {"type": "function", "id": f"call{number:05d}", "function": {"name": "get", "arguments": arguments}}
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
            messages.append({"role": "tool", "name": "get", "tool_call_id": call["id"], "content": text()})
        answer = {"role": "assistant", "content": said()}
        if kind == "reasoning":
            answer["reasoning_content"] = text()
        elif kind == "thought":
            answer["content"] = f"<think>\n{text()}\n</think>\n\n{answer['content']}"
        messages.append(answer)
    return {"messages": messages, "tools": _TOOLS} if kind == "tools" else {"messages": messages}
