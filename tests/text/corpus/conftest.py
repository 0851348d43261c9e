"""What conversations of a corpus are tokenized with."""

from pathlib import Path
from typing import Any

import pytest

from tests.text.tokenizing.runs import ASSET

SHOWING = (
    "{# think, call and function are words of this template #}"
    "{% for m in messages %}{{ m.role }}:{{ '(' ~ m.reasoning_content ~ ')' if m.reasoning_content }}{{ m.content }}"
    "{{ '<|endoftext|>' if m.role == 'assistant' }} "
    "{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"
)


@pytest.fixture
def chat(tmp_path: Path) -> dict[str, Any]:
    """Options of `tokenize` for conversations, with a template that shows reasoning, and may be changed."""
    (tmp_path / "t.jinja").write_text(SHOWING)
    return {"tokenizer": ASSET, "chat_template": tmp_path / "t.jinja", "workers": 1}
