"""`tokenize` from files to a finished store, and one clear error for whatever a user can get wrong."""

from __future__ import annotations

import base64
import bz2
import gzip
import json
import lzma
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from pyarrow import parquet
from tokenizers import Tokenizer

import packtool
from packtool.corpus import blocks
from packtool.errors import DataError, PacktoolError, UsageError
from packtool.storage import manifest as manifests
from packtool.storage.token_store import TokenStore
from packtool.tokenizing import block, choose, gigatoken, load, pieces
from packtool.tokenizing.encoders import EncoderMismatchError
from packtool.warnings import PacktoolWarning

ASSET = Path(packtool.__file__).parent / "assets" / "tokenizer.json"
TEXTS = [
    "Hello world.",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.",
    "tabs\tand\r\nlines\n\n  with spaces  ",
    "<|endoftext|> is special 😀",
    "今日は",
] * 7


def reference(texts: list[str]) -> list[list[int]]:
    tokenizer = Tokenizer.from_file(str(ASSET))
    eos = tokenizer.token_to_id("<|endoftext|>")
    return [[*tokenizer.encode(text, add_special_tokens=False).ids, eos] for text in texts if text]


def documents(store: Path) -> list[list[int]]:
    opened = TokenStore(store)
    return [opened.document(number).tolist() for number in range(opened.documents)]


def jsonl(texts: list[Any], field: str = "text") -> bytes:
    return b"".join(json.dumps({"id": n, field: text}).encode() + b"\n" for n, text in enumerate(texts))


def contents(store: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in store.iterdir() if path.name != "run.json"}


def run(inputs: Any, output: Path, **options: Any) -> packtool.commands.tokenize.TokenizeResult:
    return packtool.tokenize(inputs, output, **{"workers": 1, "quiet": True, **options})


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    (folder / "deep").mkdir(parents=True)
    raw = jsonl(TEXTS)
    (folder / "a.jsonl").write_bytes(raw)
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(raw) + gzip.compress(raw))
    (folder / "c.jsonl.bz2").write_bytes(bz2.compress(raw))
    (folder / "d.jsonl.xz").write_bytes(lzma.compress(raw))
    with pa.CompressedOutputStream(str(folder / "misnamed.jsonl"), "zstd") as out:
        out.write(raw)
    parquet.write_table(pa.table({"text": TEXTS}), folder / "deep" / "e.parquet", row_group_size=3)
    (folder / ".hidden").write_text("no")
    return folder


@pytest.mark.parametrize("encoder", ["auto", "tokenizers"])
def test_every_format_gives_the_documents_of_the_reference(corpus: Path, tmp_path: Path, encoder: str) -> None:
    result = run(corpus, tmp_path / "store", encoder=encoder)
    assert documents(result.path) == reference(TEXTS * 7)
    manifest = manifests.read(result.path)
    assert isinstance(manifest, manifests.StoreManifest)
    assert [entry.name for entry in manifest.inputs] == [
        "a.jsonl",
        "b.jsonl.gz",
        "c.jsonl.bz2",
        "d.jsonl.xz",
        "deep/e.parquet",
        "misnamed.jsonl",
    ]
    assert result.counts["documents"] == len(TEXTS) * 7
    assert result.counts["tokens"] == sum(map(len, reference(TEXTS * 7)))
    assert sorted(p.name for p in result.path.iterdir()) == [
        "documents-00000.npy",
        "manifest.json",
        "offsets-00000.npy",
        "run.json",
        "tokenizer.json",
        "tokens-00000.npy",
    ]


def fails(kind: type[PacktoolError], inputs: Any, output: Path, **options: Any) -> str:
    with pytest.raises(kind) as caught:
        run(inputs, output, **options)
    assert not (output / "manifest.json").exists()
    return str(caught.value)


