"""Where every document came from: traced from tokens back to the right characters of the right line."""

import gzip
import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
import xxhash
from pyarrow import parquet
from tokenizers import Tokenizer

import packtool
from packtool.errors import UsageError
from packtool.formats.token_store import TokenStore
from packtool.text.corpus import blocks
from tests.text.tokenizing.runs import ASSET, run


def make(folder: Path, draw: random.Random) -> dict[tuple[str, int], str]:
    """Files of every format, with blank, empty, short and broken lines; the text of every (file, record)."""
    folder.mkdir()
    texts: dict[tuple[str, int], str] = {}

    def text() -> str:
        return " ".join(draw.choice(["été", "plain", "😀", "(x)", "日本"]) + str(draw.random()) for _ in range(9))

    for name, count in (("a.jsonl", 300), ("b.jsonl.gz", 100), ("d/c.jsonl", 10)):
        lines = []
        for number in range(1, count + 1):
            kind = draw.choice(["good"] * 6 + ["blank", "empty", "short", "broken"])
            texts[name, number] = found = text()
            good = json.dumps({"text": found}, ensure_ascii=draw.random() < 0.5)
            lines.append({"good": good, "blank": " ", "empty": '{"text": ""}', "short": '{"text": "s"}'}.get(kind, "{"))
        (folder / name).parent.mkdir(exist_ok=True)
        data = "\n".join(lines).encode()
        (folder / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    rows = [text() if n % 7 else None for n in range(200)]
    texts |= {("e.parquet", n): row for n, row in enumerate(rows, 1) if row}
    parquet.write_table(pa.table({"text": rows}), folder / "e.parquet", row_group_size=30)
    (folder / "f.txt").write_text(text())
    texts["f.txt", 1] = (folder / "f.txt").read_text()
    return texts


def test_every_token_leads_to_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "SMALLEST", 4000)
    draw = random.Random(0)
    texts = make(tmp_path / "corpus", draw)
    tokenizer = Tokenizer.from_file(str(ASSET))
    with pytest.warns(packtool.warnings.PacktoolWarning):
        run(tmp_path / "corpus", tmp_path / "store", on_error="skip", min_words=2)
    store = TokenStore(tmp_path / "store")
    names = [entry.name for entry in store.manifest.inputs]
    origins = store.origins()
    assert len(store.shards) > 5
    seen = set()
    checked = 0
    for number, origin in enumerate(origins):
        place = names[origin["file"]], int(origin["record"])
        seen.add(place)
        text = texts[place]
        assert int(origin["hash"]) == xxhash.xxh3_64_intdigest(text.encode())
        encoding = tokenizer.encode(text, add_special_tokens=False)
        assert [*encoding.ids, store.manifest.tokenizer.eos_id] == store.document(number).tolist()
        checked += len(encoding.ids)
    assert checked > 10_000
    assert len(seen) == len(origins) == store.documents
    assert packtool.verify(tmp_path / "store").problems == []


def test_provenance_can_be_left_out(tmp_path: Path) -> None:
    run([{"text": "words"}], tmp_path / "without", provenance=False)
    assert not list((tmp_path / "without").glob("documents-*"))
    with pytest.raises(UsageError, match="made with provenance=False"):
        TokenStore(tmp_path / "without").origins()
