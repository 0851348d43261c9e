"""Outputs on their way to an object store while they are written: whole, or no dataset."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from packtool.engines import Threads
from packtool.errors import DataError, UsageError
from packtool.places.npy import FileEntry
from packtool.places.typed import place_of
from packtool.storage import claim
from packtool.storage.claim import lies_at, look
from packtool.storage.files import write_array
from packtool.storage.output import Output, Pieces
from packtool.storage.schema import TokenShard
from packtool.storage.uploads import UPLOADS, UploadedOutput
from tests.places.s3_server import Bucket
from tests.storage.outputs import MANIFEST, URL, begin, finish, names, prepare

FILES = ["manifest.json", "offsets-00000.npy", "offsets-00001.npy", "run.json", "tokens-00000.npy", "tokens-00001.npy"]


def piece(output: Output, number: int, directory: str = "dataset", value: int = 1) -> list[FileEntry]:
    place = output.work / directory
    place.mkdir(exist_ok=True)
    return [
        write_array(place / f"tokens-{number:05d}.npy", np.array([value], "<u2")),
        write_array(place / f"offsets-{number:05d}.npy", np.array([0, 1])),
    ]


def record(output: Output, number: int) -> Path:
    return Pieces(output, "shard", dict).path(number)


def delivered(output: Output, number: int, value: int = 1) -> list[FileEntry]:
    """A piece and its record, as `pack` lets them go."""
    entries = piece(output, number, value=value)
    output.send(output.staged, entries)
    Pieces(output, "shard", dict, lambda *_: (output.staged, entries)).record(number, {})
    settle(output)
    return entries


def settle(output: Output) -> None:
    """Wait until all is where it goes."""
    for each in list(output._sent.values()):  # type: ignore[attr-defined]
        each.result()


def manifest_of(*pieces: list[FileEntry]) -> Any:
    shards = [TokenShard(tokens, offsets, number) for number, (tokens, offsets) in enumerate(pieces)]
    counts = {"documents": len(pieces), "tokens": len(pieces)}
    return msgspec.structs.replace(MANIFEST, shards=shards, counts=counts)


def puts(bucket: Bucket) -> list[str]:
    return [path.removeprefix("set/") for method, path in bucket.requests if method == "put"]


def before_each_put(bucket: Bucket, look: Callable[[str], int | None]) -> Callable[[], None]:
    """Call something before every upload, until what this returns is called; a status that it returns is answered."""
    bucket.refuse = lambda method, path: look(path) if method == "put" else None

    def restore() -> None:
        bucket.refuse = lambda method, path: None

    return restore


def test_a_finished_output_is_uploaded_manifest_last_and_leaves_nothing_here(bucket: Bucket, staged: Path) -> None:
    output = begin(staged)
    assert bucket.names("set") == ["unfinished/state.json"]
    assert lies_at(place_of(URL), "pack", "k") == "unfinished"
    finish(output, 2)
    assert bucket.names("set") == FILES
    assert (puts(bucket)[0], puts(bucket)[-2:]) == ("unfinished/state.json", ["run.json", "manifest.json"])
    assert lies_at(place_of(URL), "pack", "k") == "finished"
    assert lies_at(place_of(URL), "pack", "other") == "other"
    assert names(staged) == []


def test_a_piece_is_uploaded_while_others_are_written_and_can_still_be_read(bucket: Bucket, staged: Path) -> None:
    output = begin(staged)
    entries = delivered(output, 0)
    assert bucket.names("set") == [
        "offsets-00000.npy",
        "tokens-00000.npy",
        "unfinished/pieces/shard/00000.json",
        "unfinished/state.json",
    ]
    assert not any(output.staged.iterdir())
    data = bucket.get("set/tokens-00000.npy")
    output.have(output.staged, entries)
    assert (output.staged / "tokens-00000.npy").read_bytes() == data
    output.finish(manifest_of(entries, piece(output, 1)))
    assert bucket.names("set") == FILES
    assert puts(bucket).count("tokens-00000.npy") == 1


def test_what_changed_in_the_store_is_not_taken_back(bucket: Bucket, staged: Path) -> None:
    output = begin(staged)
    entries = delivered(output, 0)
    data = bucket.get("set/tokens-00000.npy")
    bucket.put("set/tokens-00000.npy", data[:-1] + b"\x07")
    with pytest.raises(DataError, match=r"tokens-00000\.npy: its checksum differs from the manifest's"):
        output.have(output.staged, entries)
    assert not any(output.staged.iterdir())
    bucket.put("set/tokens-00000.npy", data)
    output.have(output.staged, entries)
    assert (output.staged / "tokens-00000.npy").read_bytes() == data


def test_so_many_pieces_wait_and_no_more(bucket: Bucket, staged: Path) -> None:
    output = begin(staged)
    gate = threading.Event()
    restore = before_each_put(bucket, lambda _: gate.wait(30) and None)
    for number in range(UPLOADS):
        output.send(output.staged, piece(output, number))
    entries = piece(output, UPLOADS)
    one_more = threading.Thread(target=output.send, args=(output.staged, entries))
    one_more.start()
    one_more.join(0.6)
    assert one_more.is_alive()
    gate.set()
    one_more.join(30)
    assert not one_more.is_alive()
    settle(output)
    restore()
    output.release()


def test_what_fails_is_told_and_what_was_uploaded_is_not_uploaded_again(bucket: Bucket, staged: Path) -> None:
    output = begin(staged)
    first = delivered(output, 0)

    def refuse(path: str) -> int | None:
        if "tokens-00001" in path:
            return 403
        return None

    restore = before_each_put(bucket, refuse)
    second = piece(output, 1)
    output.send(output.staged, second)
    for wait in (
        lambda: settle(output),
        lambda: output.send(output.staged, piece(output, 2)),
    ):
        with pytest.raises(DataError) as error:
            wait()
        assert (error.value.code, error.value.where) == ("store-denied", f"{URL}/tokens-00001.npy")
        assert error.value.remedy.endswith("then run the command again with --resume")
    output.release()
    restore()
    assert "manifest.json" not in bucket.names("set")
    bucket.requests.clear()
    with pytest.raises(UsageError, match="unfinished work of an interrupted packtool pack"):
        begin(staged)
    with pytest.raises(UsageError, match="begun with other options"):
        begin(staged, "other", resume=True)
    again = begin(staged, resume=True)
    assert again.resumed
    assert not again.finished
    assert all(again.holds(again.staged, entry) for entry in first)
    again.send(again.staged, first)
    again.finish(manifest_of(first, piece(again, 1)))
    assert bucket.names("set") == FILES
    assert "tokens-00000.npy" not in puts(bucket)


def test_a_run_without_the_staging_directory_goes_on_with_what_the_store_has(bucket: Bucket, staged: Path) -> None:
    output = begin(staged)
    first = delivered(output, 0)
    output.send(output.work / "block-000000", piece(output, 0, "block-000000"))
    output.release()
    shutil.rmtree(staged.parent)
    bucket.requests.clear()
    again = begin(staged, resume=True)
    assert record(again, 0).read_bytes() == b"{}"
    assert all(again.holds(again.staged, entry) for entry in first)
    shorter = msgspec.structs.replace(first[0], bytes=first[0].bytes - 2)
    other = UploadedOutput(again.place, again.path, again.state, there=look(again.place).names)  # type: ignore[arg-type]
    assert not other.holds(again.staged, shorter)
    again.finish(manifest_of(first, piece(again, 1)))
    assert bucket.names("set") == FILES
    assert "tokens-00000.npy" not in puts(bucket)


def test_objects_that_no_record_vouches_for_are_written_again(bucket: Bucket, staged: Path) -> None:
    output = begin(staged, "another")
    delivered(output, 0, value=0)
    delivered(output, 1, value=0)
    output.release()
    output = begin(staged, overwrite=True)
    assert bucket.names("set/unfinished") == ["state.json"]
    first = delivered(output, 0)
    output.release()
    shutil.rmtree(staged.parent)
    again = begin(staged, resume=True)
    assert not record(again, 1).exists()
    assert all(again.holds(again.staged, entry) for entry in first)
    second = piece(again, 1)
    again.send(again.staged, second)
    again.finish(manifest_of(first, second))
    assert bucket.get("set/tokens-00001.npy") == bucket.get("set/tokens-00000.npy")  # not what was there


def test_an_older_dataset_stays_until_the_new_one_is_whole(bucket: Bucket, staged: Path) -> None:
    finish(begin(staged, "old"), 2)
    before = {name: bucket.get(f"set/{name}") for name in FILES}
    output = begin(staged, overwrite=True)
    first, second = delivered(output, 0, value=0), delivered(output, 1, value=0)
    assert "unfinished/dataset/tokens-00000.npy" in bucket.names("set")
    assert {name: bucket.get(f"set/{name}") for name in FILES} == before
    output.release()
    shutil.rmtree(staged.parent)
    output = begin(staged, resume=True)
    assert all(output.holds(output.staged, entry) for entry in [*first, *second])

    # A run is killed between the old manifest and the new one.
    def stop(path: str) -> int | None:
        if path.endswith("set/run.json"):
            return 403
        return None

    restore = before_each_put(bucket, stop)
    with pytest.raises(DataError, match="refuses access"):
        output.finish(manifest_of(first, second))
    output.release()
    restore()
    assert "manifest.json" not in bucket.names("set")
    again = begin(staged, resume=True)
    assert all(again.holds(again.staged, entry) for entry in [*first, *second])
    again.finish(manifest_of(first, second))
    assert bucket.names("set") == FILES
    assert bucket.get("set/tokens-00000.npy") != before["tokens-00000.npy"]


def test_files_get_their_final_names_in_the_store(bucket: Bucket, staged: Path) -> None:
    output = begin(staged)
    block = piece(output, 0, "block-000003")
    output.send(output.work / "block-000003", block)
    for entry in block:
        output.rename(output.work / "block-000003", entry, output.staged / entry.name)
    output.finish(manifest_of(block))
    assert bucket.names("set") == ["manifest.json", "offsets-00000.npy", "run.json", "tokens-00000.npy"]
    assert ("copy", "set/tokens-00000.npy") in bucket.requests


def test_what_a_worker_has_sent_is_believed_and_held_against_its_size(bucket: Bucket, staged: Path) -> None:
    output = begin(staged)
    entries = piece(output, 0, "block-000000")
    delivery = output.delivery(Threads(1), far=True)
    delivery.deliver(output.work / "block-000000", entries, output.staged)
    output.send(output.staged, entries, sent=True)
    bucket.put("set/tokens-00000.npy", b"cut")
    with pytest.raises(DataError, match=r"has 3 bytes in the store, not 4098"):
        output.finish(manifest_of(entries))
    assert "manifest.json" not in bucket.names("set")
    output.release()


def test_a_file_that_has_changed_on_the_disk_is_not_sent(bucket: Bucket, staged: Path) -> None:
    output = begin(staged)
    entries = piece(output, 0)
    with (output.staged / "tokens-00000.npy").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x07")
    output.send(output.staged, entries)
    with pytest.raises(DataError) as error:
        settle(output)
    assert (error.value.code, error.value.where) == ("wrong-checksum", f"{URL}/tokens-00000.npy")
    assert "manifest.json" not in bucket.names("set")
    output.release()


def test_what_was_left_after_the_manifest_goes(bucket: Bucket, staged: Path) -> None:
    finish(begin(staged), 1)
    bucket.put("set/tokens-00007.npy", b"old")
    bucket.put("set/unfinished/state.json", bucket.get("set/run.json"))
    assert begin(staged, resume=True).finished
    assert bucket.names("set") == ["manifest.json", "offsets-00000.npy", "run.json", "tokens-00000.npy"]


def test_a_record_that_is_forgotten_is_gone_everywhere(bucket: Bucket, staged: Path) -> None:
    output = begin(staged)
    delivered(output, 0)
    output.forget(record(output, 0))
    assert not record(output, 0).exists()
    assert "unfinished/pieces/shard/00000.json" not in bucket.names("set")
    output.release()


def test_a_file_on_its_way_can_be_read_once_it_is_asked_for(bucket: Bucket, staged: Path) -> None:
    output = begin(staged)
    entries = piece(output, 0)
    expected = [(output.staged / each.name).read_bytes() for each in entries]
    restore = before_each_put(bucket, lambda _: time.sleep(0.1))
    output.send(output.staged, entries)
    output.have(output.staged, entries)
    assert [(output.staged / each.name).read_bytes() for each in entries] == expected
    settle(output)
    assert [(output.staged / each.name).read_bytes() for each in entries] == expected, "nobody removes it any more"
    restore()
    output.release()


def test_of_two_that_begin_at_the_same_time_one_goes_on(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On two machines: neither sees the other's local lock, nor anything in the store when it looks."""
    empty = claim.look(place_of(URL))
    monkeypatch.setattr(claim, "look", lambda place: empty)
    first = prepare(URL, "shuffle", key="1", staging=tmp_path / "one")
    with pytest.raises(DataError, match="another run of packtool is writing here") as caught:
        prepare(URL, "shuffle", key="2", staging=tmp_path / "two")
    assert (caught.value.code, caught.value.where) == ("output-in-use", URL)
    assert names(tmp_path / "two") == []
    finish(first, 2)
    assert bucket.names("set") == FILES


def test_a_run_that_another_has_replaced_leaves_its_dataset_alone(bucket: Bucket, tmp_path: Path) -> None:
    first = prepare(URL, "shuffle", key="1", staging=tmp_path / "one")
    delivered(first, 0, value=0)
    second = prepare(URL, "shuffle", key="2", staging=tmp_path / "two", overwrite=True)
    first.send(first.staged, piece(first, 1, value=0))
    with pytest.raises(DataError, match="another run of packtool is writing here"):
        finish(first, 2)
    first.release()
    finish(second, 2)
    assert bucket.names("set") == FILES
    tokens = np.frombuffer(bucket.get("set/tokens-00001.npy")[4096:], "<u2")
    assert tokens.tolist() == [1]