def test_errors_name_the_place_and_the_remedy(tmp_path: Path) -> None:
    out = tmp_path / "store"
    assert "no such file or directory" in fails(DataError, tmp_path / "nothing.jsonl", out)
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(b'{"text": "fine"}\n\n{"text": "broken}\n')
    assert fails(DataError, bad, out).startswith(f"{bad}:3: not valid JSON: Unterminated string")
    bad.write_bytes(b'{"text": "fine"}\n{"body": "elsewhere"}\n')
    message = fails(DataError, bad, out)
    assert message.startswith(f"{bad}:2: no text field 'text'; there are body. Name the field with --text-field")
    bad.write_bytes(b'{"text": null}\n')
    assert f"{bad}:1: text field 'text' is null" in fails(DataError, bad, out)
    bad.write_bytes(b'{"text": 5}\n')
    assert f"{bad}:1: text field 'text' is a number, not a string" in fails(DataError, bad, out)
    bad.write_bytes(b'{"text": "\xff"}\n')
    assert f"{bad}:1: not valid UTF-8" in fails(DataError, bad, out)
    bad.write_bytes(b'{"text": "\\ud800"}\n')
    assert f"{bad}:1: lone surrogate in text field" in fails(DataError, bad, out)
    assert not out.exists(), "an error leaves nothing to clean up"


def test_an_unknown_eos_is_a_usage_error(tmp_path: Path) -> None:
    spec = json.loads(ASSET.read_text())
    spec["added_tokens"] = []
    spec["model"]["vocab"].pop("<|endoftext|>", None)
    (tmp_path / "tokenizer.json").write_text(json.dumps(spec))
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS))
    options = {"tokenizer": tmp_path}
    message = fails(UsageError, tmp_path / "a.jsonl", tmp_path / "o", **options)
    assert message.startswith("--eos-token: no EOS token is known for this tokenizer")
    assert "Name it with --eos-token TEXT or --eos-token ID." in message
    result = run(tmp_path / "a.jsonl", tmp_path / "o", eos_token="5", **options)
    assert all(document[-1] == 5 for document in documents(result.path))


def test_the_hub_out_of_reach_names_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS))
    message = fails(DataError, tmp_path / "a.jsonl", tmp_path / "o", tokenizer="someone/some-model")
    assert message.startswith("someone/some-model: no such file, and ")
    assert "download its tokenizer.json and give the file" in message
    message = fails(DataError, tmp_path / "a.jsonl", tmp_path / "o", tokenizer=tmp_path / "nowhere" / "tokenizer.json")
    assert "no tokenizer.json there" in message


def test_uint32_where_uint16_is_too_small(tmp_path: Path) -> None:
    spec = json.loads(ASSET.read_text())
    size = len(spec["model"]["vocab"])
    spec["model"]["vocab"].update({f"filler{n}": n for n in range(size, 70000)})
    spec["added_tokens"].append({**spec["added_tokens"][0], "id": 70000, "content": "<|high|>"})
    (tmp_path / "tokenizer.json").write_text(json.dumps(spec))
    (tmp_path / "a.jsonl").write_bytes(jsonl(["a <|high|> b"]))
    result = run(tmp_path / "a.jsonl", tmp_path / "o", tokenizer=tmp_path)
    store = TokenStore(result.path)
    assert store.dtype == np.dtype("<u4")
    assert 70000 in store.document(0)


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "SMALLEST", 2000)


@pytest.mark.usefixtures("small_blocks")
def test_the_store_depends_neither_on_workers_nor_on_the_encoder(corpus: Path, tmp_path: Path) -> None:
    (corpus / "big.jsonl").write_bytes(jsonl(TEXTS * 20))
    stores = [
        contents(run(corpus, tmp_path / f"{workers}-{encoder}", workers=workers, encoder=encoder).path)
        for workers, encoder in ((1, "auto"), (2, "auto"), (1, "tokenizers"))
    ]
    assert stores[0] == stores[1] == stores[2]
    assert sum(name.startswith("tokens-") for name in stores[0]) > 5
    assert len(documents(tmp_path / "1-auto")) == len(TEXTS) * 27


def test_big_files_of_every_format_keep_their_order(tmp_path: Path, small_blocks: None) -> None:
    texts = [f"document number {n} " * (n % 7 + 1) for n in range(500)]
    (tmp_path / "a.jsonl").write_bytes(jsonl(texts))
    parquet.write_table(pa.table({"text": texts}), tmp_path / "b.parquet", row_group_size=40)
    (tmp_path / "c.txt").write_text("\n".join(texts))
    for name, format in (("a.jsonl", None), ("b.parquet", None), ("c.txt", "lines")):
        result = run(tmp_path / name, tmp_path / f"store-{name}", format=format)
        assert documents(result.path) == reference(texts)
        assert len(manifests.read(result.path).shards) > 5  # type: ignore[union-attr]


