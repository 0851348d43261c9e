"""Commands on datasets in a bucket give what they give on local disks, and keep no more of inputs than they may."""

from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import packtool
from packtool.commands.places import _staging_cache, in_part
from packtool.errors import DataError, UsageError
from packtool.formats.manifest import read
from packtool.formats.schema import listed_files
from packtool.options.pack import PackArguments
from packtool.places.cached import Cache, CachedPlace
from packtool.places.place import Place
from packtool.places.store import StorePlace
from packtool.warnings import PacktoolWarning
from tests.places.s3_server import Bucket
from tests.stores import contents, write_store

LENGTHS = [5, 17, 2, 40, 9, 33, 8, 3, 12]
PACK = {"strategy": "bfd", "sequence_length": 16, "shard_tokens": 64}


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch, bucket: Bucket, tmp_path: Path) -> None:
    """A store here and in the bucket, and a cache of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    bucket.put_all(write_store(tmp_path / "store", LENGTHS), "store")


def require_same(bucket: Bucket, path: str, directory: Path) -> None:
    expected = contents(directory)
    assert {name for name in bucket.names(path) if name != "run.json"} == set(expected)
    for name, data in expected.items():
        assert bucket.get(f"{path}/{name}") == data, name


def left(tmp_path: Path) -> list[Path]:
    """Files of datasets in the user's cache; which encoders were found to be right is kept there, too."""
    files = (file for file in (tmp_path / "cache").rglob("*") if file.is_file())
    return [file for file in files if file.parent.name != "verified"]


def test_pack_and_shuffle_in_a_bucket_have_the_bytes_of_local_runs(bucket: Bucket, tmp_path: Path) -> None:
    packtool.pack(tmp_path / "store", tmp_path / "packed", **PACK)
    packtool.shuffle(tmp_path / "packed", tmp_path / "shuffled", epoch=3)
    packed = packtool.pack("s3://bucket/store", "s3://bucket/packed", **PACK)
    assert str(packed.path) == "s3://bucket/packed"
    require_same(bucket, "packed", tmp_path / "packed")
    packtool.shuffle("s3://bucket/packed", tmp_path / "here", epoch=3)
    assert contents(tmp_path / "here") == contents(tmp_path / "shuffled")
    packtool.shuffle(tmp_path / "packed", "s3://bucket/shuffled", epoch=3, staging=tmp_path / "stage")
    require_same(bucket, "shuffled", tmp_path / "shuffled")
    assert packtool.shuffle("s3://bucket/packed", "s3://bucket/shuffled", epoch=3, resume=True).kept
    assert left(tmp_path) == []
    assert not (tmp_path / "stage").exists()
    for name, kind in (("store", "token store"), ("packed", "packed dataset")):
        found = packtool.verify(f"s3://bucket/{name}")
        assert (str(found.path), found.problems) == (f"s3://bucket/{name}", [])
        told = packtool.info(f"s3://bucket/{name}")
        assert (str(told.path), told.kind, told.state) == (f"s3://bucket/{name}", kind, "whole")
        assert all(str(tmp_path) not in each for each in told.next)
    assert packtool.verify("s3://bucket/packed", store="s3://bucket/store").problems == []
    row = packtool.show("s3://bucket/packed", row=1)
    assert row.segments == packtool.show(tmp_path / "packed", row=1, store=[]).segments
    dataset = packtool.open("s3://bucket/packed", cache=tmp_path / "datasets")
    assert (dataset[:] == packtool.open(tmp_path / "packed")[:]).all()


def test_what_a_small_question_needs_is_not_more_than_that(bucket: Bucket, tmp_path: Path) -> None:
    packtool.pack(tmp_path / "store", "s3://bucket/packed", **PACK)
    bucket.requests.clear()
    packtool.info("s3://bucket/packed")
    packtool.stats("s3://bucket/packed")
    packtool.stats("s3://bucket/store")
    packtool.pack("s3://bucket/store", tmp_path / "packed", dry_run=True, **PACK)
    assert not [path for method, path in bucket.requests if method == "get" and "/tokens-" in path]


