"""A command whose input is replaced while it runs: by then or later, whenever it opens one of its files."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.errors import PacktoolError
from packtool.formats import manifest as manifests
from packtool.places.local import LocalPlace
from tests.stores import contents, write_store

SMALL: dict[str, Any] = {"sequence_length": 32, "shard_tokens": 256}
LENGTHS = [3 + n * n % 29 for n in range(60)]


def answered(out: Path, answer: object) -> None:
    """Write what a command answers that makes no dataset."""
    out.mkdir()
    (out / "answer").write_text(repr(answer))


COMMANDS: dict[str, Callable[[Path, Path], object]] = {
    "pack": lambda at, out: packtool.pack(at / "store", out, strategy="bfd", **SMALL),
    "unchecked": lambda at, out: packtool.pack(at / "store", out, strategy="bfd", **SMALL, check_input=False),
    "index": lambda at, out: packtool.pack(at / "store", out, strategy="bfd", **SMALL, index_only=True),
    "excluding": lambda at, out: packtool.pack(at / "all", out, strategy="bfd", **SMALL, exclude=at / "some"),
    "partial": lambda at, out: packtool.shuffle(
        at / "store", out, method="partial", batch_size=2, sequence_length=32, epoch=1
    ),
    "shuffle": lambda at, out: packtool.shuffle(at / "rows", out, epoch=1),
    "materialize": lambda at, out: packtool.materialize(at / "rows-index", out, store=at / "store"),
    "export": lambda at, out: packtool.export(at / "store", out, format="olmo"),
    "export of rows": lambda at, out: packtool.export(at / "rows-index", out, format="olmo", store=at / "store"),
    "show": lambda at, out: answered(out, packtool.show(at / "texts", row=1).segments),
    "show of a store": lambda at, out: answered(out, packtool.show(at / "some", document=1).segments),
    "show of an index": lambda at, out: answered(
        out, packtool.show(at / "rows-index", row=1, store=at / "store").segments
    ),
    "find": lambda at, out: answered(out, packtool.find(at / "texts", "some.jsonl:15")),
    "verify": lambda at, out: answered(out, packtool.verify(at / "rows")),
    "stats": lambda at, out: answered(out, packtool.stats(at / "rows")),
    "stats of a store": lambda at, out: answered(out, packtool.stats(at / "store")),
}
"""Each reads what lies below `at`."""


def inputs(at: Path, *, doubled: bool) -> Path:
    """Inputs of every command; the doubled ones have the same numbers of files, and other documents."""
    at.mkdir()
    lengths = [2 * n for n in LENGTHS] if doubled else LENGTHS
    write_store(at / "store", lengths, per_shard=20)
    for name, step in (("all", 1), ("some", 2 + doubled)):
        (at / f"{name}.jsonl").write_text("".join(f'{{"text": "{n}"}}\n' for n in range(0, 60, step)))
        packtool.tokenize(at / f"{name}.jsonl", at / name, workers=1)
    packtool.pack(at / "some", at / "texts", strategy="bfd", **SMALL)
    packtool.pack(at / "store", at / "rows", strategy="bfd", **SMALL)
    packtool.pack(at / "store", at / "rows-index", strategy="bfd", **SMALL, index_only=True)
    return at


@pytest.fixture(scope="module")
def old_and_new(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    directory = tmp_path_factory.mktemp("inputs")
    return [inputs(directory / str(doubled), doubled=doubled) for doubled in (False, True)]


def replacing(monkeypatch: pytest.MonkeyPatch, at: Path, new: Path, access: int) -> Callable[[], int]:
    """Replace all inputs before this access to one of their files; return what counts the accesses."""
    accesses = 0

    def before(real: Callable[..., Any]) -> Callable[..., Any]:
        def with_another(place: LocalPlace, *given: Any) -> Any:
            nonlocal accesses
            if at in place.path.parents:
                if accesses == access:
                    shutil.rmtree(at)
                    shutil.copytree(new, at)
                accesses += 1
            return real(place, *given)

        return with_another

    for name in ("read", "array", "checked", "blocks"):
        monkeypatch.setattr(LocalPlace, name, before(getattr(LocalPlace, name)))
    return lambda: accesses


@pytest.mark.parametrize("command", COMMANDS)
def test_it_makes_what_the_old_or_the_new_one_gives_or_nothing(
    command: str, old_and_new: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the manifest names one, the rows are of the other, and nobody can tell."""
    at, possible = tmp_path / "at", []
    for number, source in enumerate(old_and_new):
        shutil.copytree(source, at)
        COMMANDS[command](at, tmp_path / f"expected-{number}")
        possible.append(contents(tmp_path / f"expected-{number}"))
        shutil.rmtree(at)
    assert possible[0] != possible[1]
    access, codes = 0, set()
    while True:
        shutil.copytree(old_and_new[0], at)
        out = tmp_path / f"out-{access}"
        with monkeypatch.context() as patch:
            count = replacing(patch, at, old_and_new[1], access)
            try:
                COMMANDS[command](at, out)
            except PacktoolError as error:
                codes.add(error.code)
                assert not (out / manifests.MANIFEST).exists(), access
            else:
                assert contents(out) in possible, access
            if count() <= access:
                break
        shutil.rmtree(at)
        access += 1
    assert access > 5
    assert codes & {"input-changed", "dataset-changed"}
    assert "wrong-checksum" not in codes
