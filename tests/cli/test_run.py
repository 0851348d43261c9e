"""What `packtool run` prints, and where."""

import json
import re
import shlex
from pathlib import Path

import pytest

from packtool.cli import run
from tests.shell import Shell
from tests.stores import write_store

CONFIG = """
[[pack]]
output = "a"
strategy = "concat"
sequence-length = 16

[[pack]]
output = "b"
strategy = "bfd-extra"
sequence-length = 16
extra-capacity = 3

[[stats]]
input = "a"
"""


@pytest.fixture
def place(here: Path) -> Path:
    write_store(Path("store"), [3 + n * n % 40 for n in range(60)])
    Path("c.toml").write_text(CONFIG, encoding="utf-8")
    return here


def test_without_an_output_the_directory_is_named_as_the_file(place: Path) -> None:
    before = sorted(each.name for each in place.iterdir())
    assert run(["run", "c.toml", "-i", "store", "-q"]) == 0
    assert sorted(each.name for each in place.iterdir()) == sorted([*before, "c"])
    assert sorted(each.name for each in (place / "c").iterdir()) == ["a", "b"]


RUN = ("run", "c.toml", "-i", "store", "-o", "out")


def test_stages_are_announced_and_summed_up(place: Path, shell: Shell) -> None:
    lines = shell(*RUN).splitlines()
    assert shell.err == "packtool: [1/3] pack out/a\npacktool: [2/3] pack out/b\npacktool: [3/3] stats out/a\n"
    assert lines[0].startswith("pack      out/a  done (")
    assert lines[1].startswith("          60 documents, ")
    assert lines[2].startswith("          ✓ ")
    [stats] = [number for number, line in enumerate(lines) if line.startswith("stats     out/a  done (")]
    assert " of the text is dropped" in " ".join(map(str.strip, lines[:stats]))
    assert lines[stats + 2].startswith("concat · rows of ")
    assert max(map(len, lines)) <= 80
    assert not any(line.startswith("input text ") for line in lines[stats:])
    assert "\ninput text " in shell(*RUN, "--full")
    assert shell(*RUN).startswith("pack      out/a  kept\n")
    Path("c.toml").write_text(CONFIG.replace('"concat"', '"ffd"'), encoding="utf-8")
    assert " refuse (holds what other options made (--strategy was concat); --over" in shell(*RUN, "--dry-run")


def test_dry_run(place: Path, shell: Shell) -> None:
    said = shell(*RUN, "--dry-run")
    assert shell.err == ""
    assert said.startswith("pack      out/a  would do\n          to read: 60 documents, ")
    assert said.endswith(" free\n")
    (place / "out" / "a").mkdir(parents=True)
    (place / "out" / "a" / "letter.txt").touch()
    expected = "out/a: holds letter.txt already. Choose another output, or move it away.\n"
    assert shell.refused(*RUN, "--dry-run", status=2).endswith(expected)


def test_json_and_quiet(place: Path, shell: Shell) -> None:
    found = json.loads(shell(*RUN, "--json", "-q"))
    assert shell.err == ""
    assert found["schema_version"] == 1
    assert [(s["stage"], s["output"], s["state"]) for s in found["stages"]] == [
        ("pack", "out/a", "done"),
        ("pack", "out/b", "done"),
        ("stats", None, "done"),
    ]
    assert found["stages"][0]["figures"]["documents"] == 60
    assert found["stages"][2]["report"]["kind"] == "packed"
    assert (shell(*RUN, "-q"), shell.err) == ("", "")


@pytest.mark.parametrize(
    ("typed", "status", "message"),
    [
        ("run", 2, "CONFIG.toml: packtool run needs it. See packtool run --help."),
        ("run nowhere.toml", 1, "nowhere.toml: no such file. Check the path."),
        ("run c.toml", 2, "c.toml:2: pack has no input. Give --input, or name it in the table."),
        ("run c.toml -i nowhere", 1, "nowhere: no such directory. Check the path."),
        ("run c.toml -i -", 2, "c.toml:2: standard input and pipes can't be read twice"),
    ],
)
def test_refusals(place: Path, shell: Shell, typed: str, status: int, message: str) -> None:
    assert message in shell.refused(*typed.split(), status=status)


CHOSEN = """
[tokenize]
output = "tokens"
columns = ["n"]
min-words = 3

[[pack]]
output = "packed"
strategy = "best-fit-in-order"
sequence-length = 32
where = "n != 7"
order-by = ["n:number"]
holdout = "20 documents"

[[export]]
output = "exported"
format = "mds"

[[export]]
input = "tokens"
output = "short"
format = "jsonl"
max-tokens = 9
"""


def test_stages_say_what_their_commands_say(here: Path, shell: Shell) -> None:
    lines = [json.dumps({"text": "word " * (1 + n % 20), "n": n}) for n in range(90)]
    Path("in.jsonl").write_text("\n".join(lines), encoding="utf-8")
    Path("c.toml").write_text(CHOSEN, encoding="utf-8")
    said = " ".join(shell("run", "c.toml", "-i", "in.jsonl", "-o", "out").split())
    commands = [
        "tokenize in.jsonl -o tokens --columns n --min-words 3",
        "pack tokens -o packed --strategy best-fit-in-order -L 32 --where 'n != 7' --order-by n:number "
        "--holdout '20 documents'",
        "export packed -o exported --format mds",
        "export tokens -o short --format jsonl --max-tokens 9",
    ]
    by_commands = ""
    for command in commands:
        by_commands += shell(*shlex.split(command)).replace("--holdout-of packed", "--holdout-of out/packed")
    facts = ("left out", "held out for validation", "To hold these 20 documents", "same n", "Not kept", "No document")
    for fact in (*facts, "too long"):
        [line, *_] = [line for line in by_commands.splitlines() if fact in line]
        assert " ".join(line.split()[:9]) in said, fact
    stages = json.loads(shell("run", "c.toml", "-i", "in.jsonl", "-o", "out", "--json"))["stages"]
    [rows] = re.findall(r"\n(\d+) rows, [\d,]+ tokens, as mds\.\n", by_commands)
    assert stages[2]["figures"]["sequences"] == int(rows)
    assert stages[0]["counts"]["filtered"] == 10
    assert set(stages[1]["report"]["sources"][0]["left_out"]) == {"not_where", "other_side"}
    assert stages[2]["lost"]