def test_bos_and_special_tokens_as_text(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(["a<|endoftext|>b", "", "c"]))
    plain = documents(run(tmp_path / "a.jsonl", tmp_path / "plain").path)
    text = run(tmp_path / "a.jsonl", tmp_path / "text", special_tokens="text", bos_token="!", encoder="auto")
    tokenizer = Tokenizer.from_file(str(ASSET))
    eos, bos = tokenizer.token_to_id("<|endoftext|>"), tokenizer.token_to_id("!")
    assert plain[0].count(eos) == 2
    tokenizer.encode_special_tokens = True
    expected = [[bos, *tokenizer.encode(t, add_special_tokens=False).ids, eos] for t in ("a<|endoftext|>b", "c")]
    assert documents(text.path) == expected
    assert text.counts["empty"] == 1
    assert text.counts["tokens"] == sum(map(len, expected))
    manifest = manifests.read(text.path)
    assert isinstance(manifest, manifests.StoreManifest)
    assert (manifest.tokenizer.bos_id, manifest.tokenizer.eos_id) == (bos, eos)


@pytest.mark.usefixtures("small_blocks")
def test_quarantine_keeps_every_bad_record_and_its_place(tmp_path: Path) -> None:
    lines = [json.dumps({"text": f"good {n} " * 5}).encode() for n in range(200)]
    for at, bad in ((3, b'{"text": 1}'), (77, b"nonsense"), (150, b'{"text": "\xff"}'), (199, b'{"text": "\\udc00"}')):
        lines[at] = bad
    (tmp_path / "bad.jsonl").write_bytes(b"\n".join(lines))
    cut = gzip.compress(jsonl(TEXTS))[:-1]
    lost = len(cut)
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(jsonl(TEXTS)) + cut)
    inputs = [tmp_path / "bad.jsonl", tmp_path / "cut.jsonl.gz"]
    stores = {}
    for workers in (1, 2):
        with pytest.warns(PacktoolWarning, match=f"5 records could not be used, and {lost:,} bytes of damaged files"):
            result = run(inputs, tmp_path / f"q{workers}", on_error="quarantine", workers=workers)
        stores[workers] = contents(result.path)
    assert stores[1] == stores[2]
    rejected = [json.loads(line) for line in stores[1]["rejected.jsonl"].splitlines()]
    assert [(r["file"], r.get("record"), r["code"], r.get("raw")) for r in rejected] == [
        ("bad.jsonl", 4, "missing-text", '{"text": 1}'),
        ("bad.jsonl", 78, "invalid-json", "nonsense"),
        ("bad.jsonl", 151, "invalid-utf8", None),
        ("bad.jsonl", 200, "lone-surrogate", '{"text": "\\udc00"}'),
        ("cut.jsonl.gz", None, "damaged-file", None),
    ]
    assert base64.b64decode(rejected[2]["raw_base64"]) == b'{"text": "\xff"}'
    assert result.counts["documents"] == 196 + len(TEXTS)
    assert result.counts["rejected"] == 5
    assert result.counts["rejected_invalid_json"] == 1
    with pytest.warns(PacktoolWarning):
        skipped = run(inputs, tmp_path / "skip", on_error="skip")
    assert not (skipped.path / "rejected.jsonl").exists()
    assert skipped.counts == result.counts
    with pytest.warns(PacktoolWarning):
        assert run(inputs, tmp_path / "m5", on_error="skip", max_errors=5).counts["rejected"] == 5
    for workers in (1, 2):
        message = fails(DataError, inputs, tmp_path / f"m{workers}", on_error="skip", max_errors=4, workers=workers)
        assert message.startswith("--max-errors: more than 4 records can't be used")
        message = fails(DataError, inputs[0], tmp_path / f"f{workers}", workers=workers)
        assert message.startswith(f"{inputs[0]}:4: text field 'text' is a number")


