"""`info` tells what a path is, whether it is whole, and what to do next."""

import json
import os
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken

import packtool
from packtool.cli import run
from packtool.commands import info
from packtool.formats.manifest import sealed, unsealed
from packtool.warnings import PacktoolWarning
from tests.interrupting import flip, interrupted
from tests.making import Make
from tests.outputs.cases import begin
from tests.shell import Shell
from tests.text.encoding import shapes


@pytest.fixture
def place(here: Path, make: Make) -> Path:
    return make([5, 9, 70], packed={"strategy": "concat", "sequence_length": 16}, at=here)


SAID = {
    "store": [
        "store: token store, whole\n  documents   3\n  tokens      84\n",
        "\n  tokenizer   sha256 000000000000\n  EOS         <eos> (0)\n",
        "\n  packtool pack store -o packed-2 --strategy bfd --sequence-length 128\n",
    ],
    "packed": [
        "packed: packed dataset, whole\n  strategy         concat\n  sequence length  16\n",
        "\n  rows             6\n",
        "\n  order            rows shuffled, seed 42\n",
        "\n  packtool stats packed\n",
    ],
    "exported": ["exported: export, whole\n  written for  parquet\n  sequences    6\n", "\n  files        1\n"],
}


@pytest.mark.parametrize("name", SAID)
def test_a_whole_dataset(place: Path, shell: Shell, name: str) -> None:
    packtool.export("packed", "exported", format="parquet")
    text = shell("info", name)
    assert text.startswith(SAID[name][0])
    assert all(said in text for said in SAID[name])
    assert ("shards" in text) == (name != "exported")


def test_a_tokenizer(place: Path, shell: Shell) -> None:
    tokens = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>")
    spec = shapes.with_added(*(AddedToken(text, special=True) for text in tokens))
    Path("model").mkdir()
    Path("model/tokenizer.json").write_bytes(shapes.data(spec))
    ids = {token["content"]: token["id"] for token in spec["added_tokens"]}
    listed = ", ".join(f"{text} ({ids[text]})" for text in tokens)
    Path("model/bpe.json").write_bytes(shapes.data(spec))
    for path in ("model", "model/tokenizer.json", "model/bpe.json"):
        text = shell("info", path)
        assert text.startswith(f"{path}: tokenizer\n  model                  BPE\n")
        assert f"\n  EOS                    {shapes.EOS} ({ids[shapes.EOS]})\n" in text
        assert "verified as it runs\n" in text
        assert f"\n  to fill in the middle  {listed}\n" in text
        assert f"  packtool tokenize CORPUS -o tokens --tokenizer {path}\n" in text
    Path("model/tokenizer.json").write_bytes(shapes.data(shapes.spec()))
    assert "\n  to fill in the middle  no known sentinels\n" in shell("info", "model")
    for name, told in (("LlamaTokenizerFast", True), ("GPT2Tokenizer", True), ("PreTrainedTokenizerFast", False)):
        Path("model/tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
        built = f"{name.removesuffix('Fast')} is built anew from the vocabulary: its ids may differ from this file's"
        assert (f"\n  in Transformers 5      {built}\n" in shell("info", "model")) is told
    Path("model/tokenizer_config.json").unlink()
    Path("a.jsonl").write_text('{"text": "some text", "title": "a"}\n{\n')
    fim = {"fim_rate": 1, "fim_tokens": ["a", "b", "c"]}
    with pytest.warns(PacktoolWarning, match="1 record could not be used"):
        packtool.tokenize("a.jsonl", "rearranged", tokenizer="model", on_error="skip", **fim)
    said = shell("info", "rearranged")
    assert "\n  rearranged  1 document (100%) to fill in the middle\n" in said
    assert "\n  records     read: text; not read: title\n  left out    1 rejected (1 invalid-json)\n" in said
    assert " tokens, 1 rejected (1 invalid-json)\n" in shell("stats", "rearranged")


def test_damage(place: Path, shell: Shell) -> None:
    """To a file of any bucket."""
    packtool.pack("store", "buckets", strategy="buckets", buckets=[8, 16])
    assert packtool.info("buckets").facts["sequence length"] == [8, 16]
    file = place / "buckets" / "bucket-00016" / "segments-00000.npy"
    file.write_bytes(file.read_bytes()[:-1])
    text = shell("info", "buckets", status=1)
    assert text.startswith("buckets: packed dataset, damaged\n")
    said = "missing or of the wrong size: bucket-00016/segments-00000.npy\nNext:\n  packtool verify buckets\n"
    assert said in text


def test_an_index_whose_store_is_elsewhere_is_incomplete(place: Path, shell: Shell) -> None:
    packtool.pack("store", "index", strategy="bfd", sequence_length=16, index_only=True)
    assert "\n  packtool materialize index -o packed-2\n" in shell("info", "index")
    (place / "store").rename(place / "gone")
    text = shell("info", "index", status=1)
    assert text.startswith("index: packed dataset, incomplete\n")
    assert "/store: the token store that the rows are gathered from is not there. " in text
    assert text.endswith("Next:\n  packtool materialize index -o packed-2 --store STORE\n")
    assert "  index                 packed dataset, incomplete, " in shell("info", ".", status=1)
    (place / "index" / "segments-00000.npy").unlink()
    assert shell("info", "index", status=1).startswith("index: packed dataset, damaged\n")


PACKED = ["-o", "x", "--strategy", "bfd", "-L", "8"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["pack", "packed", *PACKED], 2, "packed: a packed dataset, where a token store"),
        (["show", "half"], 1, "half: the output of a packtool command that was interrupted. Finish it first: packtool"),
        (["info", "lost"], 1, "lost: run.json without manifest.json: a dataset that lost it. Copy"),
        (["info", "order"], 1, "order: run.json without manifest.json: a dataset that lost it. Copy"),
        (["pack", "lost", *PACKED], 1, "lost: run.json without manifest.json: a dataset that lost it. Copy"),
        (["show", "packed/manifest.json"], 1, "packed/manifest.json: the manifest of a dataset. Give its directory: "),
    ],
)
def test_what_is_of_the_wrong_kind_is_called_by_its_name(
    place: Path, shell: Shell, arguments: list[str], status: int, message: str
) -> None:
    begin("half", command="pack")
    shutil.copytree("packed", "lost", ignore=shutil.ignore_patterns("manifest.json"))
    (place / "order").mkdir()
    (place / "order" / "run.json").write_text('{"command": "shuffle", "key": "k", "order": {"files": [], "rows": 3}}')
    assert message in shell.refused(*arguments, status=status)
    assert shell.out == ""
    assert not (place / "x").exists()


