"""Every piece of a row leads to its line, and every line to its rows."""

import io
import json
import shutil
from pathlib import Path

import pytest
from rich.console import Console
from tokenizers import Tokenizer

import packtool
from packtool.cli import run
from packtool.commands.document_origins import stores_nearby
from packtool.errors import UsageError
from packtool.report.row_view import print_row
from tests.choosing.web_and_wiki import pack


def test_every_piece_leads_to_its_line_and_back(stores: list[Path], tmp_path: Path) -> None:
    dataset = pack(stores, tmp_path / "p", mix=["web=0.5x", "wiki=2x"], where="line <= 25")
    tokenizer = Tokenizer.from_file(str(stores[0] / "tokenizer.json"))
    lines = {path.name: path.with_suffix(".jsonl").read_text().splitlines() for path in stores}
    seen: dict[str, list[int]] = {}
    for row in range(dataset.buckets[0].rows):
        for piece in packtool.show(tmp_path / "p", row, store=stores).segments:
            if piece.kind == "document":
                file, _, line = piece.origin.rpartition(":")
                text = json.loads(lines[file.removesuffix(".jsonl")][int(line) - 1])["text"]
                assert piece.text.removesuffix("<|endoftext|>") in text
                ids = tokenizer.encode(f"{text}<|endoftext|>").ids
                assert ids[piece.start : piece.start + len(piece.tokens)] == piece.tokens
                seen.setdefault(piece.origin, []).append(row)
    for origin, rows in list(seen.items())[::10]:
        found = packtool.find(tmp_path / "p", origin, store=stores)
        assert [place.row for place in found.places] == rows
        assert len(found.documents) == (2 if origin.startswith("wiki") else 1)
    left_out = next(f"web.jsonl:{n}" for n in range(1, 201) if f"web.jsonl:{n}" not in seen)
    assert packtool.find(tmp_path / "p", left_out, store=stores).documents == []
    arguments = [word for store in stores for word in ("--store", str(store))]
    for record, status in ((origin, 0), (left_out, 1)):
        for more in ([], ["--json"]):
            assert run(["find", str(tmp_path / "p"), record, *arguments, *more]) == status
    for record, message in (
        ("web.jsonl", "'web.jsonl' is not FILE:LINE"),
        ("a.jsonl:1", "no store has an input 'a.jsonl'"),
    ):
        with pytest.raises(UsageError, match=message):
            packtool.find(tmp_path / "p", record, store=stores)
    with pytest.raises(UsageError, match="packed from other stores"):
        packtool.find(tmp_path / "p", "web.jsonl:1", store=stores[:1])


def test_stores_nearby_are_known_by_their_digests(
    stores: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for store in stores:
        shutil.copytree(store, tmp_path / f"{store.name}-moved")
    dataset = pack(stores, tmp_path / "sub" / "p", mix=["web=0.5x", "wiki=2x"])
    row = packtool.show(tmp_path / "sub" / "p", 3)
    assert row == packtool.show(tmp_path / "sub" / "p", 3, store=stores)
    assert row.missing_stores == []
    origin = next(segment.origin for segment in row.segments if segment.origin)
    assert packtool.find(tmp_path / "sub" / "p", origin) == packtool.find(tmp_path / "sub" / "p", origin, store=stores)
    assert [path.name for path in stores_nearby(dataset) or ()] == ["web-moved", "wiki-moved"]
    shutil.copytree(tmp_path / "web-moved", tmp_path / "web")
    assert [path.name for path in stores_nearby(dataset) or ()] == ["web", "wiki-moved"]
    shutil.rmtree(tmp_path / "wiki-moved")
    assert stores_nearby(dataset) is None
    row = packtool.show(tmp_path / "sub" / "p", 3)
    assert {segment.origin for segment in row.segments} == {None}
    assert row.missing_stores == ["web", "wiki"]
    console = Console(file=io.StringIO(), width=200)
    print_row(row, console)
    said = "File and line of each document: give --store for what was packed (web, wiki)."
    assert said in console.file.getvalue()  # type: ignore[attr-defined]
    message = r"store: what the dataset was packed from \(web, wiki\) is not next to it\. Give the stores, in"
    with pytest.raises(UsageError, match=message):
        packtool.find(tmp_path / "sub" / "p", origin)
    monkeypatch.chdir(stores[0].parent)
    assert packtool.show(tmp_path / "sub" / "p", 3).missing_stores == []


def test_a_store_without_provenance_names_no_lines(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n')
    packtool.tokenize(tmp_path / "a.jsonl", tmp_path / "s", provenance=False, workers=1)
    pack([tmp_path / "s"], tmp_path / "p")
    assert packtool.show(tmp_path / "p", 0).segments[0].origin is None
    with pytest.raises(UsageError, match="made with provenance=False"):
        packtool.show(tmp_path / "p", 0, store=tmp_path / "s")
    with pytest.raises(UsageError, match="made with provenance=False"):
        packtool.find(tmp_path / "p", "a.jsonl:1")
