"""Random choices of documents are what naive code makes of the same options, document by document; in any memory.

python -m tests.choosing.test_recount 2000 7        cases, seed
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import xxhash

from packtool.choosing.choose import choose_documents
from packtool.choosing.chosen import Chosen
from packtool.errors import PacktoolError
from packtool.formats.token_store import Corpus, TokenStore
from packtool.options.check import checked
from packtool.options.pack import PackArguments
from packtool.planning import arrays as module
from packtool.planning.shuffling.permutation import Purpose, keys
from packtool.writing import array_files
from packtool.writing.array_files import temporary_arrays
from tests.choosing.web_and_wiki import asked_of, store_of

NAMES = ("a/tok", "b/tok", "wiki")
BIG = 1_700_000_000_000_000_000
WHERE: dict[str, Callable[[Document], bool]] = {
    "ts >= 1700000000000000003": lambda d: d.record["ts"] >= BIG + 3,
    "ts in (1700000000000000001, 1700000000000000004)": lambda d: d.record["ts"] - BIG in (1, 4),
    "ts == 1.7e18": lambda d: d.record["ts"] == BIG,
    "store == 'a/tok' or score < 0.5": lambda d: d.store == 0 or d.record["score"] < 0.5,
    "store not in ('b/tok', 'wiki') or line > 9": lambda d: d.store == 0 or d.line > 9,
    "store != 'wiki' and tokens < 20": lambda d: d.store != 2 and d.tokens < 20,
    "repo is not None and repo >= 'r3'": lambda d: d.record["repo"] is not None and d.record["repo"] >= "r3",
    "not (repo in ('r1', 'r2', None) or score > 0.9)": lambda d: (
        not (d.record["repo"] in ("r1", "r2", None) or d.record["score"] > 0.9)
    ),
}


@dataclass
class Document:
    """A document, as naive code sees it."""

    store: int
    line: int
    tokens: int
    record: dict[str, Any]
    reason: str = ""

    @property
    def text(self) -> str:
        text: str = self.record["text"]
        return text


@dataclass
class Stores:
    """Three stores, two of which lie in directories of one name, and what else choices name."""

    place: Path
    paths: list[Path] = field(default_factory=list)
    records: list[list[dict[str, Any]]] = field(default_factory=list)
    excluded: list[str] = field(default_factory=list)

    def make(self, draw: random.Random) -> Stores:
        texts = [f"text {n} " * (1 + n % 9) for n in range(60)]
        for name in NAMES:
            records = []
            for _ in range(draw.randrange(30, 70)):
                repo = draw.choice([None, *(f"r{n}" for n in range(7))])
                ts = BIG + draw.randrange(6)
                records.append({"text": draw.choice(texts), "ts": ts, "score": draw.random(), "repo": repo})
            self.records.append(records)
            self.paths.append(self.store(self.place / name, records))
        self.excluded = draw.sample(texts, 8)
        self.store(self.place / "exam", [{"text": text, "ts": 0, "score": 0, "repo": ""} for text in self.excluded])
        return self

    def store(self, path: Path, records: list[dict[str, Any]]) -> Path:
        return store_of(path, records, columns="ts,score,repo", quiet=True)

    def documents(self) -> list[Document]:
        out = []
        for number, (path, records) in enumerate(zip(self.paths, self.records, strict=True)):
            lengths = TokenStore(path).lengths().tolist()
            for line, (record, tokens) in enumerate(zip(records, lengths, strict=True), 1):
                out.append(Document(number, line, tokens, record))
        return out


def options_of(draw: random.Random, stores: Stores) -> dict[str, Any]:
    """Some options together."""
    options: dict[str, Any] = {"seed": draw.randrange(3)}
    some: dict[str, Callable[[], Any]] = {
        "where": lambda: draw.choice(list(WHERE)),
        "min_tokens": lambda: draw.randrange(1, 20),
        "max_tokens": lambda: draw.randrange(10, 60),
        "drop_duplicates": lambda: True,
        "exclude": lambda: stores.place / "exam",
        "shard_of": lambda: f"{draw.randrange(1, 3)}/2",
        "sample": lambda: draw.choice(["50%", "80%"]),
        "holdout": lambda: draw.choice(["20%", "60%", "30 documents", "500 tokens"]),
        "tokens": lambda: draw.choice([200, 500, 1500]),
        "mix": lambda: None,
    }
    for name in draw.sample(list(some), draw.randrange(1, 5)):
        options[name] = some[name]()
    if "sample" in options:
        options["sample_interval"] = draw.choice([4, 16])
    if "holdout" in options:
        options |= {"part": draw.choice(["train", "holdout"]), "holdout_seed": draw.randrange(3)}
        options["holdout_by"] = draw.choice([None, "repo"])
    if "mix" in options:
        options["mix"] = [f"{name}={draw.choice(['0', '1', '2.5', '1/3'])}" for name in NAMES]
        if "tokens" not in options:
            units = ["0", "1x", "2.5x", "1/3x", "5 documents", "100 tokens"]
            options["mix"] = [f"{name}={draw.choice(units)}" for name in NAMES]
    if "tokens" in options:
        options["stop"] = draw.choice([True, False])
    options["max_epochs"] = draw.choice([1, 3, 3])
    return options


def drawn(value: int, seed: int, purpose: int) -> int:
    """SplitMix64's finalizer."""
    value = (value + 0x9E3779B97F4A7C15 * (1 + 2 * seed + purpose * (1 << 32))) % (1 << 64)
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 % (1 << 64)
    value = (value ^ value >> 27) * 0x94D049BB133111EB % (1 << 64)
    return value ^ value >> 31


