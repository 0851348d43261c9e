"""Templates in additional_chat_templates, as `save_pretrained` of Transformers writes them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.errors import PacktoolError
from packtool.warnings import PacktoolWarning
from tests.stores import load
from tests.text.tokenizing.runs import ASSET, documents

TURN = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% if m.role == 'assistant' %}<|endoftext|>{% endif %}"
END = "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
TALK: dict[str, Any] = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
WITH_TOOLS = {**TALK, "tools": [{"type": "function", "function": {"name": "f"}}]}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    (folder / "additional_chat_templates").mkdir(parents=True)
    shutil.copy(ASSET, folder / "tokenizer.json")
    (folder / "tokenizer_config.json").write_text('{"eos_token": "<|endoftext|>"}')
    (folder / "chat_template.jinja").write_text(TURN + END)
    (folder / "additional_chat_templates" / "tool_use.jinja").write_text("{{ tools | tojson }}" + TURN + END)
    (folder / "additional_chat_templates" / "rag.jinja").write_text("rag" + TURN + END)
    return folder


def ids(text: str) -> list[int]:
    from tokenizers import Tokenizer

    return list(Tokenizer.from_file(str(ASSET)).encode(text, add_special_tokens=False).ids)


def test_records_with_tools_have_the_template_for_tools(tmp_path: Path, model: Path) -> None:
    packtool.tokenize([TALK, WITH_TOOLS], tmp_path / "s", tokenizer=model)
    said = "<user>a<assistant>b<|endoftext|>"
    assert documents(tmp_path / "s") == [ids(said), ids(json.dumps(WITH_TOOLS["tools"]) + said)]
    names = [file["name"] for file in load(tmp_path / "s")["tokenizer_files"]]
    assert "additional_chat_templates/tool_use.jinja" in names
    packtool.tokenize([WITH_TOOLS], tmp_path / "again", tokenizer=tmp_path / "s")
    assert documents(tmp_path / "again") == documents(tmp_path / "s")[1:]
    packtool.tokenize([TALK], tmp_path / "rag", tokenizer=model, chat_template="rag")
    assert documents(tmp_path / "rag") == [ids("rag" + said)]
    packtool.tokenize([TALK], tmp_path / "s", tokenizer=model, overwrite=True)
    assert packtool.verify(tmp_path / "s").problems == []


def test_a_template_that_no_record_needs_may_be_invalid(tmp_path: Path, model: Path) -> None:
    (model / "additional_chat_templates" / "tool_use.jinja").write_text("{% for %}")
    packtool.tokenize([TALK], tmp_path / "s", tokenizer=model)
    assert documents(tmp_path / "s") == [ids("<user>a<assistant>b<|endoftext|>")]
    with pytest.raises(PacktoolError, match="invalid chat template"):
        packtool.tokenize([WITH_TOOLS], tmp_path / "t", tokenizer=model)


def test_an_id_that_is_taken_is_told_whichever_file_names_it(tmp_path: Path, model: Path) -> None:
    (model / "added_tokens.json").write_text('{"<new>": 5}')
    with pytest.warns(PacktoolWarning, match=r"<new> is \d+, as in Transformers, but added_tokens\.json says 5"):
        packtool.tokenize([TALK], tmp_path / "s", tokenizer=model)
