"""Conversations have the ids and masks of Transformers' `apply_chat_template`.

With small templates and a small tokenizer; tests/interop/test_chat_masks.py has those of real models.
"""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.formats.token_store import TokenStore
from tests.text.conversations.fuzz import conversation
from tests.text.tokenizing.runs import ASSET

pytestmark = pytest.mark.torch
transformers = pytest.importorskip("transformers")

EOS = "<|endoftext|>"
BODIES = {
    "copied": "{{ m.content }}",
    "stripped": "{{ m['content'] | trim }}",
    "thinking": "{% if '</think>' in m.content %}{{ m.content.split('</think>')[-1].lstrip() }}"
    "{% else %}{{ m.content }}{% endif %}",
    "calling": "{{ m.content }}{% if m.tool_calls %}{{ m.tool_calls | tojson }}{% endif %}{{ (tools or []) | length }}",
    "parts": "{% for p in [m.content] if p is string %}{{ p }}{% endfor %}"
    "{% for p in m.content if m.content is not string %}{{ p.text }}{% endfor %}",
}
# What is marked ends with a character of one token: of another, Transformers marks the first token only.
LOOP = (
    "{% for m in messages %}{{ '<' ~ m.role ~ '>' }}{% if m.role == 'assistant' %}{% generation %}BODY|"
    "{% endgeneration %}{% else %}BODY{% endif %}{{ '\\n' }}{% endfor %}"
)


def stored(place: Path) -> tuple[dict[int, tuple[list[int], list[int]]], int]:
    """Ids and masks of the conversations of a store, by record, and its EOS."""
    store = TokenStore(place)
    assert store.loss is not None
    ids, loss = np.concatenate(list(store.shards)), np.concatenate(list(store.loss))
    ends = np.cumsum(store.lengths().astype(np.int64))
    begins = ends - store.lengths()
    records = store.origins()["record"]
    found = {
        int(record): (ids[begin:end].tolist(), loss[begin:end].tolist())
        for record, begin, end in zip(records, begins, ends, strict=True)
    }
    return found, store.manifest.tokenizer.eos_id


def as_one_string(message: dict[str, Any]) -> dict[str, Any]:
    """A message whose text is joined, as templates for strings take it: they would lose or print parts."""
    content = message.get("content")
    return {**message, "content": "".join(part["text"] for part in content)} if isinstance(content, list) else message


@pytest.mark.filterwarnings("ignore::packtool.warnings.PacktoolWarning")
@pytest.mark.parametrize("body", BODIES)
def test_ids_and_masks_are_those_of_transformers(tmp_path: Path, body: str) -> None:
    draw = random.Random(body)
    records: list[dict[str, Any]] = [conversation(draw) for _ in range(150)]
    (tmp_path / "chats.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (tmp_path / "chat.jinja").write_text(LOOP.replace("BODY", BODIES[body]))
    packtool.tokenize(
        tmp_path / "chats.jsonl",
        tmp_path / "store",
        tokenizer=ASSET,
        chat_template=tmp_path / "chat.jinja",
        on_error="quarantine",
    )
    found, eos = stored(tmp_path / "store")
    rejects = [json.loads(line) for line in (tmp_path / "store" / "rejected.jsonl").read_text().splitlines()]
    not_shown = {each["record"] for each in rejects if "does not show" in each["reason"]}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(ASSET), eos_token=EOS)
    tokenizer.chat_template = (tmp_path / "chat.jinja").read_text()
    compared = 0
    for number, record in enumerate(records, 1):
        messages = record["messages"] if body == "parts" else [as_one_string(message) for message in record["messages"]]
        try:
            expected = tokenizer.apply_chat_template(
                messages, tools=record.get("tools"), return_dict=True, return_assistant_tokens_mask=True
            )
        except Exception:  # whatever a template raises
            assert number not in found
            continue
        if number in not_shown:  # Transformers renders it all the same, and loses a call or a tool
            assert {"tools", "tool_calls"} & {*record, *(name for message in messages for name in message)}
            continue
        ids, mask = list(expected["input_ids"]), list(expected["assistant_masks"])
        if not any(mask):
            assert number not in found
            continue
        if ids[-1] != eos:  # else that is the EOS of the store
            ids, mask = [*ids, eos], [*mask, 0]
        assert found[number] == (ids, mask)
        compared += 1
    assert compared >= 120 - len(not_shown)
    assert len(not_shown) < 40
