"""`tokenize` with real tokenizers: MB of text per CPU second, on English and code, and on text of many languages.

    python -m benchmarks.families [--megabytes 110] [--names llama2,gemma3]
    python -m benchmarks.families --parts [--names llama2,gemma3]

Beside it is `encode_batch_fast` of `tokenizers` on the first 4 MB of the same text, in memory, without the time that it
takes to load, on one thread. The tokenizer files are those of `make test-tokenizers`; English and code is the corpus of
benchmarks.tokenize. Text of many languages is what packages ship: the translations of Django and Plone from PyPI, and
from Debian manual pages, a handbook and the names and descriptions of the Unicode CLDR in their languages, without
markup, a document a file, in an order drawn with a fixed seed; files that are nearly all ASCII are left out. It needs
`apt-get` and `dpkg-deb`, and is as large as asked for or as what they ship.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import statistics
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.common import WORK, fresh, packtool, run, save, table
from benchmarks.tokenize import corpus
from tests.tokenizing import fetch

SOURCES = WORK / "languages"
PYPI = ("Django==5.2.19", "plone.app.locales==7.0.4")
DEBIAN = (
    *("manpages-de", "manpages-fr", "manpages-es", "manpages-pl", "manpages-ru", "manpages-ja", "manpages-zh"),
    *("debian-reference-ja", "debian-reference-zh-cn", "debian-handbook", "unicode-cldr-core"),
)
NAMES = (
    *("gemma3", "llama2", "mistral v3", "deepseek_v3", "smollm 2 (made)", "olmo 2", "gpt-neox", "qwen3", "llama3"),
    *("gptoss", "command_r_plus", "internlm2", *fetch.SPLINTR),
)
IN_PARTS = ("llama2", "gpt-neox", "llama3", "deepseek_v3", "gemma3")
REFERENCE_MB = 4
REFERENCE = """
import json, os, sys, time
os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[1])
texts, size = [], 0
for line in open(sys.argv[2], encoding="utf-8"):
    texts.append(json.loads(line)["text"])
    size += len(texts[-1].encode())
    if size > float(sys.argv[3]):
        break
began = time.process_time()
for at in range(0, len(texts), 100):
    tokenizer.encode_batch_fast(texts[at : at + 100], add_special_tokens=False)
print(size / 1e6 / (time.process_time() - began))
"""
PARTS = """
import json, sys, time
from packtool.tokenizing.choose import choose, recipe
from packtool.tokenizing.encoders import ReferenceEncoder
from packtool.tokenizing.gigatoken import GigatokenEncoder
from packtool.tokenizing.load import vocabulary_size
from packtool.tokenizing.spec import parse
data = open(sys.argv[1], "rb").read()
spec = parse(data)
known = recipe(spec, choose(spec)[0], vocabulary_size(spec, data))
clock = [time.process_time()]
reference = ReferenceEncoder(data)
clock.append(time.process_time())
encoder = GigatokenEncoder(data, known.shape, known.vocab_size, spell=lambda each: reference.encode([each])[0])
clock.append(time.process_time())
batches, size = [[]], 0
for line in open(sys.argv[2], encoding="utf-8"):
    batches[-1].append(json.loads(line)["text"])
    size += len(batches[-1][-1].encode())
    if sum(map(len, batches[-1])) > 1 << 21:
        batches.append([])
began = time.process_time()
for batch in batches:
    encoder.encode(batch)
