"""`--holdout-by`, and conversations of several documents: what belongs together is on one side of a hold-out."""

import random
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.choosing import documents as module
from packtool.errors import PacktoolError
from packtool.formats.packed import PackedDataset
from packtool.formats.token_store import TokenStore
from packtool.planning import arrays
from packtool.warnings import PacktoolWarning
from tests.choosing.web_and_wiki import pack, store_of

FORGETFUL = (
    "{% for m in messages %}{{ m.role }}:{% if m.role == 'user' %}{{ m.content }};{% else %}{% generation %}"
    "{{ m.content if loop.last else m.content.split('</think>')[-1] }}<|endoftext|>{% endgeneration %}"
    "{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
"""A template that leaves out the thoughts of all turns but the last, so that each turn is a document."""


def of_repositories(place: Path, count: int, **options: Any) -> Path:
    """Documents of 17 repositories, some of none."""
    records: list[dict[str, Any]] = []
    for n in range(count):
        records.append({"text": f"{place.name} {n} " * (1 + n % 5), "repo": f"r{n * n % 17}" if n % 10 else None})
    return store_of(place, records, columns="repo", **options)


def repositories(dataset: PackedDataset, store: Path) -> list[str | None]:
    """The repository of each document that was packed."""
    values = TokenStore(store).column("repo").to_pylist()
    return [values[number] for number in dataset.chosen()[0].tolist()]


@pytest.mark.parametrize("amount", ["30%", "40 documents", "500 tokens"])
@pytest.mark.filterwarnings("ignore::packtool.warnings.PacktoolWarning")
def test_documents_with_one_value_are_on_one_side(tmp_path: Path, amount: str) -> None:
    store = of_repositories(tmp_path / "code", 200)
    how: dict[str, Any] = {"holdout": amount, "holdout_by": "repo", "holdout_seed": 3}
    sides = {part: pack([store], tmp_path / part, part=part, **how) for part in ("train", "holdout")}
    train, held = (repositories(sides[part], store) for part in ("train", "holdout"))
    assert sorted(map(str, train + held)) == sorted(map(str, TokenStore(store).column("repo").to_pylist()))
    assert not set(train) & set(held) - {None}
    assert {*held} - {None}
    other = of_repositories(tmp_path / "more", 60)
    again = pack([other], tmp_path / "again", holdout_of=tmp_path / "train")
    assert again.manifest.choice.options["holdout_by"] == "repo"
    assert not set(repositories(again, other)) & set(held) - {None}
    assert None in train  # each by its own text
    for number in sides["holdout"].chosen()[0].tolist()[:3]:
        found = packtool.find(tmp_path / "train", f"code.jsonl:{1 + number}", store=store)
        assert found.absent[0].because == [f"--holdout {amount} --holdout-by repo: it is held out for validation"]


def test_documents_without_a_value_are_said(tmp_path: Path) -> None:
    store = of_repositories(tmp_path / "code", 200)
    said = r"20 documents without repo \(first: code.jsonl:1\): their texts decide. Leave them out if they belong toget"
    with pytest.warns(PacktoolWarning, match=said):
        pack([store], tmp_path / "p", holdout="30%", holdout_by="repo")
    fewer = {"where": "repo is not None and tokens > 0", "holdout": "30%", "holdout_by": "repo"}
    pack([store], tmp_path / "q", **fewer)  # a warning would be an error
    bare = of_repositories(tmp_path / "bare", 20, provenance=False)
    with pytest.raises(PacktoolError, match="bare: made with provenance=False"):
        pack([bare], tmp_path / "r", holdout="30%", holdout_by="repo")
    pack([bare], tmp_path / "r", holdout="30%", holdout_by="repo", where="repo is not None")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"holdout": "30%", "holdout_by": "nosuch"}, "holdout_by: 'nosuch' was not kept with the documents of "),
        ({"holdout_by": "repo"}, "holdout_by: has no effect without holdout"),
        ({"holdout_by": "repo", "holdout_of": "p"}, "holdout_by: has no effect without holdout"),
        ({"holdout": "30%", "holdout_by": ""}, "holdout_by: an empty name. Give the name of a field"),
    ],
)
def test_what_can_not_decide_is_refused(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(PacktoolError) as raised:
        pack([of_repositories(tmp_path / "code", 20)], tmp_path / "p", **options)
    assert said in str(raised.value)


def talks(place: Path, conversations: list[int], **options: Any) -> Path:
    """Conversations of so many turns, in which only the last turn shows its thoughts."""
    (place.parent / "t.jinja").write_text(FORGETFUL)
    records = []
    for number, turns in enumerate(conversations):
        messages = []
        for turn in range(turns):
            messages.append({"role": "user", "content": f"question {number} {turn}"})
            messages.append({"role": "assistant", "content": f"<think>why {turn}</think>answer {turn}"})
        records.append({"messages": messages})
    return store_of(place, records, chat_template=place.parent / "t.jinja", **options)


@pytest.mark.parametrize("few", [1, 3, 1024])
def test_turns_of_one_conversation_are_on_one_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    """Also where a conversation goes on in the next portion; and on the side where a store of whole ones has it."""
    monkeypatch.setattr(module, "_FEW", few)
    monkeypatch.setattr(arrays, "BLOCK", 7)
    draw = random.Random(5)
    turns = [draw.randrange(1, 6) for _ in range(40)]
    each = talks(tmp_path / "each", turns, train_on="each")
    whole = talks(tmp_path / "whole", turns)
    lines = TokenStore(each).origins()["record"].tolist()
    assert len(lines) == sum(turns)
    for amount in ("30%", "20 documents"):
        how: dict[str, Any] = {"overwrite": True, "sequence_length": 512}
        sides = []
        for part in ("train", "holdout"):
            dataset = pack([each], tmp_path / part, holdout=amount, part=part, **how)
            sides.append({lines[number] for number in dataset.chosen()[0].tolist()})
        assert sides[0]
        assert sides[1]
        assert not sides[0] & sides[1]
        of_whole = pack([whole], tmp_path / "w", holdout_of=tmp_path / "train", part="holdout", **how)
        assert {1 + number for number in of_whole.chosen()[0].tolist()} == sides[1]
    (held,) = packtool.find(tmp_path / "train", f"each.jsonl:{min(sides[1])}", store=each).absent[:1]
    assert held.because == ["--holdout 20 documents: it is held out for validation"]
