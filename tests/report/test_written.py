"""Reports of a packtool that knew fewer figures, or others: their datasets stay usable; what is absent is a dash."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import xxhash

import packtool
from packtool.errors import DataError
from packtool.formats import manifest as manifests
from packtool.report.types import PackedReport
from packtool.report.written import figures, has_all
from tests.making import Make
from tests.shell import Shell
from tests.stores import amended

Place = tuple[str | int, ...]
PACK: dict[str, Any] = {"strategy": "seamless", "sequence_length": 32, "mix": {"one": "2x", "two": "1x"}}
KINDS: dict[str, dict[str, Any]] = {"segments": PACK, "rows alone": {**PACK, "segments": False}}


def change_report(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the report of a dataset, and all that has its digest, as if its packtool had written it so."""
    report = json.loads((path / "report.json").read_bytes())
    change(report)
    raw = json.dumps(report).encode()
    (path / "report.json").write_bytes(raw)
    with amended(path) as manifest:
        manifest["report"].update(bytes=len(raw), xxh3_128=xxhash.xxh3_128_hexdigest(raw))
    run = json.loads((path / "run.json").read_bytes())
    run["manifest"] = xxhash.xxh3_128_hexdigest((path / "manifest.json").read_bytes())
    (path / "run.json").write_text(json.dumps(run))


@pytest.fixture
def made(make: Make) -> Path:
    return make({"one": [5, 40, 70, 3, 200], "two": [9, 30, 64]}, {"per_shard": 3}, **KINDS)


def places(value: Any, above: Place = ()) -> Iterator[Place]:
    """Where something stands in a report: every name at every depth, and the first of every list."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield (*above, name)
            yield from places(item, (*above, name))
    elif isinstance(value, list):
        for number, item in enumerate(value[:1]):
            yield from places(item, (*above, number))


def without(value: Any, place: Place) -> Any:
    """A report without what stands at a place."""
    value = copy.deepcopy(value)
    holder = value
    for part in place[:-1]:
        holder = holder[part]
    del holder[place[-1]]
    return value


@pytest.mark.parametrize("kind", KINDS)
def test_without_any_one_figure_it_is_read_and_read_again(made: Path, kind: str) -> None:
    report = json.loads((made / kind / "report.json").read_bytes())
    assert has_all(figures(report, PackedReport))
    assert figures(report, PackedReport) == msgspec.convert(report, PackedReport)
    for place in places(report):
        read = figures(without(report, place), PackedReport)
        written = json.loads(manifests.encode(read))
        assert json.loads(manifests.encode(figures(written, PackedReport))) == written, place


def fewer(value: Any) -> None:
    """Take a figure from every part of a report: the first number of each."""
    if isinstance(value, dict):
        numbers = [name for name, item in value.items() if isinstance(item, float | int)]
        for name in numbers[:1]:
            if name != "schema_version":
                del value[name]
        value = list(value.values())
    for item in value if isinstance(value, list) else ():
        fewer(item)


def no_numbers(value: Any) -> Any:
    """Write null for every number, as for those that were absent when the report was written again."""
    if isinstance(value, dict):
        return {name: item if name == "schema_version" else no_numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return list(map(no_numbers, value))
    return None if isinstance(value, float | int) else value


def little(report: dict[str, Any]) -> None:
    for name in report.keys() - {"schema_version", "options", "strategy", "shuffle", "ledger"}:
        del report[name]


CHANGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "nothing but what the manifest says": little,
    "a figure less everywhere": lambda report: [
        fewer(report[name]) for name in report if name not in ("options", "ledger")
    ],
    "null for numbers": lambda report: report.update(
        {name: no_numbers(report[name]) for name in ("metrics", "buckets", "sources", "sliding", "stages")}
    ),
    "of another schema_version": lambda report: report.update(schema_version=2, strategy=7, metrics=[]),
    "with figures of a later packtool": lambda report: [
        part.update(colour="red") for part in (report, *report["sources"], *report["buckets"])
    ],
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_dataset_with_other_figures_stays_usable(
    made: Path, tmp_path: Path, shell: Shell, kind: str, change: str
) -> None:
    stores, path = [made / "one", made / "two"], tmp_path / "dataset"
    packtool.pack(stores, path, **KINDS[kind])
    packtool.shuffle(path, tmp_path / "expected", epoch=1)
    change_report(path, CHANGES[change])
    assert packtool.pack(stores, path, **KINDS[kind], resume=True).kept
    mix = ["--mix", "one=2x,two=1x", *(["--no-segments"] if kind == "rows alone" else [])]
    shell("pack", *stores, "-o", path, "--strategy", "seamless", "-L", 32, *mix, "--resume")
    said = shell.out
    for command in (
        ["stats", path],
        ["stats", path, "--full", "--html", tmp_path / "page.html"],
        ["info", path],
        ["verify", path],
        ["show", path, "--row", 0, *(["--json"] if kind == "rows alone" else [])],
        ["shuffle", path, "-o", tmp_path / "shuffled", "--epoch", 1],
        ["stats", tmp_path / "shuffled"],
        ["verify", tmp_path / "shuffled"],
    ):
        said += shell(*command)
    said += re.sub("<style.*?</style>|<script.*?</script>", "", (tmp_path / "page.html").read_text(), flags=re.DOTALL)
    assert not re.search(r"\b(nan|NaN|None)\b", said), said
    shuffled = packtool.open(tmp_path / "shuffled")
    np.testing.assert_array_equal(shuffled[:], packtool.open(tmp_path / "expected")[:])
    for command in (
        ["stats", path],
        ["pack", *stores, "-o", path, "--strategy", "seamless", "-L", 32, *mix, "--resume"],
    ):
        assert "NaN" not in shell(*command, "--json")


def test_what_packtool_did_not_write_is_refused(made: Path, tmp_path: Path) -> None:
    packtool.pack(made / "one", tmp_path / "rows", strategy="bfd", sequence_length=32)
    change_report(tmp_path / "rows", lambda report: report.update(metrics={"rows": "many"}))
    with pytest.raises(
        DataError, match=r"report\.json: not what packtool wrote: 'many' is not a number\. Run the command"
    ):
        packtool.stats(tmp_path / "rows")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda report: report["ledger"].update(padding=1), "ledger"),
        (lambda report: report["sources"][0].update(tokens=1), "sources"),
        (lambda report: report["sources"].pop(), "sources"),
        (lambda report: report.update(strategy="ffd"), "strategy"),
        (lambda report: report.pop("shuffle"), "shuffle"),
        (lambda report: report["options"].pop("sequence_length"), "options"),
    ],
)
def test_figures_that_are_there_are_compared(made: Path, tmp_path: Path, change: Any, named: str) -> None:
    packtool.pack([made / "one", made / "two"], tmp_path / "rows", strategy="bfd", sequence_length=32)
    change_report(tmp_path / "rows", change)
    [problem] = packtool.verify(tmp_path / "rows").problems
    assert f"its {named} is not the manifest's" in str(problem)


def test_a_loader_does_without_the_most_documents_of_a_row(made: Path, tmp_path: Path) -> None:
    packtool.pack(made / "one", tmp_path / "rows", strategy="bfd", sequence_length=32)
    change_report(tmp_path / "rows", little)
    dataset = packtool.open(tmp_path / "rows")
    assert isinstance(dataset, packtool.reading.Dataset)
    dataset.require({"pad_cu_seqlens": 1})
