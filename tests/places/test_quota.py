"""Room for what is fetched."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from packtool.places.quota import Quota


class Directory:
    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()

    def put(self, name: str, size: int, when: int) -> None:
        (self.path / name).write_bytes(bytes(size))
        os.utime(self.path / name, (when, when))

    def fetchable(self) -> dict[str, int]:
        return {**{f"tokens-0000{number}.npy": 10 for number in range(9)}, "lengths.npy": 10, "a.json": 1000}

    def names(self) -> set[str]:
        return {each.name for each in self.path.iterdir()}


@pytest.fixture
def both(tmp_path: Path) -> list[Directory]:
    return [Directory(tmp_path / "a"), Directory(tmp_path / "b")]


def test_what_was_used_longest_ago_goes_in_whichever_directory(both: list[Directory]) -> None:
    quota = Quota(50)
    for each in both:
        quota.add(each)
    both[0].put("tokens-00000.npy", 10, 3)
    both[0].put("lengths.npy", 10, 0)
    both[0].put("a.json", 1000, 0)
    both[1].put("tokens-00000.npy", 10, 1)
    both[1].put("tokens-00001.npy", 10, 2)
    with quota.room_for("tokens-00003.npy", 25):
        assert both[0].names() == {"tokens-00000.npy", "lengths.npy", "a.json"}
        assert both[1].names() == set()
    with quota.room_for("a.json", 1 << 40):
        assert both[0].names() == {"tokens-00000.npy", "lengths.npy", "a.json"}


def test_what_others_are_fetching_is_waited_for(both: list[Directory]) -> None:
    quota, order = Quota(15), []
    first, second = threading.Event(), threading.Event()

    def fetch() -> None:
        second.set()
        with quota.room_for("tokens-00001.npy", 10):
            order.append("second")

    other = threading.Thread(target=fetch)
    with quota.room_for("tokens-00000.npy", 10):
        other.start()
        assert second.wait(10)
        assert not first.wait(0.2)
        order.append("first")
    other.join(10)
    assert order == ["first", "second"]


def test_a_file_larger_than_the_room_is_fetched_all_the_same(both: list[Directory]) -> None:
    quota = Quota(5)
    quota.add(both[0])
    both[0].put("tokens-00000.npy", 10, 1)
    with quota.room_for("tokens-00001.npy", 100):
        assert both[0].names() == set()
