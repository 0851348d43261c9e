"""`report.json` is read as it was written, and agrees with its manifest; what is no report of packtool's is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import xxhash

import packtool
from packtool.errors import DataError
from packtool.formats import manifest as manifests
from packtool.report.types import PackedReport
from tests.making import Make
from tests.stores import amended

PACK: dict[str, Any] = {"strategy": "seamless", "sequence_length": 32, "mix": {"one": "2x", "two": "1x"}}
KINDS: dict[str, dict[str, Any]] = {
    "segments": PACK,
    "rows alone": {**PACK, "segments": False},
    "all": {"strategy": "bfd", "sequence_length": 32},
}


def change_report(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the report of a dataset, and its digest in the manifest, as if its packtool had written it so."""
    report = json.loads((path / "report.json").read_bytes())
    change(report)
    raw = json.dumps(report).encode()
    (path / "report.json").write_bytes(raw)
    with amended(path) as manifest:
        manifest["report"].update(bytes=len(raw), xxh3_128=xxhash.xxh3_128_hexdigest(raw))


@pytest.fixture
def made(make: Make, tmp_path: Path) -> Path:
    stores = {"one": [5, 40, 70, 3, 200], "two": [9, 30, 64]}
    return make(stores, {"per_shard": 3}, at=tmp_path / "made", **KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_read_as_it_was_written(made: Path, kind: str) -> None:
    path = made / kind
    raw = (path / "report.json").read_bytes()
    entry = packtool.open(path).manifest.report
    assert json.loads(manifests.encode(manifests.read_report(path, entry, PackedReport))) == json.loads(raw)


def test_figures_of_a_later_packtool_are_not_looked_at(made: Path) -> None:
    change_report(made / "segments", lambda report: [part.update(new=1) for part in (report, *report["sources"])])
    assert not packtool.verify(made / "segments").problems
    assert packtool.stats(made / "segments").metrics is not None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda report: report["metrics"].update(rows="many"), "Expected `int`, got `str` - at `$.metrics.rows`"),
        (lambda report: report.update(schema_version=3), "Invalid enum value 3 - at `$.schema_version`"),
        (lambda report: report.pop("shuffle"), "Object missing required field `shuffle`"),
    ],
)
def test_what_packtool_did_not_write_is_refused(made: Path, change: Any, why: str) -> None:
    change_report(made / "segments", change)
    for read in (packtool.stats, packtool.verify):
        with pytest.raises(DataError) as raised:
            problems = read(made / "segments").problems
            raise problems[0]
        assert f"report.json: not what packtool wrote: {why}" in str(raised.value)
        assert str(raised.value).endswith(" Run the command that made it again, with overwrite=True.")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda report: report["ledger"].update(padding=1), "ledger"),
        (lambda report: report["sources"][0].update(tokens=1), "sources"),
        (lambda report: report["sources"].pop(), "sources"),
        (lambda report: report.update(strategy="ffd"), "strategy"),
        (lambda report: report.update(shuffle=None), "shuffle"),
        (lambda report: report["options"].pop("sequence_length"), "options"),
    ],
)
def test_figures_are_compared_with_the_manifest(made: Path, change: Any, named: str) -> None:
    change_report(made / "segments", change)
    [problem] = packtool.verify(made / "segments").problems
    assert f"its {named} is not the manifest's" in str(problem)
