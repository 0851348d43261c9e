"""Golden bytes: what every strategy and shuffle writes stays what it was, file by file; so does the order of a run.

`tests/golden/digests.json` has the xxh3-128 of every file of a few small outputs. A change that alters bytes on
purpose runs ``python -m tests.test_golden`` to record them anew, and says so in the changelog and, where a reader would
notice, in the format version.
"""

import itertools
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import xxhash

import packtool
import packtool.planning.packing
from packtool.reading.batches import GlobalBatches
from packtool.reading.stream import Stream
from tests.making import write_records
from tests.stores import write_store

RECORDED = Path(__file__).parent / "golden" / "digests.json"
WORDS = "a corpus of many documents holds tokens, and every one of them is placed; naïve 数 🙂 1234 \n\n \tEOS"
LENGTHS = [1, 2, 40, 64, 65, 128, 200, 31, 7, 7, 7, 513, 90, 3, 33, 64, 12, 12, 300, 1, 5, 1000, 77, 15, 16, 17] * 6

PACKED: dict[str, dict[str, Any]] = {
    "concat": {"strategy": "concat", "sequence_length": 64},
    "concat-small-atoms": {"strategy": "concat", "sequence_length": 64, "atom_size": 16, "seed": 7},
    "concat-large-atoms": {"strategy": "concat", "sequence_length": 64, "atom_size": 192, "remainder": "drop"},
    "concat-corpus-order": {"strategy": "concat", "sequence_length": 64, "shuffle": False},
    "concat-two-passes": {"strategy": "concat", "sequence_length": 64, "memory": "64KiB", "shard_tokens": 4096},
    "padding": {"strategy": "padding", "sequence_length": 64},
    "padding-small-atoms": {"strategy": "padding", "sequence_length": 64, "atom_size": 16, "pad_token": 3},
    "padding-large-atoms": {"strategy": "padding", "sequence_length": 32, "atom_size": 128},
    "ffd": {"strategy": "ffd", "sequence_length": 128, "segments": False},
    "bfd": {"strategy": "bfd", "sequence_length": 128},
    "bfd-unmixed": {"strategy": "bfd", "sequence_length": 128, "mix_rows": False},
    "ffd-unmixed": {"strategy": "ffd", "sequence_length": 128, "segments": False, "mix_rows": False},
    "bfd-windows": {"strategy": "bfd", "sequence_length": 128, "window_tokens": 3000},
    "first-fit-shuffle": {"strategy": "first-fit-shuffle", "sequence_length": 128, "seed": 9},
    "best-fit-in-order": {"strategy": "best-fit-in-order", "sequence_length": 128, "open_rows": 3},
    "seamless-mixed": {"strategy": "seamless", "sequence_length": 128, "mix_rows": True},
    "buckets-mixed": {"strategy": "buckets", "buckets": [64, 128, 256], "mix_rows": True, "seed": 3},
    "bfd-extra": {"strategy": "bfd-extra", "sequence_length": 128, "extra_capacity": 10},
    "seamless": {"strategy": "seamless", "sequence_length": 128, "max_repetition": "0.3", "window_tokens": 5000},
    "buckets": {"strategy": "buckets", "buckets": [64, 128, 256], "window_tokens": 4000},
    "length-buckets": {"strategy": "length-buckets", "buckets": [64, 128, 256]},
    "decompose": {"strategy": "decompose", "sequence_length": 256, "min_bucket": 2},
    "bfd-index-only": {"strategy": "bfd", "sequence_length": 128, "index_only": True},
}
SHUFFLED: dict[str, tuple[str, dict[str, Any]]] = {
    "atom": ("concat", {"epoch": 1}),
    "atom-from-corpus-order": ("concat-corpus-order", {"atom_size": 16, "seed": 5}),
    "atom-two-passes": ("concat-corpus-order", {"memory": "64KiB", "workers": 1}),
    "atom-varying": ("padding-large-atoms", {"epoch": 3}),
    "atom-buckets": ("decompose", {"epoch": 1}),
    "bucket": ("buckets", {"method": "bucket", "batch_tokens": 512}),
    "bucket-drop": ("length-buckets", {"method": "bucket", "batch_tokens": 1024, "remainder": "drop", "epoch": 1}),
    "partial": ("", {"method": "partial", "sequence_length": 64, "batch_size": 4, "epoch": 1}),
}

BALANCES: tuple[Literal["step", "turn"] | None, ...] = (None, "step", "turn")


