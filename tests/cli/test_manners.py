"""How the command line behaves: one voice for errors, exit codes, pipes, interruption, configuration files."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from packtool.cli import app, run
from packtool.storage import manifest as manifests
from packtool.warnings import warn
from tests.stores import write_store, write_uniform_store

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_store(Path("store"), [5, 9, 70])
    return tmp_path


def packtool(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "packtool", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False, **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pac"], "[unknown-command] no such command 'pac'. Did you mean 'pack'?"),
        (["frobnicate"], "[unknown-command] no such command 'frobnicate'. See packtool --help."),
        (["pack"], "[missing-option] STORE: packtool pack needs at least one. See packtool pack --help."),
        (["pack", "store"], "[missing-option] --output: packtool pack needs this option. See packtool pack --help."),
        (["verify"], "[missing-option] PATH: packtool verify needs it. See packtool verify --help."),
        (
            ["verify", "a", "b", "c"],
            "[bad-usage] packtool verify takes fewer arguments: there is no room for b c. See packtool verify --help.",
        ),
        (["pack", "--sed", "3"], "[unknown-option] --sed: packtool pack has no such option. Did you mean --seed?"),
        (
            ["pack", "--block-size", "3"],
            "[unknown-option] --block-size: packtool pack has no such option. Did you mean --sequence-length?",
        ),
        (
            ["tokenize", "-s", "x"],
            "[unknown-option] -s: packtool tokenize has no such option. See packtool tokenize --help.",
        ),
        (
            ["tokenize", "--num-proc", "3"],
            "[unknown-option] --num-proc: packtool tokenize has no such option. Did you mean --workers?",
        ),
        (
            ["pack", "a.txt", "-o", "p", "--strategy", "group_texts"],
            "[unknown-strategy] --strategy: there is no strategy 'group_texts'. "
            "Did you mean concat (join all documents to one stream and cut it)?",
        ),
        (
            ["pack", "a.txt", "-o", "p", "--strategy", "BFDD"],
            "[unknown-strategy] --strategy: there is no strategy 'BFDD'. "
            "Did you mean bfd (whole documents in bins, best fit decreasing)?",
        ),
        (["pack", "--zzzz"], "[unknown-option] --zzzz: packtool pack has no such option. See packtool pack --help."),
        (["-x"], "[unknown-option] -x: packtool has no such option. See packtool --help."),
        (["pack", "store", "--seed"], "[bad-option] --seed: a value is missing after it. See --help."),
        (
            ["pack", "store", "-o", "p", "--strategy", "concat", "--seed", "-1"],
            "[bad-option] --seed: -1 is out of range. Give a number from 0 to 2^64 - 1.",
        ),
        (["pack", "store", "--seed", "x"], "[bad-option] --seed: 'x' is not a whole number. See packtool pack --help."),
    ],
)
def test_usage_errors_are_one_line(
    place: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "packtool: error" + message.replace("] ", "]: ", 1) + "\n"


@pytest.mark.parametrize("command", ["pack", "shuffle", "show", "verify"])
def test_a_text_file_is_to_be_tokenized_first(place: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    (place / "a.jsonl").write_text("{}", encoding="utf-8")
    more = {"pack": ["-o", "p", "--strategy", "bfd", "-L", "8"], "shuffle": ["-o", "p"]}.get(command, [])
    assert run([command, "a.jsonl", *more]) == 1
    assert capsys.readouterr().err == (
        "packtool: error[no-manifest]: a.jsonl: a file, not a token store or packed dataset. "
        "If it holds text, tokenize it first: packtool tokenize a.jsonl -o tokens.\n"
    )


def test_an_output_that_is_there_is_called_what_it_is(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pack", "store", "-o", "p", "--strategy", "bfd", "-L", "8", "-q"]) == 0
    assert run(["pack", "store", "-o", "p", "--strategy", "bfd", "-L", "8", "-q"]) == 2
    assert capsys.readouterr().err == (
        "packtool: error[output-not-empty]: p: holds a finished packed dataset already. "
        "Give --overwrite to replace it.\n"
    )


def test_info_gives_the_command_that_goes_on(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_uniform_store(place / "large", 20_000, 400)
    typed = ["pack", "large", "-o", "my p", "--strategy", "concat", "-L", "16", "--overwrite"]
    process = subprocess.Popen([sys.executable, "-m", "packtool", *typed], stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    while not (place / "my p" / "unfinished" / "state.json").exists():
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    process.wait()
    assert run(["info", "my p"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "  packtool pack large -o 'my p' --strategy concat -L 16 --resume",
        "  packtool pack large -o 'my p' --strategy concat -L 16 --overwrite",
    ]
    assert run(["stats", "my p"]) == 1
    assert "interrupted. Finish it first: packtool info 'my p' tells how." in capsys.readouterr().err


def test_help_names_arguments_plainly(capsys: pytest.CaptureFixture[str]) -> None:
    for command in commands():
        assert run([command, "--help"]) == 0
        text = capsys.readouterr().out
        assert "<" not in text.partition("Options:")[0].partition("Arguments:")[2]
        assert "{" not in text.splitlines()[0]
    assert run(["pack", "-h"]) == 0
    assert capsys.readouterr().out.startswith("Usage: packtool pack [OPTIONS] STORE...\n")


def test_an_empty_corpus_is_not_sent_to_stats(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "empty.jsonl").write_text("", encoding="utf-8")
    assert run(["tokenize", "empty.jsonl", "-o", "t"]) == 0
    shown = capsys.readouterr()
    assert "warning[no-documents]" in shown.err
    assert "which holds no document" in shown.out
    assert "stats" not in shown.out


def test_batches_and_orders_are_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["pack", "store", "-o", "b", "--strategy", "buckets", "--buckets", "16,32", "-q"]) == 0
    assert run(["shuffle", "b", "-o", "s", "-m", "bucket", "--batch-tokens", "32"]) == 0
    shown = capsys.readouterr().out
    batches = json.loads((place / "s" / "run.json").read_text(encoding="utf-8"))["batches"]
    assert f"{batches} batches, each of rows of one length\n" in shown
    assert run(["info", "s"]) == 0
    assert re.search(rf"batches +{batches}\n", capsys.readouterr().out)
    assert run(["shuffle", "b", "-o", "o", "--order-only", "--epoch", "3", "-q"]) == 0
    assert run(["info", "o"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"of +b\n", shown)
    assert re.search(r"order +atom shuffle, seed 42, epoch 3\n", shown)
    assert "packtool stats b --order o" in shown


def test_without_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Commands:\n" in captured.err
    assert captured.err.endswith(
        "packtool: error[missing-command]: no command was given. Choose one of the commands above.\n"
    )


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("packtool 0.")


def commands() -> list[str]:
    return [str(command.name) for command in app.registered_commands]


@pytest.mark.parametrize("command", commands())
def test_help_fits_and_has_an_example(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run([command, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"  Examples:\n  packtool {command}" in text
    assert max(map(len, text.splitlines())) <= 80
    for option in ("--quiet", "--json") if command not in ("info", "doctor", "show", "find") else ("--json",):
        if command != "show":
            assert option in text


@pytest.mark.parametrize("command", [name for name in commands() if name in ("tokenize", "pack", "shuffle", "stats")])
def test_every_stage_takes_the_common_options(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    run([command, "--help"])
    text = capsys.readouterr().out
    common = {"--config", "--quiet", "--verbose", "--json"}
    writing = {"--overwrite", "--resume", "--dry-run"} if command != "stats" else set()
    assert {option for option in common | writing if option not in text} == set()


def test_json_is_one_object_and_nothing_else(place: Path) -> None:
    result = packtool("pack", "store", "-o", "p", "--strategy", "concat", "-L", "16", "--json")
    assert result.stderr == ""
    assert json.loads(result.stdout)["schema_version"] == 1
    assert result.stdout.count("\n") == 1


def test_quiet_says_nothing(place: Path) -> None:
    result = packtool("pack", "store", "-o", "p", "--strategy", "concat", "-L", "16", "-q")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_verbose_says_what_is_done(place: Path) -> None:
    result = packtool("pack", "store", "-o", "p", "--strategy", "concat", "-L", "16", "-q", "-v")
    assert result.stderr.startswith("packtool: concat: 3 documents planned in ")


def test_messages_break_between_words_on_a_terminal(place: Path) -> None:
    terminal, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    command = [sys.executable, "-m", "packtool", "info", "a-name-that-is-longer-than-the-terminal-is-wide"]
    environment = {name: value for name, value in ENVIRONMENT.items() if name != "COLUMNS"}
    subprocess.run(command, stderr=child, stdin=child, env={**environment, "COLUMNS": "40"}, check=False)
    os.close(child)
    assert os.read(terminal, 10_000).decode().split("\r\n") == [
        "packtool: error[missing-input]:",
        "  a-name-that-is-longer-than-the-terminal-is-wide:",
        "  no such file or directory. Check the",
        "  path.",
        "",
    ]
    os.close(terminal)


def test_no_colour_unless_on_a_terminal(place: Path) -> None:
    result = packtool("pack", "store", "-o", "p", "--strategy", "concat", "-L", "16")
    assert result.returncode == 0
    assert "\x1b" not in result.stdout + result.stderr
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_a_reader_that_leaves_early_is_no_error(place: Path) -> None:
    """Nobody reads from the start: every write fails."""
    receiver, sender = os.pipe()
    os.close(receiver)
    for arguments in (["pack", "--help"], ["info", "store"], ["info", "store", "--json"], ["stats", "store"]):
        command = [sys.executable, "-m", "packtool", *arguments]
        result = subprocess.run(command, stdout=sender, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, check=False)
        assert (result.returncode, result.stderr) == (141, "")
    os.close(sender)


@pytest.mark.parametrize(
    ("arguments", "status"), [("info store --json >&-", 0), ("info store >&-", 0), ("info nowhere 2>&-", 1)]
)
def test_streams_that_are_closed(place: Path, arguments: str, status: int) -> None:
    command = f'exec "{sys.executable}" -m packtool {arguments}'
    result = subprocess.run(["sh", "-c", command], capture_output=True, env=ENVIRONMENT, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (status, b"", b"")


def test_standard_output_that_is_full(place: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "packtool", "info", "store"]
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, check=False)
    assert (result.returncode, result.stderr) == (
        1,
        "packtool: error[disk-full]: no space left on the device. Free some space and run the command again.\n",
    )


def test_ctrl_c_leaves_nothing_that_looks_whole(place: Path) -> None:
    write_uniform_store(place / "large", 20_000, 400)
    command = [sys.executable, "-m", "packtool", "pack", "large", "-o", "p", "--strategy", "concat", "-L", "16"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    while not (place / "p" / "unfinished").exists():
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate()
    assert process.returncode == 130
    assert error == "packtool: interrupted; with --resume, what is finished is kept\n"
    assert not (place / "p" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("sh", ["shuffle", "show"]),
        ("pack --strategy bfd", ["bfd", "bfd-extra"]),
        ("shuffle --method p", ["partial"]),
        ("pack --seq", ["--sequence-length"]),
        ("stats --compare concat,bfd", ["concat,bfd", "concat,bfd-extra"]),
        ("tokenize --encoder g", ["gigatoken"]),
        ("tokenize --format p", ["parquet"]),
        ("pack --progress l", ["log"]),
    ],
)
def test_completion(typed: str, completed: list[str]) -> None:
    words = {"_PACKTOOL_COMPLETE": "complete_bash", "COMP_WORDS": f"packtool {typed}"}
    environment = {**ENVIRONMENT, **words, "COMP_CWORD": str(len(typed.split()))}
    command = [sys.executable, "-m", "packtool"]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert result.stdout.split() == completed
    assert result.stderr == ""


def test_a_terminal_that_lacks_characters(place: Path) -> None:
    command = [sys.executable, "-m", "packtool", "pack", "store", "-o", "p", "--strategy", "concat", "-L", "16"]
    environment = {**ENVIRONMENT, "PYTHONIOENCODING": "latin-1"}
    result = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert (result.returncode, result.stderr) == (0, b"")


def test_a_refusal_of_the_system(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["info", "n" * 5000]) == 1
    message = f"packtool: error[system-error]: {'n' * 5000}: file name too long. Check the path and the machine.\n"
    assert capsys.readouterr().err == message


CONFIG = """
[pack]
input = ["store"]
strategy = "padding"
sequence-length = 8
buckets = [2]
"""


def test_options_come_from_a_file_and_flags_win(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "c.toml").write_text(CONFIG.replace("buckets = [2]", ""), encoding="utf-8")
    assert run(["pack", "--config", "c.toml", "-o", "p", "-q"]) == 0
    assert run(["pack", "--config", "c.toml", "-o", "q", "-L", "32", "--strategy", "concat", "-q"]) == 0
    found = [json.loads((place / name / "manifest.json").read_text(encoding="utf-8")) for name in ("p", "q")]
    assert [(each["strategy"], each["options"]["sequence_length"]) for each in found] == [
        ("padding", 8),
        ("concat", 32),
    ]
    capsys.readouterr()
    assert run(["pack", "-o", "r", "--strategy", "concat", "-L", "8"]) == 2
    assert "STORE" in capsys.readouterr().err, "an earlier call's file is forgotten"


def test_lists_and_switches_from_a_file(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    assert run(["stats", "--config", "c.toml", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)["comparison"]["entries"]
    assert {(row["strategy"], row["sequence_length"]) for row in entries} == {
        (strategy, length) for strategy in ("concat", "bfd") for length in (16, 32)
    }
    assert run(["pack", "--config", "c.toml", "-o", "p", "-q", "--segments"]) == 0
    manifest = json.loads((place / "p" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["shuffle"] is None
    assert manifest["options"]["max_repetition"] == "1/4"
    assert manifest["lengths"] is not None, "the flag wins"


def test_an_option_in_a_file_is_blamed_there(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "c.toml").write_text(CONFIG, encoding="utf-8")
    assert run(["pack", "--config", "c.toml", "-o", "p"]) == 2
    assert capsys.readouterr().err.startswith(
        "packtool: error[option-not-taken]: c.toml:6: buckets: --strategy padding does not take this option."
    )
    assert run(["pack", "--config", "c.toml", "-o", "p", "--buckets", "64"]) == 2
    assert capsys.readouterr().err.startswith("packtool: error[option-not-taken]: --buckets: --strategy")


def test_several_tables_are_for_run(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "c.toml").write_text("[[pack]]\n\n[[pack]]\n", encoding="utf-8")
    assert run(["pack", "--config", "c.toml", "-o", "p"]) == 2
    assert "c.toml:3: there are 2 [[pack]] tables. Keep one, or do all of them with packtool run c.toml." in (
        capsys.readouterr().err
    )


def test_a_file_from_standard_input(place: Path) -> None:
    result = packtool("pack", "--config", "-", "-o", "p", "-q", input=CONFIG.replace("buckets = [2]", ""))
    assert (result.returncode, result.stderr) == (0, "")


def test_warnings_have_codes_and_quiet_silences_them(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from packtool.commands import verify

    def noisy(*_: object, **__: object) -> None:
        for _n in range(2):
            warn("no-documents", "no document is left", remedy="check the input", where="store")
        raise KeyboardInterrupt

    monkeypatch.setattr(verify, "verify", noisy)
    assert run(["verify", "store"]) == 130
    assert capsys.readouterr().err == (
        "packtool: warning[no-documents]: store: no document is left. Check the input.\npacktool: interrupted\n"
    )
    assert run(["verify", "store", "-q"]) == 130
    assert capsys.readouterr().err == "packtool: interrupted\n"


def test_a_warning_must_be_known() -> None:
    with pytest.raises(ValueError, match="not a known warning"):
        warn("something", "x", remedy="y")


def test_what_a_file_holds_commands_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_store(tmp_path / "store", [3, 4])
    hostile = "\x1b[2J\x1b]0;x\x07\u202e\nnext"
    manifest = json.loads((tmp_path / "store" / "manifest.json").read_bytes())
    manifest.pop("xxh3_128")
    manifest["tokenizer"]["eos_token"] = hostile
    manifest["tokenizer"]["added_tokens"] = {hostile: manifest["tokenizer"]["eos_id"]}
    (tmp_path / "store" / "manifest.json").write_bytes(manifests.sealed(manifest))
    (tmp_path / hostile).mkdir()
    for arguments in (
        ["info", "store"],
        ["verify", hostile],
        ["pack", "store", "-o", "x", "-L", "8", "--strategy", hostile],
    ):
        run(arguments)
        said = capsys.readouterr()
        assert "\x1b" not in said.out + said.err
        assert "\u202e" not in said.out + said.err
        assert "\nnext" not in said.out + said.err
        assert "\\x1b[2J" in said.out + said.err
