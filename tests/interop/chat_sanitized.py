"""Encode conversations with control tokens in them by TRL's templates, as plain text. Runs where Transformers is.

    python chat_sanitized.py TOKENIZER CONVERSATIONS

Prints JSON: how many conversations are the `same` as by `sanitize_control_tokens`, `refused` by both, refused here
alone since the template `cuts` a token, or `differ`; and how many hold something to encode as text (`apart`).
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import transformers.utils.chat_template_utils as theirs
import trl
from transformers import PreTrainedTokenizerFast

from packtool.text.conversations.record import conversation_of
from packtool.text.conversations.template import ChatTemplate, literals
from packtool.text.faults import Fault
from packtool.text.tokenizing.conversations import PlainText
from tests.interop.chat_templates import NOW, Clock
from tests.text.conversations.fuzz import conversation


def main(tokenizer_file: str, conversations: str) -> None:
    theirs.datetime = Clock
    special = dict.fromkeys(("bos_token", "eos_token", "pad_token"), "<|endoftext|>")
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=tokenizer_file, **special)
    tokenizer.add_tokens(["<think>", "</think>", "<tool_call>"])
    tokenizer.add_tokens(["<|im_start|>", "<|im_end|>", "[INST]"], special_tokens=True)
    reference: Any = SimpleNamespace(tokenizer=tokenizer.backend_tokenizer)
    plain = PlainText(reference)
    counts = dict.fromkeys(("same", "refused", "cuts", "differ", "apart"), 0)
    draw = random.Random(0)
    for path in sorted(Path(trl.__file__).parent.glob("chat_templates/*.jinja")):
        source = path.read_text()
        written = literals(source)
        added = tokenizer.added_tokens_decoder.values()
        control = [each.content for each in added if each.special or each.content in written]
        template = ChatTemplate(source, tokenizer.special_tokens_map, now=NOW, control=control)
        for _ in range(int(conversations)):
            given = conversation(draw)
            options: dict[str, Any] = {"tools": given.get("tools"), "chat_template": source}
            try:
                expected = tokenizer.apply_chat_template(
                    given["messages"], sanitize_control_tokens=True, return_dict=True, **options
                )["input_ids"]
            except Exception:
                expected = None
            talk = conversation_of(given)
            try:
                rendered = template.render(talk.messages, talk.tools)
            except Fault as error:
                counts["refused" if expected is None else "cuts" if "cuts" in str(error) else "differ"] += 1
                continue
            found = plain.one(rendered.text, (), rendered.apart)[0].tolist()
            counts["apart"] += bool(rendered.apart)
            counts["same" if found == expected else "differ"] += 1
    sys.stdout.write(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
