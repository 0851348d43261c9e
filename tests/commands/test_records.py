"""Records through `tokenize`: each is read by itself, common data sets are read or named by options."""

import csv
import gzip
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from tokenizers import Tokenizer

import packtool
from packtool.errors import PacktoolError, UsageError
from packtool.formats.token_store import TokenStore
from packtool.warnings import PacktoolWarning
from tests.making import write_records
from tests.text.corpus.test_streams import feeding
from tests.text.tokenizing.runs import ASSET

TEMPLATE = (
    "{% if tools %}[{{ tools | tojson }}]{% endif %}{% for m in messages %}<{{ m.role }}>"
    "{% if m.reasoning_content %}({{ m.reasoning_content }}){% endif %}{{ m.content }}{% endfor %}"
)
TALK = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]
SHARED = [{"from": "human", "value": "Why?"}, {"from": "gpt", "value": "So."}]
SAID = "<user>Why?<assistant>So."
Records = list[dict[str, Any]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    (path / "tokenizer.json").write_bytes(ASSET.read_bytes())
    (path / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|endoftext|>", "chat_template": TEMPLATE}))
    return path


def texts(place: Path) -> list[str]:
    """The text of each document of a store, without its EOS."""
    store, found = TokenStore(place), []
    tokenizer = Tokenizer.from_file(str(ASSET))
    for shard, offsets in zip(store.shards, store.offsets, strict=True):
        for begin, end in itertools.pairwise(offsets):
            found.append(tokenizer.decode(shard[begin : end - 1].tolist(), skip_special_tokens=False))
    return found


def options_in(remedy: str) -> list[dict[str, Any]]:
    """The ways that a message names, as options of `packtool.tokenize`."""
    ways = []
    for way in re.findall(r"--[a-z-]+=\S+(?: --[a-z-]+=\S+)*", remedy):
        pairs = (option.removeprefix("--").rstrip(";,").split("=") for option in way.split())
        ways.append({name.replace("-", "_"): value for name, value in pairs})
    return ways


READ: list[tuple[str, dict[str, Any], str, str]] = [
    ("Dolly", {"instruction": "Why?", "context": "", "response": "So.", "category": "qa"}, SAID,
     "read: instruction, context → response; not read: category"),
    ("ShareGPT", {"id": "a_1", "conversations": SHARED}, SAID, "read: conversations; not read: id"),
    ("OpenHermes", {"conversations": SHARED, "source": "x", "system_prompt": None, "category": "orca", "hash": None},
     SAID, "read: conversations; not read: source, category"),
    ("UltraChat", {"prompt": "Why?", "prompt_id": "1", "messages": TALK}, SAID,
     "read: messages; not read: prompt, prompt_id"),
    ("Tulu", {"id": "1", "messages": TALK, "source": "a"}, SAID, "read: messages; not read: id, source"),
    ("GSM8K", {"question": "Why?", "answer": "So."}, SAID, "read: question → answer"),
    ("OpenOrca", {"id": "1", "system_prompt": "Be.", "question": "Why?", "response": "So."}, f"<system>Be.{SAID}",
     "read: question, system_prompt → response; not read: id"),
    ("SlimOrca", {"conversations": [{**SHARED[0], "weight": None}, {**SHARED[1], "weight": 1.0}]}, SAID,
     "read: conversations"),
    ("MetaMath", {"type": "a", "query": "Why?", "original_question": "W?", "response": "So."}, SAID,
     "read: query → response; not read: type, original_question"),
    ("CodeAlpaca", {"instruction": "Why", "input": "?", "output": "So."}, "<user>Why\n?<assistant>So.",
     "read: instruction, input → output"),
    ("OASST", {"message_id": "a", "parent_id": None, "text": "Why is that?", "role": "prompter", "lang": "en"},
     "Why is that?",
     "read: text; not read: message_id, role, lang"),
    ("WildChat", {"conversation_hash": "a", "conversation": [{**each, "toxic": False} for each in TALK], "turn": 1},
     SAID, "read: conversation; not read: conversation_hash, turn, toxic of a message"),
    ("Magpie", {"uuid": "a", "instruction": "Why?", "response": "So.", "conversations": SHARED, "reward": 1.0}, SAID,
     "read: conversations; not read: uuid, instruction, response, reward"),
    ("s1K", {"solution": "So.", "question": "Why?", "cot_type": "math", "attempt": "S", "metadata": "{}"}, SAID,
     "read: question → solution; not read: cot_type, attempt, metadata"),
    ("OpenThoughts", {"system": "Be.", "conversations": [SHARED[0], {**SHARED[1], "from": "assistant"}]},
     f"<system>Be.{SAID}", "read: conversations, system"),
    ("NuminaMath", {"source": "a", "problem": "W", "solution": "S", "messages": TALK}, SAID,
     "read: messages; not read: source, problem, solution"),
    ("Hermes", {"id": "1", "conversations": [{"from": "system", "value": "Be."}, *SHARED], "tools": '["f"]', "a": "x"},
     f'[["f"]]<system>Be.{SAID}', "read: conversations, tools; not read: id, a"),
]  # fmt: skip
"""Common data sets by their published fields: a record, its text, and the line that says what was read."""


@pytest.mark.parametrize(("record", "text", "line"), [row[1:] for row in READ], ids=[row[0] for row in READ])
def test_common_data_sets_are_read(tmp_path: Path, model: Path, record: dict[str, Any], text: str, line: str) -> None:
    given = write_records(tmp_path / "a.jsonl", [record])
    result = packtool.tokenize(given, tmp_path / "s", tokenizer=model, workers=1)
    assert texts(tmp_path / "s") == [text]
    assert result.read == [line]
    assert packtool.info(tmp_path / "s").facts["records"] == line


NAMED: list[tuple[str, dict[str, Any], str, list[dict[str, Any]]]] = [
    ("Alpaca", {"instruction": "Why?", "input": "", "output": "So.", "text": "Why? So."}, "unclear-fields", []),
    ("LIMA", {"conversations": ["Why?", "So."], "source": "a"}, "unread-layout", []),
    ("NuminaMath-1.5", {"problem": "Why?", "solution": "So.", "answer": "So."}, "unclear-fields", []),
    ("xlam", {"id": 1, "query": "Why?", "answers": "So.", "tools": "[]"}, "unread-layout",
     [{"prompt": "query", "completion": "answers"}]),
]  # fmt: skip
"""Others that are refused: a record, the code, and the options that read it, where the message names none whole."""


@pytest.mark.parametrize(("record", "code", "ways"), [row[1:] for row in NAMED], ids=[row[0] for row in NAMED])
def test_others_are_refused_with_a_way_on(
    tmp_path: Path, model: Path, record: dict[str, Any], code: str, ways: list[dict[str, Any]]
) -> None:
    given = write_records(tmp_path / "a.jsonl", [record])
    with pytest.raises(UsageError) as raised:
        packtool.tokenize(given, tmp_path / "s", tokenizer=model, workers=1)
    assert raised.value.code == code
    assert not (tmp_path / "s").exists()
    for way in ways or options_in(raised.value.remedy):
        packtool.tokenize(given, tmp_path / "s", tokenizer=model, workers=1, overwrite=True, **way)
        assert texts(tmp_path / "s") == ["Why? So." if "text_field" in way else SAID]


MIXED: Records = [
    {"messages": TALK, "id": 1},
    {"prompt": "Why?", "completion": "So.", "lang": "en"},
    {"conversations": SHARED, "id": 2, "lang": "en"},
    {"messages": json.dumps(SHARED), "lang": "de", "tools": None},
    {"instruction": "Why", "input": "?", "output": "So."},
]
LINES = [
    "read: messages (2 conversations); not read: id, lang (of 1 conversation)",
    "read: prompt → completion (1 conversation); not read: lang",
    "read: conversations (1 conversation); not read: id, lang",
    "read: instruction, input → output (1 conversation)",
]


def as_array(path: Path, records: Records) -> Path:
    path.write_text(json.dumps(records, indent=1))
    return path


def as_table(path: Path, records: Records) -> Path:
    names = dict.fromkeys(name for record in records for name in record)
    rows = [{name: _cell(record.get(name)) for name in names} for record in records]
    parquet.write_table(pa.Table.from_pylist(rows), path)
    return path


def as_csv(path: Path, records: Records) -> Path:
    names = list(dict.fromkeys(name for record in records for name in record))
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, names, restval="")
        writer.writeheader()
        writer.writerows({name: _cell(value) or "" for name, value in record.items()} for record in records)
    return path


def _cell(value: Any) -> Any:
    """A value as a table of few types has it."""
    return json.dumps(value) if isinstance(value, list) else value


WRITERS: dict[str, Callable[[Path, Records], Any]] = {
    "a.jsonl": write_records,
    "a.json": as_array,
    "a.parquet": as_table,
    "a.csv": as_csv,
    "list": lambda path, records: records,
    "iterator": lambda path, records: iter(records),
}


@pytest.mark.parametrize(("name", "workers"), [("a.jsonl", 2), *((name, 1) for name in WRITERS)])
def test_each_record_is_read_by_itself(tmp_path: Path, model: Path, name: str, workers: int) -> None:
    given = WRITERS[name](tmp_path / name, MIXED)
    result = packtool.tokenize(given, tmp_path / "s", tokenizer=model, workers=workers)
    assert texts(tmp_path / "s") == [SAID, SAID, SAID, SAID, "<user>Why\n?<assistant>So."]
    if name not in ("a.parquet", "a.csv"):  # whose records have all fields
        assert result.read == LINES
    if name == "a.jsonl":
        preview = packtool.tokenize(given, tmp_path / "t", tokenizer=model, workers=1, dry_run=True).preview
        assert preview is not None
        assert preview.read.splitlines()[1] == "read: prompt → completion; not read: lang"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"messages": TALK, "text": "a"}, "unclear-fields"),
    ({"text": "a"}, "missing-text"),
    ({"prompt": "a", "completion": "b", "answer": "c"}, "unclear-fields"),
    ({"prompt": "a", "chosen": "b", "rejected": "c"}, "preference-pairs"),
    ({"messages": TALK, "kto_tag": "false"}, "preference-pairs"),
    ({"prompt": "a", "completion": "b", "weight": "0"}, "marks-beside"),
    ({"messages": TALK, "images": ["a.png"]}, "marks-beside"),
    ({"Question": "a"}, ""),  # a table has a field for a text, without one here
]


