"""Conversations are rendered and masked as Transformers does, by the chat templates of the models that TRL supports."""

import json
from pathlib import Path

import pytest

from tests.interop.peers import HERE, in_peer
from tests.text.tokenizing.runs import ASSET

pytestmark = pytest.mark.interop


def test_texts_and_masks_are_those_of_transformers(tmp_path: Path) -> None:
    found = json.loads(
        in_peer("training", tmp_path, HERE / "chat_templates.py", "rendered", ASSET, 20).splitlines()[-1]
    )
    assert found["templates"] >= 60
    assert found["same"] > 5 * found["refused"] > 0
    assert found["masks"] > 300
    assert 0 < found["for_parts"] < 60
    assert 0 < found["not_shown"] < 60
    assert found.keys().isdisjoint(("differ", "differ_in_masks"))


def test_control_tokens_of_messages_are_encoded_as_by_transformers(tmp_path: Path) -> None:
    found = json.loads(
        in_peer("training", tmp_path, HERE / "chat_templates.py", "sanitized", ASSET, 20).splitlines()[-1]
    )
    assert "differ" not in found
    assert found["apart"] > 300
    assert found["cuts"] < found["same"] // 10
