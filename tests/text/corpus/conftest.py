"""What conversations of a corpus are tokenized with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.text.tokenizing.runs import ASSET

TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% if m.role == 'assistant' %}<|endoftext|>{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture
def chat(tmp_path: Path) -> dict[str, Any]:
    """Options of `tokenize` for conversations, with a template that may be changed."""
    (tmp_path / "t.jinja").write_text(TEMPLATE)
    return {"tokenizer": ASSET, "chat_template": tmp_path / "t.jinja", "workers": 1}
