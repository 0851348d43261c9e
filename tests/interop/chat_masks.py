"""Compare stores of conversations with what Transformers, or TRL's trainer, makes of them. Runs where these are.

    python chat_masks.py transformers|trl JOBS

JOBS is a JSON file: a list of objects with the `tokenizer`'s directory, the `template`'s file, the `records` (JSON
Lines) and the `stored` ids and masks (an .npz). Prints JSON: how many conversations are the `same`, `refused` by both,
train `nothing`, or `differ`, and the first that differ.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils

from tests.interop.chat_templates import Clock

NOTHING = "nothing trains"


def tokenizer_of(job: dict[str, Any]) -> PreTrainedTokenizerFast:
    place = Path(job["tokenizer"])
    special = json.loads((place / "tokenizer_config.json").read_text())
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(place / "tokenizer.json"), **special)
    tokenizer.chat_template = Path(job["template"]).read_text(encoding="utf-8")
    return tokenizer


def by_transformers(job: dict[str, Any], records: list[dict[str, Any]]) -> list[tuple[list[int], list[int]] | str]:
    tokenizer = tokenizer_of(job)
    chat_template_utils.datetime = Clock
    out: list[tuple[list[int], list[int]] | str] = []
    for record in records:
        try:
            messages = taken(tokenizer, record)
            found = tokenizer.apply_chat_template(
                messages, tools=record.get("tools"), return_dict=True, return_assistant_tokens_mask=True
            )
        except Exception as error:
            out.append(f"refused: {error}")
            continue
        masks = found["assistant_masks"]
        if hides_calls(tokenizer, messages, record.get("tools")):
            out.append("refused: Transformers would lose a call, or the tools, without a word")
        else:
            out.append((found["input_ids"], masks) if any(masks) else NOTHING)
    return out


def hides_calls(tokenizer: Any, messages: list[dict[str, Any]], tools: Any) -> bool:
    """Whether the template makes the same text of the conversation without the calls of a message, or without tools."""
    whole = tokenizer.apply_chat_template(messages, tools=tools, tokenize=False)
    without = [(messages, None)] if tools else []
    for at, message in enumerate(messages):
        if message.get("tool_calls"):
            bare = {name: value for name, value in message.items() if name != "tool_calls"}
            without.append(([*messages[:at], bare, *messages[at + 1 :]], tools))
    return any(_rendered(tokenizer, each, those) == whole for each, those in without)


def _rendered(tokenizer: Any, messages: list[dict[str, Any]], tools: Any) -> str | None:
    try:
        text: str = tokenizer.apply_chat_template(messages, tools=tools, tokenize=False)
    except Exception:
        return None
    return text


def taken(tokenizer: Any, record: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages as the template takes them: where it takes strings alone, packtool joins content in parts."""
    messages: list[dict[str, Any]] = record["messages"]
    if not any(isinstance(message.get("content"), list) for message in messages):
        return messages
    try:
        text = tokenizer.apply_chat_template(messages, tools=record.get("tools"), tokenize=False)
    except Exception:
        return _with_strings(messages)
    return _with_strings(messages) if _loses_parts(messages, text) else messages


def _with_strings(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with the texts of a content in parts as one."""
    out = []
    for message in messages:
        content = message.get("content")
        if isinstance(content, list):
            content = "".join(part["text"] for part in content)
        out.append({**message, "content": content} if "content" in message else message)
    return out


def _loses_parts(messages: list[dict[str, Any]], text: str) -> bool:
    """Whether the template leaves out content in parts, or writes the list as Python or JSON does."""
    contents = [message["content"] for message in messages if isinstance(message.get("content"), list)]
    shown = [part["text"].rpartition("</think>")[2].strip() for content in contents for part in content]
    lists = [form for content in contents for form in (str(content), json.dumps(content, ensure_ascii=False))]
    return any(form in text for form in lists) or not all(part in text for part in shown)


def by_trl(job: dict[str, Any], records: list[dict[str, Any]]) -> list[tuple[list[int], list[int]] | str]:
    """As TRL's trainer prepares them, in their order.

    It ends with the first that the template refuses, or of which nothing trains: these are left out by Transformers.
    """
    from datasets import Dataset
    from transformers import Qwen2Config, Qwen2ForCausalLM
    from trl import SFTConfig, SFTTrainer

    out: list[tuple[list[int], list[int]] | str] = [([], [])] * len(records)
    if job["train_on"] == "assistant":
        out = by_transformers(job, records)
    tokenizer = tokenizer_of(job)
    if job["train_on"] == "assistant":
        records = [{**record, "messages": taken(tokenizer, record)} for record in records]
    places = [place for place, each in enumerate(out) if not isinstance(each, str)]
    columns: dict[str, list[Any]] = {}
    for name in ("messages", "prompt", "completion", "tools"):
        values = [records[place].get(name) for place in places]
        if any(values):  # tools as JSON, as TRL takes them, too
            columns[name] = [json.dumps(each) if name == "tools" and each else each for each in values]
    tokenizer.pad_token = tokenizer.eos_token
    shape = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = Qwen2ForCausalLM(Qwen2Config(vocab_size=len(tokenizer), num_key_value_heads=2, **shape))
    arguments = SFTConfig(
        output_dir=job["scratch"],
        max_length=None,
        report_to="none",
        use_cpu=True,
        bf16=False,
        shuffle_dataset=False,
        assistant_only_loss=job["train_on"] == "assistant",
    )
    chats = Dataset.from_dict(columns, on_mixed_types="use_json")
    rows = SFTTrainer(model=model, args=arguments, train_dataset=chats, processing_class=tokenizer).train_dataset
    for place, row in zip(places, rows, strict=True):
        out[place] = (row["input_ids"], [int(label != -100) for label in row["labels"]])
    return out


def main(peer: str, jobs: str) -> None:
    counts: Counter[str] = Counter()
    differing = []
    for job in json.loads(Path(jobs).read_text()):
        records = [json.loads(line) for line in Path(job["records"]).read_text().splitlines()]
        expected = (by_trl if peer == "trl" else by_transformers)(job, records)
        stored = np.load(job["stored"])
        ends = np.cumsum(stored["lengths"].astype(np.int64))
        found: dict[int, tuple[list[int], list[int]]] = {
            int(record) - 1: (stored["ids"][a:b].tolist(), stored["loss"][a:b].tolist())
            for record, a, b in zip(stored["record"], ends - stored["lengths"], ends, strict=True)
        }
        for number, each in enumerate(expected):
            mine = found.get(number)
            if isinstance(each, str):
                verdict = "differ" if mine is not None else "nothing" if each == NOTHING else "refused"
            else:
                ids, mask = list(each[0]), list(each[1])
                if ids and ids[-1] != int(stored["eos"]):  # else that is the EOS of the store
                    # It trains where it alone ends the last answer, of which Transformers knows nothing.
                    trains = 0 if mine is None else mine[1][-1]
                    ids, mask = [*ids, int(stored["eos"])], [*mask, trains]
                verdict = "same" if mine == (ids, mask) else "differ"
            counts[verdict] += 1
            if verdict == "differ":
                counts[f"differ {Path(job['template']).name}"] += 1
                if len(differing) < 20:
                    differing.append([Path(job["template"]).name, number, str(each)[:300], str(mine)[:300]])
    sys.stdout.write(json.dumps({**counts, "first": differing}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
