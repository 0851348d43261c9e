"""The benchmarks: what is measured of a command, how figures become a page, and that all of it runs."""

import doctest
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import compare, figures, page, quoted, runner, tokenize
from benchmarks.common import RESULTS
from benchmarks.measure import FailedError, TooSlowError, measure
from benchmarks.peers import stages

ROOT = Path(__file__).parents[1]
linux = pytest.mark.skipif(sys.platform != "linux", reason="asks Linux's /proc")

ORPHAN = """
import subprocess, sys
work = "x = bytearray(b'x' * (64 << 20)); import time; began = time.process_time()\\n"
work += "while time.process_time() < began + 0.3: pass"
subprocess.Popen([sys.executable, "-c", work])
"""


@pytest.mark.parametrize("module", [compare, figures, quoted, stages, tokenize])
def test_examples(module: Any) -> None:
    found = doctest.testmod(module, extraglobs={"np": __import__("numpy")})
    assert found.attempted
    assert not found.failed


@linux
def test_the_whole_tree_is_measured(disk: Path) -> None:
    out = disk / "zeros"
    work = f'dd if=/dev/zero of={out} bs=1M count=32 conv=fsync status=none & {sys.executable} -c "$0"; wait; sleep 3'
    sample = measure(["sh", "-c", f"{work}; echo '{{\"said\": 3}}'", ORPHAN])
    assert sample.cpu > 0.3
    assert sample.peak_mb > 64
    assert 32 <= sample.written_mb < 64
    assert sample.wall > 3
    assert sample.said == {"said": 3}


def test_a_command_that_is_too_slow_ends_with_all_below_it(tmp_path: Path) -> None:
    began = time.monotonic()
    with pytest.raises(TooSlowError, match=r"more than 0\.2 s"):
        measure(["sh", "-c", f"(sleep 1; touch {tmp_path}/late) & sleep 60"], limit=0.2)
    assert time.monotonic() - began < 30
    time.sleep(1.2)
    assert not list(tmp_path.iterdir())


def test_a_command_that_fails_says_why() -> None:
    with pytest.raises(FailedError, match=r"^no such thing$"):
        measure(["sh", "-c", "echo trying >&2; echo no such thing >&2; exit 3"])


def test_contestants_take_turns_and_are_checked_once(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def contestant(name: str, command: str, **more: Any) -> runner.Contestant:
        return runner.Contestant(name, lambda _: ["sh", "-c", f"echo {name} >> {log}; {command}"], **more)

    checks: list[str] = []
    case = runner.Case(
        "turns",
        {"size": 1},
        [
            contestant("a", "true", check=lambda _: checks.append("a") or {"lost_tokens": 2}),
            contestant("b", "exit 1"),
            contestant("c", "true", rounds=1),
        ],
    )
    a, b, c = runner.measured(case, runner.Scale("quick", rounds=3, limit=20))
    assert log.read_text().split() == ["a", "b", "c", "a", "a"]
    assert (len(a.runs), len(b.runs), len(c.runs)) == (3, 0, 1)
    assert b.missing == "ended with status 1"
    assert checks == ["a"]
    assert a.checked == {"lost_tokens": 2}


def test_who_cannot_be_installed_is_named() -> None:
    result = runner.Result(
        "documents", {"documents": 10}, "seqpacker", [], missing="not installable here: no such crate"
    )
    assert figures.left_out([vars(result)]) == ["Not measured:", "- seqpacker: not installable here: no such crate"]


def run(**changed: Any) -> str:
    same = {"commit": "a" * 40, "scale": "bench", "machine": {"load_average": 1.0, "cores": 2}, "python": "3.11"}
    return json.dumps({**same, "versions": {}, "changed": False, "results": [], **changed})


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"commit": "b" * 40}, "commit"),
        ({"scale": "quick"}, "scale"),
        ({"machine": {"load_average": 1.0, "cores": 3}}, "machine"),
        ({"versions": {"numpy": "1"}}, "versions"),
    ],
)
def test_a_page_is_of_one_run(tmp_path: Path, changed: dict[str, Any], what: str) -> None:
    for name in page.SECTIONS:
        (tmp_path / f"{name}.json").write_text(run())
    (tmp_path / "move.json").write_text(run(machine={"load_average": 3.0, "cores": 2}))
    page.read(tmp_path)  # another load is the same machine
    (tmp_path / "load.json").write_text(run(**changed))
    with pytest.raises(page.MixedError, match=f"are not of one run: {what} differs"):
        page.read(tmp_path)
    (tmp_path / "load.json").unlink()
    with pytest.raises(page.MixedError, match=r"has no load\.json: make it with python -m benchmarks run load"):
        page.read(tmp_path)


