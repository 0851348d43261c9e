"""Conversations are packed whole, unless they are to be cut."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import packtool
from packtool.errors import PacktoolError
from packtool.formats import manifest as manifests
from packtool.formats.packed import PackedDataset
from packtool.formats.schema import PackedManifest
from packtool.formats.token_store import TokenStore
from packtool.planning.packing import STRATEGIES
from packtool.report.tables import caveats
from packtool.support.sizes import plural
from tests.shell import Shell

TEMPLATE = (
    "{% for m in messages %}{{ m.role }}:{% generation %}{{ m.content }}<|endoftext|>{% endgeneration %};{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
WHOLE = sorted(name for name, strategy in STRATEGIES.items() if strategy.whole and strategy.keeps_eos)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Conversations of 13, 22 and 31 tokens or so."""
    place = tmp_path_factory.mktemp("chats")
    (place / "chat.jinja").write_text(TEMPLATE)
    talks = [
        {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b c d " * times}]}
        for times in (1, 4, 7)
    ]
    (place / "talks.jsonl").write_text("\n".join(map(json.dumps, talks)))
    packtool.tokenize(place / "talks.jsonl", place / "store", chat_template=place / "chat.jinja", workers=1)
    return place / "store"


def lengths(store: Path) -> list[int]:
    found: list[int] = TokenStore(store).lengths().tolist()
    return found


def _packed(place: Path) -> PackedManifest:
    return manifests.read(place)


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        ({}, [0, 1, 2]),
        ({"max_tokens": 25}, [0, 1]),
        ({"where": "line < 2"}, [0]),
        ({"where": "line > 1"}, [1, 2]),
        ({"exclude": "list.txt"}, [0, 1]),
        ({"exclude": "list.txt", "where": "line != 2"}, [0]),
        ({"mix": {"store": 0, "web": "1x"}}, []),
        ({"mix": {"store": "2x", "web": "1x"}, "exclude": "list.txt"}, [0, 1]),
    ],
)
@pytest.mark.parametrize("row", [20, 25, 40])
def test_only_what_is_chosen_can_be_too_long(
    here: Path, store: Path, row: int, options: dict[str, Any], chosen: list[int]
) -> None:
    Path("list.txt").write_text("talks.jsonl:3\n")
    stores = [store]
    if "mix" in options:
        packtool.tokenize([{"text": "some words"}], "web", workers=1)
        stores.append(Path("web"))
    sizes = [lengths(store)[number] for number in chosen]
    longer = sum(size > row for size in sizes)
    if longer == 0:
        packtool.pack(stores, "p", strategy="bfd", sequence_length=row, **options)
        packtool.verify("p")
        return
    with pytest.raises(PacktoolError) as error:
        packtool.pack(stores, "p", strategy="bfd", sequence_length=row, **options)
    assert (error.value.code, error.value.where) == ("conversations-too-long", str(store))
    assert error.value.what == f"{plural(longer, 'conversation')} of {len(sizes)} do not fit a row of {row} tokens"
    assert error.value.remedy.endswith(f"the longest has {max(sizes)} tokens")
    assert not Path("p").exists()


@pytest.mark.parametrize("strategy", sorted(set(STRATEGIES) - set(WHOLE)))
def test_strategies_that_cut_are_refused_unless_asked(tmp_path: Path, store: Path, strategy: str) -> None:
    rows: dict[str, Any] = {"buckets": [16, 64]} if strategy.endswith("buckets") else {"sequence_length": 64}
    cuts = "leaves out the EOS of" if strategy == "padding" else "cuts"  # which teaches a model to stop
    with pytest.raises(PacktoolError) as error:
        packtool.pack(store, tmp_path / "p", strategy=strategy, **rows)
    assert error.value.code == "conversations-cut"
    assert error.value.what == f"{strategy} {cuts} documents that would fit a row, and {store} holds conversations"
    assert strategy not in error.value.remedy.split(": ")[1].split(", ")
    packtool.pack(store, tmp_path / "p", strategy=strategy, too_long="cut", **rows)
    packtool.verify(tmp_path / "p")


def test_the_partial_shuffle_takes_no_conversations(tmp_path: Path, store: Path) -> None:
    said = f"the partial shuffle cuts documents wherever a row ends, and {store} holds conversations"
    with pytest.raises(PacktoolError, match=re.escape(said)) as error:
        packtool.shuffle(store, tmp_path / "p", method="partial", sequence_length=8, batch_size=2)
    assert error.value.code == "conversations-cut"


