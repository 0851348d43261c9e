"""A blend is the rows of its sources, each in its own order, none lost and none twice in an epoch."""

import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import packtool
from packtool.errors import UsageError
from packtool.reading import BlendedRows, Dataset
from tests.examples import examples
from tests.making import Make, drawn_lengths
from tests.stores import TOKENIZER, document_loss

LENGTH = 32
PACKED: dict[str, dict[str, Any]] = {
    "web": {"strategy": "seamless", "max_repetition": "30%"},
    "code": {"strategy": "bfd", "index_only": True},
    "chat": {"strategy": "padding"},
}
SIZES = {"web": 150, "code": 60, "chat": 40}


@pytest.fixture(scope="module")
def sources(make: Make) -> dict[str, Path]:
    """Three datasets: seamless rows, index-only rows of whole documents, and padded rows with a loss column."""
    paths = {}
    for number, (name, documents) in enumerate(SIZES.items()):
        stored = {"first": 1000 * number, "loss": document_loss if name == "chat" else None}
        options = {**PACKED[name], "sequence_length": LENGTH, "shard_tokens": 1024, "seed": number}
        paths[name] = make(drawn_lengths(documents, 89, number), stored, **{name: options}) / name
    return paths


def opened(sources: dict[str, Path], stages: Any = (), **options: Any) -> BlendedRows:
    blend = packtool.open(packtool.Blend(sources, stages, **options))  # type: ignore[arg-type]
    assert isinstance(blend, BlendedRows)
    return blend


WEIGHTS = [{"weights": {"web": 0.5, "code": 0.4, "chat": 0.1}}, {"from": "50%", "ramp": True, "weights": {"chat": 1}}]


@pytest.mark.parametrize("repack", [False, True])
@pytest.mark.parametrize(("stages", "run"), [((), {}), (WEIGHTS, {"rows": 1200})])
def test_each_source_goes_on_through_its_epochs(
    sources: dict[str, Path], stages: Any, run: dict[str, int], repack: bool
) -> None:
    """In its own order, epoch after epoch; without weights every row comes once."""
    again: dict[str, Any] = {**sources, "code": {"path": sources["code"], "repack": repack}}
    blend = opened(again, stages, **run)
    assert (blend.sequence_length, blend.sources) == (LENGTH, ["chat", "code", "web"])
    source, row = blend.origins(slice(None))
    counts = np.bincount(source).tolist()
    assert counts == ([390, 360, 450] if run else [len(packtool.open(sources[name])) for name in blend.sources])
    for number, name in enumerate(blend.sources):
        dataset, epochs = packtool.open(sources[name]), []
        assert isinstance(dataset, Dataset)
        while sum(map(len, epochs)) < counts[number]:
            epochs.append(np.array(dataset.epoch(len(epochs), repack=repack and name == "code")[:]))
        assert row[source == number].tolist() == list(range(counts[number]))
        assert np.array_equal(blend[source == number], np.concatenate(epochs)[: counts[number]])


def test_from_a_file_as_from_python(sources: dict[str, Path], tmp_path: Path) -> None:
    for name, path in sources.items():
        (tmp_path / name).symlink_to(path)
    text = "rows = 1200\n[sources]\nweb = 'web'\ncode = 'code'\nchat = 'chat'\n[[stages]]\nweights = "
    text += "{web = 0.5, code = 0.4, chat = 0.1}\n[[stages]]\nfrom = '50%'\nramp = true\nweights.chat = 1\n"
    (tmp_path / "blend.toml").write_text(text)
    blend = packtool.open(tmp_path / "blend.toml")
    assert np.array_equal(blend[:], opened(sources, WEIGHTS, rows=1200)[:])
    assert np.array_equal(pickle.loads(pickle.dumps(blend))[:], blend[:])
    assert np.array_equal(list(blend), blend[:])
    wide = packtool.open(tmp_path / "blend.toml", dtype="int64")
    assert (wide[-1].dtype, wide[-1].tolist()) == (np.int64, blend[1199].tolist())
    assert repr(blend) == f"<packtool blend: 1,200 rows of 32 tokens, of chat, code, web, {tmp_path / 'blend.toml'}>"
    with pytest.raises(IndexError, match="row 1200 of 1200"):
        blend[1200]
    with pytest.raises(UsageError, match="stores: a blend names the stores of each of its sources"):
        packtool.open(tmp_path / "blend.toml", stores="x")


