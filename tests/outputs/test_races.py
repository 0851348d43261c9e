"""Several runs that write to one prefix of an object store: one goes on, and what is finished stays."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.engines import Threads
from packtool.errors import DataError, PacktoolError
from packtool.formats import manifest as manifests
from packtool.formats.schema import listed_files
from packtool.outputs.output import Action, Output
from packtool.places.typed import place_of
from tests.outputs import cases
from tests.outputs.cases import STORE, URL, finish, manifest_of, names, piece, pieces_of, shard
from tests.places.s3_server import Bucket
from tests.stores import contents, write_store

FILES = ["manifest.json", "offsets-00000.npy", "offsets-00001.npy", "run.json", "tokens-00000.npy", "tokens-00001.npy"]
MARKER = "unfinished/state.json"
TAKEN = "another run of packtool is writing here, or has finished just now"


def begin(machine: Path, key: str = "k", **options: bool) -> Output:
    """Begin the output at `URL`. Runs on one machine, which is a staging directory, share a lock; others do not."""
    return cases.begin(URL, key, "pack", staging=machine, **options)


def before(bucket: Bucket, name: str, act: Callable[[], object]) -> None:
    """Do something once while the next request to put an object is held on its way."""

    def hold(method: str, key: str) -> None:
        if method == "put" and key == f"set/{name}":
            bucket.hold = lambda method, key: None
            act()

    bucket.hold = hold


@pytest.mark.parametrize("faster", ["finishes", "goes on"])
@pytest.mark.parametrize("slower", ["begin", "overwrite", "resume"])
@pytest.mark.parametrize("late", [MARKER, "manifest.json"])
def test_of_two_runs_one_goes_on(bucket: Bucket, tmp_path: Path, late: str, slower: str, faster: str) -> None:
    """Whichever file of the slower one is on its way: an empty prefix, or what a killed run left, was seen by both."""
    options = {} if slower == "begin" else {slower: True}
    if options:
        piece(begin(tmp_path / "killed"), 0)
    made: list[Output] = []

    def take_over() -> None:
        made.append(begin(tmp_path / "two", "two", overwrite=True))
        if faster == "finishes":
            finish(made[0], 2)

    before(bucket, late, take_over)
    with pytest.raises(DataError, match=TAKEN) as caught:
        finish(begin(tmp_path / "one", **options), 1)
    assert (caught.value.code, caught.value.where) == ("output-in-use", URL)
    assert (tmp_path / "one").exists() == (late != MARKER)
    if faster == "goes on":
        assert MARKER in bucket.names("set")
        finish(made[0], 2)
    assert bucket.names("set") == FILES
    assert packtool.verify(URL).problems == []
    assert manifests.read_run(URL)["key"] == "two"


@pytest.mark.parametrize("faster", ["finishes", "goes on"])
def test_a_run_that_was_replaced_delivers_and_finishes_nothing(bucket: Bucket, tmp_path: Path, faster: str) -> None:
    first = begin(tmp_path / "one", "one")
    piece(first, 0, value=0)
    second = begin(tmp_path / "two", "two", overwrite=True)
    if faster == "finishes":
        finish(second, 2)
    delivery = first.delivery(Threads(1))
    with delivery.attempt("shard-00001.") as attempt, pytest.raises(DataError, match=TAKEN):
        delivery.deliver(attempt, [])
    with pytest.raises(DataError, match=TAKEN):
        first.finish(manifest_of())
    first.release()
    if faster == "goes on":
        finish(second, 2)
    assert bucket.names("set") == FILES
    assert packtool.verify(URL).problems == []


def killed_while_sending_its_manifest(bucket: Bucket, output: Output) -> Callable[[], None]:
    """Leave what such a run leaves; return what lets the manifest arrive."""
    finish(output, 2)
    bucket.put(f"set/{MARKER}", output.mark)
    return partial(bucket.put, "set/manifest.json", bucket.objects.pop("set/manifest.json"))


def test_a_manifest_that_arrives_between_the_two_looks_makes_a_dataset(bucket: Bucket, tmp_path: Path) -> None:
    """It is kept by a run that resumes, and by one that overwrites: that is for the unfinished work which was seen."""
    arrive = killed_while_sending_its_manifest(bucket, begin(tmp_path / "killed"))
    before(bucket, MARKER, arrive)
    assert begin(tmp_path / "two", resume=True).finished
    assert bucket.names("set") == FILES
    arrive = killed_while_sending_its_manifest(bucket, begin(tmp_path / "killed", overwrite=True))
    before(bucket, MARKER, arrive)
    with pytest.raises(DataError, match=TAKEN):
        begin(tmp_path / "two", overwrite=True)
    assert packtool.verify(URL).problems == []
    assert names(tmp_path) == []


@pytest.mark.parametrize("last", ["piece", "run"])
def test_the_late_manifest_of_another_run_finishes_nothing(bucket: Bucket, tmp_path: Path, last: str) -> None:
    """Its files are overwritten under the same names, and that run is killed, too: --resume goes on with it."""
    arrive = killed_while_sending_its_manifest(bucket, begin(tmp_path / "one", "one"))
    two = begin(tmp_path / "two", "two", overwrite=True)
    done = [piece(two, number, value=0) for number in range(2)]
    if last == "run":
        before(bucket, "manifest.json", arrive)
        with pytest.raises(DataError, match=TAKEN):
            two.finish(manifest_of(*done))
    else:
        arrive()
    two.release()
    again = begin(tmp_path / "two", "two", resume=True)
    assert again.action is Action.GO_ON
    again.finish(manifest_of(*pieces_of(again).recorded(range(2)).values()))
    assert bucket.names("set") == FILES
    assert [place_of(URL).problem(file) for file in listed_files(manifests.read(URL))] == [None] * 4
    assert bucket.get("set/tokens-00001.npy")[4096:] == bytes(2)


def test_a_marker_that_an_earlier_run_removed_late_is_made_again(bucket: Bucket, tmp_path: Path) -> None:
    """It was killed in the end, as its marker went."""
    finish(begin(tmp_path / "killed", "one"), 2)
    output = begin(tmp_path / "two", overwrite=True)
    del bucket.objects[f"set/{MARKER}"]
    with output.delivery(Threads(1)).attempt("shard-00000.") as attempt:
        output.delivery(Threads(1)).deliver(attempt, [])
    assert bucket.get(f"set/{MARKER}") == output.mark
    del bucket.objects[f"set/{MARKER}"]
    finish(output, 2)
    assert bucket.names("set") == FILES


def test_a_record_that_outlived_its_dataset_goes_with_the_next_run(bucket: Bucket, tmp_path: Path) -> None:
    """Its removal may have changed on its way."""
    finish(begin(tmp_path), 2)
    bucket.put("set/unfinished/pieces/shard/00000.json", b"{}")
    assert begin(tmp_path, resume=True).finished
    assert bucket.names("set") == FILES


@pytest.mark.parametrize("checks", [True, False])
def test_a_marker_that_changed_on_its_way_is_sent_again(bucket: Bucket, tmp_path: Path, checks: bool) -> None:
    """Where the store does not notice, the run would take it for another's, and never go on."""
    bucket.checks = checks
    bucket.damage = [lambda data: data.replace(b'"key": "k"', b'"key": "j"')]
    output = begin(tmp_path)
    assert bucket.get(f"set/{MARKER}") == output.mark
    piece(output, 0)
    output.release()
    again = begin(tmp_path, resume=True)
    assert pieces_of(again).numbers() == [0]
    finish(again, 2)
    assert bucket.names("set") == FILES


