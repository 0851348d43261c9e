"""Tokenizer files made to be read in two ways: small ones of known shapes, changed at random.

The same for the same seed. A file may be whole, odd or broken; nothing here says which.
"""

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from packtool.text.encoding.families import DEEPSEEK, GPT4, QWEN35
from tests.text.encoding import shapes
from tests.text.encoding.listed import LISTED, UNLISTED

Spec: TypeAlias = dict[str, Any]
Change: TypeAlias = Callable[[random.Random, Spec], None]

FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
CONTENTS = (
    *("<x>", "<y>", "<x><y>", "<|im_start|>", "the", "Ġthe", " the", "  ", "\n", "é", "e\u0301", "1", "a", "▁"),
    *("<0x41>", "😀", "ſ", ""),
)
LARGE = (1 << 16, (1 << 24) - 1, 1 << 24, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 63, -1)
NOTHING: tuple[Any, ...] = (None, [], {}, "", 0, 7, 0.5, True, [None], {"type": None}, [[]], "é", "a")
BASES = (*LISTED.values(), shapes.pairs(), shapes.sentencepiece(normalizer=None, pre_tokenizer=shapes.METASPACE))
_PLAIN_KINDS = (
    "NFD",
    "NFKC",
    "Lowercase",
    "StripAccents",
    "Nmt",
    "ByteLevel",
    "Whitespace",
    "BertPreTokenizer",
    "None",
)
KNOWN = (
    *BASES,
    *(spec for spec, _ in UNLISTED.values()),
    *(shapes.spec(normalizer={"type": kind}, pre_tokenizer={"type": kind}) for kind in _PLAIN_KINDS),
    *(shapes.spec(pre_tokenizer=shapes.split(each)) for each in (QWEN35, r"\p{Han}+", "", "(", r"a|ab", r"(?=a)")),
    *(shapes.spec(pre_tokenizer=shapes.split(GPT4, behavior=kind)) for kind in ("MergedWithPrevious", "Contiguous")),
    *(shapes.spec(pre_tokenizer=each) for each in (shapes.splits(*DEEPSEEK[::-1]), shapes.digits(use_regex=False))),
    shapes.spec(pre_tokenizer=shapes.METASPACE | {"prepend_scheme": "never", "split": True}),
    shapes.spec(normalizer={"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "}),
    shapes.spec(normalizer={"type": "Strip", "strip_left": True, "strip_right": True}),
)
"""Files that entries are taken of."""


