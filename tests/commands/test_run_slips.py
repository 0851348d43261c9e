"""Slips in the file of a run: each is one clear error, at its line where it has one, before anything is done."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import packtool
from packtool.commands.run import run
from packtool.errors import PacktoolError

TOKENIZE = '[tokenize]\ninput = "a.jsonl"\ncolumns = ["lang", "score"]\n'
PACK = '[pack]\nstrategy = "bfd"\nsequence-length = 16\n'
BOTH = TOKENIZE + PACK
CHATS = '[tokenize]\ninput = "chats.jsonl"\nchat-template = "template.jinja"\n'
BUCKETS = TOKENIZE + '[pack]\nstrategy = "buckets"\nbuckets = [8, 16]\n'


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("run")
    records = [{"text": f"a river {n}", "lang": "en", "score": n} for n in range(20)]
    (place / "a.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    chat = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    (place / "chats.jsonl").write_text(json.dumps({"messages": chat}) + "\n")
    (place / "template.jinja").write_text("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}")
    shutil.copy(Path(packtool.__file__).parent / "assets" / "tokenizer.json", place)
    (place / "other").mkdir()
    (place / "other" / "letter.txt").touch()
    (place / "list").write_text("a.jsonl:3\n")
    return place


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (
            BOTH + '[export]\nformat = "nanogp"\n',
            "c.toml:8: format: there is no format 'nanogp' for this. Did you mean",
        ),
        (BOTH + '[stats]\ncompare = ["bdf"]\n', "c.toml:8: compare: there is no strategy 'bdf'. Did you mean bfd"),
        (BOTH + '[stats]\ncompare = "all"\nsequence-length = 1\n', "c.toml:9: sequence-length: 1 is out of range"),
        (BOTH + 'where = "scor > 3"\n', "c.toml:7: where: 'scor' was not kept with the documents of out/tokens (kept:"),
        (BOTH + 'where = "token > 3"\n', "c.toml:7: where: 'token' was not kept with the documents of out/tokens"),
        (BOTH + 'where = "score >"\n', "c.toml:7: where: 'score >' is not an expression"),
        (BOTH + "where = \"store == 'web'\"\n", "c.toml:7: where: there is no store 'web' among the inputs"),
        (BOTH + 'keep = ["scor:number"]\n', "c.toml:7: keep: no store has a column 'scor'; there are lang, score. Did"),
        (BOTH + 'order-by = ["lnag"]\n', "c.toml:7: order-by: 'lnag' was not kept with the documents of out/tokens"),
        (
            BOTH + 'holdout = "1%"\nholdout-by = "repo"\n',
            "c.toml:8: holdout-by: 'repo' was not kept with the documents",
        ),
        (BOTH + 'holdout-of = "nowhere"\n', "nowhere: no such directory. Check the path."),
        (BOTH + '[[shuffle]]\nmethod = "atom"\natom-size = 8\n', 'c.toml:9: atom-size: packed with strategy="bfd" in'),
        (BOTH + '[shuffle]\nmethod = "bucket"\nbatch-tokens = 64\n', "out/packed: all its rows have one length"),
        (BUCKETS + '[shuffle]\nmethod = "bucket"\nbatch-tokens = 24\n', "c.toml:9: batch-tokens: 24 tokens is not a"),
        (
            BOTH + '[shuffle]\nmethod = "partial"\nbatch-size = 2\nsequence-length = 8\nkeep = "x"\n',
            "keep: no store has a",
        ),
        (BOTH + '[shuffle]\ninput = "tokens"\n', 'out/tokens: a token store, where method="atom" needs a packed'),
        (BOTH + '[materialize]\ninput = "tokens"\n', "out/tokens: a token store, where a packed dataset is needed"),
        (BOTH + '[materialize]\nindex-only = true\ninput = "pakced"\n', "pakced: no such directory"),
        (
            BOTH + "segments = false\n[shuffle]\nindex-only = true\n",
            "out/packed: the dataset was written with segments",
        ),
        (
            BOTH + '[[export]]\nformat = "mds"\ninput = "packed"\nmin-tokens = 3\noutput = "e"\n',
            "min-tokens: has no effect on",
        ),
        (
            BOTH + '[[export]]\nformat = "mds"\noutput = "e"\n[[export]]\nformat = "mds"\ninput = "e"\noutput = "f"\n',
            "e: an export, where a tok",
        ),
        (
            BOTH + '[stats]\ninput = "packed"\ncompare = "all"\nsequence-length = 16\n',
            "out/packed: a packed dataset, but strategies are compared",
        ),
        (BOTH + '[stats]\nhtml = "report.txt"\n', "c.toml:8: html: 'out/report.txt' is not the name of a page"),
        (BOTH + '[stats]\ntokenizer = "tokenizer.json"\n', "c.toml:8: tokenizer: has no effect on packed datasets"),
        (BOTH + '[stats]\ninput = "tokesn"\n', "tokesn: no such"),
        (BOTH + 'pad-token = "<pad>"\n', "c.toml:7: pad-token: '<pad>' is not an added token of the tokenizer"),
        (BOTH + 'too-long = "drop"\n', "c.toml:7: too-long: no store holds conversations"),
        (BOTH + 'mix = "web=2x"\n', "c.toml:7: mix: there is no store 'web' among the inputs"),
        (BOTH + 'exclude = "nowhere.txt"\n', "nowhere.txt: can't be read (no such file or directory)"),
        (BOTH + 'exclude = "other"\n', "c.toml:7: exclude: other is a directory, and no token store"),
        (BOTH + "atom-size = 3\n", 'c.toml:7: atom-size: strategy = "bfd" does not take this option'),
        (
            TOKENIZE + '[pack]\nstrategy = "padding"\nsequence-length = 16\natom-size = 1\n',
            "c.toml:7: atom-size: an atom of padding",
        ),
        (
            TOKENIZE + "provenance = false\n" + PACK + 'shard-of = "1/2"\n',
            "c.toml:8: shard-of: out/tokens is made with",
        ),
        (
            TOKENIZE + "provenance = false\n[stats]\nmost-repeated = 2\n",
            "c.toml:6: most-repeated: out/tokens is made with",
        ),
        (
            CHATS + '[pack]\nstrategy = "concat"\nsequence-length = 16\n',
            "c.toml:5: strategy: concat cuts documents that",
        ),
        (CHATS + PACK + '[export]\nformat = "nanogpt"\n', "c.toml:8: format: nanogpt can't say which tokens train"),
        (
            CHATS + '[shuffle]\nmethod = "partial"\nbatch-size = 2\nsequence-length = 8\n',
            "method: the partial shuffle cuts",
        ),
        (PACK + 'input = "a.jsonl"\n', "a.jsonl: a file, not a token store or packed dataset"),
        (BOTH + 'output = "PLACE/other"\n', "other: holds letter.txt already. Choose another output"),
        (TOKENIZE + 'tokenizer = "nowhere.json"\n', "nowhere.json"),
        (TOKENIZE + 'eos-token = "<end>"\n', "c.toml:4: eos-token: "),
        ('[[tokenize]]\ninput = "a.jsonl"\noutput = "a"\n[[tokenize]]\ninput = "b.jsonl"\noutput = "b"\n', "b.jsonl: "),
    ],
)
def test_slips_are_found_before_anything_is_done(
    place: Path, monkeypatch: pytest.MonkeyPatch, tables: str, message: str
) -> None:
    monkeypatch.chdir(place)
    Path("c.toml").write_text(tables.replace("PLACE", str(place)))
    before = sorted(place.rglob("*"))
    for dry_run in (True, False):
        with pytest.raises(PacktoolError) as caught:
            run("c.toml", output="out", dry_run=dry_run)
        assert message in str(caught.value)
    assert sorted(place.rglob("*")) == before