def test_only_what_keeps_conversations_whole_is_compared(tmp_path: Path, store: Path) -> None:
    sizes = lengths(store)
    report = packtool.stats(store, compare="all", sequence_length=[sizes[1], 64], buckets=[16, 64])
    found = {(entry.strategy, entry.sequence_length): entry for entry in report.comparison.entries}
    assert sorted(found) == sorted((name, size) for name in WHOLE for size in (sizes[1], 64))
    for (strategy, size), entry in found.items():
        options = {"too_long": "drop"} if size == sizes[1] else {}
        assert entry.dropped_conversations == len(options)
        assert ("--too-long drop" in entry.command) is bool(options)
        place = tmp_path / f"{strategy}-{size}"
        packtool.pack(store, place, strategy=strategy, sequence_length=size, **options)  # type: ignore[arg-type]
        measured = packtool.stats(place)
        assert entry.metrics == measured.metrics
        of_loss = [name for name in entry.ledger.__struct_fields__ if name.startswith(("trained", "masked"))]
        assert entry.ledger == msgspec.structs.replace(measured.ledger, **dict.fromkeys(of_loss))
    said = f"1 conversation longer than a row of {sizes[1]} tokens: left out here, as with pack --too-long drop."
    assert any(note.startswith(said) for note in caveats(report.comparison))
    verdicts = {verdict.sequence_length: verdict.choice for verdict in report.comparison.verdicts}
    assert all(choice.strategy in WHOLE for choice in verdicts.values())


def test_all_strategies_are_compared_where_conversations_may_be_cut(tmp_path: Path, store: Path) -> None:
    report = packtool.stats(store, compare="all", sequence_length=16, buckets=[16, 64], too_long="cut")
    assert [entry.strategy for entry in report.comparison.entries] == list(STRATEGIES)
    assert all("--too-long cut" in entry.command for entry in report.comparison.entries)
    assert all(not entry.dropped_conversations for entry in report.comparison.entries)
    with pytest.raises(PacktoolError, match="compare: concat cuts documents that would fit a row, and these") as e:
        packtool.stats(store, compare="bfd,concat", sequence_length=16)
    assert e.value.remedy.endswith("keeps documents whole: ffd, bfd, first-fit-shuffle, best-fit-in-order")
    packtool.tokenize([{"text": "word " * 100}], tmp_path / "web", workers=1)
    with pytest.raises(PacktoolError, match="too_long: no store holds conversations"):
        packtool.stats(tmp_path / "web", compare="bfd", sequence_length=16, too_long="cut")
    with pytest.raises(PacktoolError, match="too_long: no store holds conversations"):
        packtool.pack(tmp_path / "web", tmp_path / "p", strategy="bfd", sequence_length=8, too_long="drop")