alone = size / 1e6 / (time.process_time() - began)
print(json.dumps({"tokenizers_load_s": clock[1] - clock[0], "gigatoken_load_s": clock[2] - clock[1], "alone": alone}))
"""
_MARKUP = re.compile(r"<[^>]*>|&\w+;|^\.\\\".*$|^\.\w+ ?|\\f.|\\-", re.MULTILINE)
_TRANSLATED = re.compile(r'^msgstr(?:\[\d\])? ((?:".*"\s*)+)', re.MULTILINE)


def languages(megabytes: int) -> tuple[Path, int]:
    """A JSON Lines file of about so many MB, and its exact bytes of text; kept from one run to the next."""
    path = WORK / f"languages-{megabytes}.jsonl"
    note = path.with_suffix(".bytes")
    if not note.exists():
        texts = [text for text in _texts() if len(text) > 200 and _share_of_ascii(text) < 0.97]
        random.Random(0).shuffle(texts)
        size = 0
        with path.open("w", encoding="utf-8") as file:
            for number, text in enumerate(texts):
                file.write(json.dumps({"id": number, "text": text}, ensure_ascii=False) + "\n")
                size += len(text.encode())
                if size > megabytes * 10**6:
                    break
        note.write_text(str(size))
    return path, int(note.read_text())


def _texts() -> Iterator[str]:
    if not SOURCES.exists():
        fresh(SOURCES)
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", SOURCES, *PYPI]
        subprocess.run(command, check=True)
        subprocess.run(["apt-get", "download", "-qq", *DEBIAN], check=True, cwd=SOURCES)
        for package in SOURCES.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", package, SOURCES / "debian"], check=True)
    for wheel in sorted(SOURCES.glob("*.whl")):
        with zipfile.ZipFile(wheel) as files:
            for name in sorted(files.namelist()):
                if name.endswith(".po"):
                    yield _translations(files.read(name).decode("utf-8", "replace"))
    for path in sorted((SOURCES / "debian").rglob("*")):
        if path.is_file() and not path.is_symlink():
            if path.suffix == ".gz" and path.stem[-1].isdigit():
                yield _MARKUP.sub("", gzip.decompress(path.read_bytes()).decode("utf-8", "replace"))
            elif path.suffix in (".html", ".xml"):
                yield _MARKUP.sub(" ", path.read_text(encoding="utf-8", errors="replace"))


def _share_of_ascii(text: str) -> float:
    return len(text.encode("ascii", "ignore")) / len(text)


def _translations(text: str) -> str:
    found = (re.sub(r'"\s*"', "", match[1]).strip().strip('"') for match in _TRANSLATED.finditer(text))
    return "\n".join(each.replace("\\n", "\n").replace('\\"', '"') for each in found if each)


def measure(name: str, path: Path, size: int) -> dict[str, Any]:
    """MB per CPU second of the whole command, one worker, beside those of `tokenizers`, and its peak memory."""
    spec = WORK / "family.json"
    spec.write_bytes(fetch.tokenizer(name))
    out = fresh(WORK / "store")
    token = {"command_r_plus": "<EOS_TOKEN>", **dict.fromkeys(fetch.UNIGRAM, "</s>")}.get(name)
    eos = [] if token is None else ["--eos-token", token]
    command = packtool("tokenize", path, "-o", out, "--tokenizer", spec, "--workers", "1", "--json", "-q", *eos)
    done = run([*command, "--overwrite"])
    facts = json.loads(done.output)["run"]
    speed = size / 1e6 / done.cpu
    library = float(run([sys.executable, "-c", REFERENCE, spec, path, str(REFERENCE_MB * 10**6)]).output)
    return {
        "mb_per_cpu_s": speed,
        "tokenizers_mb_per_cpu_s": library,
        "times": speed / library,
        "peak_mb": done.peak_mb,
        "encoder": facts["encoder"],
        "texts_checked": facts["texts_checked"],
    }


def parts(name: str, path: Path) -> dict[str, Any]:
    """CPU seconds to load each library and of a whole command with little to do, with one worker and with two, and MB
    per CPU second of gigatoken alone, on our batches in memory."""
    spec = WORK / "family.json"
    spec.write_bytes(fetch.tokenizer(name))
    found: dict[str, Any] = json.loads(run([sys.executable, "-c", PARTS, spec, path]).output)
    return found | {f"start_{workers}_s": start(spec, workers) for workers in (1, 2)}


def start(spec: Path, workers: int) -> float:
    """CPU seconds to tokenize 1,000 words, median of three; the rest of 20 MB, two blocks, are fields to pass over."""
    path = WORK / "little.jsonl"
    if not path.exists():
        path.write_text(1000 * (json.dumps({"text": "word", "passed over": "x" * 20_000}) + "\n"))
    command = packtool("tokenize", path, "-o", fresh(WORK / "store"), "--tokenizer", spec, "--encoder", "gigatoken")
    command += ["--workers", str(workers), "-q", "--overwrite"]
    return statistics.median(run(command).cpu for _ in range(3))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=110)
    parser.add_argument("--names", help="of tokenizer files, separated by commas")
    parser.add_argument("--parts", action="store_true", help="what loading and starting take, and the encoder alone")
    options = parser.parse_args()
    names = options.names.split(",") if options.names else IN_PARTS if options.parts else NAMES
    if options.parts:
        path, _ = corpus(options.megabytes)
        found = {name: parts(name, path) for name in names}
        header = ("tokenizers_load_s", "gigatoken_load_s", "start_1_s", "start_2_s", "alone")
        table(("tokenizer", *header), [(name, *(each[key] for key in header)) for name, each in found.items()])
        save("families_parts", {"rows": found})
        return
    corpora = {"English and code": corpus(options.megabytes), "many languages": languages(options.megabytes)}
    rows = [
        {"tokenizer": name, "text": text, "text_mb": size / 1e6, **measure(name, path, size)}
        for name in names
        for text, (path, size) in corpora.items()
    ]
    shown = {
        "tokenizer": "tokenizer",
        "text": "text",
        "text_mb": "MB",
        "mb_per_cpu_s": "MB/CPU s",
        "tokenizers_mb_per_cpu_s": "tokenizers",
        "times": "times",
        "peak_mb": "peak MB",
        "encoder": "encoder",
    }
    table(list(shown.values()), [tuple(row[key] for key in shown) for row in rows])
    save("families", {"corpus": __doc__, "rows": rows})


if __name__ == "__main__":
    main()
