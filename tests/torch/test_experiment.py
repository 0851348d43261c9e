"""The example in examples/experiment: from text to a page, with controls that come out as they must."""

import csv
import doctest
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "experiment"
pytestmark = [pytest.mark.torch]
torch = pytest.importorskip("torch")


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", ["measures", "model", "kinds", "page"])
def test_examples_in_docstrings(name: str, example: None) -> None:
    module = __import__(name)
    assert doctest.testmod(module).failed == 0


def test_windows_score_each_token_once(example: None, tmp_path: Path) -> None:
    from scoring import windows

    from tests.stores import write_store

    store = write_store(tmp_path / "store", [1, 2, 7, 8, 9, 30], per_shard=10)
    rows, counted = windows(store, 8)
    assert rows.shape == counted.shape
    assert int(counted.sum()) == sum(length - 1 for length in (1, 2, 7, 8, 9, 30))


def test_a_run_that_was_stopped_ends_as_one_that_was_not(example: None, tmp_path: Path) -> None:
    from experiment import corpus
    from training import Run, Size, train

    texts = tmp_path / "some.jsonl"
    texts.write_text("".join(json.dumps({"text": f"{number} and {number + 1}, " * 5}) + "\n" for number in range(20)))
    corpus(texts, None, 300, tmp_path)
    store = tmp_path / "tokens"
    packtool.tokenize(tmp_path / "train.jsonl", store, tokenizer=tmp_path / "tokenizer.json", quiet=True)
    packtool.pack(store, tmp_path / "rows", strategy="padding", sequence_length=16)
    run = Run("some", tmp_path / "rows", tmp_path / "rows", batch_tokens=128, epochs=2, seed=1, context=16)
    size, found = Size(width=8, heads=2), {}
    for name, last in (("whole", None), ("stopped", 6)):
        (tmp_path / name).mkdir()

        def stop(step: int, last: int | None = last) -> None:
            if step == last:
                raise KeyboardInterrupt

        if last is not None:
            with pytest.raises(KeyboardInterrupt):
                train(run, size, store, tmp_path / name, save_seconds=0, after_step=stop)
            assert (tmp_path / name / "some-1.pt").exists()
        found[name] = train(run, size, store, tmp_path / name)
        assert not list((tmp_path / name).iterdir())
    assert found["whole"] == found["stopped"]
    assert sum(step[2] for step in found["whole"]["steps"]) > 0
    assert sum(step[4] for step in found["whole"]["steps"]) > 0


def kind(name: str, loss: float, *, seeds: int = 3, apart: float = 0.01) -> list[dict[str, Any]]:
    """The results of runs whose loss is constant, and differs between seeds in every kind by something else."""
    found = []
    for seed in range(seeds):
        here = loss + apart * np.cos(2 * seed + len(name))
        steps = [[step / 10, 8 * here, 8.0, 0.0, 0.0] for step in range(1, 21)]
        asked = {"kind": name, "seed": seed, "epochs": 2, "width": 8, "layers": 1, "heads": 2, "learning_rate": 0.01}
        found.append(
            {
                "asked": {**asked, "batch_tokens": 128},
                "steps": steps,
                "curve": [[10, float(np.exp(here))], [20, float(np.exp(here))]],
                "own_rows": [[4 * here, 4.0, 0.0, 0.0]] * 3,
                "same_text": [[4 * here, 4.0]] * 3,
                "cpu_seconds": 1.0,
            }
        )
    return found


def write_results(folder: Path, runs: list[dict[str, Any]]) -> Path:
    from tests.stores import write_store

    (folder / "results").mkdir(parents=True)
    for run in runs:
        (folder / "results" / f"{run['asked']['kind']}-{run['asked']['seed']}.json").write_text(json.dumps(run))
    store = write_store(folder / "tokens", [9, 30, 8])
    packtool.pack(store, folder / "train" / "concat-64-64", strategy="concat", sequence_length=16)
    (folder / "corpus.json").write_text(json.dumps({"input": None}))
    return folder


