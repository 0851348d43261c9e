"""Every piece of a row leads to its line, and every line to its rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.errors import UsageError
from packtool.storage.packed import PackedDataset


def write(path: Path, texts: list[str]) -> Path:
    path.with_suffix(".jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    packtool.tokenize(path.with_suffix(".jsonl"), path, workers=1, encoder="tokenizers")
    return path


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two stores that share texts, and have copies of their own."""
    top = tmp_path_factory.mktemp("stores")
    shared = [f"a text that both have, number {n}" for n in range(40)]
    web = [f"web page {n} " * (1 + n % 7) for n in range(150)]
    wiki = [f"article {n} " * (1 + n % 11) for n in range(60)]
    return [write(top / "web", [*web, *shared, *web[:10]]), write(top / "wiki", [*shared[::-1], *wiki])]


def pack(stores: list[Path], output: Path, **options: Any) -> PackedDataset:
    packtool.pack(stores, output, **{"strategy": "bfd", "sequence_length": 32, **options})
    return PackedDataset(output)


def test_every_piece_leads_to_its_line_and_back(stores: list[Path], tmp_path: Path) -> None:
    dataset = pack(stores, tmp_path / "p", mix=["web=0.5", "wiki=2"])
    lines = {path.name: path.with_suffix(".jsonl").read_text().splitlines() for path in stores}
    seen: dict[str, list[int]] = {}
    for row in range(dataset.buckets[0].rows):
        for piece in packtool.show(tmp_path / "p", row, store=stores).segments:
            if piece.kind == "document":
                assert piece.origin is not None
                file, _, line = piece.origin.rpartition(":")
                text = json.loads(lines[file.removesuffix(".jsonl")][int(line) - 1])["text"]
                assert piece.text is not None
                assert piece.text.removesuffix("<|endoftext|>") in text
                seen.setdefault(piece.origin, []).append(row)
    for origin, rows in list(seen.items())[::20]:
        found = packtool.find(tmp_path / "p", origin, store=stores)
        assert [place.row for place in found.places] == rows
        assert len(found.documents) == (2 if origin.startswith("wiki") else 1)
    left_out = next(f"web.jsonl:{n}" for n in range(1, 201) if f"web.jsonl:{n}" not in seen)
    assert packtool.find(tmp_path / "p", left_out, store=stores).documents == []
    for record, message in (
        ("web.jsonl", "'web.jsonl' is not FILE:LINE"),
        ("a.jsonl:1", "no store has an input 'a.jsonl'"),
    ):
        with pytest.raises(UsageError, match=message):
            packtool.find(tmp_path / "p", record, store=stores)
    with pytest.raises(UsageError, match="packed from other stores"):
        packtool.find(tmp_path / "p", "web.jsonl:1", store=stores[:1])
