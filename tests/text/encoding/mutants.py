"""Tokenizer files made to be read in two ways: small ones of known shapes, changed at random.

The same for the same seed.

A file may be whole, odd or broken; nothing here says which.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from packtool.text.encoding.families import DEEPSEEK, GPT2, GPT4, O200K, QWEN2, QWEN35, TEKKEN
from tests.text.encoding import shapes
from tests.text.encoding.listed import LISTED

Spec: TypeAlias = dict[str, Any]
Change: TypeAlias = Callable[[random.Random, Spec], None]

FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")
CONTENTS = (
    *("<x>", "<y>", "<x><y>", "<|im_start|>", "the", "Ġthe", " the", "  ", "\n", "é", "e\u0301", "1", "a", "▁"),
    *("<0x41>", "😀", "ſ", ""),
)
BASES = (*LISTED.values(), shapes.pairs(), shapes.sentencepiece(normalizer=None, pre_tokenizer=shapes.METASPACE))
LARGE = (1 << 16, (1 << 24) - 1, 1 << 24, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 63, -1)
NORMALIZERS: tuple[Any, ...] = (
    None,
    *(
        {"type": kind}
        for kind in ("NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel", "None")
    ),
    {"type": "Strip", "strip_left": True, "strip_right": True},
    shapes.SPACES,
    shapes.PREPEND,
    {"type": "Replace", "pattern": {"Regex": r"\s+"}, "content": " "},
    {"type": "Replace", "pattern": {"String": "a"}, "content": ""},
    {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": None,
        "lowercase": False,
    },
    shapes.normalizers_of(),
    shapes.normalizers_of(shapes.PREPEND, shapes.SPACES),
    shapes.normalizers_of(shapes.NFC, {"type": "Lowercase"}),
    shapes.normalizers_of(shapes.normalizers_of(shapes.NFC)),
)
_SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}
PRE_TOKENIZERS: tuple[Any, ...] = (
    None,
    *(
        shapes.byte_level(**{flag: value})
        for flag in ("use_regex", "add_prefix_space", "trim_offsets")
        for value in (True, False)
    ),
    *(
        shapes.split(pattern)
        for pattern in (GPT2, GPT4, QWEN2, QWEN35, O200K, TEKKEN, r"\d|\w+|\W", r"\p{Han}+", "", "(", r"a|ab", r"(?=a)")
    ),
    *(shapes.split(GPT4, behavior=kind) for kind in ("Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous")),
    shapes.split(GPT4, behavior="Removed", invert=True),
    shapes.splits(*DEEPSEEK),
    shapes.splits(*DEEPSEEK[::-1]),
    shapes.digits(),
    shapes.digits(individual=False),
    shapes.digits(use_regex=False),
    shapes.METASPACE,
    shapes.METASPACE | {"prepend_scheme": "always"},
    shapes.METASPACE | {"prepend_scheme": "never", "split": True},
    shapes.GEMMA_SPLIT,
    {"type": "Sequence", "pretokenizers": []},
    {"type": "Sequence", "pretokenizers": [shapes.byte_level(), shapes.byte_level()]},
    {"type": "Sequence", "pretokenizers": [{"type": "Punctuation", "behavior": "Isolated"}, shapes.byte_level()]},
    {"type": "Sequence", "pretokenizers": [_SPLIT | {"pattern": {"String": "a"}}, shapes.byte_level()]},
    *({"type": kind} for kind in ("Whitespace", "WhitespaceSplit", "BertPreTokenizer", "UnicodeScripts", "None")),
)


def files(count: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """So many files, each with the names of its changes."""
    rng = random.Random(seed)
    for _ in range(count):
        spec = copy.deepcopy(rng.choice(BASES))
        chosen = rng.choices(CHANGES, k=rng.choice((1, 1, 1, 2, 2, 3)))
        for change in chosen:
            change(rng, spec)
        yield " + ".join(change.__name__ for change in chosen), json.dumps(spec).encode()


def _tokens(spec: Spec) -> list[dict[str, Any]]:
    tokens: Any = spec.get("added_tokens")
    return [token for token in tokens if "id" in token] if isinstance(tokens, list) and all(tokens) else []


def _vocab(spec: Spec) -> dict[str, Any]:
    vocab: Any = spec["model"].get("vocab")
    return vocab if isinstance(vocab, dict) else {}


def _some(rng: random.Random, spec: Spec) -> str:
    """An entry, or a text that is none."""
    return rng.choice([*_vocab(spec), *CONTENTS])


def added_tokens(rng: random.Random, spec: Spec) -> None:
    tokens = _tokens(spec)
    following = 1 + max((number for number in _vocab(spec).values() if isinstance(number, int)), default=-1)
    for number in range(rng.randrange(1, 4)):
        token = {"id": following + number, "content": _some(rng, spec), **dict.fromkeys(FLAGS, False)}
        if rng.random() < 0.4:
            token["id"] = rng.choice((0, 7, following + 1, following + 3000, *LARGE))
        token |= {flag: rng.random() < 0.2 for flag in FLAGS}
        tokens.append(token)
    spec["added_tokens"] = tokens


def added_tokens_moved(rng: random.Random, spec: Spec) -> None:
    for token in _tokens(spec):
        if rng.random() < 0.5:
            token["id"] = rng.choice((token["id"] + 1, max(token["id"] - 1, 0), rng.randrange(1000), *LARGE))


def added_tokens_again(rng: random.Random, spec: Spec) -> None:
    tokens = _tokens(spec)
    spec["added_tokens"] = tokens + [dict(token, id=token["id"] + rng.randrange(2)) for token in tokens]
    rng.shuffle(spec["added_tokens"])


def an_entry_less(rng: random.Random, spec: Spec) -> None:
    """A conversion that drops entries, and leaves the ids or closes the gaps."""
    vocab = _vocab(spec)
    for text in rng.sample(list(vocab), min(len(vocab), rng.choice((1, 1, 5)))):
        del vocab[text]
    if rng.random() < 0.5:
        spec["model"]["vocab"] = {text: number for number, text in enumerate(vocab)}


def a_byte_less(rng: random.Random, spec: Spec) -> None:
    vocab = _vocab(spec)
    short = [text for text in vocab if len(text) == 1 or text.startswith("<0x")]
    for text in rng.sample(short, min(len(short), rng.choice((1, 10, 200)))):
        del vocab[text]


def an_entry_more(rng: random.Random, spec: Spec) -> None:
    vocab = _vocab(spec)
    for _ in range(rng.choice((1, 3))):
        joined = "".join(rng.choices([*vocab] or ["a"], k=2))
        vocab.setdefault(rng.choice((joined, *CONTENTS, "<0x41>x", "日本")), len(vocab) + rng.choice((0, 0, 5)))


def other_ids(rng: random.Random, spec: Spec) -> None:
    vocab = _vocab(spec)
    numbers = list(vocab.values())
    rng.shuffle(numbers)
    spec["model"]["vocab"] = dict(zip(vocab, numbers, strict=True))


def an_id(rng: random.Random, spec: Spec) -> None:
    vocab = _vocab(spec)
    if vocab:
        vocab[rng.choice([*vocab])] = rng.choice((*LARGE, 7, 1.5, None, "7", len(vocab)))


def no_entries(rng: random.Random, spec: Spec) -> None:
    spec["model"]["vocab"] = rng.choice(({}, None, [], {"": 0}, {"a": 0}, [["a", 0.0]]))


def _merges(spec: Spec) -> list[Any]:
    merges: Any = spec["model"].get("merges")
    return merges if isinstance(merges, list) else []


def merges_again(rng: random.Random, spec: Spec) -> None:
    merges = _merges(spec)
    if merges:
        again = rng.choices(merges, k=rng.choice((1, 40)))
        merges[rng.randrange(len(merges)) : 0] = again if rng.random() < 0.5 else [_other_form(each) for each in again]


def _other_form(merge: Any) -> Any:
    if isinstance(merge, str):
        return merge.split(" ")
    return " ".join(map(str, merge)) if isinstance(merge, list) else merge


def other_merges(rng: random.Random, spec: Spec) -> None:
    merges = _merges(spec)
    how = rng.randrange(5)
    if how == 0:
        rng.shuffle(merges)
    elif how == 1:
        spec["model"]["merges"] = merges[: len(merges) // 2]
    elif how == 2:
        spec["model"]["merges"] = [_other_form(each) for each in merges]
    elif how == 3:
        spec["model"]["merges"] = [_other_form(each) if rng.random() < 0.5 else each for each in merges]
    else:
        spec["model"]["merges"] = rng.choice(([], None, {}, "a b"))


def a_merge(rng: random.Random, spec: Spec) -> None:
    """Of entries whose product is none, or of what is none."""
    merges = _merges(spec)
    if merges:
        pair = [_some(rng, spec), _some(rng, spec)]
        merges.insert(
            rng.randrange(len(merges) + 1), rng.choice((pair, " ".join(pair), pair[:1], [*pair, "x"], "ab", "", 7))
        )


def a_merge_and_its_product(rng: random.Random, spec: Spec) -> None:
    """Another way to an entry, or one to a new entry."""
    merges, vocab = _merges(spec), _vocab(spec)
    if merges and vocab:
        long = [text for text in vocab if len(text) > 2]
        text = rng.choice(long or ["abc"])
        at = rng.randrange(1, len(text)) if len(text) > 1 else 1
        for part in (text[:at], text[at:], text):
            vocab.setdefault(part, len(vocab))
        merges.insert(rng.randrange(len(merges) + 1), [text[:at], text[at:]])


_TEMPLATE = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "a", "type_id": 0}}], "pair": []}
VALUES: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("model.ignore_merges", (True, False, None)),
    ("model.byte_fallback", (True, False, None)),
    ("model.fuse_unk", (True, False)),
    ("model.unk_token", (None, "a", "<unk>", shapes.EOS, "")),
    ("model.dropout", (0.0, 0.5, 1.0, 7, None)),
    ("model.continuing_subword_prefix", ("", "##", "é", None)),
    ("model.end_of_word_suffix", ("", "</w>", None)),
    ("model.type", ("BPE", "Unigram", "WordPiece", "WordLevel", "bpe", "", None, 7)),
    *[("normalizer", NORMALIZERS)] * 7,
    *[("pre_tokenizer", PRE_TOKENIZERS)] * 11,
    ("post_processor", (_TEMPLATE | {"special_tokens": {"a": {"id": "a", "ids": [5], "tokens": ["a"]}}},)),
    (
        "truncation",
        ({"direction": "Right", "max_length": 3, "strategy": "LongestFirst", "stride": 0}, {"max_length": "3"}),
    ),
    ("decoder", ({"type": "ByteFallback"}, {"type": "Nonsense"})),
    ("version", ("2.0",)),
    ("surplus", ([1],)),
)
"""Entries of a file, and what they may be; those that change most are there more often."""


def a_value(rng: random.Random, spec: Spec) -> None:
    path, values = rng.choice(VALUES)
    holder = spec["model"] if path.startswith("model.") else spec
    holder[path.removeprefix("model.")] = rng.choice(values)


def an_entry_of_the_file(rng: random.Random, spec: Spec) -> None:
    where = rng.choice((spec, spec["model"]))
    name = rng.choice([name for name in where if name != "model"])
    if rng.random() < 0.3:
        del where[name]
    else:
        where[name] = rng.choice((None, [], {}, "", 7, True, [None], {"type": None}, [[]]))


CHANGES: tuple[Change, ...] = (
    *(added_tokens, added_tokens, added_tokens_moved, added_tokens_again),
    *(an_entry_less, a_byte_less, an_entry_more, other_ids, an_id, no_entries),
    *(merges_again, other_merges, a_merge, a_merge_and_its_product, a_merge_and_its_product),
    *(*[a_value] * 9, an_entry_of_the_file),
)
