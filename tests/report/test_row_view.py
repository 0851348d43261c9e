"""A row in the terminal: boundaries, padding and repeats are visible, with and without colour."""

import packtool
from packtool.commands.show import show
from tests.making import Make
from tests.report.printing import RECORDS, printed


def test_boundaries_and_padding_are_visible_without_colour(make: Make) -> None:
    packed = make(RECORDS, packed={"strategy": "padding", "sequence_length": 32}) / "packed"
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


def test_documents_take_turns_in_colour(make: Make) -> None:
    long = make(RECORDS, long={"strategy": "ffd", "sequence_length": 512}) / "long"
    text = printed(show(long, 0), force_terminal=True, color_system="standard")
    assert "\x1b[36m" in text
    assert "\x1b[33m" in text
    assert "whole" in text


def test_repeats_are_marked(make: Make) -> None:
    options = {"strategy": "seamless", "sequence_length": 48, "extra_capacity": 0, "shuffle": False}
    slid = make(RECORDS, slid=options) / "slid"
    rows = [show(slid, number) for number in range(len(packtool.open(slid)))]
    repeating = [(row, segment) for row in rows for segment in row.segments if segment.repeated]
    assert repeating
    for row, segment in repeating:
        assert f"first {segment.repeated} repeated" in " ".join(printed(row).split())
        assert segment.repeated_text
