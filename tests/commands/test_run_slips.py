"""Slips in the file of a run: each is one clear error, at its line where it has one, before anything is done."""

import json
import shutil
from pathlib import Path

import pytest

import packtool
from packtool.commands.run import run
from packtool.errors import PacktoolError

TOKENIZE = '[tokenize]\ninput = "a.jsonl"\ncolumns = ["lang", "score"]\n'
UNSOURCED = TOKENIZE + "provenance = false\n"
CHATS = '[tokenize]\ninput = "chats.jsonl"\nchat-template = "template.jinja"\n'
PACK = '[pack]\nstrategy = "bfd"\nsequence-length = 16\n'
BUCKETS = TOKENIZE + '[pack]\nstrategy = "buckets"\nbuckets = [8, 16]\n'
BOTH = TOKENIZE + PACK
SHUFFLE, EXPORT, STATS = (f"{BOTH}[{name}]\n" for name in ("shuffle", "export", "stats"))
HELD = BOTH + 'holdout = "1%"\n'
MDS = '[[export]]\nformat = "mds"\n'
PARTIAL = '[shuffle]\nmethod = "partial"\nbatch-size = 2\nsequence-length = 8\n'
COMPARE = 'compare = "all"\nsequence-length = 16\n'


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
        (EXPORT + 'format = "nanogp"\n', "c.toml:8: format: there is no format 'nanogp' for this. Did you mean"),
        (EXPORT, "c.toml:7: export needs the option format. Give megatron, nanogpt, "),
        (STATS + 'compare = ["bdf"]\n', "c.toml:8: compare: there is no strategy 'bdf'. Did you mean bfd"),
        (STATS + COMPARE.replace("16", "1"), "c.toml:9: sequence-length: 1 is out of range"),
        (BOTH + 'where = "scor > 3"\n', "c.toml:7: where: 'scor' was not kept with the documents of out/tokens (kept:"),
        (BOTH + 'where = "token > 3"\n', "c.toml:7: where: 'token' was not kept with the documents of out/tokens"),
        (BOTH + 'where = "score >"\n', "c.toml:7: where: 'score >' is not an expression"),
        (BOTH + "where = \"store == 'web'\"\n", "c.toml:7: where: there is no store 'web' among the inputs"),
        (BOTH + 'keep = ["scor:number"]\n', "c.toml:7: keep: no store has a column 'scor'; there are lang, score. Did"),
        (BOTH + 'order-by = ["lnag"]\n', "c.toml:7: order-by: 'lnag' was not kept with the documents of out/tokens"),
        (HELD + 'holdout-by = "repo"\n', "c.toml:8: holdout-by: 'repo' was not kept with the documents"),
        (BOTH + 'holdout-of = "nowhere"\n', "nowhere: no such directory. Check the path."),
        (BOTH + 'holdout = "much"\n', "c.toml:7: holdout can't be 'much'. Give a part, such as 0.5%"),
        (BOTH + 'part = "holdout"\n', "c.toml:7: part: has no effect without holdout"),
        (
            UNSOURCED + PACK + 'holdout = "1%"\n',
            "c.toml:8: holdout: out/tokens is made with provenance=False, so it does not",
        ),
        (BOTH + '[[shuffle]]\nmethod = "atom"\natom-size = 8\n', 'c.toml:9: atom-size: packed with strategy="bfd" in'),
        (SHUFFLE + 'method = "bucket"\nbatch-tokens = 64\n', "out/packed: all its rows have one length"),
        (BUCKETS + '[shuffle]\nmethod = "bucket"\nbatch-tokens = 24\n', "c.toml:9: batch-tokens: 24 tokens is not a"),
        (BOTH + PARTIAL + 'keep = "x"\n', "c.toml:11: keep: no store has a column 'x'"),
        (SHUFFLE + 'input = "tokens"\n', 'out/tokens: a token store, where method="atom" needs a packed'),
        (SHUFFLE + "batch-size = 3\n", 'c.toml:8: batch-size: method = "atom" does not take this option. Leave it'),
        (SHUFFLE + "method = 'x'\n", "c.toml:8: method: there is no shuffle 'x'. Choose one of atom, partial"),
        (SHUFFLE + "epoch = '3'\n", "c.toml:8: epoch can't be '3'. Give a whole number."),
        (BOTH + '[materialize]\ninput = "tokens"\n', "out/tokens: a token store, where a packed dataset is needed"),
        (BOTH + '[materialize]\nindex-only = true\ninput = "pakced"\n', "pakced: no such directory"),
        (
            BOTH + "segments = false\n[shuffle]\nindex-only = true\n",
            "out/packed: the dataset was written with segments",
        ),
        (BOTH + MDS + 'input = "packed"\nmin-tokens = 3\noutput = "e"\n', "c.toml:10: min-tokens: has no effect on"),
        (BOTH + MDS + 'output = "e"\n' + MDS + 'input = "e"\noutput = "f"\n', "out/e: an export, where a tok"),
        (STATS + 'input = "packed"\n' + COMPARE, "out/packed: a packed dataset, but strategies are compared"),
        (STATS + 'html = "report.txt"\n', "c.toml:8: html: 'out/report.txt' is not the name of a page"),
        (STATS + 'tokenizer = "tokenizer.json"\n', "c.toml:8: tokenizer: has no effect on packed datasets"),
        (STATS + 'input = "tokesn"\n', "tokesn: no such"),
        (BOTH + 'pad-token = "<pad>"\n', "c.toml:7: pad-token: '<pad>' is not an added token of the tokenizer"),
        (BOTH + 'too-long = "drop"\n', "c.toml:7: too-long: no store holds conversations"),
        (BOTH + 'mix = "web=2x"\n', "c.toml:7: mix: there is no store 'web' among the inputs"),
        (PACK.replace("[pack]\n", "[pack]\ninput = ''\n"), "c.toml:2: input: an empty name. Give a path."),
        (BOTH + "mix-rows = 3\n", "c.toml:7: mix-rows can't be 3. Give true or false."),
        (BOTH + 'exclude = "nowhere.txt"\n', "nowhere.txt: can't be read (no such file or directory)"),
        (BOTH + 'exclude = "other"\n', "c.toml:7: exclude: other is a directory, and no token store"),
        (BOTH + "atom-size = 3\n", 'c.toml:7: atom-size: strategy = "bfd" does not take this option'),
        (BOTH.replace("bfd", "padding") + "atom-size = 1\n", "c.toml:7: atom-size: an atom of padding"),
        (BOTH.replace("bfd", "padded"), "c.toml:5: strategy: there is no strategy 'padded'. Did you mean padding"),
        (BOTH.replace('strategy = "bfd"\n', ""), "c.toml:4: pack needs the option strategy. Give concat, padding, "),
        (UNSOURCED + PACK + 'shard-of = "1/2"\n', "c.toml:8: shard-of: out/tokens is made with"),
        (UNSOURCED + "[stats]\nmost-repeated = 2\n", "c.toml:6: most-repeated: out/tokens is made with"),
        (TOKENIZE + 'part = "1/2"\n' + PACK, "out/tokens: part 1/2 of the inputs, of which part 2/2 is missing"),
        (CHATS + PACK.replace("bfd", "concat"), "c.toml:5: strategy: concat cuts documents that"),
        (CHATS + PACK + '[export]\nformat = "nanogpt"\n', "c.toml:8: format: nanogpt can't say which tokens train"),
        (CHATS + PARTIAL, "c.toml:5: method: the partial shuffle cuts"),
        (PACK + 'input = "a.jsonl"\n', "a.jsonl: a file, not a token store or packed dataset"),
        (BOTH + 'output = "PLACE/other"\n', "PLACE/other: holds letter.txt already. Choose another output"),
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
        assert str(caught.value).startswith(message.replace("PLACE", str(place)))
    assert sorted(place.rglob("*")) == before