def test_a_problem_is_told_of_the_url(bucket: Bucket, tmp_path: Path) -> None:
    packtool.pack(tmp_path / "store", "s3://bucket/packed", **PACK)
    for name in ("store", "packed"):
        data = bucket.get(f"{name}/tokens-00001.npy")
        bucket.put(f"{name}/tokens-00001.npy", data[:-1] + bytes([data[-1] ^ 1]))
        (problem,) = packtool.verify(f"s3://bucket/{name}").problems
        assert isinstance(problem, DataError)
        assert (problem.code, problem.where) == ("wrong-checksum", f"s3://bucket/{name}/tokens-00001.npy")
    with pytest.raises(DataError) as error:
        packtool.pack("s3://bucket/store", tmp_path / "packed", **PACK)
    assert (error.value.code, error.value.where) == ("wrong-checksum", "s3://bucket/store/tokens-00001.npy")


def test_outputs_that_overlap_inputs_are_refused(bucket: Bucket) -> None:
    for output in ("s3://bucket/store", "s3://bucket/store/packed", "s3://bucket/store/"):
        with pytest.raises(UsageError) as error:
            packtool.pack("s3://bucket/store", output, overwrite=True, **PACK)
        assert error.value.code == "output-overlaps-input"


def test_options_that_take_no_url_say_so(bucket: Bucket, tmp_path: Path) -> None:
    for call in (
        lambda: packtool.import_("s3://bucket/a", tmp_path / "o", format="megatron"),
        lambda: packtool.stats(tmp_path / "store", html="s3://bucket/page.html"),
        lambda: packtool.pack(tmp_path / "store", tmp_path / "o", staging="s3://bucket/stage", **PACK),
        lambda: packtool.pack(tmp_path / "store", "hf://datasets/o", **PACK),
    ):
        with pytest.raises(UsageError) as error:
            call()
        assert error.value.code == "unsupported-store"
    assert not Path("s3:").exists()


