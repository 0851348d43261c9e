"""Which tokens train: a column that goes wherever the tokens go, by the same segments."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import packtool
from packtool.errors import DataError
from packtool.planning.packing import STRATEGIES, plan
from packtool.planning.plan import INSERTED_EOS, PADDING, offsets_of
from packtool.rows.gather import LossGatherer
from packtool.warnings import PacktoolWarning
from tests.examples import examples
from tests.segments import listed
from tests.shell import Shell
from tests.stores import amended, contents, document_loss, load, rewrite, write_store
from tests.test_laws import SIZES, corpora, options_of, rows_of
from tests.writing.cases import KINDS

LENGTHS = np.random.default_rng(3).integers(1, 150, 60).tolist()


def expected(documents: Sequence[list[int]], segments: Sequence[Sequence[int]], without: int) -> list[int]:
    """The loss of the segments (document, start, length, …) of a row, one by one.

    An inserted EOS trains behind a piece of a document from number `without` on: their store has no column.

    >>> expected([[0, 1, 1], [1, 1]], [(0, 1, 2), (-2, 0, 1), (1, 0, 1), (-2, 0, 1), (-1, 0, 2)], 1)
    [1, 1, 0, 1, 1, 0, 0]
    """
    out: list[int] = []
    before = PADDING
    for document, start, length, *_ in segments:
        if document == PADDING:
            out += [0] * length
        elif document == INSERTED_EOS:
            out.append(int(before >= without))
        else:
            out += documents[document][start : start + length]
        before = document
    return out


@pytest.mark.parametrize("name", STRATEGIES)
@examples(20)
@given(data=st.data())
def test_every_row_has_the_loss_of_its_segments(name: str, data: st.DataObject) -> None:
    """The law, for every strategy, option, shuffle and division into stores and shards."""
    size = data.draw(st.sampled_from([s for s in SIZES if s > 2 or name != "padding"]), label="size")
    lengths = data.draw(corpora(size), label="lengths")
    train = np.random.default_rng(data.draw(st.integers(0, 1 << 63), label="seed")).random(int(lengths.sum()))
    every = (train < data.draw(st.sampled_from([0, 0.1, 0.5, 0.9, 1]), label="share that trains")).astype(np.uint8)
    cut = data.draw(st.integers(0, len(lengths)), label="shard")
    without = data.draw(st.integers(cut, len(lengths)), label="without a column")
    starts = offsets_of(lengths)
    every[starts[without] :] = 1
    begins = np.array([0, starts[cut], starts[without]])

    def locate(document: Any, start: Any, length: Any) -> Any:
        shard = np.searchsorted([cut, without], document, side="right")
        return shard, starts[document] - begins[shard] + start

    documents = [part.tolist() for part in np.split(every, starts[1:-1])] if len(lengths) else []
    for only in plan(name, lengths, options_of(name, size, data)):
        columns = [every[: starts[cut]], every[starts[cut] : starts[without]]]
        gather = LossGatherer([columns, None], [2, 1], locate, longest=only.sequence_length)
        rows = rows_of(only, shuffled=data.draw(st.booleans(), label="shuffled"))
        wanted = [value for pieces in listed(rows) for value in expected(documents, pieces, without)]
        assert gather(rows).tolist() == wanted


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A store that says which tokens train, in several shards, and one that does not."""
    place = tmp_path_factory.mktemp("loss")
    return [
        write_store(place / "chats", LENGTHS, per_shard=20, loss=document_loss),
        write_store(place / "web", LENGTHS[:25], per_shard=10, first=60),
    ]


def stored(place: Path, kind: str) -> list[np.ndarray]:
    """The arrays of a kind of a dataset, shard by shard, whatever the bucket."""
    return [np.load(file) for file in sorted(place.rglob(f"{kind}-*.npy"))]


