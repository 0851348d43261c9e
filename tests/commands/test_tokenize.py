"""`tokenize` from files to a finished store, and one clear error for whatever a user can get wrong."""

import gzip
import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

import packtool
from packtool.errors import DataError, UsageError
from packtool.formats import manifest as manifests
from packtool.formats.token_store import TokenStore
from packtool.warnings import PacktoolWarning
from tests.shell import Shell
from tests.stores import contents
from tests.text.tokenizing.runs import (
    ASSET,
    TEXTS,
    corpus_of_every_kind,
    documents,
    fails,
    jsonl,
    reference,
    run,
    special_texts,
)


@pytest.mark.usefixtures("small_blocks")
@special_texts
def test_every_format_gives_the_documents_of_the_reference(tmp_path: Path) -> None:
    """By any number of workers and any encoder."""
    corpus = corpus_of_every_kind(tmp_path / "corpus", TEXTS)
    long = [f"document number {n} " * (n % 7 + 1) for n in range(300)]
    (corpus / "big.jsonl").write_bytes(jsonl(long))
    results = [
        run(corpus, tmp_path / f"{workers}-{encoder}", workers=workers, encoder=encoder)
        for workers, encoder in ((1, "auto"), (2, "auto"), (1, "tokenizers"))
    ]
    stores = [contents(result.path) for result in results]
    assert stores[0] == stores[1] == stores[2]
    expected = reference([*TEXTS * 3, *long, *TEXTS * 4])
    assert documents(results[0].path) == expected
    names = " ".join(entry.name for entry in manifests.read(results[0].path).inputs)
    assert names == "a.jsonl b.jsonl.gz big.jsonl c.jsonl.bz2 d.jsonl.xz deep/e.parquet misnamed.jsonl"
    held = [file["documents"] for file in results[0].run["files"]]
    assert held == [len(TEXTS), 2 * len(TEXTS), len(long), *[len(TEXTS)] * 4]
    counts = results[0].counts
    assert (counts["documents"], counts["tokens"]) == (len(expected), sum(map(len, expected)))
    assert sum(name.startswith("tokens-") for name in stores[0]) > 5
    kinds = {name.partition("-")[0] for name in stores[0]}
    assert kinds == {"documents", "offsets", "tokens", "manifest.json", "tokenizer.json"}


def test_errors_name_the_place_and_the_remedy(tmp_path: Path) -> None:
    bad, out = tmp_path / "bad.jsonl", tmp_path / "store"
    bad.write_bytes(b'{"text": "fine"}\n\n{"text": "broken}\n')
    assert fails(DataError, bad, out).startswith(f"{bad}:3: not valid JSON: Unterminated string")
    bad.write_bytes(b'{"text": "fine"}\n{"id": 1, "body": "elsewhere"}\n')
    assert fails(DataError, bad, out).startswith(
        f"{bad}:2: no text field 'text'; there are id, body (read as jsonl; or format=\"text\")."
    )
    assert not out.exists(), "an error leaves nothing to clean up"


@special_texts
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


@special_texts
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
    assert (manifest.tokenizer.bos_id, manifest.tokenizer.eos_id) == (bos, eos)


def test_empty_files_give_an_empty_store(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").touch()
    (tmp_path / "b.txt").touch()
    (tmp_path / "c.jsonl").write_bytes(b"\n\r\n \n")
    inputs = [tmp_path / name for name in ("a.jsonl", "b.txt", "c.jsonl")]
    with pytest.warns(PacktoolWarning, match="no document is left"):
        result = run(inputs, tmp_path / "o")
    assert TokenStore(result.path).documents == 0
    assert TokenStore(result.path).lengths().tolist() == []


def test_standard_input(here: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(jsonl(TEXTS)))))
    shown = json.loads(shell("tokenize", "-", "-o", "o", "--json", "--workers", "1", "--tokenizer", ASSET))
    assert (shown["schema_version"], shown["counts"]["documents"]) == (1, len(TEXTS))
    assert "--special-tokens text" in shell.err
    assert documents(Path("o")) == reference(TEXTS)
    assert manifests.read(Path("o")).inputs[0].name == "-"
    assert sorted(path.name for path in Path("o").iterdir())[-1] == "tokens-00000-000.npy"
    assert "can't be resumed" in fails(UsageError, "-", Path("p"), resume=True)
    assert "named twice" in fails(UsageError, ["-", "-"], Path("p"))


def test_standard_input_that_is_interrupted_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "packtool", "tokenize", "-", "-o", str(tmp_path / "out")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(jsonl(["begun"]) * 100_000)  # more than is read before the output is begun
        process.stdin.flush()
        while not list(tmp_path.glob("out/unfinished/**/stdin")) and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode not in (0, 1, 2)
    assert not (tmp_path / "out").exists()


def test_options_that_make_no_sense(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS))
    for options, text in (
        ({"on_error": "ignore"}, "on_error: 'ignore' is not a known value. Choose one of fail, skip, quarantine"),
        ({"max_errors": 3}, "max_errors: has no effect while on_error is fail"),
        ({"eos_token": "<nope>"}, "eos_token: '<nope>' is not in the vocabulary"),
        ({"eos_token": 99999999}, "eos_token: no token has the id 99999999"),
    ):
        assert fails(UsageError, tmp_path / "a.jsonl", tmp_path / "o", **options).startswith(text)


@special_texts
def test_what_was_begun_goes_on_with_the_same_options_and_files_alone(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS))
    run(tmp_path / "a.jsonl", tmp_path / "o")
    assert run(tmp_path / "a.jsonl", tmp_path / "o", resume=True).kept
    with pytest.raises(UsageError, match="o: begun with other options: min_words was not given"):
        run(tmp_path / "a.jsonl", tmp_path / "o", resume=True, min_words=2)
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS[1:]))
    with pytest.raises(UsageError, match="begun with these options, but a file that it reads has changed"):
        run(tmp_path / "a.jsonl", tmp_path / "o", resume=True)


def test_an_input_that_links_to_the_output(tmp_path: Path) -> None:
    corpus, store = tmp_path / "corpus", tmp_path / "store"
    corpus.mkdir()
    (corpus / "a.jsonl").write_text('{"text": "a"}\n{"txet": "b"}\n')
    with pytest.warns(PacktoolWarning, match="1 record could not be used"):
        packtool.tokenize([corpus], store, on_error="quarantine")
    before = contents(store)
    (corpus / "again.jsonl").symlink_to(store / "rejected.jsonl")
    for inputs in ([corpus], [corpus / "again.jsonl"], [corpus / "*.jsonl"]):
        with pytest.raises(UsageError, match=r"the input .*again.jsonl lies inside the output") as caught:
            packtool.tokenize(inputs, store, overwrite=True, text_field="raw")
        assert caught.value.code == "output-overlaps-input"
    assert contents(store) == before
