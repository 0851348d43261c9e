"""Several runs that write to one prefix of an object store: one goes on, and what is finished stays."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.engines import Threads
from packtool.errors import DataError, PacktoolError
from packtool.formats import manifest as manifests
from packtool.formats.schema import listed_files
from packtool.outputs import claim
from packtool.outputs.output import Output, Way
from packtool.places.typed import place_of
from tests.formats.outputs import STORE, URL, begin, finish, manifest_of, names, piece, pieces_of, prepare, shard
from tests.places.s3_server import Bucket
from tests.stores import contents, write_store

FILES = ["manifest.json", "offsets-00000.npy", "offsets-00001.npy", "run.json", "tokens-00000.npy", "tokens-00001.npy"]
MARKER = "unfinished/state.json"


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
    with pytest.raises(DataError, match="is writing here, or has finished just now") as caught:
        finish(begin(tmp_path / "one", **options), 1)
    assert (caught.value.code, caught.value.where) == ("output-in-use", URL)
    if faster == "goes on":
        assert MARKER in bucket.names("set")
        finish(made[0], 2)
    assert bucket.names("set") == FILES
    assert packtool.verify(URL).problems == []
    assert manifests.read_run(URL)["key"] == "two"


def test_so_it_is_with_commands(bucket: Bucket, tmp_path: Path) -> None:
    store, other = write_store(tmp_path / "store", [5, 9, 17]), write_store(tmp_path / "other", [40, 3, 8, 9])
    options: dict[str, Any] = {"strategy": "bfd", "sequence_length": 16}
    packtool.pack(other, tmp_path / "packed", **options)
    before(bucket, MARKER, lambda: packtool.pack(other, URL, **options, staging=tmp_path / "two"))
    with pytest.raises(DataError, match="has finished just now"):
        packtool.pack(store, URL, **options, staging=tmp_path / "one")
    found = {name: bucket.get(f"set/{name}") for name in bucket.names("set") if name != "run.json"}
    assert found == contents(tmp_path / "packed")


def killed_while_sending_its_manifest(bucket: Bucket, output: Output, documents: int) -> Callable[[], None]:
    """Leave what such a run leaves; return what lets the manifest arrive."""
    finish(output, documents)
    bucket.put(f"set/{MARKER}", output.mark)
    late = bucket.objects.pop("set/manifest.json")
    return lambda: bucket.put("set/manifest.json", late)


def test_a_run_that_resumes_ends_well_when_the_manifest_arrives_late(bucket: Bucket, tmp_path: Path) -> None:
    """It arrives between the two looks: the dataset is whole."""
    arrive = killed_while_sending_its_manifest(bucket, begin(tmp_path / "killed"), 2)
    before(bucket, MARKER, arrive)
    output = begin(tmp_path / "two", resume=True)
    assert output.finished
    assert bucket.names("set") == FILES
    assert packtool.verify(URL).problems == []
    assert names(tmp_path) == []


def test_a_run_that_overwrites_leaves_a_dataset_whose_manifest_arrives_late(bucket: Bucket, tmp_path: Path) -> None:
    """It saw unfinished work, and --overwrite is for what the user saw."""
    arrive = killed_while_sending_its_manifest(bucket, begin(tmp_path / "killed"), 2)
    before(bucket, MARKER, arrive)
    with pytest.raises(DataError, match="has finished just now"):
        begin(tmp_path / "two", overwrite=True)
    assert packtool.verify(URL).problems == []
    finish(begin(tmp_path / "two", overwrite=True), 1)
    assert packtool.info(URL).facts["documents"] == 1


@pytest.mark.parametrize("last", ["piece", "run"])
def test_the_late_manifest_of_another_run_finishes_nothing(bucket: Bucket, tmp_path: Path, last: str) -> None:
    """Its files are overwritten under the same names, and that run is killed, too: --resume goes on with it."""
    arrive = killed_while_sending_its_manifest(bucket, begin(tmp_path / "one", "one"), 2)
    two = begin(tmp_path / "two", "two", overwrite=True)
    done = [piece(two, number, value=0) for number in range(2)]
    if last == "run":
        before(bucket, "manifest.json", arrive)
        with pytest.raises(DataError, match="is writing here, or has finished just now"):
            two.finish(manifest_of(*done))
    else:
        arrive()
    two.release()
    again = begin(tmp_path / "two", "two", resume=True)
    assert again.way is Way.GO_ON
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


def test_a_marker_is_not_made_again_where_another_run_has_finished(bucket: Bucket, tmp_path: Path) -> None:
    first = begin(tmp_path / "one")
    finish(begin(tmp_path / "two", overwrite=True), 2)
    with first.delivery(Threads(1)).attempt("shard-00000.") as attempt, pytest.raises(DataError, match="just now"):
        first.delivery(Threads(1)).deliver(attempt, [])
    assert bucket.names("set") == FILES


def test_the_record_of_another_run_is_not_believed(bucket: Bucket, tmp_path: Path) -> None:
    """It arrives late, and the files that this run has put have its names and sizes, but not its checksums."""
    record = "set/unfinished/pieces/shard/00000.json"
    piece(begin(tmp_path / "one", "one"), 0)
    late = bucket.get(record)
    two = begin(tmp_path / "two", "two", overwrite=True)
    piece(two, 0, value=0)
    bucket.put(record, late)
    two.release()
    assert pieces_of(begin(tmp_path / "two", "two", resume=True)).recorded([0]) == {}


def test_a_record_that_outlived_its_dataset_goes_with_the_next_run(bucket: Bucket, tmp_path: Path) -> None:
    """Its removal may have changed on its way."""
    finish(begin(tmp_path / "staging"), 2)
    bucket.put("set/unfinished/pieces/shard/00000.json", b"{}")
    assert begin(tmp_path / "staging", resume=True).finished
    assert bucket.names("set") == FILES


def test_of_two_that_begin_at_the_same_time_one_goes_on(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On two machines: neither sees the other's local lock, nor anything in the store when it looks."""
    with monkeypatch.context() as patch:
        nothing = claim.look(place_of(URL))
        patch.setattr(claim, "look", lambda place: nothing)
        first = prepare(URL, "shuffle", key="1", staging=tmp_path / "one")
        with pytest.raises(DataError, match="another run of packtool is writing here") as caught:
            prepare(URL, "shuffle", key="2", staging=tmp_path / "two")
    assert (caught.value.code, caught.value.where) == ("output-in-use", URL)
    assert not (tmp_path / "two").exists()
    finish(first, 2)
    assert bucket.names("set") == FILES


