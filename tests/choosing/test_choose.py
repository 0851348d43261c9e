"""`pack` of chosen documents: accounted for in every report, in bounded memory, and never twice in a row."""

import gc
import io
import json
import os
import threading
import time
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import xxhash
from rich.console import Console

import packtool
from packtool.choosing.choose import choose_documents
from packtool.engines import Threads
from packtool.errors import PacktoolError, UsageError
from packtool.formats.packed import PackedDataset
from packtool.formats.token_store import Corpus
from packtool.options.pack import PackArguments
from packtool.planning import arrays
from packtool.planning.packing import STRATEGIES
from packtool.planning.plan import distinct
from packtool.report.terminal import print_stats
from packtool.writing import array_files, planning
from packtool.writing.memory import Budget
from tests.choosing.web_and_wiki import asked_of, pack
from tests.stores import amended, write_store


@pytest.mark.parametrize("strategy", ["bfd", "first-fit-shuffle", "seamless"])
def test_no_row_holds_a_document_twice(stores: list[Path], tmp_path: Path, strategy: str) -> None:
    options: dict[str, Any] = {"strategy": strategy, "sequence_length": 512, "mix": ["web=3x", "wiki=1.5x"]}
    packtool.pack(stores, tmp_path / "mixed", **options)
    dataset = PackedDataset(tmp_path / "mixed")
    assert dataset.manifest.choice is not None
    behind = Corpus(stores)
    behind.choose(
        [
            each.documents()
            for each in choose_documents(behind, asked_of(stores, PackArguments(stores, "nowhere", **options))).passes
        ]
    )
    stored = behind.chosen + np.repeat([0, 1 << 32], behind.store_documents)
    (bucket,) = dataset.buckets
    shared = 0
    for number in range(bucket.rows):
        row = bucket.segments.between(number, number + 1)
        documents = stored[distinct(row.document[row.document >= 0])]
        assert len(set(documents.tolist())) == len(documents)
        shared += len({document >> 32 for document in documents.tolist()}) == 2
    assert shared > bucket.rows / 4, "documents of both stores meet in rows"


