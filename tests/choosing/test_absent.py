"""`find` says of a document that a dataset lacks which side of the hold-out it is on, as packing that side shows."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

import packtool
from packtool.choosing.sides import OTHER_SIDE
from packtool.formats import manifest as manifests
from packtool.formats.schema import PackedManifest
from packtool.formats.token_store import TokenStore
from tests.choosing.web_and_wiki import pack
from tests.shell import Shell


def origins(stores: list[Path], output: Path, **options: Any) -> set[str]:
    """The lines that a dataset has."""
    dataset = pack(stores, output, **options)
    chosen = dataset.chosen()
    return {TokenStore(store).origin(n) for store, numbers in zip(stores, chosen, strict=True) for n in numbers}


@pytest.mark.parametrize("amount", ["30%", "40 documents", "900 tokens"])
def test_the_side_is_the_one_that_has_it(stores: list[Path], tmp_path: Path, amount: str) -> None:
    seed: dict[str, Any] = {"holdout": amount, "holdout_seed": 5}
    sides = {side: origins(stores, tmp_path / side, part=side, **seed) for side in ("train", "holdout")}
    drawn: dict[str, Any] = {"holdout_of": tmp_path / "train", "min_tokens": 12, "drop_duplicates": True}
    fewer = {side: origins(stores, tmp_path / f"few-{side}", part=side, **drawn) for side in sides}
    every = sorted(sides["train"] | sides["holdout"])
    assert not sides["train"] & sides["holdout"]
    for line in every[::23]:
        for name, packed in (("", sides), ("few-", fewer)):
            for side, held in packed.items():
                found = packtool.find(tmp_path / f"{name}{side}", line, store=stores)
                assert bool(found.documents) == (line in held)
                assert len(found.absent) == (line not in held)
                for absent in found.absent:
                    assert absent.stored.origin == line
                    assert (f"--holdout {amount}: it is {OTHER_SIDE[side]}" in absent.because) == (
                        line not in sides[side]
                    )


def test_what_is_known_is_said(stores: list[Path], tmp_path: Path, shell: Shell) -> None:
    store = stores[0]
    held_out = origins([store], tmp_path / "held", holdout="50%", part="holdout")
    number = max(int(line.partition(":")[2]) for line in held_out)
    line, above = f"web.jsonl:{number}", 200 - number
    assert above < 15

    def said(**options: Any) -> str:
        packtool.pack(store, tmp_path / "p", strategy="bfd", sequence_length=64, overwrite=True, **options)
        return shell("find", tmp_path / "p", line, "--store", store, status=1)

    lead = f"{line} (document {number - 1} of web) is not in the dataset"
    held = said(holdout="50%")
    assert held == f"{lead}: left out by --holdout 50%: it is held out for validation\n"
    assert said(sample="1%", seed=3) == f"{lead}: not in the sample\n"
    unknown = said(min_tokens=12, where=f"line < {number}")
    assert unknown == f"{lead}: left out by --where line < {number} and --min-tokens 12\n"
    side = said(where=f"line < {number}", holdout="0.0001%")
    assert side == f"{lead}: left out by --where line < {number}\n"


def test_a_bound_that_was_not_recorded_gives_no_side(stores: list[Path], tmp_path: Path) -> None:
    pack(stores, tmp_path / "p", holdout="40 documents")
    manifest = manifests.read_as(tmp_path / "p", PackedManifest)
    old = {name: value for name, value in manifest.choice.options.items() if name != "holdout_bound"}
    changed = msgspec.structs.replace(manifest, choice=msgspec.structs.replace(manifest.choice, options=old))
    (tmp_path / "p" / "manifest.json").unlink()
    manifests.write(tmp_path / "p", changed)
    sides = set()
    for number in range(1, 60):
        for absent in packtool.find(tmp_path / "p", f"web.jsonl:{number}", store=stores).absent:
            sides.add((*absent.because, *absent.possible))
    assert sides == {("other_side",)}
