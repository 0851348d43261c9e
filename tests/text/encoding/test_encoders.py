"""The reference gives the ids of the tokenizers library, and is one clear error where that fails."""

import pytest

from packtool.errors import DataError
from packtool.text.encoding.encoders import reference_tokenizer
from tests.text.encoding import fuzz, listed, shapes
from tests.text.encoding.encoding import differing

SPECS = {name: spec for name, (spec, _) in listed.UNLISTED.items() if name != "word prefix"}
SPECS["never padded nor cut"] = listed.LISTED["asking for more"]


@pytest.mark.parametrize("name", SPECS)
def test_ids_of_the_reference_are_those_of_tokenizers(name: str) -> None:
    spec = SPECS[name]
    assert differing(spec, ["", *fuzz.texts(spec, 300, seed=2)], "tokenizers") == []


def test_a_panic_in_the_library_is_one_clear_error() -> None:
    spec, _ = listed.UNLISTED["word prefix"]  # its vocabulary does not have the prefix
    with pytest.raises(DataError, match="the tokenizers library can't load it"):
        reference_tokenizer(shapes.data(spec))