@pytest.mark.parametrize("name", WRITERS)
def test_refusals_hold_for_every_record(tmp_path: Path, model: Path, name: str) -> None:
    records = [{"messages": TALK}, *(record for record, _ in REFUSED), {"messages": TALK}]
    options: dict[str, Any] = {"tokenizer": model, "workers": 1}
    with pytest.raises(PacktoolError) as raised:
        packtool.tokenize(WRITERS[name](tmp_path / name, records), tmp_path / "s", **options)
    assert raised.value.code == REFUSED[0][1]
    assert str(raised.value.where).endswith(":2")
    with pytest.warns(PacktoolWarning, match=f"{len(REFUSED)} records could not be used"):
        packtool.tokenize(WRITERS[name](tmp_path / name, records), tmp_path / "s", on_error="quarantine", **options)
    rejected = map(json.loads, (tmp_path / "s" / "rejected.jsonl").read_text().splitlines())
    other = "missing-text" if name in ("a.parquet", "a.csv") else "unread-layout"
    expected = [(number, code or other) for number, (_, code) in enumerate(REFUSED, 2)]
    assert [(each["record"], each["code"]) for each in rejected] == expected
    assert texts(tmp_path / "s") == [SAID, SAID]


def test_the_first_record_may_be_the_one_that_can_not_be_used(tmp_path: Path, model: Path) -> None:
    given = write_records(tmp_path / "a.jsonl", [{"messages": [], "id": 1}, {"messages": TALK, "id": 2}])
    with pytest.warns(PacktoolWarning, match="1 record could not be used"):
        result = packtool.tokenize(given, tmp_path / "s", tokenizer=model, workers=1, on_error="skip")
    assert texts(tmp_path / "s") == [SAID]
    assert result.read == ["read: messages; not read: id"]