def test_a_source_stops_and_the_others_have_its_weight(sources: dict[str, Path]) -> None:
    once = {"path": sources["chat"], "stop": True}
    rows = len(packtool.open(sources["chat"]))
    blend = opened({**sources, "chat": once}, [{"weights": {"web": 1, "code": 1, "chat": 2}}], rows=3 * rows)  # type: ignore[dict-item]
    source, _ = blend.origins(slice(None))
    assert np.bincount(source).tolist() == [rows, rows, rows]
    assert set(source[2 * rows :].tolist()) == {1, 2}


def refused(sources: dict[str, Any], stages: Any = (), **options: Any) -> str:
    with pytest.raises(UsageError) as caught:
        packtool.open(packtool.Blend(sources, stages, **options))
    return str(caught.value)


def test_what_does_not_go_together(sources: dict[str, Path], make: Make, tmp_path: Path) -> None:
    options = {"strategy": "bfd", "sequence_length": LENGTH}
    place = make(
        [5, 9, 70],
        long={**options, "sequence_length": 64},
        several={"strategy": "buckets", "buckets": [32, 64]},
        multiple={**options, "document_multiple": 8},
    )
    other = make([5, 9], {"tokenizer": replace(TOKENIZER, sha256="1" * 64)}, other=options) / "other"
    by_another = "b has other tokens than a, by another tokenizer. Tokenize all sources with one tokenizer."
    said = {
        place / "multiple": "documents of b begin at multiples of 8, of a at 1. Pack all sources with the same",
        place / "long": "b has rows of 64 tokens, a of 32. Pack all sources to rows of one length.",
        place / "several": "b has rows of several lengths (32, 64), so it can't be blended with others. Pack it to",
        other: by_another,
    }
    for path, message in said.items():
        assert refused({"a": sources["web"], "b": path}).startswith(f"sources.b: {message}")
    (tmp_path / "two.toml").write_text(f'[sources]\na = "{sources["web"]}"\nb = "{other}"\n')
    with pytest.raises(UsageError) as caught:
        packtool.open(tmp_path / "two.toml")
    assert str(caught.value) == f"{tmp_path / 'two.toml'}:3: {by_another}"


def test_a_dataset_is_known_by_its_rows_and_their_order(sources: dict[str, Path], tmp_path: Path) -> None:
    """Not by how its path is written."""
    web = sources["web"]
    shutil.copytree(web, tmp_path / "copy")
    (tmp_path / "link").symlink_to(web)
    message = (
        "sources.b: a and b are the same dataset, in the same order. Name it once, since its weight says how often it "
        "comes; or give one of them another seed."
    )
    seed = packtool.open(web).manifest.seed  # type: ignore[union-attr]
    for other in (web, tmp_path / "copy", tmp_path / "link", f"{web.parent}/../{web.parent.name}/{web.name}"):
        assert refused({"a": web, "b": other}) == message
        assert refused({"a": web, "b": {"path": other, "seed": seed}}) == message
        for option in ({"seed": 7}, {"shuffle": False}):
            packtool.open(packtool.Blend({"a": web, "b": {"path": other, **option}}))


def test_weights_and_sources_agree(sources: dict[str, Path]) -> None:
    both = {"web": sources["web"], "code": sources["code"]}
    assert refused(both, [{"weights": {"web": 1, "coed": 1}}], rows=9).startswith(
        "stages[0].weights.coed: there is no source 'coed'. Did you mean code?"
    )
    assert refused(both, [{"weights": {"web": 1}}], rows=9).startswith(
        "sources.code: source code has a weight in no stage. Give it one, which may be 0, or take it out."
    )
    assert refused(both, [{"weights": {"web": 1, "code": 1}}]).startswith(
        'blend: weights, but not how long the run is. Give tokens = "40B", or rows, or steps.'
    )
    assert refused(both, tokens=31).startswith("tokens: the run has not a single row. Give at least 32 tokens.")


