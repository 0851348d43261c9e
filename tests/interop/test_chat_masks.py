"""Stores of conversations hold the ids and masks of Transformers and TRL, on real tokenizers and templates."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.formats.token_store import TokenStore
from tests.interop.peers import HERE, ROOT, in_peer
from tests.text.conversations.fuzz import conversation
from tests.text.encoding.fetch import tokenizer

FAMILIES = {
    "qwen2_5": ("qwen3", "<|im_end|>", None),
    "qwen3": ("qwen3", "<|im_end|>", None),
    "qwen3_instruct_2507": ("qwen3", "<|im_end|>", None),
    "qwen3_5_think": ("qwen3", "<|im_end|>", None),
    "qwen3_6": ("qwen3", "<|im_end|>", None),
    "llama3": ("llama3_1", "<|eot_id|>", "<|begin_of_text|>"),
    "gemma": ("gemma2", "<eos>", "<bos>"),
    "gemma3": ("gemma3", "<eos>", "<bos>"),
    "deepseekv3": ("deepseek_v3", "<｜end▁of▁sentence｜>", "<｜begin▁of▁sentence｜>"),
    "deepseek_r1_distill": ("deepseek_v3", "<｜end▁of▁sentence｜>", "<｜begin▁of▁sentence｜>"),
    "gptoss": ("gptoss", "<|return|>", "<|startoftext|>"),
    "phi3": ("phi 3 (made)", "<|endoftext|>", "<s>"),
    "phi3_5": ("phi 3 (made)", "<|endoftext|>", "<s>"),
    "cohere": ("command_r_plus", "<|END_OF_TURN_TOKEN|>", "<BOS_TOKEN>"),
    "cohere2": ("command_r_plus", "<|END_OF_TURN_TOKEN|>", "<BOS_TOKEN>"),
    "glm4moe": ("qwen3", "<|endoftext|>", None),
    "nemotron_3_nano": ("mistral_nemo", "</s>", "<s>"),
    "lfm2": ("llama3_1", "<|eot_id|>", "<|begin_of_text|>"),
}
"""Templates with marks, and for each a tokenizer, its EOS and its BOS."""
DATE = "2026-01-02T03:04:05"
"""As the clock of chat_templates.py has it."""
pytestmark = pytest.mark.interop


def templates() -> Path:
    """The directory of TRL's chat templates."""
    program = "import importlib.util as u; print(u.find_spec('trl').submodule_search_locations[0])"
    return Path(in_peer("training", ROOT, "-c", program).strip()) / "chat_templates"


def job(work: Path, family: str, source: Path, records: list[dict[str, Any]], train_on: str) -> dict[str, str]:
    """Tokenize conversations by a family's template; what the peer's script compares."""
    place = work / family
    (place / "model").mkdir(parents=True)
    name, eos, bos = FAMILIES[family]
    special = {"eos_token": eos, **({} if bos is None else {"bos_token": bos})}
    (place / "model" / "tokenizer.json").write_bytes(tokenizer(name))
    (place / "model" / "tokenizer_config.json").write_text(json.dumps(special))
    shutil.copy(source, place / "model" / "chat_template.jinja")
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (place / "records.jsonl").write_text(lines)
    packtool.tokenize(
        place / "records.jsonl",
        place / "store",
        tokenizer=place / "model",
        train_on=train_on,
        template_date=DATE,
        on_error="quarantine",
    )
    store = TokenStore(place / "store")
    assert store.loss is not None
    np.savez(
        place / "stored.npz",
        record=store.origins()["record"],
        ids=np.concatenate(list(store.shards)),
        loss=np.concatenate(list(store.loss)),
        lengths=store.lengths(),
        eos=store.manifest.tokenizer.eos_id,
    )
    return {
        "tokenizer": str(place / "model"),
        "template": str(source),
        "records": str(place / "records.jsonl"),
        "stored": str(place / "stored.npz"),
        "train_on": train_on,
        "scratch": str(place / "trl"),
    }


def compared(kind: str, jobs: list[dict[str, str]], work: Path) -> dict[str, Any]:
    (work / "jobs.json").write_text(json.dumps(jobs))
    printed = in_peer("training", work, HERE / "chat_masks.py", kind, work / "jobs.json")
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    assert found.get("differ", 0) == 0, found["first"]
    return found


def of_answers(work: Path, conversations: int, seed: int) -> list[dict[str, str]]:
    """The same random conversations, by every family's template; answers train."""
    draw, place = random.Random(seed), templates()
    records = [conversation(draw) for _ in range(conversations)]
    return [job(work, name, place / f"{name}_training.jinja", records, "assistant") for name in FAMILIES]


@pytest.mark.filterwarnings("ignore::packtool.warnings.PacktoolWarning")
@pytest.mark.parametrize("conversations", [200, pytest.param(10_000, marks=pytest.mark.slow)])
def test_ids_and_masks_are_those_of_transformers(tmp_path: Path, conversations: int) -> None:
    found = compared("transformers", of_answers(tmp_path, conversations, conversations), tmp_path)
    assert found["same"] > 10 * conversations
    assert sum(found.get(name, 0) for name in ("same", "refused", "nothing")) == len(FAMILIES) * conversations


@pytest.mark.filterwarnings("ignore::packtool.warnings.PacktoolWarning")
@pytest.mark.parametrize("conversations", [60, pytest.param(10_000, marks=pytest.mark.slow)])
def test_labels_are_those_of_the_trainer(tmp_path: Path, conversations: int) -> None:
    found = compared("trl", of_answers(tmp_path, conversations, conversations + 1), tmp_path)
    assert found["same"] > 10 * conversations


@pytest.mark.filterwarnings("ignore::packtool.warnings.PacktoolWarning")
def test_labels_of_completions_are_those_of_the_trainer(tmp_path: Path) -> None:
    draw, place = random.Random(1), templates()
    records = [conversation(draw, kind) for kind in ("plain", "system", "long") for _ in range(60)]
    records = [{"prompt": each["messages"][:-1], "completion": each["messages"][-1:]} for each in records]
    # Tokens of Phi 3 strip what follows: where a completion begins with space, the one before has it, and trains here.
    chosen = ("qwen3", "llama3")
    jobs = [job(tmp_path, name, place / f"{name}_training.jinja", records, "completion") for name in chosen]
    assert compared("trl", jobs, tmp_path)["same"] == len(chosen) * len(records)
