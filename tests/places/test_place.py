"""What every place does, and what is particular to some."""

import os
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import xxhash

from packtool.errors import DataError
from packtool.formats.files import write_array
from packtool.places.bucket import PART_BYTES
from packtool.places.local import LocalPlace
from packtool.places.store import StorePlace
from tests.places.s3_server import URL


@pytest.fixture
def store(bucket):
    return StorePlace(f"{URL}/packed")


@pytest.fixture(params=["local", "store"])
def place(request, tmp_path):
    return LocalPlace(tmp_path / "packed") if request.param == "local" else request.getfixturevalue("store")


def test_small_files_are_written_whole_and_read_again(place):
    assert place.names() == {}
    assert place.size("manifest.json") is None
    with pytest.raises(FileNotFoundError):
        place.read("manifest.json")
    place.write("manifest.json", b"{}")
    place.write("unfinished/state.json", b"older")
    place.write("unfinished/state.json", b"newer")
    assert place.names() == {"manifest.json": 2, "unfinished/state.json": 5}
    assert place.read("unfinished/state.json") == place.below("unfinished").read("state.json") == b"newer"
    with pytest.raises(DataError, match=r"manifest.json: has 2 bytes, more than any of its kind"):
        place.read("manifest.json", largest=1)


def test_objects_are_removed_whether_they_are_there_or_not(bucket, store):
    bucket.objects |= {"packed/a": b"1", "packed/b": b"2"}
    store.remove(["a", "never there"])
    assert list(store.names()) == ["b"]


def test_of_several_that_create_a_file_one_succeeds(place):
    tries = [place.create("unfinished/state.json", bytes([n])) for n in range(3)]
    assert tries == [True, False, False]
    assert place.read("unfinished/state.json") == b"\0"
    if isinstance(place, StorePlace):  # as the client asks again, where the answer was lost
        assert place.create("unfinished/state.json", b"\0")


def test_a_place_is_pickled_as_its_path_or_url(place):
    place.write("a.json", b"1")
    again = pickle.loads(pickle.dumps(place))
    assert again == place
    assert hash(again) == hash(place)
    assert again.read("a.json") == b"1"
    assert len(pickle.dumps(place)) < 300