def leave(documents: list[Document], reason: str, removed: Callable[[Document], bool]) -> None:
    for document in [each for each in documents if not each.reason]:
        if removed(document):
            document.reason = reason


def naive(stores: Stores, options: dict[str, Any]) -> tuple[list[str], list[list[int]]] | None:
    """The reason of each document, and the documents of each store that are packed; None for what is refused."""
    documents = stores.documents()
    if "exclude" in options:
        leave(documents, "excluded", lambda d: d.text in stores.excluded)
    if "where" in options:
        leave(documents, "not_where", lambda d: not WHERE[options["where"]](d))
    leave(documents, "too_short", lambda d: d.tokens < options.get("min_tokens", 0))
    leave(documents, "too_long", lambda d: d.tokens > options.get("max_tokens", 10**9))
    if "drop_duplicates" in options:
        seen: set[str] = set()
        leave(documents, "duplicates", lambda d: d.text in seen or bool(seen.add(d.text)))
    if "holdout" in options:
        held = held_out(documents, options)
        leave(documents, "other_side", lambda d: held(d) != (options["part"] == "holdout"))
    if "shard_of" in options:
        wanted = int(options["shard_of"][0]) - 1
        leave(
            documents, "other_shard", lambda d: drawn(xxhash.xxh3_64_intdigest(d.text.encode()), 0, 2) >> 63 != wanted
        )
    of_stores = [[d for d in documents if d.store == number] for number in range(3)]
    if "sample" in options:
        for part in of_stores:
            sample(part, options)
    left = [[d for d in part if not d.reason] for part in of_stores]
    epochs = epochs_of(left, options)
    if epochs is None:
        return None
    packed = [taken(part, share, options, n) for n, (part, share) in enumerate(zip(of_stores, epochs, strict=True))]
    if not any(packed):
        return None
    return [d.reason for d in documents], packed


def held_out(documents: list[Document], options: dict[str, Any]) -> Callable[[Document], bool]:
    def side(document: Document) -> int:
        value = document.text
        if options["holdout_by"] and document.record["repo"] is not None:
            value = document.record["repo"]
        return drawn(xxhash.xxh3_64_intdigest(value.encode()), options["holdout_seed"], 1)

    number, _, unit = options["holdout"].partition(" ")
    if not unit:
        return lambda d: side(d) < int(Fraction(number.rstrip("%")) / 100 * (1 << 64))
    reached = 0
    for document in sorted(documents, key=side):
        last = side(document)
        reached += document.tokens if unit == "tokens" else 1
        if reached >= int(number):
            break
    return lambda d: side(d) <= last


