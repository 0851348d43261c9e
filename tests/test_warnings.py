"""Warnings are those of the registry."""

from __future__ import annotations

import pytest

from packtool.warnings import warn


def test_a_warning_must_be_known() -> None:
    with pytest.raises(ValueError, match="not a known warning"):
        warn("something", "x", remedy="y")
