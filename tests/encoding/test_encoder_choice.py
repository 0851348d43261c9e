"""Which encoder runs, and why."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from packtool.encoding import encoder_choice as module
from packtool.encoding import encoders, families, load
from packtool.encoding.encoder_choice import choose, installed
from packtool.encoding.encoders import EncoderUnsuitableError
from packtool.errors import UsageError
from tests.encoding import listed, shapes
from tests.stores import contents
from tests.tokenizing.runs import jsonl, run


def test_a_small_input_spares_the_second_encoder(
    tmp_path: Path, small_input: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoders, "SMALL_INPUT", small_input)
    text = jsonl(["A plain text."] * 10)
    most = int(small_input * len(load.load().found.data))
    sizes = {"small": 10 * text, "large": text * (most // len(text) + 1)}
    found = {}
    for name, data in sizes.items():
        (tmp_path / f"{name}.jsonl").write_bytes(data)
        found[name] = run(tmp_path / f"{name}.jsonl", tmp_path / name).run
    (tmp_path / "small.jsonl.gz").write_bytes(gzip.compress(sizes["small"]))
    found["archive"] = run(tmp_path / "small.jsonl.gz", tmp_path / "archive").run
    fast = "gigatoken" if installed("gigatoken") else "tokenizers"
    assert {name: of["encoder"] for name, of in found.items()} == {
        "small": "tokenizers",
        "large": fast,
        "archive": fast,
    }
    if installed("gigatoken"):
        assert found["small"]["encoder_why"] == "the input is so small that loading gigatoken would take longer"
    asked = run(tmp_path / "small.jsonl", tmp_path / "asked", encoder=fast)
    assert contents(asked.path) == contents(tmp_path / "small")
    again = run(tmp_path / "small.jsonl", tmp_path / "again")
    assert again.run["encoder"] == fast, "an earlier run kept what it is loaded from"
    assert contents(again.path) == contents(tmp_path / "small")


@pytest.mark.parametrize("name", listed.UNLISTED)
def test_shapes_that_gigatoken_is_not_for(name: str) -> None:
    spec, reason = listed.UNLISTED[name]
    chosen = choose(spec)
    assert chosen.encoder in ("tokenizers", "fastokens")
    assert reason in str(families.shape(spec))
    if chosen.encoder == "tokenizers" and installed("gigatoken"):
        assert reason in chosen.why
    with pytest.raises(EncoderUnsuitableError, match="Give --encoder auto or tokenizers"):
        choose(spec, "gigatoken")


def test_unknown_encoder() -> None:
    with pytest.raises(UsageError, match="no encoder 'fast'"):
        choose(shapes.spec(), "fast")


def test_without_the_libraries_the_reference_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "installed", lambda encoder: False)
    chosen = choose(shapes.spec())
    assert chosen.encoder == "tokenizers"
    assert chosen.why == "gigatoken is not installed; fastokens is not installed"
    with pytest.raises(EncoderUnsuitableError, match="gigatoken is not installed"):
        choose(shapes.spec(), "gigatoken")
