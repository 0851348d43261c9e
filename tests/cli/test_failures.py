"""One voice for errors and warnings, whoever finds what is wrong."""

import errno
import fcntl
import json
import os
import pty
import re
import resource
import struct
import subprocess
import sys
import termios
from functools import partial
from pathlib import Path

import pytest

from packtool.cli import failures, run
from packtool.errors import DataError
from packtool.warnings import warn
from tests.cli.running import ENVIRONMENT, packtool
from tests.shell import Shell
from tests.stores import amended, write_store

ROWS = "pack store -o p --strategy"
USAGE = {
    "pac": "[unknown-command]: no such command 'pac'. Did you mean 'pack'?",
    "frobnicate": "[unknown-command]: no such command 'frobnicate'. See packtool --help.",
    "pack": "[missing-option]: STORE: packtool pack needs at least one. See packtool pack --help.",
    "pack store": "[missing-option]: --output: packtool pack needs this option. See packtool pack --help.",
    "verify": "[missing-option]: PATH: packtool verify needs it. See packtool verify --help.",
    "verify a b c": "[bad-usage]: packtool verify takes fewer arguments: there is no room for b c. See packtool ver",
    "import s3://a/b -o x -f jsonl": "[unsupported-store]: INPUT: does not take the URL of an object store. Give a",
    "pack --sed 3": "[unknown-option]: --sed: packtool pack has no such option. Did you mean --seed?",
    "pack --L 3": "[unknown-option]: --L: packtool pack has no such option. Did you mean -L?",
    "pack --block-size 3": "[unknown-option]: --block-size: packtool pack has no such option. Did you mean --sequence-",
    "tokenize --no-such": "[unknown-option]: --no-such: packtool tokenize has no such option. See packtool tokenize ",
    "tokenize -s x": "[unknown-option]: -s: packtool tokenize has no such option. See packtool tokenize --help.",
    "tokenize --num-proc 3": "[unknown-option]: --num-proc: packtool tokenize has no such option. Did you mean --work",
    f"{ROWS} group_texts": "[unknown-strategy]: --strategy: there is no strategy 'group_texts'. Did you mean concat (",
    "stats store --strategy bfd": "[unknown-option]: --strategy: packtool stats has no such option; packtool pack has "
    "it. Did you mean --compare?",
    "tokenize a --atom-size 3": "[unknown-option]: --atom-size: packtool tokenize has no such option; packtool pack "
    "and packtool shuffle have it. See packtool tokenize --help.",
    "pack store -o p -L 64": "[missing-option]: --strategy: packtool pack needs this option. Give concat, padding, ff",
    f"{ROWS} concat -L 2,048": "[bad-option]: --sequence-length: rows have one length, not '2,048'. Give one; stats ",
    f"{ROWS} BFDD": "[unknown-strategy]: --strategy: there is no strategy 'BFDD'. Did you mean bfd (whole documents ",
    "pack --zzzz": "[unknown-option]: --zzzz: packtool pack has no such option. See packtool pack --help.",
    "-x": "[unknown-option]: -x: packtool has no such option. See packtool --help.",
    "pack store --seed": "[bad-option]: --seed: a value is missing after it. See --help.",
    f"{ROWS} concat --seed -1": "[bad-option]: --seed: -1 is out of range. Give a number from 0 to 2^64 - 1.",
    f"{ROWS} concat --seed x": "[bad-option]: --seed: 'x' can't be used. Give a whole number.",
    "stats store --compare bdf -L 32": "[unknown-strategy]: --compare: there is no strategy 'bdf'. Did you mean bfd (w",
    "export store -o x -f megatrn": "[unknown-exchange]: --format: there is no format 'megatrn' for this. Did you mean",
    "shuffle store -o p": "[not-packed]: store: a token store, where --method atom needs a packed dataset. Give what",
    "pack store -o store/p -L 8 --strategy bfd": "[output-overlaps-input]: store/p: the output lies inside the input s",
    "verify store --progress bra": "[bad-option]: --progress: 'bra' is not a known value. Did you mean bar?",
    "pack store -o store -L 8 --strategy bfd": "[output-overlaps-input]: store: the output is the input. Choose an ",
}