def test_the_stages_are_all_of_the_cpu_time(tmp_path: Path) -> None:
    text, tokenizer = tmp_path / "text.jsonl", ROOT / "packtool" / "assets" / "tokenizer.json"
    text.write_text('{"text": "%s"}\n' % ("some words to encode " * 20) * 20_000)
    command = [sys.executable, "-m", "benchmarks.peers.stages"]
    sample = measure([*command, "tokenize", text, tokenizer, "<|endoftext|>", tmp_path / "out"])
    assert sample.said.keys() <= {f"stage {name}" for name in (*stages.STAGES.values(), stages.REST)}
    assert sample.said.keys() >= {"stage imports", "stage encoding", "stage loading the encoder"}
    assert 0.8 * sample.cpu < sum(sample.said.values()) < 1.1 * sample.cpu
    np.save(tmp_path / "lengths.npy", np.random.default_rng(0).integers(1, 100, 200_000))
    sample = measure([*command, "plan", tmp_path / "lengths.npy", "128"])
    assert sample.said.keys() >= {"stage sorting groups of segments", "stage mixing: dealing groups"}
    assert 0.8 * sample.cpu < sum(sample.said.values()) < 1.1 * sample.cpu


def test_stages_are_shown_for_each_tokenizer(tmp_path: Path) -> None:
    runs = [{"wall": 1.0, "stage encoding": 0.3}, {"wall": 1.0, "stage encoding": 0.3, "stage publishing": 0.2}]
    found = {"Llama 3": {"runs": runs}, "Gemma 3": {"runs": runs[:1]}}
    assert page.stages(found).splitlines() == [
        "|  | Llama 3 | Gemma 3 |",
        "| --- | --- | --- |",
        "| encoding | 0.300 (75 %) | 0.300 (100 %) |",
        "| publishing | 0.100 (25 %) | 0 (0 %) |",
    ]


@pytest.mark.skipif(not (RESULTS / "plan.json").exists(), reason="nothing was measured yet")
def test_the_page_and_the_readme_have_the_figures_of_the_files(tmp_path: Path) -> None:
    records = page.read(RESULTS)
    pictures = tmp_path / page.PICTURES.name
    pictures.mkdir()
    assert page.PAGE.read_text() == page.page(records, pictures)
    drawn = {path.name: path.read_text() for path in pictures.iterdir()}
    assert drawn == {path.name: path.read_text() for path in page.PICTURES.iterdir()}
    readme = page.README.read_text()
    assert readme.split(page.BEGIN)[1].split(page.END)[0] == page.claims(records)


@pytest.mark.parametrize("name", quoted.PAGES)
def test_other_pages_have_the_tables_of_the_files(name: str) -> None:
    text = (ROOT / "docs" / f"{name}.md").read_text()
    assert quoted.BLOCK.search(text)
    assert quoted.filled(text, RESULTS) == text


def test_each_table_is_on_a_page() -> None:
    pages = [(ROOT / "docs" / f"{name}.md").read_text() for name in quoted.PAGES]
    shown = [found[1] for text in pages for found in quoted.BLOCK.finditer(text)]
    assert sorted(shown) == sorted(quoted.TABLES)


SPEED = re.compile(
    r"(?<!every )\b\d\S* ((CPU )?(milli)?seconds\b|(CPU )?m?s\b|µs\b|[KMG]i?B/s|tokens/s"
    r"|(million |M )?\w+ (a|per) (CPU )?(milli)?second\b)"
)
"""How long something takes, or how much of it is done in a time."""
TYPED = {
    "benchmarks.md": "generated whole",
    "changelog.md": "what a version brought, when it did",
    "design-decisions.md": "what was measured when it was decided",
    "experiment.md": "has a generator and a test of its own",
}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("takes 0.35 CPU seconds", "0.35 CPU seconds"),
        ("34 million tokens a CPU second", "34 million tokens a CPU second"),
        ("4.4 ms each, 230 tasks a second", "4.4 ms"),
        ("a line every 30 seconds", None),
        ("rows of 2,048 tokens, 64 MiB at a time", None),
    ],
)
def test_what_is_a_figure_of_speed(text: str, found: str | None) -> None:
    assert (hit[0] if (hit := SPEED.search(text)) else None) == found


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda path: path.name
)
def test_no_speed_is_typed_by_hand(path: Path) -> None:
    if path.name in TYPED:
        return
    text = quoted.BLOCK.sub("", path.read_text())
    text = re.sub(re.escape(page.BEGIN) + ".*?" + re.escape(page.END), "", text, flags=re.DOTALL)
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    assert [line for line in text.splitlines() if SPEED.search(line)] == []


@pytest.mark.slow
@linux
def test_all_of_it_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "run", "--quick", "--no-peers", "--out", tmp_path]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    records = page.read(tmp_path)
    for record in records.values():
        assert {each["missing"] for each in record["results"]} <= {None, "not asked for"}
        for each in record["results"]:
            assert each["missing"] or each["runs"]
            assert each["checked"].get("lost_tokens", 0) == 0
            assert each["checked"].get("same_documents", 1) == 1
    assert any(each["checked"].get("same_documents") for each in records["tokenize"]["results"])
    pictures = tmp_path / page.PICTURES.name
    pictures.mkdir()
    text = page.page(records, pictures)
    assert "quick run" in text
    assert "nan" not in re.split(r"[^a-z]+", text)
    assert set(re.findall(r"]\((.+\.svg)\)", text)) == {f"{pictures.name}/{path.name}" for path in pictures.iterdir()}
    assert "tokenize" in page.claims(records)