@pytest.mark.parametrize("way", ["overwrite", "resume"])
def test_a_manifest_that_changed_on_its_way_from_a_run_that_was_killed_is_sent_again(
    bucket: Bucket, tmp_path: Path, way: str
) -> None:
    """It was killed before it could see that; nobody takes it for a dataset."""
    output = begin(tmp_path)
    finish(output, 2)
    whole = bucket.get("set/manifest.json")
    bucket.put("set/manifest.json", whole.replace(b'"documents": 2', b'"documents": 3'))
    bucket.put(f"set/{MARKER}", output.mark)
    with pytest.raises(DataError, match="changed since it was written"):
        manifests.read(URL)
    finish(begin(tmp_path, **{way: True}), 2)
    assert bucket.get("set/manifest.json") == whole
    assert bucket.names("set") == FILES


def test_a_piece_whose_object_is_cut_is_made_again(bucket: Bucket, tmp_path: Path) -> None:
    output = begin(tmp_path)
    for number in range(2):
        piece(output, number)
    output.release()
    bucket.put("set/tokens-00001.npy", b"cut")
    again = begin(tmp_path, resume=True)
    assert sorted(pieces_of(again).found(range(2), Threads(1))) == [0]
    shard(again, 1)
    finish(again, 2)
    assert packtool.verify(URL).problems == []


def test_overwriting_removes_the_old_manifest_before_anything_else(bucket: Bucket, tmp_path: Path) -> None:
    finish(begin(tmp_path, "old"), 2)
    bucket.requests.clear()
    output = begin(tmp_path, overwrite=True)
    assert [key for method, key in bucket.requests if method == "put"] == [f"set/{MARKER}"]
    assert bucket.names("set") == [MARKER]
    with pytest.raises(PacktoolError, match="the output of a packtool command that was interrupted"):
        manifests.read(URL)
    finish(output)
    assert bucket.names("set") == STORE
    puts = [key.removeprefix("set/") for method, key in bucket.requests if method == "put"]
    assert puts[-2:] == ["run.json", "manifest.json"]


@pytest.mark.parametrize(("status", "code"), [(403, "store-denied"), (400, "store-unreachable")])
def test_a_store_that_refuses_a_file_says_how_to_go_on(bucket: Bucket, tmp_path: Path, status: int, code: str) -> None:
    store = write_store(tmp_path / "store", [5, 9, 17] * 9)
    options: dict[str, Any] = {"strategy": "bfd", "sequence_length": 16, "shard_tokens": 32}
    packtool.pack(store, tmp_path / "packed", **options)
    bucket.refuse = lambda method, key: status if method == "put" and "tokens-00003" in key else None
    with pytest.raises(DataError, match=r"then run the command again with resume=True\.$") as caught:
        packtool.pack(store, URL, **options, workers=1, check_input=False)
    assert (caught.value.code, caught.value.where) == (code, f"{URL}/tokens-00003.npy")
    assert "manifest.json" not in bucket.names("set")
    bucket.refuse = lambda method, key: None
    bucket.requests.clear()
    packtool.pack(store, URL, **options, resume=True)
    assert ("put", "set/tokens-00000.npy") not in bucket.requests
    found = {name: bucket.get(f"set/{name}") for name in bucket.names("set") if name != "run.json"}
    assert found == contents(tmp_path / "packed")