def test_messages_name_what_was_typed(bucket, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert LocalPlace("data/packed").below("bucket-00064").where("tokens-00000.npy") == (
        "data/packed/bucket-00064/tokens-00000.npy"
    )
    absent = StorePlace(f"{URL}/packed").absent()
    assert str(absent) == f"{URL}/packed: no such object or directory. Check the URL."
    assert StorePlace(f"{URL}/packed").below("a").where("b") == f"{URL}/packed/a/b"


@pytest.mark.parametrize("items", [0, 7, PART_BYTES // 2])
def test_arrays_are_read_by_slices_items_and_ranges(place, tmp_path, items):
    values = np.arange(items * 2, dtype="<u4").reshape(-1, 2)
    entry = write_array(tmp_path / "tokens-00000.npy", values)
    if isinstance(place, StorePlace):
        place.put("tokens-00000.npy", tmp_path / "tokens-00000.npy", entry.xxh3_128)
        assert not (tmp_path / "tokens-00000.npy").exists()
    else:
        place = LocalPlace(tmp_path)
    assert place.problem(entry) is None
    found = place.array(entry, "<u4")
    assert (len(found), found.dtype, found.shape) == (items, values.dtype, values.shape)
    np.testing.assert_array_equal(found[:], values)
    np.testing.assert_array_equal(found[3:5], values[3:5])
    if items:
        wanted = np.array([items - 1, 0, 3, 3])
        np.testing.assert_array_equal(np.take(found, wanted, axis=0), values[wanted])
        first, count = np.array([0, 2, entry.bytes - 1]), np.array([1, 3, 1])
        raw = b"".join(place.blocks(entry.name))
        assert [bytes(part) for part in place.ranges(entry.name, first, count)] == [raw[:1], raw[2:5], raw[-1:]]


def test_what_is_wrong_with_a_file_is_said(place, tmp_path):
    entry = write_array(tmp_path / "lengths.npy", np.arange(9, dtype="<u4"))
    raw = (tmp_path / "lengths.npy").read_bytes()
    with pytest.raises(
        DataError, match=r"lengths\.npy: named in the manifest, but not there\. Make it again"
    ) as caught:
        place.array(entry, "<u4")
    assert caught.value.code == "missing-shard"
    with pytest.raises(DataError, match="not there"):
        place.require([entry])
    place.write("lengths.npy", raw[:-4])
    assert "has 4128 bytes, but the manifest says 4132" in str(place.problem(entry))
    with pytest.raises(DataError, match="has 4128 bytes, but the manifest says 4132"):
        place.require([entry])
    with pytest.raises(DataError, match="has 4128 bytes, but an array of shape"):
        place.array(entry, "<u4")
    place.write("lengths.npy", raw[:-1] + b"\1")
    place.require([entry])
    assert place.problem(entry).code == "wrong-checksum"
    with pytest.raises(DataError, match="its checksum differs from the manifest's"):
        place.checked(entry)
    with pytest.raises(DataError, match="holds uint32, but the manifest says uint16"):
        place.array(entry, "<u2")
    with pytest.raises(DataError, match="short"):
        place.ranges("lengths.npy", np.array([4000]), np.array([1000]))


ODD = {
    "pipe": (os.mkfifo, "not-a-regular-file: not a regular file"),
    "directory": (Path.mkdir, "not-a-regular-file: not a regular file"),
    "device": (lambda file: file.symlink_to("/dev/zero"), "link-leaves-dataset: a symbolic link that leads out of the"),
    "outside": (lambda file: file.symlink_to("../a.npy"), "link-leaves-dataset: a symbolic link that leads out of the"),
}


@pytest.mark.parametrize("kind", ODD)
def test_local_files_are_regular_and_lie_in_their_directory(tmp_path, kind):
    """A pipe without a writer would hang here."""
    entry = write_array(tmp_path / "a.npy", np.arange(9))
    place = LocalPlace(tmp_path / "packed")
    place.path.mkdir()
    make, wrong = ODD[kind]
    make(place.path / "a.npy")
    asks = [lambda: place.array(entry, np.int64), lambda: place.read("a.npy"), lambda: place.size("a.npy")]
    for ask in asks if kind in ("pipe", "directory") else asks[:2]:
        with pytest.raises(DataError) as caught:
            ask()
        assert f"{caught.value.code}: {caught.value.what}".startswith(wrong)
    assert place.problem(entry).code == caught.value.code


def test_links_stay_inside(tmp_path):
    (tmp_path / "packed").mkdir()
    entry = write_array(tmp_path / "packed" / "a.npy", np.arange(9))
    file = tmp_path / "packed" / "a.npy"
    file.rename(tmp_path / "packed" / "elsewhere.npy")
    file.symlink_to("elsewhere.npy")
    (tmp_path / "link").symlink_to("packed")
    for name in ("packed", "link"):
        np.testing.assert_array_equal(LocalPlace(tmp_path / name).array(entry, np.int64), np.arange(9))
    file.unlink()
    file.symlink_to(file.name)
    with pytest.raises(OSError, match="symbolic links"):
        LocalPlace(tmp_path / "packed").array(entry, np.int64)
    (tmp_path / "packed" / "bucket-00064").symlink_to(tmp_path)
    with pytest.raises(DataError, match="a symbolic link that leads out of the dataset"):
        LocalPlace(tmp_path / "packed").below("bucket-00064")


def test_an_upload_that_is_given_up_or_wrong_leaves_what_was_there(bucket, tmp_path):
    place, file = StorePlace(f"{URL}/packed"), tmp_path / "file"
    bucket.objects["packed/tokens"] = b"before"
    file.write_bytes(bytes(3 * PART_BYTES))
    with pytest.raises(DataError, match=r"s3://bucket/packed/tokens: its checksum differs from when it was written"):
        place.put("tokens", file, "0" * 32)
    assert bucket.objects == {"packed/tokens": b"before"}
    assert not bucket.uploads
    assert file.exists()


@pytest.mark.parametrize("size", [100, PART_BYTES + 1])
@pytest.mark.parametrize("checks", [True, False])
def test_bytes_that_change_on_their_way_are_noticed_and_sent_again(bucket, tmp_path, checks, size):
    """Whether the store looks at the signed hash of the body, or nobody does but us."""
    bucket.checks = checks
    flip = lambda data: bytes([data[0] ^ 1]) + data[1:]  # noqa: E731
    bucket.damage[:] = [flip]
    content = np.random.default_rng(1).bytes(size)
    (tmp_path / "file").write_bytes(content)
    digest = xxhash.xxh3_128_hexdigest(content)
    StorePlace(f"{URL}/packed").put("tokens", tmp_path / "file", digest)
    assert bucket.objects["packed/tokens"] == content
    bucket.damage[:] = [flip] * 9
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(DataError, match=r"s3://bucket/packed/tokens: ") as caught:
        StorePlace(f"{URL}/packed").put("tokens", tmp_path / "file", digest)
    assert caught.value.code == "store-unreachable"
    assert (tmp_path / "file").exists()


def test_refusals_end_at_once_and_failures_after_several_attempts(bucket, store):
    bucket.objects["packed/a"] = b"1"
    bucket.failures[:] = [503, 503]
    assert store.read("a") == b"1"
    bucket.requests.clear()
    bucket.failures[:] = [403]
    with pytest.raises(DataError, match=r"s3://bucket/packed/a: the store refuses access \(403 Forbidden,") as caught:
        store.read("a")
    assert caught.value.code == "store-denied"
    assert len(bucket.requests) == 1
    assert "a-secret-of-this-test" not in str(caught.value)


@pytest.mark.slow  # it waits
def test_a_throttle_ends_by_time_and_not_by_tries(bucket, store, monkeypatch):
    bucket.objects["packed/a"] = b"1"
    bucket.failures[:] = [503] * 14
    assert store.read("a") == b"1"
    bucket.refuse = lambda method, key: 503
    begun = time.monotonic()
    with pytest.raises(DataError, match="the store failed"):
        store.size("a")
    assert time.monotonic() - begun >= 30


@pytest.mark.parametrize("code", ["ExpiredToken", "InvalidToken", "TokenRefreshRequired", "RequestExpired"])
def test_credentials_that_are_refused_with_a_status_of_400(bucket, store, code):
    """Whatever is asked, also where the answer has no body to say why."""
    bucket.objects["packed/a"] = b"1"
    bucket.codes[400] = code
    bucket.refuse = lambda method, key: 400
    refused = rf"s3://bucket/packed.*: the store refuses access \(400 Bad Request, {code}\)\. Check the credentials"
    for ask in (
        lambda: store.read("a"),
        lambda: store.size("a"),
        store.names,
        lambda: store.write("b", b"2"),
        lambda: store.create("b", b"2"),
        lambda: store.remove(["a"]),
    ):
        with pytest.raises(DataError, match=refused) as caught:
            ask()
        assert caught.value.code == "store-denied"
    bucket.codes[400] = "EntityTooLarge"
    with pytest.raises(DataError, match="the store failed") as caught:
        store.size("a")
    assert caught.value.code == "store-unreachable"


def test_a_small_file_is_read_and_an_array_opened_by_one_request(bucket, store, tmp_path):
    entry = write_array(tmp_path / "a.npy", np.arange(9))
    bucket.objects["packed/a.npy"] = (tmp_path / "a.npy").read_bytes()
    assert store.read("a.npy") == bucket.objects["packed/a.npy"]
    assert len(store.array(entry, np.int64)) == 9
    with pytest.raises(FileNotFoundError):
        store.read("b")
    assert [method for method, _ in bucket.requests] == ["get"] * 3


def test_files_of_any_size_are_read_whole(bucket, store):
    """An empty object has no range that could be asked for."""
    for size in (0, 1, PART_BYTES, PART_BYTES + 1):
        bucket.objects["packed/a"] = os.urandom(size)
        assert store.read("a") == bucket.objects["packed/a"]
    with pytest.raises(DataError, match=f"has {PART_BYTES + 1} bytes, more than any of its kind"):
        store.read("a", largest=PART_BYTES)


def test_neighbours_are_read_by_one_request(bucket, store):
    bucket.objects["packed/a"] = bytes(range(256)) * 4096
    parts = store.ranges("a", np.array([0, 10, 200, 1 << 19]), np.array([4, 4, 4, 4]))
    assert [bytes(part)[0] for part in parts] == [0, 10, 200, 0]
    assert bucket.count("get") == 2


def test_a_forked_process_is_told_instead_of_waiting_for_ever(bucket):
    """The threads of the library do not survive a fork."""
    bucket.objects["packed/a"] = b"1"
    assert StorePlace(f"{URL}/packed").read("a") == b"1"
    end, begin = os.pipe()
    child = os.fork()
    if not child:
        try:
            StorePlace("s3://another/packed").read("a")
        except DataError as error:
            os.write(begin, f"{error.code}: {error}".encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    said = "forked-process: s3://another/packed/a: clients of object stores do not survive a fork, and this process"
    assert os.read(end, 1000).decode().startswith(said)


def test_a_file_is_replaced_only_while_it_is_what_it_was(place):
    assert not place.create("unfinished/state.json", b"1", replaces=b"0")
    place.write("unfinished/state.json", b"0")
    tries = [place.create("unfinished/state.json", data, replaces=b"0") for data in (b"1", b"2")]
    assert tries == [True, False]
    assert place.read("unfinished/state.json") == b"1"


def test_of_several_that_replace_a_file_one_succeeds(bucket):
    """All of them have read it before any of them writes."""
    bucket.objects["packed/a"] = b"0"
    tries, together = [b"1", b"2", b"3"], threading.Barrier(3)
    bucket.hold = lambda method, key: together.wait() if method == "put" else None
    with ThreadPoolExecutor() as pool:
        made = list(pool.map(lambda data: StorePlace(f"{URL}/packed").create("a", data, replaces=b"0"), tries))
    assert sum(made) == 1
    assert bucket.objects["packed/a"] == tries[made.index(True)]
