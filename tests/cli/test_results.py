"""What commands print when they are done."""

import json
import os
import re
import subprocess
from pathlib import Path

import packtool as package
from packtool.cli import run
from packtool.formats.packed import PackedDataset
from packtool.report.verdict import judge
from tests.choosing.web_and_wiki import web_and_wiki
from tests.shell import Shell
from tests.stores import write_store


def test_batches_are_told(place: Path, shell: Shell) -> None:
    assert run(["pack", "store", "-o", "b", "--strategy", "buckets", "--buckets", "16,32", "-q"]) == 0
    shown = shell("shuffle", "b", "-o", "s", "-m", "bucket", "--batch-tokens", "32")
    batches = json.loads((place / "s" / "run.json").read_text(encoding="utf-8"))["batches"]
    assert f"{batches} batches, each of rows of one length\n" in shown
    assert re.search(rf"batches +{batches}\n", shell("info", "s"))


def test_json_is_one_object_and_nothing_else(place: Path, shell: Shell) -> None:
    printed = shell("pack", "store", "-o", "p", "--strategy", "concat", "-L", "16", "--json")
    assert json.loads(printed)["schema_version"] == 1
    assert (printed.count("\n"), shell.err) == (1, "")
    shuffled = json.loads(shell("shuffle", "p", "-o", "q", "--epoch", "1", "--json", "--memory", "100"))
    facts = {name: value for name, value in shuffled["report"]["shuffle"].items() if value is not None}
    assert (shuffled["path"], facts) == ("q", {"method": "atom", "seed": 42, "epoch": 1})


def test_every_summary_judges_a_dataset_alike(place: Path, shell: Shell) -> None:
    write_store(place / "many", [5, 9, 17] * 20)
    done = shell("pack", "many", "-o", "rows", "--strategy", "concat", "-L", "32")
    said = [judgement.words for judgement in judge(package.stats("rows"))]
    assert "% of the documents that would fit in a row are cut, which bfd would keep whole" in said[1]
    Path("c.toml").write_text('[pack]\nstrategy = "concat"\nsequence-length = 32\n')
    ran = shell("run", "c.toml", "-i", "many", "-o", "out")
    for text in (done, shell("stats", "rows"), ran, shell("shuffle", "rows", "-o", "s", "--epoch", "1")):
        assert all(words in " ".join(text.split()) for words in said)
        assert "truncation" not in text


def test_summaries_name_the_tokenizer_and_what_ends_documents(place: Path, shell: Shell) -> None:
    packed = shell("pack", "store", "-o", "rows", "--strategy", "bfd", "-L", "32")
    shuffled = shell("shuffle", "rows", "-o", "again", "--epoch", "1")
    lanes = shell("shuffle", "store", "-o", "lanes", "-m", "partial", "-B", "2", "-L", "8")
    tokenizer = PackedDataset(place / "rows").manifest.tokenizer
    line = f"tokenizer: sha256 {tokenizer.sha256[:12]}; EOS {tokenizer.eos_token} ({tokenizer.eos_id})\n"
    assert all(line in said for said in (packed, shuffled, lanes))


def test_pages_that_were_written_are_named(place: Path, shell: Shell) -> None:
    package.pack("store", "rows", strategy="bfd", sequence_length=32)
    compared = shell("stats", "store", "--compare", "concat,bfd", "-L", "32", "--html", "a.html")
    assert "\nWrote a.html.\n" in compared
    assert "--full" not in compared
    assert "\nWrote b.html.\n" in shell("stats", "rows", "--html", "b.html")
    assert "charts: --html FILE;" in shell("stats", "store", "--compare", "concat,bfd", "-L", "32")
    Path("c.toml").write_text('[[stats]]\nhtml = "r.html"\n')
    assert shell("run", "c.toml", "--input", "rows", "--output", "out").endswith("\nWrote out/r.html.\n")