def test_no_more_in_memory_than_a_part_of_a_mixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A whole pass, and a part of one."""
    monkeypatch.setattr(array_files, "LARGE", 1 << 10)
    monkeypatch.setattr(arrays, "BLOCK", 1 << 10)
    lengths = np.random.default_rng(0).integers(20, 90, 80_000).tolist()
    whole = write_store(tmp_path / "whole" / "store", lengths, per_shard=5000)
    eighth = write_store(tmp_path / "eighth" / "store", lengths[:10_000], per_shard=5000)

    def peak(store: Path) -> int:
        corpus, budget = Corpus([store]), Budget(1 << 16, Threads(1))
        options = PackArguments(
            store, "nowhere", strategy="concat", sequence_length=64, mix=["store=1.3x"], max_tokens=85
        )
        gc.collect()
        tracemalloc.start()
        with budget.arrays_for(corpus.documents, tmp_path) as made:
            chosen = choose_documents(corpus, asked_of([store], options), made)
            with planning.planned(STRATEGIES["concat"], corpus, options, budget, tmp_path, chosen.passes):
                found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(eighth)  # loads what it needs
    assert peak(whole) < 1.1 * peak(eighth) + (1 << 14)


def test_what_was_asked_and_achieved_is_in_every_report(stores: list[Path], tmp_path: Path) -> None:
    dataset = pack(stores, tmp_path / "p", mix=["web=0.75", "wiki=0.25"], tokens="3k", min_tokens=6, holdout="10%")
    written = json.loads((tmp_path / "p" / "report.json").read_text())["sources"]
    report = packtool.stats(tmp_path / "p", batch_size=4)
    for source, known, share in zip(written, report.sources, (0.75, 0.25), strict=True):
        assert source["asked_share"] == share
        assert abs(source["tokens"] - 3000 * share) <= 30
        assert abs(source["token_share"] - share) < 0.01
        assert source["epochs"] == pytest.approx(source["asked_epochs"], abs=0.05)
        assert set(source["left_out"]) - {"too_short"} == {"other_side", "not_drawn"}
        assert (source["name"], known.name) in ((None, "web"), (None, "wiki"))
        assert (known.tokens, known.epochs) == (source["tokens"], source["epochs"])
    reported = json.loads((tmp_path / "p" / "report.json").read_text())["source_mix"]
    again = packtool.stats(tmp_path / "p")
    assert reported == json.loads(msgspec.json.encode(again.source_mix))
    assert [mix["batch_size"] for mix in reported] == [64]
    assert [mix.batch_size for mix in report.source_mix] == [4]
    packtool.shuffle(tmp_path / "p", tmp_path / "q", epoch=1)
    shuffled = json.loads((tmp_path / "q" / "report.json").read_text())["source_mix"]
    assert [s["tokens"] for s in shuffled[0]["sources"]] == [s["tokens"] for s in reported[0]["sources"]]
    assert shuffled == json.loads(msgspec.json.encode(packtool.stats(tmp_path / "q").source_mix))
    mixing = report.mixing[0]
    placed = dataset.manifest.ledger.placed + dataset.manifest.ledger.eos
    assert sum(mix.tokens for mix in mixing.source_mix) == placed
    assert all(mix.min <= mix.share <= mix.max for mix in mixing.source_mix)
    packtool.stats(tmp_path / "p", html=tmp_path / "p.html")
    assert "Sources in batches" in (tmp_path / "p.html").read_text()
    for path in ([tmp_path / "p"], stores):
        console = Console(file=io.StringIO(), width=80)
        print_stats(packtool.stats(path), console)
        assert "wiki" in console.file.getvalue()  # type: ignore[attr-defined]
    copies = [source.duplicates for source in packtool.stats(stores).sources]
    assert copies == [10, 40]


def test_a_list_that_is_edited_meanwhile_is_recorded_as_it_was_used(stores: list[Path], tmp_path: Path) -> None:
    """What is left out and what is recorded come from one reading: this list is another one each time it is read."""
    versions, pipe = [f"web.jsonl:{line}\n" for line in (3, 4, 5)], tmp_path / "list"
    os.mkfifo(pipe)

    def edited() -> None:
        for version in versions:
            with suppress(FileNotFoundError):  # the test is over
                pipe.write_text(version)  # waits for a reader
            with suppress(OSError):  # until it has closed the list
                while True:
                    os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
                    time.sleep(0.001)

    threading.Thread(target=edited, daemon=True).start()
    options = PackArguments(stores, "nowhere", strategy="bfd", sequence_length=64, exclude=pipe)
    chosen = choose_documents(Corpus(stores), asked_of(stores, options))
    assert chosen.choice.options["exclude_xxh3_128"] == xxhash.xxh3_128_hexdigest(versions[0].encode())
    left = chosen.passes[0].documents(arrays.IN_MEMORY).tolist()
    assert [document for document in range(4) if document not in left] == [2]


def test_an_account_that_does_not_balance_is_refused(stores: list[Path], tmp_path: Path) -> None:
    pack(stores, tmp_path / "p", mix=["web=0.5x", "wiki=1x"])
    with amended(tmp_path / "p") as manifest:
        manifest["choice"]["sources"][0]["left_out"]["not_drawn"]["tokens"] += 1
    with pytest.raises(PacktoolError, match=r"those left out and those chosen - at `\$\.choice\.sources\[0\]`"):
        packtool.verify(tmp_path / "p")


def test_a_mixture_in_a_file_is_a_table(stores: list[Path], tmp_path: Path) -> None:
    inputs = [str(path) for path in stores]
    (tmp_path / "c.toml").write_text(
        f'[pack]\ninput = {json.dumps(inputs)}\noutput = "{tmp_path}/p"\nstrategy = "bfd"\nsequence-length = 32\n'
        "mix = { web = '0.4x', wiki = '2x' }\n"
    )
    packtool.run(tmp_path / "c.toml")
    pack(stores, tmp_path / "q", mix=["web=0.4x", "wiki=2x"])
    assert (tmp_path / "p" / "manifest.json").read_bytes() == (tmp_path / "q" / "manifest.json").read_bytes()
    text = (tmp_path / "c.toml").read_text()
    for wrong, message in (
        ("{ web = true, wiki = 1 }", r"c\.toml:6: mix can't be"),
        ("{ web = nan, wiki = '1x' }", r"c\.toml:6: mix: what is asked of web is 'nan'"),
        ("3", r"c\.toml:6: mix can't be 3"),
    ):
        (tmp_path / "c.toml").write_text(text.replace("{ web = '0.4x', wiki = '2x' }", wrong))
        with pytest.raises(UsageError, match=message):
            packtool.run(tmp_path / "c.toml", overwrite=True)