def test_more_epochs_than_allowed(sources: dict[str, Path]) -> None:
    rows = len(packtool.open(sources["code"]))
    both: dict[str, Any] = {"web": sources["web"], "code": {"path": sources["code"], "max_epochs": 2}}
    half = [{"weights": {"web": 1, "code": 1}}]
    assert len(opened(both, half, rows=4 * rows)) == 4 * rows
    assert refused(both, half, rows=5 * rows).startswith(
        f"sources.code: the run takes {round(2.5 * rows):,} rows of code, 2.50 epochs of {rows:,}, where max-epochs "
        f"= 2 allows {2 * rows:,}. Lower its weights, shorten the run, raise max-epochs, or set stop"
    )
    both = {name: {"path": sources[name], "stop": True} for name in ("web", "code")}
    assert "all sources with a weight have stopped (rows: code " in refused(both, half, rows=5000)


KINDS: dict[str, dict[str, Any]] = {
    "cut": {"strategy": "concat"},
    "cut-index": {"strategy": "concat", "index_only": True},
    "repeated": {"strategy": "seamless", "max_repetition": "40%"},
    "padded": {"strategy": "padding", "atom_size": 8},
    "whole": {"strategy": "bfd"},
    "plain": {"strategy": "concat", "remainder": "drop", "segments": False},
}
"""Each with a loss column and without."""


@pytest.fixture(scope="module")
def kinds(make: Make) -> dict[str, Path]:
    paths = {}
    for number, (kind, options) in enumerate(KINDS.items()):
        for name, loss in ((kind, None), (f"{kind}-loss", document_loss)):
            stored = {"first": 1000 * number, "loss": loss}
            place = make(drawn_lengths(40, 59, number, 1), stored, **{name: {**options, "sequence_length": 24}})
            paths[name] = place / name
    return paths


@examples(60)
@given(data=st.data())
def test_a_row_is_what_it_is_alone(kinds: dict[str, Path], data: st.DataObject) -> None:
    """What a batch says of a row is what its source says of it, whatever rows of other sources are beside it."""
    names = data.draw(st.lists(st.sampled_from(sorted(kinds)), min_size=2, max_size=4, unique=True), label="sources")
    without_segments = any("plain" in name for name in names)
    options: dict[str, Any] = {"labels": data.draw(st.sampled_from(["next", "same"]), label="labels")}
    options["extra_token"] = options["labels"] == "next" and data.draw(st.booleans(), label="extra token")
    fields = ["input_ids", "labels", "loss_mask"]
    if without_segments:
        options["documents"] = False
    else:
        fields += ["position_ids", "document_ids"]
        for name in ("documents", "train_on_repeated", "train_across_documents"):
            options[name] = data.draw(st.booleans(), label=name)
    blend = packtool.open(packtool.Blend({name: kinds[name] for name in names}, rows=200))
    assert isinstance(blend, BlendedRows)
    rows = data.draw(st.lists(st.integers(0, 199), min_size=2, max_size=12), label="rows")
    together = blend.batch(rows, fields=[*fields, "source"], **options)
    source, number = blend.origins(rows)
    width = together["input_ids"].shape[1]
    assert together["source"].dtype == np.int32
    assert together["source"].tolist() == np.repeat(source[:, None], width, axis=1).tolist()
    ends, longest = [0], 0
    for place, (which, row) in enumerate(zip(source.tolist(), number.tolist(), strict=True)):
        dataset = packtool.open(kinds[blend.sources[which]])
        assert isinstance(dataset, Dataset)
        epoch, item = divmod(row, len(dataset))
        alone = dataset.epoch(epoch).batch([item], fields=fields, **options)
        for name in fields:
            np.testing.assert_array_equal(together[name][place], alone[name][0], name)  # type: ignore[literal-required]
        if not without_segments:
            bounds = dataset.epoch(epoch).batch([item], fields=("cu_seqlens", "max_seqlen"), **options)
            ends += (bounds["cu_seqlens"][1:] + place * width).tolist()
            longest = max(longest, bounds["max_seqlen"])
    if not without_segments:
        found = blend.batch(rows, fields=("cu_seqlens", "max_seqlen"), **options)
        assert (found["cu_seqlens"].tolist(), found["max_seqlen"]) == (ends, longest)
        cut = blend.batch(rows, fields=("input_ids", "source"), trim=True, **options)
        assert cut["source"].shape == cut["input_ids"].shape
