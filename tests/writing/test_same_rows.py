"""The same rows by every way to them: packed, shuffled, drawn in memory; with tokens and without; in any memory, and by
processes that share none."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import packtool
from packtool.planning.packing import STRATEGIES
from packtool.reading import BucketDataset
from packtool.writing import array_files, memory, two_passes
from tests.examples import examples
from tests.making import Make, drawn_lengths
from tests.stores import contents, document_loss
from tests.writing.cases import drawn_packing, kept_fields, require_same


@pytest.fixture
def several_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little data has several tasks; a few documents are more than little memory, so that their arrays are on disk."""
    monkeypatch.setattr(memory, "DOCUMENT_BYTES", 1000)
    monkeypatch.setattr(array_files, "LARGE", 1)
    monkeypatch.setattr(two_passes, "_TASK_BYTES", 4000)
    monkeypatch.setattr(two_passes, "_BYTES_ON_CLUSTER", 4000)
    monkeypatch.setattr(two_passes, "_MOST_TASKS", 5)


def without_tokens(path: Path) -> dict[str, bytes]:
    """Every file of a dataset that one without tokens has, too, but for the manifest."""
    names = ("tokens", "loss", "manifest.json")
    return {name: data for name, data in contents(path).items() if not Path(name).name.startswith(names)}


@pytest.mark.usefixtures("several_tasks", "anyone")
@pytest.mark.filterwarnings("ignore::packtool.warnings.PacktoolWarning")
@pytest.mark.parametrize("name", sorted(STRATEGIES))
@settings(examples(6, HealthCheck.function_scoped_fixture), phases=[Phase.generate])
@given(data=st.data())
def test_rows_are_the_same_by_every_way(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    place = tmp_path_factory.mktemp("law")
    stores, options = drawn_packing(data, place, name)
    options["shard_tokens"] = data.draw(st.sampled_from([64, 1 << 28]), label="shard tokens")
    epoch = data.draw(st.integers(0, 3), label="epoch")
    other = {
        "memory": data.draw(st.sampled_from([None, 8000, 30_000]), label="memory"),
        "workers": data.draw(st.sampled_from([1, 1, 3]), label="workers"),
        "scheduler": data.draw(st.sampled_from([None, None, "anyone"]), label="scheduler"),
    }

    def pack(made: str, **more: Any) -> Path:
        packtool.pack(stores, place / made, **{**options, **more})
        return place / made

    def shuffle(source: str, made: str, **more: Any) -> Path:
        packtool.shuffle(place / source, place / made, **other, **more)
        return place / made

    whole, index = packtool.open(pack("whole")), packtool.open(pack("index", index_only=True, **other))
    # Without tokens, and with them again.
    require_same(index, whole)
    assert without_tokens(place / "index") == without_tokens(place / "whole")
    packtool.materialize(place / "index", place / "written", **other)
    assert contents(place / "written") == contents(place / "whole")
    packtool.materialize(place / "whole", place / "dropped", index_only=True)
    assert contents(place / "dropped") == contents(place / "index")
    assert not list((place / "index").rglob("tokens-*"))
    for made in ("whole", "index"):
        assert packtool.verify(place / made, store=stores).problems == []
    atom, row = options.get("atom_size"), options.get("sequence_length")
    if options["order_by"] and atom is not None and atom < row:
        return  # once parts of rows have moved, the report can't say how alike neighbours are
    # In corpus order, or that of another seed, and shuffled then.
    pack("corpus", shuffle=False)
    sources = ["whole", "index", "corpus"]
    # A seed also chooses documents, and which rows are mixed.
    if not (STRATEGIES[name].random or options.get("mix_rows", False) is not False or "mix" in options):
        pack("seed", seed=options["seed"] // 2 + 3)
        sources.append("seed")
    for source in sources:
        assert contents(shuffle(source, f"of {source}", seed=options["seed"])) == contents(place / "whole"), source
    # The order of another epoch.
    drawn: dict[str, Any] = {}
    method: dict[str, Any] = {}
    if isinstance(whole, BucketDataset):
        tokens = int(np.lcm.reduce(list(whole.buckets)))
        dropped = data.draw(st.booleans(), label="drop the rest")
        drawn = {"batch_tokens": tokens, "drop_rest": dropped}
        method = {"method": "bucket", "batch_tokens": tokens, "remainder": "drop" if dropped else None}
    for source, dataset in (("whole", whole), ("index", index), ("corpus", packtool.open(place / "corpus"))):
        next_ = packtool.open(shuffle(source, f"next of {source}", epoch=epoch, **method))
        require_same(dataset.epoch(epoch, **drawn), next_)
        require_same(pickle.loads(pickle.dumps(dataset.epoch(epoch, **drawn))), next_)
        without = shuffle(source, f"index of {source}", epoch=epoch, index_only=True, **method)
        require_same(packtool.open(without), next_)
    for made in ("next", "index"):
        assert contents(place / f"{made} of index") == contents(place / f"{made} of whole")
        assert contents(place / f"{made} of corpus") == contents(place / f"{made} of whole")
    if options["order_by"]:
        return  # an order of its own
    # Rows of another epoch.
    anew = packtool.open(pack("anew", epoch=epoch, **other))
    assert packtool.verify(place / "anew", store=stores).problems == []  # each document once, by its own number
    if isinstance(anew, BucketDataset):
        anew = anew.epoch(epoch, batch_tokens=tokens)
        drawn = {"batch_tokens": tokens}
    require_same(index.epoch(epoch, repack=True, **drawn), anew)


@pytest.mark.parametrize("remainder", ["drop", "pad"])
def test_rows_of_lanes_are_the_same_by_every_way(make: Make, tmp_path: Path, remainder: str) -> None:
    stored = {"per_shard": 50, "loss": document_loss, "columns": kept_fields}
    store = make(drawn_lengths(120, 89, seed=1), stored, at=tmp_path) / "store"
    options = {"method": "partial", "batch_size": 4, "sequence_length": 32, "remainder": remainder, "seed": 7}
    options["keep"] = "lang,score:number"
    for name, more in (("first", {"epoch": 2}), ("wanted", {"epoch": 1}), ("index", {"epoch": 1, "index_only": True})):
        packtool.shuffle(store, tmp_path / name, **options, **more)
    first, wanted, index = (packtool.open(tmp_path / name) for name in ("first", "wanted", "index"))
    for found in (first.epoch(1), index, index.epoch(2).epoch(1)):
        require_same(found, wanted)
    require_same(first.epoch(2), first)
    packtool.materialize(tmp_path / "index", tmp_path / "written")
    assert contents(tmp_path / "written") == contents(tmp_path / "wanted")