@pytest.mark.parametrize("name", WRITERS)
def test_a_conversation_among_texts_is_refused(tmp_path: Path, name: str) -> None:
    for record, code in (({"messages": TALK}, "missing-text"), ({"text": "b", "messages": TALK}, "unclear-fields")):
        given = WRITERS[name](tmp_path / name, [{"text": "a"}, record])
        with pytest.raises(PacktoolError) as raised:
            packtool.tokenize(given, tmp_path / "s", workers=1)
        assert (raised.value.code, str(raised.value.where)[-2:]) == (code, ":2")
    given = WRITERS[name](tmp_path / name, [{"text": "a"}, {"text": "b", "messages": TALK}])
    packtool.tokenize(given, tmp_path / "s", text_field="text", workers=1)
    assert texts(tmp_path / "s") == ["a", "b"]


BESIDE = [{"messages": TALK, "sys": "Be.", "fns": ["f"]}, {"messages": TALK}]
SPELLED: list[tuple[Records, dict[str, Any], str]] = [
    (BESIDE, {"system": "sytem"}, "no record has 'sytem'; the first has messages"),
    (BESIDE, {"tools": "tool"}, "no record has 'tool'"),
    (BESIDE, {"conversations": "messages", "system": "sytem"}, "no record has 'sytem'"),
    (BESIDE, {"conversations": "messages", "message_fields": "role,content,lss"}, "no record has 'lss of a message'"),
    ([{"q": "a", "a": "b"}], {"prompt": "q,hint", "completion": "a"}, "no record has 'hint'"),
    ([{"prompt": "a", "completion": "b"}], {"history": "past"}, "no record has 'past'"),
    ([{"prompt": "a", "completion": "b"}], {"reasoning_field": "cot"}, "no record has 'cot'"),
    ([{"title": "a", "body": "b"}], {"text_field": "title,bdy"}, "no record has 'bdy'"),
    ([{"body": "b"}], {"text_field": "bdy", "on_error": "skip"}, "no text field 'bdy' in any record; the first has"),
    ([{"body": "b"}], {"text_field": "a,c", "on_error": "skip"}, "no text field 'a,c' in any record"),
    ([{"ids": [1]}], {"ids_field": "id", "on_error": "skip"}, "no field of ids 'id' in any record; the first has ids"),
    (BESIDE, {"conversations": "talk", "on_error": "skip"}, "no field 'talk' with a conversation in any record"),
    ([{"q": "a", "a": "b"}], {"prompt": "q", "completion": "an", "on_error": "skip"}, "no field 'an' with the answer"),
]


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
@pytest.mark.parametrize(("records", "options", "what"), SPELLED)
def test_a_field_that_no_record_has_is_an_error(
    tmp_path: Path, model: Path, name: str, records: Records, options: dict[str, Any], what: str
) -> None:
    given = WRITERS[name](tmp_path / name, records)
    with pytest.raises(UsageError) as raised:
        packtool.tokenize(given, tmp_path / "s", tokenizer=model, workers=1, **options)
    assert raised.value.code == "no-field"
    assert raised.value.what.startswith(what)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("name", WRITERS)