@pytest.mark.usefixtures("small_blocks")
def test_a_failing_line_is_named_by_its_number_in_the_file(tmp_path: Path) -> None:
    lines = jsonl(["some words " * 10] * 300)
    (tmp_path / "a.jsonl").write_bytes(lines + b"{}\n" + lines)
    assert f"{tmp_path / 'a.jsonl'}:301: no text field 'text'" in fails(DataError, tmp_path / "a.jsonl", tmp_path / "o")
    table = pa.table({"text": ["x" * 30] * 250 + [None] + ["x"] * 50})
    parquet.write_table(table, tmp_path / "b.parquet", row_group_size=20)
    assert f"{tmp_path / 'b.parquet'}:251: text column 'text' is null" in fails(
        DataError, tmp_path / "b.parquet", tmp_path / "p"
    )


def test_filters_count_what_they_leave_out(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(["one two three", "one", "x" * 50, "", "four five six"]))
    (tmp_path / "b.jsonl").write_bytes(jsonl(["lonely", "a b"]))
    inputs = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    result = run(inputs, tmp_path / "o", min_words=2, min_chars=4, max_chars=40)
    assert documents(result.path) == reference(["one two three", "four five six"])
    assert (result.counts["filtered"], result.counts["filtered_words"], result.counts["filtered_characters"]) == (
        5,
        1 + 1 + 0 + 1 + 2,
        3 + 50 + 0 + 6 + 3,
    )
    assert [(file["name"], file["filtered"]) for file in result.run["files"]] == [("a.jsonl", 3), ("b.jsonl", 2)]


def test_empty_files_give_an_empty_store(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "b.txt").touch()
    (tmp_path / "c.jsonl").write_bytes(b"\n\r\n \n")
    inputs = [tmp_path / name for name in ("a.jsonl", "b.txt", "c.jsonl")]
    with pytest.warns(PacktoolWarning, match="no document is left"):
        result = run(inputs, tmp_path / "o")
    assert TokenStore(result.path).documents == 0
    assert TokenStore(result.path).lengths().tolist() == []


def test_standard_input(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "packtool", "tokenize", "-", "-o", "o", "--json", "--workers", "1"]
    environment = {**os.environ, "PYTHONPATH": str(Path(packtool.__file__).parents[1])}
    raw = gzip.compress(jsonl(TEXTS))
    done = subprocess.run(command, input=raw, cwd=tmp_path, env=environment, capture_output=True, check=True)
    shown = json.loads(done.stdout)
    assert shown["schema_version"] == 1
    assert shown["counts"]["documents"] == len(TEXTS)
    assert done.stderr == b""
    assert documents(tmp_path / "o") == reference(TEXTS)
    manifest = manifests.read(tmp_path / "o")
    assert isinstance(manifest, manifests.StoreManifest)
    assert manifest.inputs[0].name == "-"
    assert sorted(p.name for p in (tmp_path / "o").iterdir())[-1] == "tokens-00000.npy"
    assert "can't be resumed" in fails(UsageError, "-", tmp_path / "p", resume=True)
    assert "named twice" in fails(UsageError, ["-", "-"], tmp_path / "p")


def test_options_that_make_no_sense(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS))
    for options, text in (
        ({"on_error": "ignore"}, "--on-error: 'ignore' is not a known value. Choose one of fail, skip, quarantine"),
        ({"format": "csv"}, "--format: 'csv' is not a known value. Choose one of jsonl, parquet, text, lines"),
        ({"special_tokens": "x"}, "--special-tokens: 'x' is not a known value. Choose one of token, text"),
        ({"max_errors": 3}, "--max-errors: has no effect while --on-error is fail"),
        ({"encoder": "x"}, "--encoder: 'x' is not a known value"),
        ({"eos_token": "<nope>"}, "--eos-token: '<nope>' is not in the vocabulary"),
        ({"eos_token": 99999999}, "--eos-token: no token has the id 99999999"),
    ):
        assert fails(UsageError, tmp_path / "a.jsonl", tmp_path / "o", **options).startswith(text)
    assert "the output lies inside the input" in fails(UsageError, tmp_path, tmp_path / "o")