@pytest.mark.parametrize("typed", USAGE)
def test_usage_errors_are_one_line(place: Path, shell: Shell, typed: str) -> None:
    error = shell.refused(*typed.split(), status=2)
    assert shell.out == ""
    assert error.startswith(f"packtool: error{USAGE[typed]}")
    assert (error.count("\n"), error[-2:-1] in ".?") == (1, True)


@pytest.mark.parametrize("command", ["pack", "shuffle", "show", "verify"])
def test_a_text_file_is_to_be_tokenized_first(place: Path, shell: Shell, command: str) -> None:
    (place / "a.jsonl").write_text("{}", encoding="utf-8")
    more = {"pack": ["-o", "p", "--strategy", "bfd", "-L", "8"], "shuffle": ["-o", "p"]}.get(command, [])
    assert shell.refused(command, "a.jsonl", *more) == (
        "packtool: error[no-manifest]: a.jsonl: a file, not a token store or packed dataset. "
        "If it holds text, tokenize it first: packtool tokenize a.jsonl -o tokens.\n"
    )


def test_messages_break_between_words_on_a_terminal(place: Path) -> None:
    terminal, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    name = "a-name-that-is-longer-than-the-terminal-is-wide"
    packtool("info", name, stderr=child, stdin=child, env={**ENVIRONMENT, "COLUMNS": "40"})
    os.close(child)
    assert os.read(terminal, 10_000).decode().split("\r\n") == [
        "packtool: error[missing-input]:",
        "  a-name-that-is-longer-than-the-terminal-is-wide:",
        "  no such file or directory. Check the",
        "  path.",
        "",
    ]
    os.close(terminal)


def test_a_refusal_of_the_system(place: Path, shell: Shell) -> None:
    message = f"packtool: error[system-error]: {'n' * 5000}: file name too long. Check the path and the machine.\n"
    assert shell.refused("info", "n" * 5000) == message