def test_a_field_that_some_records_lack_is_empty_for_these(tmp_path: Path, model: Path, name: str) -> None:
    options: dict[str, Any] = {"tokenizer": model, "workers": 1}
    for records in (BESIDE, BESIDE[::-1]):
        given = WRITERS[name](tmp_path / name, records)
        packtool.tokenize(given, tmp_path / "s", system="sys", tools="fns", overwrite=True, **options)
        assert sorted(texts(tmp_path / "s")) == [SAID, f'[["f"]]<system>Be.{SAID}']
    given = WRITERS[name](tmp_path / name, [{"title": "a"}, {"title": "b", "body": "c"}])
    packtool.tokenize(given, tmp_path / "t", text_field="title,body", workers=1)
    assert texts(tmp_path / "t") == ["a", "b\n\nc"]


def test_what_is_left_out_and_long_is_warned_of(tmp_path: Path) -> None:
    for record, named in (
        ({"text": "a", "body": "longer"}, r"body \(a text of 6 characters\) is not read"),
        ({"text": "a", "chat": TALK}, r"chat \(messages\) is not read"),
    ):
        for given in (write_records(tmp_path / "a.jsonl", [record]), [record], iter([record])):
            with pytest.warns(PacktoolWarning, match=f"of the first record, {named}"):
                packtool.tokenize(given, tmp_path / "s", workers=1, overwrite=True)


@pytest.mark.parametrize("write", [write_records, as_array])
def test_the_first_record_of_a_pipe_tells_what_it_holds(
    tmp_path: Path, model: Path, write: Callable[[Path, Records], Path]
) -> None:
    """Its first record may be longer than what is read of a pipe at once."""
    long = [{"role": "user", "content": "x" * 3_000_000}, TALK[1]]
    for number, records in enumerate(([{"messages": TALK}] * 3, [{"messages": long}, {"messages": TALK}])):
        pipe = tmp_path / f"p{number}"
        data = gzip.compress(write(tmp_path / "a", records).read_bytes())
        thread = feeding(pipe, data)
        result = packtool.tokenize(pipe, tmp_path / "s", tokenizer=model, workers=1, overwrite=True)
        thread.join()
        assert (result.read, result.counts["documents"]) == (["read: messages"], len(records))
        assert texts(tmp_path / "s")[-1] == SAID
    thread = feeding(tmp_path / "other", write_records(tmp_path / "a", [{"messages": TALK, "text": "a"}]).read_bytes())
    with pytest.raises(UsageError, match="other: the first record can be read in 2 ways"):
        packtool.tokenize(tmp_path / "other", tmp_path / "t", tokenizer=model, workers=1)
    thread.join()
    assert not (tmp_path / "t").exists()
