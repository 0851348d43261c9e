"""Render conversations by the chat templates that TRL ships, with packtool and with Transformers. Runs where these are.

    python chat_templates.py TOKENIZER CONVERSATIONS

Prints JSON: how many `templates` there are; how many renderings are the `same`, `refused` by both, or `differ`; how
many `masks` of marked templates are the same, or `differ_in_masks`; how many conversations packtool refuses since their
templates, made `for_parts`, leave strings out.
"""

from __future__ import annotations

import json
import random
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import transformers.utils.chat_template_utils as theirs
import trl
from transformers import PreTrainedTokenizerFast

from packtool.text.conversations.ends import Ends
from packtool.text.conversations.record import conversation_of
from packtool.text.conversations.spans import documents_of
from packtool.text.conversations.template import ChatTemplate
from packtool.text.faults import Fault
from packtool.text.tokenizing.conversations import token_mask

NOW = datetime(2026, 1, 2, 3, 4, 5)
WORDS = ["hello", "  spaced ", "{{ x }}", "<think>", "été", "\n\nline\n", "日本", "<|im_end|>", "</think>", "&<>'\""]
PARAMETERS = {"type": "object", "properties": {"x": {"type": "string", "description": "é"}}, "required": ["x"]}
TOOLS = [{"type": "function", "function": {"name": "get", "description": "d <b>", "parameters": PARAMETERS}}]


class Clock(datetime):
    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return NOW


def record(kind: str, draw: random.Random) -> dict[str, Any]:
    def text() -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(1, 4))) + "."

    messages: list[dict[str, Any]] = [{"role": "system", "content": text()}] if kind != "plain" else []
    for _ in range(draw.randint(1, 3)):
        messages.append({"role": "user", "content": text()})
        if kind == "tools":
            function = {"name": "get", "arguments": {"x": text()}}
            messages.append(
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [{"type": "function", "id": "a1", "function": function}],
                }
            )
            messages.append({"role": "tool", "name": "get", "tool_call_id": "a1", "content": text()})
        messages.append({"role": "assistant", "content": text()})
        if kind == "reasoning":
            messages[-1]["reasoning_content"] = text()
    return {"messages": messages, "tools": TOOLS} if kind == "tools" else {"messages": messages}


def main(tokenizer_file: str, conversations: str) -> None:
    theirs.datetime = Clock
    special = dict.fromkeys(("bos_token", "eos_token", "pad_token"), "<|endoftext|>")
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=tokenizer_file, **special)
    counts = dict.fromkeys(("templates", "same", "refused", "differ", "masks", "differ_in_masks", "for_parts"), 0)
    draw = random.Random(0)
    for path in sorted(Path(trl.__file__).parent.glob("chat_templates/*.jinja")):
        source = path.read_text()
        template = ChatTemplate(source, tokenizer.special_tokens_map, now=NOW)
        counts["templates"] += 1
        for number in range(int(conversations)):
            given = record(("plain", "system", "tools", "reasoning")[number % 4], draw)
            found = conversation_of(given)
            options: dict[str, Any] = {"tools": given.get("tools"), "chat_template": source}
            prompt = number % 5 == 0
            try:
                expected = tokenizer.apply_chat_template(
                    given["messages"], tokenize=False, add_generation_prompt=prompt, **options
                )
            except Exception:
                expected = None
            try:
                text = template.render(found.messages, found.tools, prompt=prompt).text
            except Fault:
                text = None
            counts["differ" if text != expected else "refused" if text is None else "same"] += 1
            if text is None or not template.render(found.messages, found.tools).marked:
                continue
            try:
                [document] = documents_of(found, template, ends=Ends((), ["<|endoftext|>"]))
            except Fault as error:
                counts["for_parts" if "takes content in parts alone" in str(error) else "differ_in_masks"] += 1
                continue
            encoded = tokenizer(document.text, add_special_tokens=False, return_offsets_mapping=True)
            offsets = np.array(encoded["offset_mapping"], np.int64).reshape(-1, 2)
            mask = token_mask(offsets[:, 0], offsets[:, 1], document.spans)
            wanted = tokenizer.apply_chat_template(
                given["messages"], return_dict=True, return_assistant_tokens_mask=True, **options
            )
            alike = encoded["input_ids"] == wanted["input_ids"] and mask.tolist() == wanted["assistant_masks"]
            counts["masks" if alike else "differ_in_masks"] += 1
    sys.stdout.write(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