def test_warnings_have_codes_and_quiet_silences_them(
    place: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    from packtool.commands import verify

    def noisy(*_: object, **__: object) -> None:
        for _n in range(2):
            warn("no-documents", "no document is left", remedy="check the input", where="store")
        raise KeyboardInterrupt

    monkeypatch.setattr(verify, "verify", noisy)
    assert shell.refused("verify", "store", status=130) == (
        "packtool: warning[no-documents]: store: no document is left. Check the input.\npacktool: interrupted\n"
    )
    assert shell.refused("verify", "store", "-q", status=130) == "packtool: interrupted\n"


ROWS = ["-o", "rows", "--strategy", "concat", "-L", "8"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(("command", "json_too"), [("stats", []), ("info", ["--json"]), ("verify", []), ("pack", ROWS)])
def test_results_that_can_not_be_printed(place: Path, command: str, json_too: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = packtool(command, "store", *json_too, stdout=full)
    said = "error[answer-not-written]: standard output: can't be written (no space left on device). Send it"
    assert done.returncode == 1
    assert f"{said} somewhere else; what a command makes, it has finished before it answers.\n" in done.stderr
    if command == "pack":
        assert packtool("info", "rows").stdout.startswith("rows: packed dataset, whole\n")


@pytest.mark.parametrize("secret", ["wordword", "p@w:" * 30])
@pytest.mark.parametrize(
    "words",
    [
        "pack store -o out --strategy concat -L 8 --mix URL=3",
        "pack store -o out --strategy concat -L 8 --where URL",
        "pack store -o out --strategy URL",
        "tokenize corpus.jsonl -o out --encoder URL",
        "tokenize corpus.jsonl -o out --min-words URL",
        "tokenize corpus.jsonl -o out --URL",
        "tokenize URL -o out",
        "export store -o out --format URL",
        "show store --document URL",
        "stats blend.toml",
        "URL",
    ],
)
def test_no_error_repeats_the_credentials_of_a_url(
    words: str, secret: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not in text, nor in JSON."""
    url = f"https://ann:{secret}@host/x"
    packtool("pack", "store", *ROWS)
    (place / "blend.toml").write_text(f'[sources.a]\npath = "rows"\n[[stages]]\nweights = {{ "{url}" = 1 }}\n')
    for more in ([], ["--json"]):
        status = run([*words.replace("URL", url).split(), *more])
        said = capsys.readouterr()
        assert status in (1, 2)
        assert "https://…@host/x" in said.err or "https://… holds" in said.err
        assert secret not in said.err + said.out


NAMED = (
    *("tokenize FOLDER/a.jsonl -o FOLDER/s", "pack FOLDER/s -o FOLDER/p --strategy bfd -L 16"),
    *("pack FOLDER/s -o FOLDER/no --strategy bfd -L 16 --dry-run", "shuffle FOLDER/p -o FOLDER/sh --epoch 1"),
    *("pack FOLDER/s -o FOLDER/io --strategy bfd -L 16 --index-only", "materialize FOLDER/io -o FOLDER/m"),
    *("stats FOLDER/p --html FOLDER/page.html", "stats FOLDER/s", "show FOLDER/p --row 0", "info FOLDER/p"),
    *("info FOLDER", "verify FOLDER/p", "export FOLDER/s -o FOLDER/e --format jsonl", "find FOLDER/p a.jsonl:1"),
    *("import FOLDER/e -o FOLDER/i --format jsonl --tokenizer FOLDER/s/tokenizer.json", "doctor"),
    "run FOLDER/c.toml --input FOLDER/a.jsonl --output FOLDER/run",
)
"""Every command, in an order in which each finds what it reads."""


@pytest.mark.slow
@pytest.mark.parametrize("name", [b"\xff", "ö".encode()])
@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_every_command_answers_in_json_about_any_path(name: bytes, locale: str, tmp_path: Path) -> None:
    """A name need not be UTF-8, and in the locale C, without what Python does about it, not even an umlaut is."""
    folder = os.fsencode(tmp_path) + b"/" + name
    Path(os.fsdecode(folder)).mkdir()
    for file, text in (
        (b"a.jsonl", '{"text": "a b"}\n'),
        (b"c.toml", '[tokenize]\n[pack]\nstrategy = "concat"\nsequence-length = 8\n'),
    ):
        Path(os.fsdecode(folder + b"/" + file)).write_text(text)
    changed = {**os.environ, **ENVIRONMENT, "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    for words in NAMED:
        command = [word.encode().replace(b"FOLDER", folder) for word in words.split()]
        done = subprocess.run(
            [sys.executable, "-m", "packtool", *command, "--json"], capture_output=True, env=changed, check=False
        )
        assert done.returncode == 0, (words, done.stderr)
        assert json.loads(done.stdout), words


HOSTILE = "a\x1b[2J\x9b1m\u202e\u2066\u061c\nb"
"""Clears a screen, turns text around, and begins a line."""


def test_names_command_no_terminal(here: Path, shell: Shell) -> None:
    """Names of files, datasets and sources, ids and texts of documents, in whatever a command prints."""
    folder, text, packed = f"{HOSTILE}.d", f"{HOSTILE}.jsonl", f"{HOSTILE}.rows"
    Path(folder).mkdir()
    Path(folder, text).write_text(json.dumps({"text": f"{HOSTILE} text", "id": HOSTILE}) + "\n")
    Path("blend.toml").write_text(f"[sources]\n{json.dumps(HOSTILE)} = {json.dumps(packed)}\n")
    Path("all.toml").write_text(
        f"[tokenize]\ninput = {json.dumps(folder)}\n[pack]\nstrategy='bfd'\nsequence-length=8\n"
    )
    commands = [
        ["tokenize", folder, "-o", HOSTILE, "--dry-run"],
        ["tokenize", folder, "-o", HOSTILE, "--id-field", "id", "-v"],
        ["info", folder],
        ["info", HOSTILE],
        ["verify", HOSTILE],
        ["show", HOSTILE, "--document", "0"],
        ["stats", HOSTILE],
        ["pack", HOSTILE, "-o", packed, "--strategy", "bfd", "-L", "8", "--remainder", "pad", "-v"],
        ["pack", HOSTILE, "-o", packed, "--strategy", "bfd", "-L", "8", "--dry-run"],
        ["find", packed, HOSTILE, "--store", HOSTILE],
        ["show", packed, "--row", "0", "--store", HOSTILE],
        ["stats", packed],
        ["stats", "blend.toml"],
        ["stats", "blend.toml", "--full", "--html", f"{HOSTILE}.html"],
        ["run", "all.toml", "-o", f"{HOSTILE}.run", "--dry-run"],
    ]
    for json_too in ([], ["--json"]):
        for command in commands:
            again = ["--overwrite"] if json_too and "-o" in command and command[0] != "run" else []
            printed = shell(*command, *again, *json_too)
            for raw in "\x1b\x9b\u202e\u2066\u061c":
                assert raw not in printed + shell.err, (command, json_too, printed)
            if json_too:
                json.loads(printed)
    with amended(Path(HOSTILE)) as manifest:
        manifest["tokenizer"]["eos_token"] = HOSTILE
        manifest["tokenizer"]["added_tokens"] = {HOSTILE: manifest["tokenizer"]["eos_id"]}
    for said in (
        shell("info", HOSTILE),
        shell.refused("verify", folder),
        shell.refused("pack", HOSTILE, "-o", "x", "-L", "8", "--strategy", HOSTILE, status=2),
    ):
        assert not [raw for raw in "\x1b\x9b\u202e\u2066\u061c" if raw in said]
        assert "\\x1b[2J" in said


def test_an_error_under_json_is_json(place: Path, shell: Shell) -> None:
    found = json.loads(shell("info", "nowhere", "--json", status=1))
    assert found["schema_version"] == 1
    assert list(found["error"].values()) == ["missing-input", "nowhere", "no such file or directory", "check the path"]
    assert shell.err == "packtool: error[missing-input]: nowhere: no such file or directory. Check the path.\n"


GIGABYTE, UNLIMITED = 1 << 30, resource.RLIM_INFINITY
NO_ROOM = (
    "not enough memory to load a library, of which ulimit -v allows 1.07 GB. Give less --memory or fewer --workers, or "
    "raise the limit."
)
OF_THE_SYSTEM: list[tuple[Exception, int, str]] = [
    (ImportError("libarrow.so.2300: failed to map segment from shared object"), GIGABYTE, NO_ROOM),
    (ImportError("libopenblas.so: cannot allocate memory in static TLS block"), GIGABYTE, NO_ROOM),
    (OSError("libpython3.so: failed to map segment from shared object"), GIGABYTE, NO_ROOM),
    (SystemError("NULL without an exception"), GIGABYTE, "the interpreter failed, most likely for lack of memory, of "),
    (MemoryError(), UNLIMITED, "not enough memory. Give less --memory or fewer --workers."),
    (OSError(errno.ENOMEM, "", "a.npy"), UNLIMITED, "a.npy: not enough memory. Give less --memory"),
    (OSError(errno.EFBIG, "", "a.npy"), UNLIMITED, "a.npy: larger than the file system lets a file be. Write to"),
    (RuntimeError("can't start new thread"), UNLIMITED, "the system lets it start no more threads. Raise ulimit -v an"),
]


@pytest.mark.parametrize(("error", "limit", "said"), OF_THE_SYSTEM, ids=repr)
def test_what_the_system_refuses_has_a_name(
    error: Exception, limit: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    explained = failures.explain(error)
    assert isinstance(explained, DataError)
    assert explained.typed().startswith(said)


@pytest.mark.parametrize("error", [RuntimeError("a bug"), SystemError("NULL"), ImportError("No module named x")])
def test_a_bug_is_not_explained(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (UNLIMITED, UNLIMITED))
    assert failures.explain(error) is None


@pytest.mark.parametrize("limit", [1 << 10, 1 << 13, 1 << 15])
def test_a_limit_on_the_size_of_files_is_named_with_the_file(here: Path, limit: int) -> None:
    """`ulimit -f`: whichever file reaches it first, whoever writes it."""
    write_store(here / "store", [9] * 5000)
    within = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit))
    for command in ("pack store -o out --strategy bfd -L 16 -j 1", "export store -o out -f parquet"):
        done = packtool(*command.split(), "-q", "--overwrite", preexec_fn=within)
        assert done.returncode == 1
        assert re.fullmatch(
            r"packtool: error\[file-too-large\]: \S*out/\S+: larger than ulimit -f allows, [\d.]+ kB\. Raise the "
            r"limit, then run the command again with --resume: what is finished is kept\.\n",
            done.stderr,
        ), done.stderr
