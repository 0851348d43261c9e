"""How much faster the encoder that packtool chooses is than `tokenizers`, for every real tokenizer file there is.

python -m benchmarks.encoders [NAME ...] [--megabytes 32]

CPU seconds of one thread, loading and the first verification included. `tokenizers` is as fast on little text as on
much, so it encodes documents that have a sixteenth of the text. Each file is measured in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from benchmarks.common import run
from benchmarks.corpus import text
from packtool.text.encoding.encode import encoded, utf8_of
from packtool.text.encoding.encoder_choice import choose, load_encoder
from packtool.text.encoding.encoders import ReferenceEncoder
from packtool.text.encoding.load import FoundTokenizer
from tests.text.encoding import fetch

SHARE = 16
TOGETHER = 500
ENOUGH = 5


def measured(name: str, path: Path) -> dict[str, float | str]:
    """CPU seconds to load each encoder and to encode all of the text, with the encoder that `choose` names."""
    data = fetch.tokenizer(name)
    texts = [json.loads(line)["text"] for line in path.read_text().splitlines()]
    few = texts[::SHARE]
    began = time.process_time()
    reference = ReferenceEncoder(data)
    loaded = time.process_time()
    reference.encode(few)
    slow = (time.process_time() - loaded) * sum(map(len, texts)) / sum(map(len, few)) + loaded - began
    began = time.process_time()
    found = FoundTokenizer({"tokenizer.json": data}, name)
    recipe = choose(found)
    fast = load_encoder(recipe, data)
    load = time.process_time() - began
    for at in range(0, len(texts), TOGETHER):
        part = texts[at : at + TOGETHER]
        for _ in encoded(part, utf8_of(part, ids=False), fast):
            pass
    return {"encoder": recipe.encoder, "load": load, "cpu": time.process_time() - began, "tokenizers": slow}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=fetch.NAMES)
    parser.add_argument("--megabytes", type=float, default=32)
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        print(json.dumps(measured(given.names[0], given.one)))
        return
    path, size = text(given.megabytes)
    times: list[float] = []
    for name in given.names:
        found = json.loads(run([sys.executable, "-m", "benchmarks.encoders", name, "--one", path]).output)
        if found["encoder"] == "tokenizers":
            print(f"{name:28} tokenizers", flush=True)
            continue
        times.append(found["tokenizers"] / found["cpu"])
        print(
            f"{name:28} {found['encoder']:10} {found['load']:5.2f} s to load, {found['cpu']:6.2f} s in all, "
            f"tokenizers {found['tokenizers']:6.1f} s: {times[-1]:5.1f} times",
            flush=True,
        )
    enough = sum(each >= ENOUGH for each in times)
    print(f"\n{size / 1e6:.0f} MB: {enough} of {len(given.names)} at {ENOUGH} times or more, {len(times)} encoded fast")


if __name__ == "__main__":
    main()