def files(count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """So many files, each with the names of its changes."""
    rng = random.Random(seed)
    for _ in range(count):
        spec = copy.deepcopy(rng.choice(BASES))
        chosen = rng.choices(CHANGES, k=rng.choice((1, 1, 1, 2, 2, 3)))
        for change in chosen:
            change(rng, spec)
        yield " + ".join(change.__name__ for change in chosen), json.dumps(spec).encode()


def an_entry(rng: random.Random, spec: Spec) -> None:
    """An entry is what another file has there, or what none has."""
    names = ["normalizer", "normalizer", "pre_tokenizer", "pre_tokenizer", "pre_tokenizer", *spec]
    name = rng.choice([name for name in names if name != "model"])
    _set(rng, spec, name, [each.get(name) for each in KNOWN])


def an_entry_of_the_model(rng: random.Random, spec: Spec) -> None:
    name = rng.choice([*spec["model"]])
    _set(rng, spec["model"], name, [each["model"].get(name) for each in KNOWN])


def _set(rng: random.Random, holder: Spec, name: str, known: list[Any]) -> None:
    """Give an entry one of the values that are known, each of which is as likely as another, or none of them."""
    known = [each for number, each in enumerate(known) if each not in known[:number]]
    how = rng.random()
    if how < 0.1:
        holder.pop(name, None)
    else:
        holder[name] = copy.deepcopy(rng.choice(NOTHING if how < 0.3 else known))


def entries(rng: random.Random, spec: Spec) -> None:
    """A conversion that drops entries, and leaves the ids or closes the gaps; or one that adds some."""
    vocab = _vocab(spec)
    short = [text for text in vocab if len(text) == 1 or text.startswith("<0x")]
    some = rng.choice((short, [*vocab]))
    for text in rng.sample(some, min(len(some), rng.choice((0, 1, 1, 5, 200)))):
        del vocab[text]
    for _ in range(rng.choice((0, 0, 1, 3))):
        vocab.setdefault(_some(rng, spec) + rng.choice(("", _some(rng, spec))), len(vocab) + rng.choice((0, 0, 5)))
    if vocab and rng.random() < 0.3:
        spec["model"]["vocab"] = {text: number for number, text in enumerate(vocab)}


def ids(rng: random.Random, spec: Spec) -> None:
    vocab, how = _vocab(spec), rng.random()
    if how < 0.2:
        numbers = list(vocab.values())
        rng.shuffle(numbers)
        vocab.update(zip(list(vocab), numbers, strict=True))
    elif how < 0.5 and vocab:
        vocab[rng.choice([*vocab])] = rng.choice((*LARGE, 7, 1.5, None, "7", len(vocab)))
    else:
        for token in _tokens(spec):
            token["id"] = rng.choice((token["id"], token["id"] + 1, max(token["id"] - 1, 0), 7, *LARGE))


def added_tokens(rng: random.Random, spec: Spec) -> None:
    tokens, following = _tokens(spec), len(_vocab(spec)) + 1
    for number in range(rng.randrange(1, 4)):
        token = {"id": following + number, "content": _some(rng, spec), **dict.fromkeys(FLAGS, False)}
        tokens.append(token | {flag: rng.random() < 0.2 for flag in FLAGS})
    if rng.random() < 0.3:
        tokens += [dict(token, id=token["id"] + rng.randrange(2)) for token in tokens]
        rng.shuffle(tokens)
    spec["added_tokens"] = tokens


def merges(rng: random.Random, spec: Spec) -> None:
    """Some are given again, maybe in the other form, or are new ways to an entry, or make what is none."""
    found = spec["model"].get("merges")
    if not isinstance(found, list) or not found:
        return
    how = rng.randrange(5)
    if how == 0:
        rng.shuffle(found)
    elif how == 1:
        del found[len(found) // 2 :]
    elif how == 2:
        again = rng.choices(found, k=rng.choice((1, 40)))
        found[rng.randrange(len(found)) : 0] = map(_other_form, again) if rng.random() < 0.5 else again
    elif how == 3:
        found[:] = [_other_form(each) if rng.random() < 0.5 else each for each in found]
    else:
        text = _some(rng, spec) or "abc"
        at = rng.randrange(1, len(text)) if len(text) > 1 else 1
        if rng.random() < 0.7:
            for part in (text[:at], text[at:], text):
                _vocab(spec).setdefault(part, len(_vocab(spec)))
        found.insert(rng.randrange(len(found)), [text[:at], text[at:], "x"][: rng.choice((1, 2, 2, 2, 2, 3))])


def _other_form(merge: Any) -> Any:
    if isinstance(merge, str):
        return merge.split(" ")
    return " ".join(map(str, merge)) if isinstance(merge, list) else merge


def _tokens(spec: Spec) -> list[dict[str, Any]]:
    tokens: Any = spec.get("added_tokens")
    return [token for token in tokens if "id" in token] if isinstance(tokens, list) and all(tokens) else []


def _vocab(spec: Spec) -> dict[str, Any]:
    vocab: Any = spec["model"].get("vocab")
    return vocab if isinstance(vocab, dict) else {}


def _some(rng: random.Random, spec: Spec) -> str:
    """An entry, or a text that is none."""
    return rng.choice([*_vocab(spec), *CONTENTS])


CHANGES: tuple[Change, ...] = (
    *(an_entry, an_entry, an_entry, an_entry, an_entry, an_entry_of_the_model, an_entry_of_the_model),
    *(entries, entries, ids, ids, added_tokens, added_tokens, merges, merges, merges),
)