CONTROLS = [*kind("concat-64-64", 4.0), *kind("corpus-order-64", 4.5), *kind("half-padded-64", 4.2)]


def test_nothing_is_said_where_a_control_fails_or_lacks(example: None, tmp_path: Path) -> None:
    import findings

    runs = [*kind("concat-64-64", 4.0), *kind("corpus-order-64", 4.5), *kind("half-padded-64", 3.9)]
    found = findings.read(write_results(tmp_path, [*runs, *kind("concat-64-16", 5.0)]))
    assert not found.believed
    assert [section.title for section in found.sections] == ["Controls"]
    assert found.sections[0].text[-1].endswith("worse for 0 of 3 seeds: NOT as it must be: nothing else is shown.")
    assert not findings.read(write_results(tmp_path / "none", kind("concat-64-64", 4.0))).believed


def test_claims_are_judged_by_how_much_seeds_differ(example: None, tmp_path: Path) -> None:
    import findings

    atoms = [*kind("concat-64-16", 4.5), *kind("concat-64-128", 4.001)]
    padding = kind("padding-64-64", 4.1)
    found = findings.read(write_results(tmp_path, [*CONTROLS, *atoms, *padding, *kind("seamless-64", 3.9)]))
    assert found.believed
    sections = {section.title: section for section in found.sections}
    claims = {row[0]: row[1:] for row in sections["What agrees"].tables[0][1]}
    assert claims["concat, L = 64: smaller atoms than 1 L are worse"] == ["agrees"] * 3
    assert claims["concat, L = 64: larger atoms than 1 L are worse"] == ["can't tell"] * 3
    assert claims["L = 64: padding ends lower than concat"] == ["does not"] * 3
    ranks = {row[0]: row[5] for row in sections["Atom size"].tables[1][1]}
    assert ranks["concat, L = 64, 1 L"].startswith("1.")
    assert ranks["concat, L = 64, 0.25 L"] == "3.0 ± 0.0"
    assert found.answer.startswith(
        "After equal steps, on the same text, seamless (−9.5 %) differs from concat by more than seeds do."
    )
    strategies = {row[0]: row for row in sections["Strategies"].tables[0][1]}
    assert strategies["seamless"][-1] == "−9.5 %"


def test_the_page_has_every_table_and_chart_in_both_forms(example: None, tmp_path: Path) -> None:
    import findings
    import page

    found = findings.read(write_results(tmp_path, [*CONTROLS, *kind("concat-64-16", 4.5), *kind("bfd-64", 4.1)]))
    page.write(found, tmp_path / "report.html", tmp_path / "docs.md")
    html, markdown = (tmp_path / "report.html").read_text(), (tmp_path / "docs.md").read_text()
    tables = list(csv.reader((tmp_path / "docs.csv").read_text().splitlines()))
    charts = [chart for section in found.sections for chart in section.charts]
    assert html.count("<svg ") == len(charts) == markdown.count("![")
    for section in found.sections:
        assert section.title in html
        for number, (head, rows) in enumerate(section.tables):
            assert [section.title] in tables
            assert all(row in tables for row in [head, *rows])
            assert number not in section.brief or markdown.count(f"| {rows[0][0]} |")
    assert markdown.split("\n\n")[1] == found.answer
    for picture in tmp_path.glob("docs-*.svg"):
        assert picture.name in markdown
    assert "nan" not in markdown


@pytest.mark.slow
def test_controls_come_out_and_a_second_run_keeps_them(tmp_path: Path) -> None:
    arguments = [str(tmp_path), "--part", "controls", "--seeds", "1", "--epochs", "1", "--width", "32"]
    command = [sys.executable, str(EXAMPLE / "experiment.py"), *arguments]
    first = subprocess.run(command, capture_output=True, text=True, check=True)
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout.splitlines() == first.stdout.splitlines()[-1:]
    assert "as it must be" in (tmp_path / "report.html").read_text()
    other = subprocess.run([*command, "--layers", "2"], capture_output=True, text=True, check=False)
    assert other.returncode == 1
    assert "was made with other options; choose another output, or remove it" in other.stderr