def test_a_run_that_another_has_replaced_leaves_its_dataset_alone(bucket: Bucket, tmp_path: Path) -> None:
    first = prepare(URL, "shuffle", key="1", staging=tmp_path / "one")
    piece(first, 0, value=0)
    second = prepare(URL, "shuffle", key="2", staging=tmp_path / "two", overwrite=True)
    delivery = first.delivery(Threads(1))
    with delivery.attempt("shard-00001.") as attempt, pytest.raises(DataError, match="another run of packtool"):
        delivery.deliver(attempt, [])
    with pytest.raises(DataError, match="another run of packtool is writing here"):
        finish(first, 2)
    first.release()
    finish(second, 2)
    assert bucket.names("set") == FILES
    tokens = np.frombuffer(bucket.get("set/tokens-00001.npy")[4096:], "<u2")
    assert tokens.tolist() == [1]


@pytest.mark.parametrize("checks", [True, False])
def test_a_marker_that_changed_on_its_way_is_sent_again(bucket: Bucket, tmp_path: Path, checks: bool) -> None:
    """Where the store does not notice, the run would take it for another's, and never go on."""
    bucket.checks = checks
    bucket.damage = [lambda data: data.replace(b'"key": "k"', b'"key": "j"')]
    output = begin(tmp_path / "staging")
    assert bucket.get(f"set/{MARKER}") == output.mark
    piece(output, 0)
    output.release()
    again = begin(tmp_path / "staging", resume=True)
    assert pieces_of(again).numbers() == [0]
    finish(again, 2)
    assert bucket.names("set") == FILES


