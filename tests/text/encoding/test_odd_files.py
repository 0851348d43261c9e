"""Files that two libraries read in two ways go to the reference, whose ids are stored."""

import json
from pathlib import Path
from typing import Any

import pytest

from packtool.text.encoding.encoders import EncoderUnsuitableError
from tests.text.encoding import fuzz, shapes
from tests.text.encoding.encoding import chosen, expected
from tests.text.tokenizing.runs import documents, jsonl, run

SPEC = shapes.spec()
MODEL = SPEC["model"]
NEXT = len(MODEL["vocab"])


def added(*tokens: tuple[str, int], **changes: Any) -> dict[str, Any]:
    more = [shapes.token(text, number) for text, number in tokens]
    return {**SPEC, "added_tokens": [*SPEC["added_tokens"], *more], **changes}


def model(**changes: Any) -> dict[str, Any]:
    return {**SPEC, "model": {**MODEL, **changes}}


MERGES = MODEL["merges"]
ODD = {
    "an id above": (added(("<x>", NEXT + 1)), f"its added token '<x>' has the id {NEXT + 1} in the file, and {NEXT}"),
    "an id of another": (added(("<x>", 7)), f"its added token '<x>' has the id 7 in the file, and {NEXT} in use"),
    "an id above, digits apart": (
        added(("<x>", NEXT + 3000), pre_tokenizer=shapes.digits()),
        f"its added token '<x>' has the id {NEXT + 3000:d} in the file",
    ),
    "an entry's id": (added(("the", NEXT + 1)), "its added token 'the' has the id"),
    "one id for two": (added(("<x>", NEXT), ("<y>", NEXT)), "its added token '<y>' has the id"),
    "an added token twice": (added(("<x>", NEXT), ("<x>", NEXT)), "an added token is empty, or given twice"),
    "an empty token": (added(("", NEXT), normalizer=shapes.NFC), "an added token is empty, or given twice"),
    "merges twice": (model(merges=[*MERGES, *MERGES[:50]]), "is given twice"),
    "an id below 2^24": (
        model(vocab={**MODEL["vocab"], "the": (1 << 24) - 1}),
        "its largest id is 16,777,215, of 602 entries",
    ),
    "an id of 2^31": (model(vocab={**MODEL["vocab"], "the": 1 << 31}), "its largest id is 2,147,483,648"),
    "the largest id": (model(vocab={**MODEL["vocab"], "the": (1 << 32) - 1}), "its largest id is 4,294,967,295"),
    "two texts of one id": (model(vocab={**MODEL["vocab"], "☃": 7}), "two of its entries have one id"),
}
SOME = [text for text in fuzz.texts(SPEC, 60, seed=1) if shapes.EOS not in text]
TEXTS = ["the quick <x> brown 123 <y>", "a<x>b the<x>", "the", "and the others'", "12 the 3", *SOME]


@pytest.mark.filterwarnings("ignore::packtool.warnings.PacktoolWarning")
@pytest.mark.parametrize("name", ODD)
def test_the_reference_encodes(name: str, tmp_path: Path) -> None:
    spec, reason = ODD[name]
    found = chosen(spec)
    assert found.encoder == "tokenizers"
    assert reason in found.why
    for encoder in ("gigatoken", "fastokens"):
        with pytest.raises(EncoderUnsuitableError, match="does not support this tokenizer: "):
            chosen(spec, encoder)
    (tmp_path / "tokenizer.json").write_text(json.dumps(spec))
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS))
    result = run(tmp_path / "a.jsonl", tmp_path / "o", tokenizer=tmp_path, eos_token=0)
    stored = [document[:-1] for document in documents(result.path)]
    assert stored == [ids for ids in expected(spec, TEXTS) if ids]