KILLED = """
import os, signal, sys, threading
from packtool.corpus import blocks
from packtool import tokenize
if __name__ == "__main__":
    blocks.SMALLEST = 20_000
    threading.Timer(float(sys.argv[4]), os.kill, (os.getpid(), signal.SIGKILL)).start()
    tokenize(sys.argv[1], sys.argv[2], workers=int(sys.argv[3]), resume=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_killed_at_any_moment_resume_ends_with_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "SMALLEST", 20_000)
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.jsonl").write_bytes(jsonl([f"{n} {text}" for n in range(60) for text in TEXTS]))
    (corpus / "b.jsonl.gz").write_bytes(gzip.compress(jsonl(TEXTS * 40)))
    expected = contents(run(corpus, tmp_path / "undisturbed").path)
    script = tmp_path / "killed.py"
    script.write_text(KILLED)
    environment = {**os.environ, "PYTHONPATH": str(Path(packtool.__file__).parents[1])}
    for attempt, delay in enumerate((0.25, 0.45, 0.6, 0.7, 0.8, 0.9)):
        command = [sys.executable, script, corpus, tmp_path / "o", str(1 + attempt % 2), str(delay)]
        done = subprocess.run([str(part) for part in command], env=environment, capture_output=True, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
    assert contents(run(corpus, tmp_path / "o", resume=True).path) == expected
    assert run(corpus, tmp_path / "o", resume=True).kept
    with pytest.raises(UsageError, match="begun with other options or inputs"):
        run(corpus, tmp_path / "o", resume=True, min_words=2)
    (corpus / "a.jsonl").write_bytes(jsonl(TEXTS))
    with pytest.raises(UsageError, match="begun with other options or inputs"):
        run(corpus, tmp_path / "o", resume=True)


def test_finished_blocks_are_not_done_again(
    tmp_path: Path, small_blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS * 40))
    expected = contents(run(tmp_path / "a.jsonl", tmp_path / "whole").path)
    done: list[int] = []
    original = block.run

    def stop_after_three(context: block.Context, task: block.Task) -> Any:
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(task.number)
        return original(context, task)

    monkeypatch.setattr(block, "run", stop_after_three)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "a.jsonl", tmp_path / "o")
    first = set(done)
    done[:] = []
    monkeypatch.setattr(block, "run", lambda context, task: (done.append(task.number), original(context, task))[1])
    result = run(tmp_path / "a.jsonl", tmp_path / "o", resume=True)
    assert contents(result.path) == expected
    assert not (first - {-1}) & set(done)


def test_a_small_input_spares_the_second_encoder(
    tmp_path: Path, small_input: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose, "SMALL_INPUT", small_input)
    text = jsonl(["A plain text."] * 10)
    most = int(small_input * len(load.load().data))
    sizes = {"small": 10 * text, "large": text * (most // len(text) + 1)}
    found = {}
    for name, data in sizes.items():
        (tmp_path / f"{name}.jsonl").write_bytes(data)
        found[name] = run(tmp_path / f"{name}.jsonl", tmp_path / name).run
    (tmp_path / "small.jsonl.gz").write_bytes(gzip.compress(sizes["small"]))
    found["archive"] = run(tmp_path / "small.jsonl.gz", tmp_path / "archive").run
    fast = "gigatoken" if gigatoken.installed() else "tokenizers"
    assert {name: of["encoder"] for name, of in found.items()} == {
        "small": "tokenizers",
        "large": fast,
        "archive": fast,
    }
    if gigatoken.installed():
        assert found["small"]["encoder_why"] == "the input is so small that loading gigatoken would take longer"
    asked = run(tmp_path / "small.jsonl", tmp_path / "asked", encoder=fast)
    assert contents(asked.path) == contents(tmp_path / "small")


def test_a_mismatch_falls_back_for_everything(
    tmp_path: Path, small_blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl([*TEXTS * 20, *["Zebra crossing"] * 100, *TEXTS]))
    expected = contents(run(tmp_path / "a.jsonl", tmp_path / "whole", encoder="tokenizers").path)
    original = gigatoken.GigatokenEncoder.encode

    def wrong(self: Any, texts: Any, utf8: Any = None) -> Any:
        return original(self, [text.replace("Zebra", "zebra") for text in texts])

    monkeypatch.setattr(gigatoken.GigatokenEncoder, "encode", wrong)
    block._encoder.cache_clear()
    with pytest.warns(PacktoolWarning, match="give different ids for a text") as caught:
        result = run(tmp_path / "a.jsonl", tmp_path / "o")
    assert len(caught) == 1
    assert contents(result.path) == expected
    assert result.run["encoder"] == "tokenizers"
    assert "give different ids" in result.run["encoder_why"]
    with pytest.raises(EncoderMismatchError, match="Give --encoder tokenizers"):
        run(tmp_path / "a.jsonl", tmp_path / "p", encoder="gigatoken")
    block._encoder.cache_clear()


def test_truncation_is_the_tokenizers_and_is_counted(tmp_path: Path) -> None:
    spec = json.loads(ASSET.read_text())
    spec["truncation"] = {"direction": "Right", "max_length": 5, "strategy": "LongestFirst", "stride": 0}
    (tmp_path / "tokenizer.json").write_text(json.dumps(spec))
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS))
    with pytest.warns(PacktoolWarning, match="the tokenizer.json truncates, and cut 28 documents"):
        result = run(tmp_path / "a.jsonl", tmp_path / "o", tokenizer=tmp_path)
    assert max(map(len, documents(result.path))) == 6
    assert result.run["encoder"] == "tokenizers"
    assert result.counts["truncated"] == 28


def test_long_documents_are_encoded_in_pieces_to_the_same_ids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from packtool.corpus import jsonl as jsonl_reader
    from packtool.tokenizing import block as blocks_of

    words = ["The", "quick\nbrown", "fox.", "It's", "", "été", "日本語", "def", "x(y):\n\n"]
    text = " ".join(f"{word}{n}" for n, word in enumerate(words * 400))
    (tmp_path / "a.jsonl").write_bytes(jsonl(["short", text, "short"]))
    expected = contents(run(tmp_path / "a.jsonl", tmp_path / "whole", bos_token="!").path)
    monkeypatch.setattr(jsonl_reader, "LONG", 2000)
    monkeypatch.setattr(jsonl_reader, "_PIECE", 700)
    monkeypatch.setattr(pieces, "PIECE", 300)
    monkeypatch.setattr(blocks_of, "PIECE", 300)
    monkeypatch.setattr(blocks_of, "_ENCODE_CHARS", 1000)
    for encoder in ("auto", "tokenizers"):
        store = run(tmp_path / "a.jsonl", tmp_path / encoder, encoder=encoder, bos_token="!").path
        assert contents(store) == expected


def test_a_file_named_twice_is_read_twice_and_said_so(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.jsonl").write_text('{"text": "one"}\n')
    with pytest.warns(PacktoolWarning, match=r"a\.jsonl: named 2 times, and read as often"):
        result = packtool.tokenize([corpus, corpus / "a.jsonl"], tmp_path / "store")
    assert result.counts["documents"] == 2


def test_an_archive_that_bursts_takes_no_more_memory_than_a_record_may(tmp_path: Path) -> None:
    record = b'{"text": "' + b"0" * (300 << 20) + b'"}\n'
    (tmp_path / "bomb.jsonl.gz").write_bytes(gzip.compress(jsonl(["before"]) + record + jsonl(["after"]), 1))
    script = """
