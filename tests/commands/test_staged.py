"""What is kept of inputs in object stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from packtool.commands import staged
from packtool.commands.staged import limit_inputs
from packtool.errors import UsageError
from packtool.places.mirror import Mirror, in_part
from tests.places.bucket import Bucket

FILES = {
    "tokens-00000.npy": 100,
    "offsets-00000.npy": 20,
    "tokens-00001.npy": 60,
    "a/tokens-00001.npy": 70,
    "b.json": 9,
}


@pytest.fixture
def mirrors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Mirror]:
    Bucket(monkeypatch)
    made = [Mirror(f"s3://bucket/{name}", tmp_path / name / name, sizes=FILES) for name in ("one", "two")]
    for each in made:
        each.expect({name: (size, "") for name, size in FILES.items()})
    return made


def limits(mirrors: list[Mirror], *given: int | str | None, shared: bool = False) -> list[int | None]:
    limit_inputs(mirrors, mirrors[0].path, given[0], 2, shared=shared)
    return [None if each.quota is None else each.quota.limit for each in mirrors]


def test_what_fits_is_kept_whole(mirrors: list[Mirror]) -> None:
    assert limits(mirrors, 518) == [None, None]
    assert not in_part([each.path for each in mirrors])


def test_what_does_not_fit_is_kept_in_part_all_inputs_together(mirrors: list[Mirror], tmp_path: Path) -> None:
    assert limits(mirrors, 517) == [517, 517]
    assert mirrors[0].quota is mirrors[1].quota
    assert in_part([mirrors[0].path, mirrors[1].path])
    assert not in_part([tmp_path])


def test_by_default_half_of_what_is_free(mirrors: list[Mirror], monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        free = 1000

    monkeypatch.setattr(staged.shutil, "disk_usage", lambda _: Usage)
    assert limits(mirrors, None) == [500, 500]


def test_processes_of_a_cluster_have_equal_parts_of_it(mirrors: list[Mirror]) -> None:
    assert limits(mirrors, "2kB", shared=True) == [1000, 1000]
    assert not in_part([each.path for each in mirrors])


def test_a_limit_below_a_shard_for_each_worker_is_refused(mirrors: list[Mirror]) -> None:
    with pytest.raises(UsageError) as error:
        limits(mirrors, 239)
    assert str(error.value) == (
        "--staging-limit: 239 B are too little for 2 workers that read a shard each. Give at least 240 B, on a "
        "disk with as much room, or fewer --workers."
    )
