"""The command-line reference says what the commands say."""

from __future__ import annotations

from pathlib import Path

import cli_reference

from packtool.cli.commands import COMMANDS

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == cli_reference.reference(), (
        "write it anew: python scripts/cli_reference.py docs/cli.md"
    )


def test_it_has_every_command_and_option() -> None:
    text = cli_reference.reference()
    for name in COMMANDS:
        assert f"## packtool {name}\n" in text
    assert "| `-L, --sequence-length N` |  | Tokens in a row. |\n" in text
    assert "| `--shuffle / --no-shuffle` | `--shuffle` | Shuffle the rows (for concat and padding: " in text
    assert "| `--remainder pad\\|drop` | `pad` |" in text
    assert "\npacktool pack STORE... [OPTIONS]\n" in text