def check(place: Path) -> None:
    """The column of every row is what a loop over its segments finds; the ledger is what a sum finds."""
    documents = [document_loss(number, length) for number, length in enumerate(LENGTHS)]
    documents += [[1] * length for length in LENGTHS[:25]]
    trained = again = 0
    files = [stored(place, kind) for kind in ("loss", "tokens", "segments", "segment_offsets")]
    for loss, tokens, table, offsets in zip(*files, strict=True):
        assert (loss.dtype, loss.shape) == (np.uint8, tokens.shape)
        trained += int(loss.sum())
        for row, first, last in zip(loss.tolist(), offsets[:-1], offsets[1:], strict=True):
            assert row == expected(documents, table[first:last].tolist(), len(LENGTHS))
            done = 0
            for document, _, length, repeated in table[first:last].tolist():
                again += sum(row[done : done + (length if document == INSERTED_EOS else repeated)])
                done += length
    ledger = load(place)["ledger"]
    assert (ledger["trained"], ledger["trained_again"]) == (trained, again)
    assert ledger["trained_stored"] == [sum(map(sum, documents[:60])), sum(map(sum, documents[60:]))]
    assert ledger["trained_dropped"] == sum(map(sum, documents)) + again - trained
    assert ledger["masked"] == ledger["output"] - ledger["padding"] - trained


WRITTEN = {name: kind for name, kind in KINDS.items() if kind.get("segments", True)}


@pytest.mark.parametrize("kind", WRITTEN)
def test_packed_rows_carry_the_column(stores: list[Path], tmp_path: Path, kind: str) -> None:
    options: dict[str, Any] = {**WRITTEN[kind], "shard_tokens": 640, "quiet": True}
    packtool.pack(stores, tmp_path / "packed", **options)
    check(tmp_path / "packed")


def test_rows_without_segments_carry_it_too(stores: list[Path], tmp_path: Path) -> None:
    for name, options in (("packed", {}), ("plain", {"segments": False})):
        packtool.pack(stores, tmp_path / name, **WRITTEN["concat-8"], **options)
        packtool.shuffle(tmp_path / name, tmp_path / f"{name}-epoch", epoch=2)
    packtool.shuffle(tmp_path / "plain", tmp_path / "narrow", epoch=2, memory=1 << 12)
    assert contents(tmp_path / "narrow") == contents(tmp_path / "plain-epoch")
    for one, another in (("packed", "plain"), ("packed-epoch", "plain-epoch")):
        for kind in ("loss", "tokens"):
            for a, b in zip(stored(tmp_path / one, kind), stored(tmp_path / another, kind), strict=True):
                np.testing.assert_array_equal(a, b)


def _swap(loss: np.ndarray) -> None:
    """The first two tokens of a row of which one trains."""
    row = int(np.flatnonzero(loss[:, 0] != loss[:, 1])[0])
    loss[row, :2] = loss[row, 1::-1].copy()


def _flip(loss: np.ndarray) -> None:
    loss[0, 3] ^= 1


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("padding-16", lambda loss: loss.__setitem__((0, 3), 2), "has loss 2, which is neither 0 nor 1"),
        ("padding-16", _flip, "trained, but the ledger says"),
        ("concat-plain", _flip, "trained, but the ledger says"),
        ("padding-16", lambda loss: loss.__setitem__((-1, -1), 1), "its padding trains"),
        ("padding-16", _swap, "its mask of trained tokens differs from that of the store"),
    ],
)
def test_verify_finds_a_column_that_is_wrong(
    stores: list[Path], tmp_path: Path, kind: str, change: Any, message: str
) -> None:
    packtool.pack(stores[0], tmp_path / "packed", **KINDS[kind], shuffle=False)
    assert packtool.verify(tmp_path / "packed").problems == []
    rewrite(tmp_path / "packed", "loss-00000.npy", change)
    (problem,) = packtool.verify(tmp_path / "packed", store=stores[0] if "store" in message else []).problems
    assert message in str(problem)


@pytest.mark.parametrize("value", [1, 2])
def test_a_store_that_counts_other_tokens_than_train_is_blamed(tmp_path: Path, value: int) -> None:
    """With all checksums made again; `pack` said that its own output was not to be used."""
    store = write_store(tmp_path / "store", [9, 8, 7], loss=document_loss)
    rewrite(store, "loss-00000.npy", lambda loss: loss.__setitem__(int(np.flatnonzero(loss == 0)[0]), value))
    for options in ({}, {"index_only": True}):
        with pytest.raises(
            DataError, match=r"store: \d+ tokens train, but the manifest says|store/loss-00000.npy: token"
        ) as caught:
            packtool.pack(store, tmp_path / "packed", **KINDS["concat"], **options, overwrite=True)
        assert caught.value.code == ("wrong-count" if value == 1 else "bad-loss")
    (problem,) = packtool.verify(store).problems
    assert str(problem) == str(caught.value)


