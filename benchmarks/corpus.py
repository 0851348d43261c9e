"""What is tokenized: text that is installed here, with tokenizers that packages ship."""

from __future__ import annotations

import hashlib
import json
import random
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from benchmarks.common import WORK
from scripts.stdlib_text import modules, reference
from tests.text.encoding import fetch

TEXT = {".py", ".pyi", ".md", ".rst", ".txt", ".html", ".js", ".h"}
LONGEST = 1 << 20
"""Bytes of a file: longer ones are mostly tables."""
FAMILIES = {
    "Llama 3": ("llama3", "<|end_of_text|>"),
    "Gemma 3": ("gemma3", "<eos>"),
    "Qwen 3": ("qwen3", "<|endoftext|>"),
    "GPT-2's pattern, p50k": ("p50k", "<|endoftext|>"),
}
"""For each large family a tokenizer and its EOS."""


def text(megabytes: float, source: Path | None = None) -> tuple[Path, int]:
    """JSON Lines of about so many MB of text, a file a document, in an order drawn with a fixed seed.

    Sources and documentation of the standard library and of the packages installed beside packtool, each text once;
    or the text files of a directory. Kept from one run to the next.

    Returns:
        The file, and the bytes of text in it, without the JSON around them: fewer than asked for where there is no
        more.
    """
    whole = WORK / f"text-{hashlib.sha256(str(source).encode()).hexdigest()[:8]}.jsonl"
    if not whole.exists():
        WORK.mkdir(exist_ok=True)
        texts = sorted(set(_texts([source] if source else _installed())))
        random.Random(0).shuffle(texts)
        lines = (json.dumps({"id": str(number), "text": each}) + "\n" for number, each in enumerate(texts))
        part = whole.with_suffix(".part")
        part.write_text("".join(lines))
        part.rename(whole)
    path = whole.with_name(f"{whole.stem}-{megabytes:g}.jsonl")
    size = 0
    with whole.open() as lines, path.open("w") as out:
        for line in lines:
            size += len(json.loads(line)["text"].encode())
            out.write(line)
            if size > megabytes * 1e6:
                break
    return path, size


def _installed() -> list[Path]:
    packages = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    return [Path(sysconfig.get_path("stdlib")), *map(Path, packages)]


def _texts(places: list[Path]) -> Iterator[str]:
    for place in places:
        for path in place.rglob("*") if place.is_dir() else ():
            if path.suffix in TEXT and path.is_file() and 200 < path.stat().st_size < LONGEST:
                try:
                    yield path.read_text(encoding="utf-8")
                except ValueError:  # not UTF-8
                    continue


def tokenizer(family: str) -> tuple[Path, int, str]:
    """The tokenizer.json of a family, fetched the first time; id and text of its EOS."""
    name, eos = FAMILIES[family]
    data = fetch.tokenizer(name)
    added = {token["content"]: token["id"] for token in json.loads(data)["added_tokens"]}
    return fetch.FOLDER / f"{name}.json", added[eos], eos


def _paragraphs() -> list[str]:
    """Paragraphs of the sources and the reference, long ones whole."""
    texts = [document.text for source in (modules(), reference()) for document in source]
    return [part for text in texts for part in text.split("\n\n") if part.strip()]


def _documents(size: int, seed: int = 0) -> Iterator[str]:
    """Documents of about `size` bytes in all."""
    rng = random.Random(seed)
    parts = _paragraphs()
    words = sorted({word for part in parts for word in part.split(" ") if word.isalpha() and len(word) > 3})
    done = 0
    while done < size:
        target = rng.lognormvariate(7.6, 1.0)
        chosen, length = [], 0
        while length < target:
            chosen.append(rng.choice(parts))
            length += len(chosen[-1]) + 2
        text = _with_new_words("\n\n".join(chosen), words, rng)
        done += len(text.encode())
        yield text


def _with_new_words(text: str, words: list[str], rng: random.Random) -> str:
    out, at = [], 0
    while (space := text.find(" ", at + rng.randrange(200, 500))) >= 0:
        end = text.find(" ", space + 1)
        first, second = rng.choice(words), rng.choice(words)
        out += [text[at : space + 1], first[: rng.randint(1, len(first))], second[rng.randrange(len(second)) :]]
        at = end if end >= 0 else len(text)
    return "".join([*out, text[at:]])


def generated(megabytes: int) -> tuple[Path, int]:
    """JSON Lines of any size, and the bytes of text in it: paragraphs of the standard library, drawn at random.

    Documents are of lognormal length (median 2,000 characters); one word in about fifty is replaced by two halves of
    other words, so that unseen words keep coming, as in real text. Kept from one run to the next.
    """
    path = WORK / f"generated-{megabytes}.jsonl"
    note = path.with_suffix(".bytes")
    if not note.exists():
        WORK.mkdir(exist_ok=True)
        size = 0
        with path.open("w", encoding="utf-8") as file:
            for number, text in enumerate(_documents(megabytes * 10**6)):
                file.write(json.dumps({"id": number, "text": text}, ensure_ascii=False) + "\n")
                size += len(text.encode())
        note.write_text(str(size))
    return path, int(note.read_text())