def test_sources_of_a_mixture_are_summed_up(place: Path, shell: Shell) -> None:
    web_and_wiki(place)
    done = shell("pack", "web", "wiki", "-o", "x", "--strategy", "bfd", "-L", "32", "--mix", "web=1x,wiki=2x")
    assert re.search(
        r"\nstore wiki: 200 documents, 2,834 tokens, [\d.]+% of all\n  2 epochs, 1,417 tokens packed again", done
    )
    assert re.search(r"\nstore web: .*\n  1 epoch\n", done)
    assert re.search(r"\n  [\d.]+% to [\d.]+% of the tokens of a batch of 64 rows of 32 tokens\n", done)
    assert re.search(r"\n  packed again +1,317 +[\d.]+%  in further epochs\n", done)
    assert "  placed " in done
    assert "once" not in done


def test_only_what_was_wanted_or_differs_is_told(place: Path, shell: Shell) -> None:
    web_and_wiki(place)
    done = shell("pack", "web", "wiki", "-o", "x", "--strategy", "bfd", "-L", "4096", "--holdout", "5 documents")
    for absent in ("asked", "epoch", "nothing", "of a batch", "packed again", "repeated", "worker"):
        assert absent not in done, absent
    assert re.search(
        r"\nstore web: \d+ documents, [\d,]+ tokens, [\d.]+% of all\n  left out: \d held out for validation\n", done
    )
    assert " asked" not in shell("info", "x") + shell("stats", "x", "--html", "x.html") + Path("x.html").read_text()
    typed = "pack web wiki -o y --strategy bfd -L 64 --holdout-of x --part holdout"
    assert re.search(r"  left out: \d+ kept for training\n", shell(*typed.split()))


def test_an_exclusion_has_the_name_of_its_list(place: Path, shell: Shell) -> None:
    web_and_wiki(place)
    shell("pack", "web", "-o", "x", "--strategy", "bfd", "-L", "64", "--exclude", "wiki", "--min-tokens", "3")
    named = f"min tokens 3, without those of {place}/wiki"
    assert f"  chosen by        {named}\n" in shell("info", "x")
    shell("stats", "x", "--html", "x.html")
    assert f"<dt>documents</dt><dd>{named}</dd>" in Path("x.html").read_text(encoding="utf-8")
    shell("shuffle", "x", "-o", "again", "--epoch", "1")
    assert re.search(r"chosen by +min tokens 3, without those of [0-9a-f]{32}\n", shell("info", "again"))


def test_an_empty_corpus_is_not_sent_to_stats(place: Path, shell: Shell) -> None:
    (place / "empty.jsonl").touch()
    shown = shell("tokenize", "empty.jsonl", "-o", "t")
    assert "warning[no-documents]" in shell.err
    assert "which holds no document. To see what is read: packtool tokenize INPUT -o OUT --dry-run." in shown
    assert "stats" not in shown


def test_a_file_of_a_dataset_belongs_to_it(place: Path, shell: Shell) -> None:
    text = shell("info", "store/tokens-00000.npy")
    assert text.startswith("store/tokens-00000.npy: file of the token store store\n")
    assert text.endswith("Next:\n  packtool info store\n")


def test_which_tokenizer_made_a_store(here: Path, shell: Shell) -> None:
    (here / "a.txt").write_text("a text")
    named = "packtool's small one, for trying things out"
    advice = "To train a model, give its tokenizer: --tokenizer FILE, DIRECTORY or HUB_ID"
    said = shell("tokenize", "a.txt", "-o", "s")
    assert f"tokenizer: {named}; EOS <|endoftext|> (0)\n{advice}\n" in said
    assert f"  tokenizer   {named}\n" in shell("info", "s")


def test_quiet_stats_print_no_table_and_write_what_was_asked_for(place: Path, shell: Shell) -> None:
    package.pack("store", "packed", strategy="concat", sequence_length=16)
    assert (shell("stats", "packed", "-q"), shell.err) == ("", "")
    assert json.loads(shell("stats", "packed", "-q", "--json", "--html", "quiet.html"))["kind"] == "packed"
    assert Path("quiet.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_make_lists_every_target_with_what_it_does() -> None:
    root = Path(__file__).parents[2]
    targets = re.search(r"^\.PHONY: (.*?[^\\])$", (root / "Makefile").read_text(), re.MULTILINE | re.DOTALL)
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    listed = subprocess.run(
        ["make", "--no-print-directory"], cwd=root, env=outside, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert {line.split()[1] for line in listed} == set(targets[1].replace("\\", "").split())
    assert all(len(line.split()) > 3 for line in listed)
