"""Damaged datasets: every bit of small manifests, and damage of every kind to every kind of file.

`verify` names what is damaged; every reader ends in one clear error, or reads on without one.
"""

import json
import os
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import DataError, PacktoolError
from packtool.formats.manifest import MANIFEST, read
from packtool.formats.schema import listed_files
from packtool.places.npy import npy_header
from tests.faults.harness import LENGTHS, in_memory
from tests.stores import reseal, write_store

KINDS = ["store", "rows", "buckets", "index"]


@pytest.fixture(scope="module")
def memory() -> Iterator[Path]:
    with in_memory() as place:
        yield place


@pytest.fixture
def tmp_path(memory: Path, request: pytest.FixtureRequest) -> Path:
    place = memory / request.node.name
    place.mkdir()
    write_store(place / "store", LENGTHS[:12])  # where copies of the index look for it
    return place


@pytest.fixture(scope="module")
def made(memory: Path) -> dict[str, Path]:
    """A dataset of each kind."""
    place = memory / "made"
    store = write_store(place / "store", LENGTHS[:12])
    packtool.pack(store, place / "rows", strategy="padding", sequence_length=32, atom_size=96, shard_tokens=512)
    packtool.pack(store, place / "packed", strategy="decompose", sequence_length=32)
    packtool.shuffle(place / "packed", place / "buckets", method="bucket", batch_tokens=64)
    packtool.pack(store, place / "index", strategy="bfd", sequence_length=32, shard_tokens=512, index_only=True)
    packtool.export(store, place / "export", format="megatron")
    return {kind: place / kind for kind in (*KINDS, "export")}


def noticed(path: Path) -> bool:
    """Whether `verify` finds something wrong; anything but its own errors is a failure."""
    try:
        return bool(packtool.verify(path).problems)
    except PacktoolError:
        return True


