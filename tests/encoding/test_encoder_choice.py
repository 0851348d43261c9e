"""Which encoder runs, and why."""

from __future__ import annotations

import pytest

from packtool.encoding import encoder_choice as module
from packtool.encoding import families
from packtool.encoding.encoder_choice import choose, installed
from packtool.encoding.encoders import EncoderUnsuitableError
from packtool.errors import UsageError
from tests.encoding import listed, shapes


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