def sample(documents: list[Document], options: dict[str, Any]) -> None:
    """Of each length, the documents with the smallest keys."""
    key = keys(options["seed"], Purpose.SAMPLE, 0, 0, len(documents)).tolist()
    strata: dict[int, list[Document]] = {}
    for document in documents:
        if not document.reason:
            strata.setdefault((document.tokens - 1) // options["sample_interval"], []).append(document)
    for part in strata.values():
        count = int(Fraction(options["sample"].rstrip("%")) / 100 * len(part) + Fraction(1, 2))
        for document in sorted(part, key=lambda d: key[d.line - 1])[count:]:
            document.reason = "not_sampled"


def epochs_of(left: list[list[Document]], options: dict[str, Any]) -> list[tuple[Fraction, bool]] | None:
    """The epochs of each store, and whether they are of documents; None for what is refused."""
    tokens = [sum(d.tokens for d in part) for part in left]
    mix = [written.rpartition("=")[2] for written in options.get("mix", ["1x"] * 3)]
    if "tokens" not in options:
        out = []
        for written, part, held in zip(mix, left, tokens, strict=True):
            number, _, unit = written.partition(" ")
            epochs = Fraction(number.rstrip("x"))
            if not unit and epochs > options["max_epochs"]:
                return None
            if unit:
                has = len(part) if unit == "documents" else held
                if epochs > options["max_epochs"] * has:
                    return None
                epochs /= has
            out.append((epochs, unit == "documents"))
        return out
    weights = [Fraction(written) for written in mix] if "mix" in options else list(map(Fraction, tokens))
    if not sum(weights):
        return None
    limits = [options["max_epochs"] * held for held in tokens]
    given, full = [Fraction(0)] * 3, set[int]()
    while True:
        rest = options["tokens"] - sum(limits[n] for n in full)
        going = [n for n in range(3) if n not in full]
        total = sum(weights[n] for n in going)
        if not total:
            return None
        for n in range(3):
            given[n] = Fraction(limits[n]) if n in full else rest * weights[n] / total
        over = {n for n in going if given[n] > limits[n]}
        if not over:
            return [(amount / max(held, 1), False) for amount, held in zip(given, tokens, strict=True)]
        if not options["stop"]:
            return None
        full |= over


def taken(documents: list[Document], share: tuple[Fraction, bool], options: dict[str, Any], store: int) -> list[int]:
    """The lines of one store that are packed, whole passes first."""
    epochs, by_documents = share
    whole, part = divmod(epochs, 1)
    left = [d for d in documents if not d.reason]
    key = keys(options["seed"], Purpose.SELECTION, 0, 0, len(documents)).tolist()
    counts = [1 if by_documents else d.tokens for d in left]
    wanted, best, reached = part * sum(counts), 0, 0
    nearest = abs(wanted)
    ordered = sorted(range(len(left)), key=lambda n: key[left[n].line - 1])
    for count, number in enumerate(ordered, 1):
        reached += counts[number]
        if abs(reached - wanted) < nearest:
            best, nearest = count, abs(reached - wanted)
    some = sorted(left[number].line for number in ordered[:best])
    return [d.line for d in left] * int(whole) + some


def recount(cases: int, seed: int, place: Path) -> int:
    """Compare so many choices; return how many of them were refused."""
    draw, refused = random.Random(seed), 0
    stores = Stores(place).make(draw)
    for case in range(cases):
        options = options_of(draw, stores)
        wanted = naive(stores, options)
        given = checked(PackArguments(stores.paths, "nowhere", strategy="bfd", sequence_length=64, **options))
        corpus = Corpus(stores.paths)
        chosen: Chosen | None = None
        with pytest.MonkeyPatch.context() as patch, temporary_arrays(place) as arrays, suppress(PacktoolError):
            asked = asked_of(stores.paths, given)
            patch.setattr(array_files, "LARGE", 1)  # as beyond memory
            patch.setattr(module, "BLOCK", draw.choice([7, 1 << 20]))
            chosen = choose_documents(corpus, asked, arrays)
        assert (chosen is None) == (wanted is None), (case, options)
        if chosen is None or wanted is None:
            refused += 1
            continue
        reasons, packed = wanted
        if chosen.passes is None:
            assert packed == [list(range(1, 1 + len(part))) for part in stores.records], (case, options)
            continue
        assert chosen.choice is not None
        found = [[1 + number for number in each.documents().tolist()] for each in chosen.passes]
        assert found == packed, (case, options)
        left_out: dict[str, int] = {}
        for source in chosen.choice.sources:
            for reason, each in source.left_out.items():
                left_out[reason] = left_out.get(reason, 0) + each.documents
        left_out.pop("not_drawn", None)
        counted = {reason: reasons.count(reason) for reason in set(reasons) - {""}}
        assert left_out == counted, (case, options)
    return refused


@pytest.mark.parametrize("cases", [150, pytest.param(4000, marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore::packtool.warnings.PacktoolWarning")
def test_a_choice_is_what_naive_code_makes_of_it(tmp_path: Path, cases: int) -> None:
    refused = recount(cases, cases, tmp_path)
    assert 0 < refused < cases / 2


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        count, first = map(int, sys.argv[1:])
        refused = recount(count, first, Path(directory))
        sys.stdout.write(f"{count} choices, {refused} of them refused, as naive code says\n")
