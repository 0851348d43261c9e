"""Tokenizer files changed at random: `tokenize` stores the ids of `tokenizers`, or refuses the file in one line.

make test-tokenizers runs more of them.
"""

import json
import os
import warnings
from collections import Counter
from pathlib import Path

import pytest

import packtool
from packtool.errors import PacktoolError
from packtool.formats.token_store import TokenStore
from tests.text.encoding import fuzz, mutants
from tests.text.encoding.encoding import expected

FILES = 40
SEEDS = max(int(os.environ.get("TEXTS", "0")) // 500, 15)


def texts(data: bytes, seed: int) -> list[str]:
    """Of what the file has of vocabulary and added tokens, where it has them."""
    spec = json.loads(data)
    vocab, tokens = spec["model"].get("vocab"), spec.get("added_tokens")
    contents = [
        token.get("content") for token in (tokens if isinstance(tokens, list) else ()) if isinstance(token, dict)
    ]
    known = {
        "model": {"vocab": dict.fromkeys(filter(None, vocab if isinstance(vocab, dict) else ())) or {"a": 0}},
        "added_tokens": [{"content": text} for text in contents if text],
    }
    return list(filter(None, fuzz.texts(known, 90, seed)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_ids_are_right_or_the_file_is_refused(seed: int, tmp_path: Path) -> None:
    outcomes: Counter[str] = Counter()
    for number, (changes, data) in enumerate(mutants.files(FILES, seed)):
        given = texts(data, number)
        (tmp_path / "tokenizer.json").write_bytes(data)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = packtool.tokenize(
                    [{"text": text} for text in given],
                    tmp_path / f"store-{number}",
                    tokenizer=tmp_path,
                    eos_token=0,
                    workers=1,
                    quiet=True,
                )
        except PacktoolError as error:
            outcomes["refused" if "\n" not in str(error) else f"several lines: {changes}"] += 1
            continue
        store = TokenStore(tmp_path / f"store-{number}")
        stored = [store.document(document).tolist()[:-1] for document in range(store.documents)]
        # A text with an EOS at its end gets no second one; without anything before it, it is no document.
        wanted = [ids[:-1] if ids[-1:] == [0] else ids for ids in expected(json.loads(data), given)]
        assert stored == list(filter(None, wanted)), f"seed {seed}, file {number}: {changes}"
        outcomes[result.run["encoder"]] += 1
    assert outcomes.keys() <= {"refused", "tokenizers", "gigatoken", "fastokens"}
    assert min(outcomes["refused"], outcomes["tokenizers"], outcomes["gigatoken"] + outcomes["fastokens"]) > 0
