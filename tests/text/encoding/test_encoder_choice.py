"""Which encoder runs, and why."""

import pytest

from packtool.errors import UsageError
from packtool.text.encoding import encoder_choice as module
from packtool.text.encoding import families
from packtool.text.encoding.encoder_choice import installed
from packtool.text.encoding.encoders import EncoderUnsuitableError
from packtool.text.encoding.load import FoundTokenizer
from tests.text.encoding import listed, shapes
from tests.text.encoding.encoding import chosen


@pytest.mark.parametrize("name", listed.UNLISTED)
def test_shapes_that_gigatoken_is_not_for(name: str) -> None:
    spec, reason = listed.UNLISTED[name]
    assert reason in str(families.shape(spec))
    if name == "word prefix":
        return  # `tokenizers` does not load it either
    found = chosen(spec)
    assert found.encoder in ("tokenizers", "fastokens")
    if found.encoder == "tokenizers" and installed("gigatoken"):
        assert reason in found.why
    with pytest.raises(EncoderUnsuitableError, match='Give encoder="auto" or tokenizers'):
        chosen(spec, "gigatoken")


def test_unknown_encoder() -> None:
    with pytest.raises(UsageError, match="no encoder 'fast'"):
        chosen(shapes.spec(), "fast")


@pytest.mark.parametrize(
    ("size", "wanted", "encoder"),
    [
        (0, "auto", "tokenizers"),
        (module.LITTLE - 1, "auto", "tokenizers"),
        (module.LITTLE, "auto", "gigatoken"),
        (None, "auto", "gigatoken"),  # as much as there may be
        (0, "gigatoken", "gigatoken"),
    ],
)
def test_little_text_is_encoded_by_the_reference_alone(size: int | None, wanted: str, encoder: str) -> None:
    found = FoundTokenizer({"tokenizer.json": shapes.data(shapes.spec())}, "here")
    recipe = module.choose_encoder(found, wanted, text_bytes=size)
    assert recipe.encoder == encoder
    assert ("only for more text" in recipe.why) == (encoder == "tokenizers")


def test_without_the_libraries_the_reference_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "installed", lambda encoder: False)
    found = chosen(shapes.spec())
    assert found.encoder == "tokenizers"
    assert found.why == "gigatoken is not installed; fastokens is not installed"
    with pytest.raises(EncoderUnsuitableError, match="gigatoken is not installed"):
        chosen(shapes.spec(), "gigatoken")
