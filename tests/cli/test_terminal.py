"""Options of the command line itself: a configuration file, quiet, verbose."""

from __future__ import annotations

import json
from pathlib import Path

from packtool.cli import run
from tests.cli.running import packtool
from tests.shell import Shell
from tests.stores import load


def test_quiet_says_nothing_and_verbose_what_is_done(place: Path, shell: Shell) -> None:
    words = ("pack", "store", "--strategy", "concat", "-L", "16", "-q")
    assert (shell(*words, "-o", "p"), shell.err) == ("", "")
    shell(*words, "-o", "q", "-v")
    assert shell.err.startswith("packtool: concat: 3 documents planned in ")


CONFIG = """
[pack]
input = ["store"]
strategy = "padding"
sequence-length = 8
buckets = [2]
"""


def test_options_come_from_a_file_and_flags_win(place: Path, shell: Shell) -> None:
    (place / "c.toml").write_text(CONFIG.replace("buckets = [2]", ""), encoding="utf-8")
    shell("pack", "--config", "c.toml", "-o", "p", "-q")
    shell("pack", "--config", "c.toml", "-o", "q", "-L", "32", "--strategy", "concat", "-q")
    found = [load(place / name) for name in ("p", "q")]
    chosen = [(each["strategy"], each["options"]["sequence_length"]) for each in found]
    assert chosen == [("padding", 8), ("concat", 32)]
    error = shell.refused("pack", "-o", "r", "--strategy", "concat", "-L", "8", status=2)
    assert "STORE" in error, "an earlier call's file is forgotten"


def test_lists_and_switches_from_a_file(place: Path, shell: Shell) -> None:
    (place / "c.toml").write_text(
        """
        [stats]
        input = "store"
        compare = ["concat", "bfd"]
        sequence-length = [16, 32]
        [pack]
        input = "store"
        strategy = "seamless"
        sequence-length = 16
        max-repetition = 0.25
        shuffle = false
        segments = false
        """,
        encoding="utf-8",
    )
    entries = json.loads(shell("stats", "--config", "c.toml", "--json"))["comparison"]["entries"]
    assert {(row["strategy"], row["sequence_length"]) for row in entries} == {
        (strategy, length) for strategy in ("concat", "bfd") for length in (16, 32)
    }
    assert run(["pack", "--config", "c.toml", "-o", "p", "-q", "--segments"]) == 0
    manifest = load(place / "p")
    assert manifest["shuffle"] is None
    assert manifest["options"]["max_repetition"] == "1/4"
    assert manifest["lengths"] is not None, "the flag wins"


def test_an_option_in_a_file_is_blamed_there(place: Path, shell: Shell) -> None:
    (place / "c.toml").write_text(CONFIG, encoding="utf-8")
    words, begin = ("pack", "--config", "c.toml", "-o", "p"), "packtool: error[option-not-taken]: "
    assert shell.refused(*words, status=2).startswith(
        f'{begin}c.toml:6: buckets: strategy = "padding" does not take this'
    )
    assert shell.refused(*words, "--buckets", "64", status=2).startswith(f"{begin}--buckets: --strategy")


def test_several_tables_are_for_run(place: Path, shell: Shell) -> None:
    (place / "c.toml").write_text("[[pack]]\n\n[[pack]]\n", encoding="utf-8")
    said = "c.toml:3: there are 2 [[pack]] tables. Keep one, or do all of them with packtool run c.toml."
    assert said in shell.refused("pack", "--config", "c.toml", "-o", "p", status=2)


def test_a_file_from_standard_input(place: Path) -> None:
    result = packtool("pack", "--config", "-", "-o", "p", "-q", input=CONFIG.replace("buckets = [2]", ""))
    assert (result.returncode, result.stderr) == (0, "")
