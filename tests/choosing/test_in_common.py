"""What two manifests say of documents in common is so: by naive comparison of what was packed."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from packtool.choosing.in_common import in_common
from packtool.formats.packed import PackedDataset
from tests.choosing.web_and_wiki import pack, web_and_wiki
from tests.stores import amended

CHOICES: dict[str, dict[str, Any]] = {
    "all": {},
    "train of 10%": {"holdout": "10%"},
    "train of 40%": {"holdout": "40%"},
    "held 10%": {"holdout": "10%", "part": "holdout"},
    "held 40%": {"holdout": "40%", "part": "holdout"},
    "held otherwise": {"holdout": "40%", "part": "holdout", "holdout_seed": 7},
    "held 60 documents": {"holdout": "60 documents", "part": "holdout"},
    "train of 60 documents": {"holdout": "60 documents"},
    "short, held": {"holdout": "40%", "part": "holdout", "max_tokens": 20},
    "short": {"max_tokens": 20},
    "long, train": {"holdout": "10%", "min_tokens": 21},
    "without wiki": {"mix": {"web": "1x", "wiki": "0x"}},
    "wiki alone": {"mix": {"web": "0x", "wiki": "1x"}},
    "excluded": {"holdout": "10%", "exclude": "list.txt"},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, PackedDataset]:
    place = tmp_path_factory.mktemp("common")
    stores = web_and_wiki(place)
    (place / "list.txt").write_text("".join(f"web.jsonl:{line}\n" for line in range(1, 60)))
    found = {}
    for name, options in CHOICES.items():
        here = dict(options)
        if "exclude" in here:
            here["exclude"] = place / "list.txt"
        found[name] = pack(stores, place / f"made {name}", **here)
    return found


def documents(dataset: PackedDataset) -> set[tuple[int, int]]:
    """The documents that were packed, with the numbers of their stores."""
    chosen = dataset.chosen()
    if chosen is None:
        return {(store, n) for store, count in enumerate(dataset.manifest.store_documents) for n in range(count)}
    return {(store, n) for store, numbers in enumerate(chosen) for n in numbers.tolist()}


def test_documents_in_common_are_known(made: dict[str, PackedDataset]) -> None:
    for one, other in itertools.product(CHOICES, repeat=2):
        said = in_common(made[one].manifest, made[other].manifest)
        shared = documents(made[one]) & documents(made[other])
        rules = [CHOICES[name].keys() - {"holdout", "holdout_seed", "part", "mix"} for name in (one, other)]
        both = all(rules) and one != other
        if both or "exclude" in (*rules[0], *rules[1]):
            assert shared or not said, (one, other)  # not all is known, but what is said is so
        else:
            assert said == bool(shared), (one, other)


def test_copies_of_a_dataset_and_other_stores(made: dict[str, PackedDataset], tmp_path: Path) -> None:
    web, _ = web_and_wiki(tmp_path)
    other = pack([web], tmp_path / "rows").manifest
    assert in_common(other, made["without wiki"].manifest)  # the same store, made anew
    assert not in_common(other, made["wiki alone"].manifest)
    old = pack([web], tmp_path / "old rows", holdout="60 documents")
    with amended(tmp_path / "old rows") as manifest:
        del manifest["choice"]["options"]["holdout_bound"]
    assert not in_common(PackedDataset(tmp_path / "old rows").manifest, made["held 60 documents"].manifest)
    assert in_common(old.manifest, made["all"].manifest)