def test_a_marker_that_was_made_though_its_answer_was_lost_is_its_own(bucket: Bucket, tmp_path: Path) -> None:
    lost = [True]

    def hold(method: str, key: str) -> None:
        if method == "put" and key == f"set/{MARKER}" and lost.pop() if lost else False:
            bucket.failures.append(200)

    bucket.hold = hold
    output = begin(tmp_path / "staging")
    assert not output.place.create(MARKER, b"another")
    assert output.place.create(MARKER, output.mark), "as the client does that sends it again"


def test_a_damaged_marker_says_so(bucket: Bucket, tmp_path: Path) -> None:
    output = begin(tmp_path / "staging")
    output.release()
    bucket.put(f"set/{MARKER}", output.mark.replace(b'"key": "k"', b'"key": "j"'))
    assert begin(tmp_path / "other", resume=True).way is Way.GO_ON, "it does no harm where nothing was made yet"
    piece(output := begin(tmp_path / "staging", overwrite=True), 0)
    output.release()
    bucket.put(f"set/{MARKER}", output.mark.replace(b'"key": "k"', b'"key": "j"'))
    with pytest.raises(PacktoolError, match=r"holds unfinished work whose marker is damaged\. Give overwrite=True"):
        begin(tmp_path / "staging", resume=True)
    finish(begin(tmp_path / "staging", overwrite=True), 2)
    assert bucket.names("set") == FILES


@pytest.mark.parametrize("way", ["overwrite", "resume"])
def test_a_manifest_that_changed_on_its_way_from_a_run_that_was_killed_is_sent_again(
    bucket: Bucket, tmp_path: Path, way: str
) -> None:
    """It was killed before it could see that; nobody takes it for a dataset."""
    output = begin(tmp_path / "staging")
    finish(output, 2)
    whole = bucket.get("set/manifest.json")
    bucket.put("set/manifest.json", whole.replace(b'"documents": 2', b'"documents": 3'))
    bucket.put(f"set/{MARKER}", output.mark)
    with pytest.raises(DataError, match="changed since it was written"):
        manifests.read(URL)
    finish(begin(tmp_path / "staging", **{way: True}), 2)
    assert bucket.get("set/manifest.json") == whole
    assert bucket.names("set") == FILES


@pytest.mark.parametrize("digit", range(4))
def test_records_that_changed_are_not_believed(bucket: Bucket, tmp_path: Path, digit: int) -> None:
    output = begin(tmp_path / "staging")
    for number in range(2):
        piece(output, number)
    output.release()
    shutil.rmtree(tmp_path / "staging", ignore_errors=True)
    name = "set/unfinished/pieces/shard/00001.json"
    data = bytearray(bucket.get(name))
    digits = [at for at, byte in enumerate(data) if 48 <= byte < 58]
    data[digits[digit * len(digits) // 4]] ^= 1
    bucket.put(name, bytes(data))
    again = begin(tmp_path / "staging", resume=True)
    assert sorted(pieces_of(again).recorded(range(2))) == [0]
    finish(again, 2)
    assert packtool.verify(URL).problems == []


def test_a_piece_whose_object_is_cut_is_made_again(bucket: Bucket, tmp_path: Path) -> None:
    output = begin(tmp_path / "staging")
    for number in range(2):
        piece(output, number)
    output.release()
    bucket.put("set/tokens-00001.npy", b"cut")
    again = begin(tmp_path / "staging", resume=True)
    assert sorted(pieces_of(again).found(range(2), Threads(1))) == [0]
    shard(again, 1)
    finish(again, 2)
    assert packtool.verify(URL).problems == []


def test_overwriting_removes_the_old_manifest_before_anything_else(bucket: Bucket, tmp_path: Path) -> None:
    finish(begin(tmp_path / "staging", "old"), 2)
    bucket.requests.clear()
    output = begin(tmp_path / "staging", overwrite=True)
    assert [key for method, key in bucket.requests if method == "put"] == [f"set/{MARKER}"]
    assert bucket.names("set") == [MARKER]
    with pytest.raises(PacktoolError, match="the output of a packtool command that was interrupted"):
        manifests.read(URL)
    finish(output, 1)
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
