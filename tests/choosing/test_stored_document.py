"""Documents of a store are found and shown by id, and by file and line."""

from pathlib import Path

import pytest

import packtool
from packtool.choosing.stored_document import StoredDocument
from packtool.errors import DataError, UsageError
from packtool.formats.token_store import TokenStore
from packtool.warnings import PacktoolWarning
from tests.making import write_records
from tests.shell import Shell

LINES = [
    {"id": "a", "lang": "en", "text": "one"},
    {"id": "b", "text": ""},
    {"id": "a", "lang": None, "text": "two words"},
    {"id": "x.jsonl:1", "lang": "de", "text": "an id that looks like a line"},
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("find")
    inputs = [write_records(place / name, LINES) for name in ("x.jsonl", "y.jsonl")]
    packtool.tokenize(inputs, place / "store", id_field="id", columns=["lang"], workers=1)
    packtool.tokenize(inputs[0], place / "nameless", id_field="id", provenance=False, workers=1)
    return place / "store"


def test_each_document_goes_by_its_id_and_its_line(store: Path) -> None:
    expected = []
    for file in ("x.jsonl", "y.jsonl"):
        for line, record in enumerate(LINES, 1):
            if record["text"]:
                number = len(expected)
                columns = {"id": record["id"], "lang": record.get("lang")}
                tokens = len(TokenStore(store).document(number))
                expected.append(StoredDocument(number, file, line, tokens, columns))
    for document in expected:
        identifier = document.columns["id"]
        alike = [each for each in expected if each.columns["id"] == identifier]
        names = {identifier: alike}
        if document.origin != "x.jsonl:1":  # which is an id, too
            names[document.origin] = [document]
        for name, found in names.items():
            assert packtool.find(store, name).stored == found
            shown = packtool.show(store, find=name)
            assert [shown.row, *shown.others] == [each.number for each in found]
            assert (shown.segments[0].origin, shown.segments[0].id) == (found[0].origin, found[0].columns["id"])
            assert shown.segments[0].columns == {"lang": found[0].columns["lang"]}


def test_what_is_found_is_printed(store: Path, tmp_path: Path, shell: Shell) -> None:
    assert shell("find", store, "a").splitlines()[:2] == [
        "document 0: x.jsonl:1, 2 tokens, id a, lang en",
        "document 1: x.jsonl:3, 3 tokens, id a",
    ]
    assert "x.jsonl:2 is not in the store" in shell("find", store, "x.jsonl:2", status=1)
    assert shell("find", store.with_name("nameless"), "a").startswith("document 0: 2 tokens, id a\n")
    bad = write_records(tmp_path / "bad.jsonl", [LINES[0], {"id": "c"}])
    with pytest.warns(PacktoolWarning, match="1 record could not be used"):
        packtool.tokenize(bad, tmp_path / "bad", on_error="quarantine", workers=1)
    packtool.pack(tmp_path / "bad", tmp_path / "rows", strategy="ffd", sequence_length=16)
    for found in ("bad", "rows"):
        said = shell("find", tmp_path / found, "bad.jsonl:2", status=1)
        assert said.endswith(f"records that can't be used, with the reasons: {tmp_path / 'bad' / 'rejected.jsonl'}\n")
    assert "It is the first of 4; the others: --document 1, 3, 4.\n" in shell("show", store, "--find", "a")


def test_what_no_document_has_is_refused(store: Path) -> None:
    for name, message in (
        ("nosuch", "no store has a document with the id 'nosuch'"),
        ("z.jsonl:1", "no store has an input 'z.jsonl'"),
    ):
        for command in (packtool.find, lambda path, name: packtool.show(path, find=name)):
            with pytest.raises(UsageError, match=message):
                command(store, name)
    with pytest.raises(DataError, match=r"no document came from x\.jsonl:2\. Look at that line"):
        packtool.show(store, find="x.jsonl:2")
    with pytest.raises(UsageError, match="made with provenance=False"):
        packtool.find(store.with_name("nameless"), "x.jsonl:3")
    with pytest.raises(UsageError, match=r"^store: has no effect on token stores\. Leave it out\."):
        packtool.find(store, "a", store=store)
    packtool.pack(store, store.parent / "packed", strategy="bfd", sequence_length=32)
    with pytest.raises(UsageError, match=r"^find: has no effect on packed datasets\. Give row: packtool find says"):
        packtool.show(store.parent / "packed", find="a")