def test_texts_beside_conversations_are_cut_as_ever(tmp_path: Path, store: Path) -> None:
    packtool.tokenize([{"text": "word " * 100}], tmp_path / "web", workers=1)
    stores, row = [tmp_path / "web", store], lengths(store)[1]
    packtool.pack(stores, tmp_path / "p", strategy="bfd", sequence_length=row, too_long="drop")
    assert [source.chosen_documents for source in _packed(tmp_path / "p").choice.sources] == [1, 2]
    (entry,) = packtool.stats(stores, compare="bfd", sequence_length=row).comparison.entries
    assert (entry.dropped_conversations, entry.metrics.documents) == (1, 3)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Conversations of several rows, whose prompts are long and whose answers are short."""
    place, draws = tmp_path_factory.mktemp("long"), np.random.default_rng(5)
    template = (
        "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% else %}"
        "{% generation %}{{ m.content }}<|endoftext|>{% endgeneration %}{% endif %}{% endfor %}"
    )
    (place / "chat.jinja").write_text(template)
    talks = []
    for _ in range(20):
        turns = []
        for words in draws.choice([5, 90, 200], draws.integers(1, 4)).tolist():
            turns += [{"role": "user", "content": "why " * words}, {"role": "assistant", "content": "so " * 9}]
        talks.append({"messages": [*turns, {"role": "user", "content": "well " * 70}]})
    packtool.tokenize(talks, place / "store", chat_template=place / "chat.jinja", workers=1)
    return place / "store"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_pieces_in_which_nothing_trains_are_left_out(tmp_path: Path, long: Path, strategy: str, shell: Shell) -> None:
    """By a name of their own, as the comparison says."""
    rows: dict[str, Any] = {"strategy": strategy, "sequence_length": 64, "too_long": "cut"}
    if strategy.endswith("buckets"):
        rows = {"strategy": strategy, "buckets": [32, 64], "too_long": "cut"}
    packtool.pack(long, tmp_path / "p", **rows)
    ledger = _packed(tmp_path / "p").ledger
    assert ledger.untrained > 1000
    assert ledger.input == ledger.placed + ledger.dropped + ledger.untrained
    assert packtool.verify(tmp_path / "p", store=long).problems == []
    assert f"{ledger.untrained:,}" in shell("stats", tmp_path / "p", "--full", "--html", tmp_path / "page.html")
    assert "untrained" in (tmp_path / "page.html").read_text()
    report = packtool.stats(tmp_path / "p")
    assert report.rows_without_target == 0
    assert packtool.pack(long, tmp_path / "dry", **rows, dry_run=True).preview.written["rows"] == ledger.rows
    (entry,) = packtool.stats(long, compare=rows.pop("strategy"), **rows).comparison.entries
    assert entry.metrics == report.metrics
    assert (entry.ledger.untrained, entry.ledger.rows) == (ledger.untrained, ledger.rows)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("texts")
    records = [{"text": f"{number} " + "word " * (number * 7 % 200)} for number in range(60)]
    packtool.tokenize(records, place / "web", workers=1)
    return place / "web"


@pytest.mark.filterwarnings("ignore:.* have no target, so the mean loss")
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_of_long_documents_rows_have_the_first_tokens(
    tmp_path: Path, long: Path, texts: Path, strategy: str, shell: Shell
) -> None:
    """Of texts and of conversations, with what trains of them; as every command says."""
    stores = [texts, long] if strategy in WHOLE else [texts]
    rows: dict[str, Any] = {"strategy": strategy, "sequence_length": 64, "too_long": "first"}
    if strategy.endswith("buckets"):
        rows = {"strategy": strategy, "buckets": [32, 64], "too_long": "first"}
    packtool.pack(stores, tmp_path / "p", **rows)
    manifest, documents = _packed(tmp_path / "p"), []
    for store in map(TokenStore, stores):
        for number in range(store.documents):
            loss = store.document_loss(number)
            documents.append((store.document(number), np.ones(1 << 12, np.uint8) if loss is None else loss))
    dataset = PackedDataset(tmp_path / "p")
    for bucket in dataset.buckets:
        segments = bucket.segments.between(0, bucket.rows)
        ends = np.cumsum(segments.length)
        tokens = bucket.tokens.between(0, bucket.rows).reshape(-1)
        for place in np.flatnonzero(segments.document >= 0).tolist():
            document, start, length = (
                int(each[place]) for each in (segments.document, segments.start, segments.length)
            )
            assert start + length <= 64
            piece = slice(int(ends[place]) - length, int(ends[place]))
            assert (tokens[piece] == documents[document][0][start : start + length]).all()
            if bucket.loss is not None:
                trains = bucket.loss.between(0, bucket.rows).reshape(-1)[piece]
                assert (trains == documents[document][1][start : start + length]).all()
    ledger, report = manifest.ledger, packtool.stats(tmp_path / "p")
    assert report.beyond == sum(max(0, len(tokens) - 65) for tokens, _ in documents) > 1000
    assert ledger.dropped >= report.beyond
    assert (ledger.untrained or 0) > 0 if strategy in WHOLE else not ledger.untrained
    if strategy in WHOLE:
        assert ledger.dropped == report.beyond
        assert report.rows_without_target == 0
    assert packtool.verify(tmp_path / "p", store=stores).problems == []
    assert f"{report.beyond:,} after the first" in shell("stats", tmp_path / "p", "--full")
    assert "--too-long first" in shell("info", tmp_path / "p")
    preview = packtool.pack(stores, tmp_path / "dry", **rows, dry_run=True).preview
    assert preview.written["rows"] == ledger.rows
    assert f"{report.beyond:,} tokens after the first 64 of long documents" in preview.left_out
    (entry,) = packtool.stats(stores, compare=rows.pop("strategy"), **rows).comparison.entries
    assert (entry.metrics, entry.beyond, entry.ledger.dropped) == (report.metrics, report.beyond, ledger.dropped)
    assert "--too-long first" in entry.command