def test_a_manifest_without_its_column_is_refused(stores: list[Path], tmp_path: Path) -> None:
    """It would be trained on as a whole."""
    packtool.pack(stores[0], tmp_path / "packed", **KINDS["concat"])
    with amended(tmp_path / "packed") as manifest:
        del manifest["buckets"][0]["shards"][0]["loss"]
    with pytest.raises(DataError, match="its shards have no loss where its ledger has"):
        packtool.open(tmp_path / "packed")


def test_what_trains_is_told(stores: list[Path], tmp_path: Path, shell: Shell) -> None:
    """By `info`, `stats`, its page, and `show`."""
    trained = sum(sum(document_loss(number, length)) for number, length in enumerate(LENGTHS))
    assert packtool.info(stores[0]).facts["trained on"] == f"{trained:,} ({100 * trained / sum(LENGTHS):.2f}%)"
    assert "trained on" not in packtool.info(stores[1]).facts
    packtool.pack(stores, tmp_path / "packed", **KINDS["concat"])
    ledger = load(tmp_path / "packed")["ledger"]
    assert packtool.info(tmp_path / "packed").facts["trained on"].startswith(f"{ledger['trained']:,} (")
    share = f"{100 * trained / sum(LENGTHS):.2f}%"
    for path in (tmp_path / "packed", stores[0]):
        assert share in shell("stats", path, "--full", "--html", tmp_path / "page.html")
        assert share in (tmp_path / "page.html").read_text()
    printed = " ".join(shell("stats", tmp_path / "packed", "--full").split())
    assert f"trained on {ledger['trained']:,}" in printed
    assert f"masked, not padding {ledger['masked']:,}" in printed
    assert f"would train, in no row {ledger['trained_dropped']:,} 0 text and EOS" in printed
    packtool.pack(stores, tmp_path / "short", strategy="concat", sequence_length=300, remainder="drop")
    ledger = load(tmp_path / "short")["ledger"]
    share = f"{100 * ledger['trained_dropped'] / sum(ledger['trained_stored']):.2f}%"
    printed = " ".join(shell("stats", tmp_path / "short", "--full").split())
    assert f"would train, in no row {ledger['trained_dropped']:,} {share} text and EOS" in printed
    row = packtool.show(tmp_path / "packed", row=3)
    loss = stored(tmp_path / "packed", "loss")[0][3].tolist()
    runs = [each for segment in row.segments for each in segment.runs]
    assert [int(each.trained) for each in runs for _ in each.tokens] == loss
    assert " trained on" in shell("show", tmp_path / "packed", "--row", "3")


def answers(_: int, length: int) -> list[int]:
    """A prompt that does not train, and an answer of two tokens."""
    return [0] * (length - 2) + [1, 1]


@pytest.mark.parametrize("strategy", ["bfd", "concat", "seamless"])
def test_rows_without_a_target_are_counted(tmp_path: Path, strategy: str) -> None:
    """As the reader makes labels, whatever made the rows: here documents that were cut, then a shuffle."""
    store = write_store(tmp_path / "chats", [5, 200, 90, 30, 131, 300] * 3, loss=answers)
    options: dict[str, Any] = {"strategy": strategy, "sequence_length": 32}
    if strategy == "concat":
        options["atom_size"] = 8
    packtool.pack(store, tmp_path / "rows", **options)
    packtool.shuffle(tmp_path / "rows", tmp_path / "shuffled", seed=5)
    for name in ("rows", "shuffled"):
        labels = packtool.open(tmp_path / name).batch(slice(None), fields=("labels",))["labels"]  # type: ignore[union-attr,arg-type]
        without = int((labels == -100).all(axis=1).sum())
        assert 0 < without < len(labels)
        for workers in (1, 2):
            with pytest.warns(PacktoolWarning) as warned:
                packtool.stats(tmp_path / name, workers=workers)
            (message,) = [str(each.message) for each in warned]
            said = f"{without} of {len(labels)} rows have no target, so the mean loss of such a row is no number. Sum"
            assert message.startswith(f"{tmp_path / name}: {said}")