def test_rejected_records_and_blocks_of_a_url_are_those_of_a_directory(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from packtool.text.corpus import blocks

    monkeypatch.setattr(blocks, "SMALLEST", 200)
    lines = [f'{{"text": "a river {n}"}}\n' if n % 7 else "no json\n" for n in range(60)]
    (tmp_path / "a.jsonl").write_text("".join(lines))
    options = {"workers": 1, "on_error": "quarantine"}
    with pytest.warns(PacktoolWarning, match="9 records could not be used"):
        packtool.tokenize(tmp_path / "a.jsonl", tmp_path / "tokens", **options)
    with pytest.warns(PacktoolWarning, match="See s3://bucket/tokens/rejected.jsonl"):
        packtool.tokenize(tmp_path / "a.jsonl", "s3://bucket/tokens", **options)
    require_same(bucket, "tokens", tmp_path / "tokens")
    assert "rejected.jsonl" in bucket.names("tokens")
    assert len([name for name in bucket.names("tokens") if name.startswith("tokens-")]) > 4
    assert left(tmp_path) == []


def test_imports_and_exports_at_urls_are_those_of_directories(bucket: Bucket, tmp_path: Path) -> None:
    for name in ("parquet", "megatron"):
        packtool.export(tmp_path / "store", tmp_path / name, format=name)
        packtool.export("s3://bucket/store", f"s3://bucket/{name}", format=name)
        require_same(bucket, name, tmp_path / name)
    packtool.import_(tmp_path / "megatron", tmp_path / "again", format="megatron")
    packtool.import_(tmp_path / "megatron", "s3://bucket/again", format="megatron")
    require_same(bucket, "again", tmp_path / "again")
    assert left(tmp_path) == []


def held_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """The bytes of copies of inputs in the staging directory, whenever one has been fetched."""
    found = []
    fetch = Cache.fetch

    def noted(self: Cache, *more: Any) -> Path:
        file = fetch(self, *more)
        sizes = []
        for each in tmp_path.glob("cache/*/inputs/*/*"):
            with suppress(FileNotFoundError):
                sizes.append(each.stat().st_size)
        found.append(sum(sizes))
        return file

    monkeypatch.setattr(Cache, "fetch", noted)
    return found


@pytest.mark.parametrize("strategy", ["concat", "bfd", "decompose"])
def test_inputs_larger_than_the_limit_are_read_shard_by_shard(
    strategy: str, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths = [(7 * number) % 37 + 2 for number in range(120)]
    many = [write_store(tmp_path / f"s{n}", lengths, per_shard=15, first=1000 * n) for n in range(2)]
    for store in many:
        bucket.put_all(store, store.name)
    options = {"strategy": strategy, "sequence_length": 32, "shard_tokens": 256, "workers": 2}
    packtool.pack(many, tmp_path / "packed", **options)
    largest = max(file.stat().st_size for store in many for file in store.glob("*.npy"))
    limit = 8 * largest
    whole = sum(file.stat().st_size for store in many for file in store.glob("*.npy"))
    assert whole > 2 * limit
    held = held_here(monkeypatch, tmp_path)
    packtool.pack([f"s3://bucket/{each.name}" for each in many], "s3://bucket/packed", staging_limit=limit, **options)
    require_same(bucket, "packed", tmp_path / "packed")
    assert 0 < max(held) <= limit
    packtool.shuffle(tmp_path / "packed", tmp_path / "shuffled", epoch=2)
    before = len(held)
    limit = 10 * max(file.stat().st_size for file in (tmp_path / "packed").rglob("*.npy"))
    packtool.shuffle("s3://bucket/packed", "s3://bucket/shuffled", epoch=2, staging_limit=limit, workers=2)
    require_same(bucket, "shuffled", tmp_path / "shuffled")
    assert len(held) > before
    assert max(held[before:]) <= limit
    assert left(tmp_path) == []


def test_shards_that_will_be_fetched_again_and_again_are_told(bucket: Bucket, tmp_path: Path) -> None:
    lengths = [300, 5, 200] * 60
    bucket.put_all(write_store(tmp_path / "long", lengths, per_shard=9), "long")
    options: dict[str, Any] = {"sequence_length": 512, "workers": 1, "staging_limit": 21_000}
    with pytest.warns(PacktoolWarning, match="of which 21 kB may lie here, so shards are fetched again and") as told:
        packtool.pack("s3://bucket/long", tmp_path / "there", strategy="bfd", **options)
    assert [warning.message.code for warning in told] == ["shards-fetched-again"]  # type: ignore[union-attr]
    packtool.pack(tmp_path / "long", tmp_path / "here", strategy="bfd", sequence_length=512)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


@pytest.fixture
def places(bucket: Bucket, tmp_path: Path) -> list[Place]:
    for name in ("one", "two"):
        bucket.put_all(write_store(tmp_path / name, [5, 6, 7] * 7), name)
    return [StorePlace(f"s3://bucket/{name}") for name in ("one", "two")]


def limit_of(places: list[Place], limit: int | None, scheduler: str | None = None) -> int | None:
    resources: dict[str, Any] = {"workers": 2, "scheduler": scheduler, "staging": "staging", "staging_limit": limit}
    return _staging_cache(PackArguments("in", "out", strategy="bfd", **resources), places).limit


def sizes(places: list[Place]) -> list[int]:
    return [each.bytes for place in places for each in listed_files(read(place))]


def test_what_fits_is_kept_whole(places: list[Place], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = sum(sizes(places))
    assert limit_of(places, whole) is None
    assert limit_of(places, whole - 1) == whole - 1
    assert limit_of(places, whole, "local") == whole // 2
    for limit, part in ((None, False), (whole - 1, True), (whole, False)):
        assert in_part([CachedPlace(place, Cache(tmp_path / "cache", limit)) for place in places]) == part
    assert not in_part([tmp_path])
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=60_000))
    assert limit_of(places, None) == 30_000 < whole


def test_a_limit_below_a_shard_for_each_worker_is_refused(places: list[Place]) -> None:
    with pytest.raises(UsageError) as error:
        limit_of(places, 239)
    assert str(error.value).startswith("staging_limit: 239 B is too little for 2 workers that each read a shard.")
    assert str(error.value).endswith(" kB, on a disk with as much room, or fewer workers.")