import re, sys, packtool
if __name__ == "__main__":
    packtool.tokenize(sys.argv[1], sys.argv[2], workers=1, on_error="quarantine", max_record_bytes="8MiB")
    print(int(re.search("VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) >> 10)
"""
    command = [sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "bomb.jsonl.gz"), str(tmp_path / "o")]
    assert int(subprocess.check_output(command)) < 400
    assert documents(tmp_path / "o") == reference(["before", "after"])
    [rejected] = [json.loads(line) for line in (tmp_path / "o" / "rejected.jsonl").read_text().splitlines()]
    assert (rejected["record"], rejected["code"], rejected["bytes"]) == (2, "record-too-large", len(record) - 1)
    assert rejected["raw"] == record[: 1 << 16].decode()
    bomb = tmp_path / "bomb.jsonl.gz"
    message = fails(DataError, bomb, tmp_path / "p", max_record_bytes="8MiB")
    assert message.startswith(f"{bomb}:2: a record of 314,572,812 bytes, above the limit of 8,388,608")
    assert message.endswith("Raise --max-record-bytes, or give --on-error skip or quarantine.")


GROWING = """
import sys
from packtool.corpus import blocks, read
from packtool import tokenize
if __name__ == "__main__":
    blocks.SMALLEST = 20_000
    original = read.SpanReader._batches
    def grow(self, source):
        with open(self._file.location, "ab") as file:
            file.write(b'{"text": "one more"}\\n')
        yield from original(self, source)
    read.SpanReader._batches = grow
    tokenize(sys.argv[1], sys.argv[2], workers=1)
"""


@pytest.mark.parametrize("lines", [10, 5000], ids=["whole", "divided"])
def test_a_file_that_grows_while_it_is_read_is_an_error(tmp_path: Path, lines: int) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(["some text"] * lines))
    (tmp_path / "grow.py").write_text(GROWING)
    command = [sys.executable, str(tmp_path / "grow.py"), str(tmp_path / "a.jsonl"), str(tmp_path / "o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "a.jsonl: changed while the command was at work: it had" in done.stderr
    assert not (tmp_path / "o" / "manifest.json").exists()


def test_digests_are_of_the_bytes_of_the_files(corpus: Path, tmp_path: Path, small_blocks: None) -> None:
    (corpus / "big.jsonl").write_bytes(jsonl(TEXTS * 20))
    manifest = manifests.read(run(corpus, tmp_path / "o").path)
    assert isinstance(manifest, manifests.StoreManifest)
    for entry in manifest.inputs:
        assert entry.xxh3_128 == xxhash.xxh3_128_hexdigest((corpus / entry.name).read_bytes())


def test_files_of_other_kinds_in_a_directory_are_named_once(corpus: Path, tmp_path: Path) -> None:
    (corpus / "README.md").write_text("# not a document")
    (corpus / "dataset_info.json").write_text("{}")
    with pytest.warns(PacktoolWarning) as caught:
        result = run(corpus, tmp_path / "o")
    [warning] = caught
    assert str(warning.message) == (
        f"{corpus}: not read, since no format has their suffix: README.md, dataset_info.json. Name the files to read "
        "them, or give --include with a pattern, and --format if needed."
    )
    assert documents(result.path) == reference(TEXTS * 7)
    one = run(corpus, tmp_path / "p", include=["*.md"])
    assert documents(one.path) == reference(["# not a document"])
    assert "'[z-a]' is not a pattern" in fails(UsageError, corpus, tmp_path / "q", exclude=["[z-a]"])


def test_a_json_array_and_a_missing_field_say_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([{"text": "a"}, {"text": "b"}], indent=1))
    message = fails(DataError, tmp_path / "a.json", tmp_path / "o")
    assert "a.json: one JSON array of objects, not JSON Lines, which has one object a line" in message
    (tmp_path / "b.jsonl").write_text('{"id": 1, "content": "a", "meta": {}}\n')
    message = fails(DataError, tmp_path / "b.jsonl", tmp_path / "o")
    assert "b.jsonl:1: no text field 'text'; there are id, content, meta. Name the field with --text-field" in message


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / os.fsdecode(b"caf\xe9.jsonl")).write_bytes(jsonl(["a"]) + b"nonsense\n")
    with pytest.warns(PacktoolWarning, match="1 records could not be used"):
        result = run(tmp_path / "in", tmp_path / "o", on_error="quarantine")
    manifest = manifests.read(result.path)
    assert isinstance(manifest, manifests.StoreManifest)
    assert [entry.name for entry in manifest.inputs] == ["caf\\xe9.jsonl"]
    assert json.loads((result.path / "rejected.jsonl").read_text())["file"] == "caf\\xe9.jsonl"
    assert "caf\\xe9.jsonl:2: not valid JSON" in fails(DataError, tmp_path / "in", tmp_path / "p")


def test_an_input_that_links_to_the_output(tmp_path: Path) -> None:
    corpus, store = tmp_path / "corpus", tmp_path / "store"
    corpus.mkdir()
    (corpus / "a.jsonl").write_text('{"text": "a"}\n{"txet": "b"}\n')
    with pytest.warns(PacktoolWarning, match="1 records could not be used"):
        packtool.tokenize([corpus], store, on_error="quarantine")
    before = contents(store)
    (corpus / "again.jsonl").symlink_to(store / "rejected.jsonl")
    for inputs in ([corpus], [corpus / "again.jsonl"], [corpus / "*.jsonl"]):
        with pytest.raises(UsageError, match=r"the input .*again.jsonl lies inside the output") as caught:
            packtool.tokenize(inputs, store, overwrite=True, text_field="raw")
        assert caught.value.code == "output-overlaps-input"
    assert contents(store) == before