def texts() -> Iterator[str]:
    """Documents from a counter: no generator whose stream a new release could change."""
    words = WORDS.split(" ")
    for number in range(300):
        length = (number * number) % 97
        yield " ".join(words[(number * 31 + place * place * 7 + place) % len(words)] for place in range(length))


def make(directory: Path, **more: Any) -> dict[str, str]:
    """Every golden output under a directory, and the digest of each file: of names such as ``bfd/tokens-00000.npy``.

    Args:
        more: options for every `pack` and `shuffle`.
    """
    corpus = write_records(directory / "corpus.jsonl", [{"text": text} for text in texts()])
    packtool.tokenize([corpus], directory / "tokenized", workers=1)
    store = write_store(directory / "store", LENGTHS, per_shard=40)
    for name, options in PACKED.items():
        packtool.pack(store, directory / name, **{"workers": 2, **options, **more})
    for name, (source, options) in SHUFFLED.items():
        packtool.shuffle(directory / source if source else store, directory / f"shuffled-{name}", **{**options, **more})
    made = [directory / "tokenized", *(directory / name for name in PACKED)]
    made += [directory / f"shuffled-{name}" for name in SHUFFLED]
    files = (file for path in made for file in path.rglob("*") if file.is_file() and file.name != "run.json")
    digests = {str(file.relative_to(directory)): xxhash.xxh3_128_hexdigest(file.read_bytes()) for file in sorted(files)}
    return {**digests, **orders(directory)}


def orders(directory: Path) -> dict[str, str]:
    """The digest of the order of each run on these outputs: the rows of each turn, and the states on the way."""
    few = {"path": directory / "bfd", "stop": True, "max_epochs": 3}  # stops between two samples
    anew = {"path": directory / "bfd-index-only", "repack": True}
    sources = {"few": few, "many": directory / "seamless", "anew": anew}
    weights = {"few": 0.31, "many": 0.47, "anew": 0.22}
    stages = [{"weights": weights}, {"from": "50%", "ramp": "80%", "weights": {"many": 1, "anew": 2}}]
    grow = [{"weights": {"64": 8, "128": 1}}, {"from": "30%", "ramp": True, "weights": {"128": 1, "256": 3}}]
    blend = Stream(packtool.Blend(sources, stages, rows=9000))
    runs = {
        "blend": blend,
        "anew": Stream(directory / "bfd-index-only", epochs=3, repack=True),
        "lengths": Stream(directory / "length-buckets", epochs=2, batch_tokens=512),
        "weighted-lengths": Stream(packtool.Blend({"all": directory / "length-buckets"}, grow, batch_tokens=512)),
    }
    digests = {"order/dealing": xxhash.xxh3_128_hexdigest(np.stack(blend.order.locate(np.arange(9000))).tobytes())}
    for (name, stream), balance in itertools.product(runs.items(), BALANCES):
        digest = xxhash.xxh3_128()
        for rank in range(2):
            options: dict[str, Any] = {"micro_batch_size": 3, "balance": balance, "drop_last": False, "fill": True}
            batches = GlobalBatches(
                stream, rank=rank, world_size=2, batch_size=None if stream.bucketed else 26, **options
            )
            for number, turn in enumerate(batches.begin()):
                numbers = [turn.length, turn.consumed, turn.ahead, turn.filled]
                digest.update(np.append(turn.addresses, numbers).tobytes())
                batches.position.advance(turn.consumed)
                if number % 100 == 7:
                    # Without the digest of the dataset, which a field that comes to its manifest changes.
                    digest.update(re.sub(r'"(dataset|sum)":"\w+"', "", batches.state_dict()["packtool"]).encode())
        digests[f"order/{name}/{balance}"] = digest.hexdigest()
    return digests


def test_every_output_has_the_bytes_it_had(tmp_path: Path) -> None:
    recorded, found = json.loads(RECORDED.read_text(encoding="utf-8")), make(tmp_path)
    assert sorted(found) == sorted(recorded)
    assert {name: digest for name, digest in found.items() if digest != recorded[name]} == {}


@pytest.mark.parametrize("name", sorted(packtool.planning.packing.STRATEGIES))
def test_every_strategy_is_golden(name: str) -> None:
    packed = any(options["strategy"] == name for options in PACKED.values())
    assert packed, f"{name} is missing from PACKED in tests/test_golden.py"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        RECORDED.parent.mkdir(exist_ok=True)
        RECORDED.write_text(json.dumps(make(Path(scratch)), indent=1) + "\n", encoding="utf-8")