def test_commands_that_go_on_finish_the_work(place: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    """Whatever command it was: what info says goes on from where it was interrupted."""
    (place / "a.jsonl").write_text('{"text": "a"}\n{"text": "b c"}\n')
    for typed in (
        "tokenize a.jsonl",
        "pack store --strategy bfd -L 16",
        "shuffle packed --epoch 2",
        "export packed --format parquet",
    ):
        interrupted(monkeypatch, run, [*typed.split(), "-o", "my out"])
        assert "interrupted. Finish it first: packtool info 'my out' tells how." in shell.refused("stats", "my out")
        assert packtool.info("my out").state == "unfinished"
        again, anew = packtool.info("my out").next
        assert again.startswith(f"packtool {typed.split()[0]} {place}/")
        assert anew == again.replace("--resume", "--overwrite")
        shell(*shlex.split(again)[1:])
        assert packtool.info("my out").state == "whole"
        shutil.rmtree("my out")


@pytest.mark.parametrize("arguments", [{"stores": [1]}, {"stores": ["a"], "overwrite": True}, {"no": 1}])
def test_what_somebody_wrote_of_unfinished_work_is_no_command(
    place: Path, shell: Shell, arguments: dict[str, Any]
) -> None:
    begin("half", command="pack")
    assert shell("info", "half").startswith(
        "half: output of an interrupted command, unfinished\n  begun by  packtool pack\n"
    )
    marker = place / "half" / "unfinished" / "state.json"
    state = json.loads(unsealed(marker.read_bytes()))
    marker.write_bytes(sealed(state | {"arguments": arguments}))
    assert "  packtool pack ... -o half --resume " in shell("info", "half")
    marker.write_bytes(sealed(state | {"command": "rm -r /"}))
    assert "  packtool ? ... -o half --resume " in shell("info", "half")


def test_a_directory_of_datasets(place: Path, shell: Shell) -> None:
    text = shell("info", ".")
    assert text.startswith(".: directory of datasets, whole\n")
    assert "\n  packed                packed dataset, whole, 6 rows\n" in text
    begin("half", command="pack")
    assert packtool.info(".").state == "unfinished"
    flip(place / "packed" / "manifest.json")
    text = shell("info", ".", status=1)
    assert "\n  packed                dataset, damaged\n" in text
    assert "\n  store                 token store, whole" in text
    [damaged] = [part for part in packtool.info(".").parts if part.state == "damaged"]
    assert damaged.facts["problem"].startswith("not a valid manifest")
    assert json.loads(shell("info", "--json", ".", status=1))["state"] == "damaged"


def test_what_packtool_did_not_write(place: Path, shell: Shell) -> None:
    (place / "corpus").mkdir()
    (place / "corpus" / "a b.jsonl.gz").write_bytes(b'{"text": "xyz"}')
    assert shell("info", "corpus") == (
        "corpus: not written by packtool\n  files  1\n  bytes  15\n  kinds  1 .jsonl.gz\n"
        "Next:\n  packtool tokenize corpus -o tokens --dry-run\n  packtool tokenize corpus -o tokens\n"
    )
    assert "  packtool tokenize 'corpus/a b.jsonl.gz' -o tokens\n" in shell("info", "corpus/a b.jsonl.gz")
    (place / "empty").mkdir()
    assert "empty: empty directory\nNext:\n  packtool tokenize corpus.jsonl -o empty\n" in shell("info", "empty")
    (place / "c.toml").write_text("[tokenize]")
    assert "  packtool run c.toml --input INPUT --dry-run\n" in shell("info", "c.toml")
    (place / "c.toml").write_text("[tokenize]\ninput = 'a.jsonl'")
    assert "  packtool run c.toml --dry-run\n" in shell("info", "c.toml")
    (place / "c.toml").write_text("[tool.ruff]")
    assert "c.toml:1: there is no table 'tool'. Choose one of" in shell.refused("info", "c.toml", status=2)


def test_a_pipe(tmp_path: Path, shell: Shell) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert shell.refused("info", tmp_path / "pipe") == (
        f"packtool: error[not-a-file]: {tmp_path / 'pipe'}: neither a file nor a directory. Give a file or directory.\n"
    )


def test_an_unfinished_directory_without_files_is_no_output(here: Path, shell: Shell) -> None:
    (here / "e" / "unfinished").mkdir(parents=True)
    assert "e: empty directory" in shell("info", "e")


def test_directories_do_not_hide_files(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(info, "MOST_FILES", 5)
    for number in range(9):
        (here / "d" / str(number)).mkdir(parents=True)
    (here / "d" / "8" / "a.jsonl").write_text('{"text": "a"}\n')
    assert packtool.info("d").facts["files"] == 1
