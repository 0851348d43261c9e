"""A row in the terminal: boundaries, padding and repeats are visible, with and without colour."""

from __future__ import annotations

from pathlib import Path

import pytest

import packtool
from packtool.commands.show import show
from tests.report.printing import printed, store_of_texts


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return store_of_texts(tmp_path_factory.mktemp("show"))


@pytest.fixture(scope="module")
def packed(store: Path) -> Path:
    packtool.pack(store, store.parent / "packed", strategy="padding", sequence_length=32)
    return store.parent / "packed"


def test_boundaries_and_padding_are_visible_without_colour(packed: Path) -> None:
    text = "\n".join(printed(show(packed, number)) for number in range(len(packtool.open(packed))))
    assert "· cut at both ends" in text
    assert "· cut at its end" in text
    assert "✂ " in text
    assert " ✂\n" in text
    assert "── EOS that the strategy inserted" in text
    assert "░░ padding ·" in text
    assert "\x1b" not in text
    assert "␛[31mcolour" in text
    assert max(map(len, text.splitlines())) <= 80


def test_documents_take_turns_in_colour(store: Path) -> None:
    packtool.pack(store, store.parent / "long", strategy="ffd", sequence_length=512)
    text = printed(show(store.parent / "long", 0), force_terminal=True, color_system="standard")
    assert "\x1b[36m" in text
    assert "\x1b[33m" in text
    assert "whole" in text


def test_repeats_are_marked(store: Path) -> None:
    options = {"strategy": "seamless", "sequence_length": 48, "extra_capacity": 0, "shuffle": False}
    packtool.pack(store, store.parent / "slid", **options)
    rows = [show(store.parent / "slid", number) for number in range(len(packtool.open(store.parent / "slid")))]
    repeating = [(row, segment) for row in rows for segment in row.segments if segment.repeated]
    assert repeating
    for row, segment in repeating:
        assert f"first {segment.repeated} repeated" in " ".join(printed(row).split())
        assert segment.repeated_text