@pytest.mark.parametrize("step", [101, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_bits_of_a_manifest(made: dict[str, Path], tmp_path: Path, kind: str, step: int) -> None:
    """Every one that is flipped is noticed; the slow form flips all."""
    copy = Path(shutil.copytree(made[kind], tmp_path / "copy"))
    assert not noticed(copy)
    whole = (copy / MANIFEST).read_bytes()
    bits = range(0, 8 * len(whole), step)
    assert len(bits) > 4000 / step
    for bit in bits:
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        (copy / MANIFEST).write_bytes(changed)
        assert noticed(copy), f"bit {bit}"


Damage = Callable[[Path, random.Random], object]


def flipped(file: Path, chance: random.Random) -> None:
    data = bytearray(file.read_bytes())
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    file.write_bytes(data)


def cut(file: Path, chance: random.Random) -> None:
    os.truncate(file, chance.randrange(file.stat().st_size))


def longer(file: Path, chance: random.Random) -> None:
    file.write_bytes(file.read_bytes() + chance.randbytes(chance.randrange(1, 5000)))


def zeroed(file: Path, chance: random.Random) -> None:
    data = bytearray(file.read_bytes())
    nonzero = [place for place, byte in enumerate(data) if byte]
    at = chance.choice(nonzero)
    data[at : at + 512] = bytes(len(data[at : at + 512]))
    file.write_bytes(data)


def replaced(file: Path, chance: random.Random) -> None:
    file.write_bytes(chance.randbytes(file.stat().st_size))


def retyped(file: Path, chance: random.Random) -> None:
    """The same bytes under a header that says something else."""
    data = file.read_bytes()[4096:]
    dtype = np.dtype(chance.choice(["<u1", "<u2", "<u4", "<i8", "|O", "<f8", ">u2"]))
    header = npy_header(dtype, (len(data) // dtype.itemsize,))
    file.write_bytes((header if file.suffix == ".npy" else header[:64]) + data + b"\0")


def instead(make: Callable[[Path], object]) -> Damage:
    """Something else in the place of the file."""

    def put(file: Path, chance: random.Random) -> None:
        file.unlink()
        make(file)

    return put


MANIFESTS = "changed since it was written|not a valid manifest|manifest.json: format .* version"
CHANGED = f"checksum differs from the manifest's|not a readable array|its header is not|{MANIFESTS}"
SIZE = f"has [0-9]+ bytes, but|holds .* manifest says|its header is not|{MANIFESTS}"
DAMAGES: dict[Damage, str] = {
    flipped: CHANGED,
    cut: SIZE,
    longer: SIZE,
    zeroed: CHANGED,
    replaced: CHANGED,
    retyped: SIZE,
    instead(os.mkfifo): "",
    instead(Path.mkdir): "",
    instead(lambda file: file.symlink_to("/dev/zero")): "",
    instead(lambda file: None): "named in the manifest, but not there|manifest.json",
}
"""What is done to a file, and what `verify` says of it."""


def read_all(path: Path, kind: str, out: Path) -> Iterator[Callable[[], object]]:
    """Everything that reads a dataset of this kind."""
    yield lambda: packtool.stats(path)
    if kind == "store":
        yield lambda: packtool.pack(path, out, strategy="concat", sequence_length=16, overwrite=True)
        return

    def rows() -> None:
        dataset: Any = packtool.open(path)
        for each in dataset.buckets.values() if hasattr(dataset, "buckets") else [dataset.rows]:
            for row in range(len(each)):
                assert each[row].sum() >= 0
                assert each.segments(row)["length"].sum() == each.sequence_length

    yield rows
    yield lambda: packtool.show(path, 0, bucket=32 if kind == "buckets" else None)
    yield lambda: packtool.shuffle(path, out, epoch=2, overwrite=True)
    yield lambda: packtool.shuffle(path, out, epoch=2, overwrite=True, memory="2KiB", workers=1)


def damaged(copy: Path, whole: Path, name: str, damage: Damage, chance: random.Random) -> bool:
    """Damage a file of a copy, which `verify` names; return whether that changed it."""
    damage(copy / name, chance)
    if (copy / name).is_file() and (copy / name).read_bytes() == (whole / name).read_bytes():
        return False
    try:
        problems = packtool.verify(copy).problems
    except PacktoolError as error:
        problems = [error]
    said = [str(problem) for problem in problems if str(problem.where).endswith((name, str(copy)))]
    assert any(re.search(DAMAGES[damage], each) for each in said), (damage, name, problems)
    return True


@pytest.mark.parametrize("kind", [*KINDS, "export"])
def test_damage_to_any_file_is_called_by_its_name(made: dict[str, Path], tmp_path: Path, kind: str) -> None:
    chance, copy = random.Random(3), Path(shutil.copytree(made[kind], tmp_path / "copy"))
    for name in files_of(copy):
        for damage in DAMAGES:
            damaged(copy, made[kind], name, damage, chance)
            shutil.rmtree(copy)
            shutil.copytree(made[kind], copy)


def files_of(path: Path) -> list[str]:
    return [*(each.name for each in listed_files(read(path))), MANIFEST]


@pytest.mark.filterwarnings("ignore:.*have no target")  # as a damaged table of segments may have it
@pytest.mark.parametrize("count", [2 * len(DAMAGES), pytest.param(1000, marks=pytest.mark.slow)])
def test_whoever_reads_what_is_damaged(made: dict[str, Path], tmp_path: Path, count: int) -> None:
    """Ends in one clear error, or reads on: one file of one dataset is damaged, many times."""
    chance = random.Random(7)
    said: Counter[str] = Counter()
    for number in range(count):
        kind = KINDS[(number + number // 20) % len(KINDS)]
        copy = tmp_path / f"copy-{number}"
        shutil.copytree(made[kind], copy)
        damage = [*DAMAGES][number % len(DAMAGES)]
        if not damaged(copy, made[kind], chance.choice(files_of(copy)), damage, chance):
            continue
        for reader in read_all(copy, kind, tmp_path / "out"):
            try:
                reader()
                said["read"] += 1
            except DataError as error:
                said[error.code] += 1
        shutil.rmtree(copy)
    assert len(said) > 5


def mutated(value: Any, chance: random.Random) -> Any:
    """A value of JSON with one change somewhere in it."""
    strange = [None, -1, 0, 1, 1 << 62, (1 << 64) - 1, 1.5, "", "x", "../x", [], {}, True, [[[]]], "\u0000", "9" * 400]
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        return {**value, key: mutated(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.9:
        at = chance.randrange(len(value))
        return [*value[:at], mutated(value[at], chance), *value[at + 1 :]]
    return chance.choice(strange)


@pytest.mark.parametrize("count", [300, pytest.param(20_000, marks=pytest.mark.slow)])
def test_fuzzed_manifests(made: dict[str, Path], tmp_path: Path, count: int) -> None:
    """With one change and a checksum that fits: most are refused, all in one clear error."""
    chance = random.Random(11)
    said: Counter[str] = Counter()
    copies = {kind: Path(shutil.copytree(made[kind], tmp_path / f"copy-{kind}")) for kind in KINDS}
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        manifest = json.loads((made[kind] / MANIFEST).read_bytes())
        changed = mutated(manifest, chance)
        reseal(copies[kind], {**(changed if isinstance(changed, dict) else {}), "xxh3_128": ""})
        try:
            said["; ".join(problem.code for problem in packtool.verify(copies[kind]).problems) or "sound"] += 1
        except PacktoolError as error:
            said[error.code] += 1
    assert said["bad-manifest"] > count / 2
