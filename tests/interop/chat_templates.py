"""Render conversations by the chat templates that TRL ships, with packtool and with Transformers. Runs where these are.

    python chat_templates.py rendered|sanitized TOKENIZER CONVERSATIONS

Prints JSON. `rendered`: how many `templates` there are; how many renderings are the `same`, `refused` by both, or
`differ`; how many `masks` of marked templates are the same, or `differ_in_masks`; how many are as those of the same
texts in parts, where a template made `for_parts` leaves strings out; and how many conversations packtool refuses since
tools or calls are `not_shown`.

`sanitized`: control tokens in conversations are encoded as plain text. How many conversations are the `same` as by
`sanitize_control_tokens`, `refused` by both, refused here alone since the template `cuts` a token, or `differ`; and how
many hold something to encode as text (`apart`).
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import transformers.utils.chat_template_utils as theirs
import trl
from transformers import PreTrainedTokenizerFast

from packtool.text.conversations.ends import Ends
from packtool.text.conversations.spans import documents_of
from packtool.text.conversations.template import ChatTemplate, literals
from packtool.text.faults import Fault
from packtool.text.tokenizing.conversations import PlainText, token_mask
from tests.text.conversations.fuzz import conversation
from tests.text.conversations.talks import talk_of

NOW = datetime(2026, 1, 2, 3, 4, 5)
NOT_SHOWN = "does not show a"
"""Words of the errors for what a template leaves out without a word."""


class Clock(datetime):
    """Tells the date that packtool is given."""

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return NOW


def sources() -> Iterator[str]:
    for path in sorted(Path(trl.__file__).parent.glob("chat_templates/*.jinja")):
        yield path.read_text()


def given_to(tokenizer: Any, given: dict[str, Any], source: str, **options: Any) -> Any:
    """What Transformers makes of a conversation; None where the template refuses it."""
    options |= {"tools": given.get("tools"), "chat_template": source}
    try:
        return tokenizer.apply_chat_template(given["messages"], **options)
    except Exception:
        return None


def rendered(tokenizer: Any, conversations: int, draw: random.Random) -> Counter[str]:
    counts: Counter[str] = Counter()
    for source in sources():
        template = ChatTemplate(source, tokenizer.special_tokens_map, now=NOW)
        counts["templates"] += 1
        for number in range(conversations):
            given = conversation(draw, ("plain", "system", "tools", "reasoning")[number % 4])
            found = talk_of(given)
            prompt = number % 5 == 0
            expected = given_to(tokenizer, given, source, tokenize=False, add_generation_prompt=prompt)
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
                counts["not_shown" if NOT_SHOWN in str(error) else "differ_in_masks"] += 1
                continue
            encoded = tokenizer(document.text, add_special_tokens=False, return_offsets_mapping=True)
            offsets = np.array(encoded["offset_mapping"], np.int64).reshape(-1, 2)
            mask = token_mask(offsets[:, 0], offsets[:, 1], document.spans)
            ours = {"input_ids": encoded["input_ids"], "assistant_masks": mask.tolist()}
            outcome = "differ_in_masks"
            for kind, form in (("for_parts", in_parts(given)), ("masks", given)):
                wanted = given_to(tokenizer, form, source, return_dict=True, return_assistant_tokens_mask=True)
                if wanted is not None and all(wanted[name] == values for name, values in ours.items()):
                    outcome = kind
            counts[outcome] += 1
    return counts


def in_parts(given: dict[str, Any]) -> dict[str, Any]:
    """A conversation whose contents are parts."""
    messages = []
    for given_message in given["messages"]:
        message = dict(given_message)
        if isinstance(message.get("content"), str):
            message["content"] = [{"type": "text", "text": message["content"]}]
        messages.append(message)
    return {**given, "messages": messages}


def sanitized(tokenizer: Any, conversations: int, draw: random.Random) -> Counter[str]:
    tokenizer.add_tokens(["<think>", "</think>", "<tool_call>"])
    tokenizer.add_tokens(["<|im_start|>", "<|im_end|>", "[INST]"], special_tokens=True)
    reference: Any = SimpleNamespace(tokenizer=tokenizer.backend_tokenizer)
    plain = PlainText(reference)
    counts: Counter[str] = Counter()
    for source in sources():
        written = literals(source)
        added = tokenizer.added_tokens_decoder.values()
        control = [each.content for each in added if each.special or each.content in written]
        template = ChatTemplate(source, tokenizer.special_tokens_map, now=NOW, control=control)
        for _ in range(conversations):
            given = conversation(draw)
            expected = given_to(tokenizer, given, source, sanitize_control_tokens=True, return_dict=True)
            talk = talk_of(given)
            try:
                made = template.render(talk.messages, talk.tools)
            except Fault as error:
                counts["refused" if expected is None else "cuts" if "cuts" in str(error) else "differ"] += 1
                continue
            found = plain.one(made.text, (), made.apart)[0].tolist()
            counts["apart"] += bool(made.apart)
            counts["same" if expected is not None and found == expected["input_ids"] else "differ"] += 1
    return counts


def main(what: str, tokenizer_file: str, conversations: str) -> None:
    theirs.datetime = Clock
    special = dict.fromkeys(("bos_token", "eos_token", "pad_token"), "<|endoftext|>")
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=tokenizer_file, **special)
    count = {"rendered": rendered, "sanitized": sanitized}[what]
    sys.stdout.write(json.dumps(count(tokenizer, int(conversations), random.Random(0))) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
