"""Arrays whose numbers point elsewhere are refused before they are followed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packtool
from packtool.errors import DataError
from packtool.formats.token_store import document_lengths
from tests.shell import Shell
from tests.stores import amended, rewrite


def wrong_offsets(table: Any) -> None:
    table[1] = 1 << 40


@pytest.mark.parametrize(
    ("dataset", "name", "change", "message"),
    [
        ("packed", "segment_offsets-00000.npy", wrong_offsets, "its segments lie outside the segment table"),
        ("packed", "segment_offsets-00000.npy", lambda t: t.__setitem__(0, -9), "outside"),
        ("packed", "segments-00000.npy", lambda t: t["document"].__setitem__(0, 1 << 50), "outside its document"),
        ("packed", "segments-00000.npy", lambda t: t["document"].__setitem__(0, -7), "outside its document"),
        ("packed", "segments-00000.npy", lambda t: t["start"].__setitem__(0, 1 << 31), "outside its document"),
        ("packed", "segments-00000.npy", lambda t: t["length"].__setitem__(0, 0), "outside its document"),
        ("packed", "segments-00000.npy", lambda t: t["length"].__setitem__(0, 1), "do not add up to the sequence"),
        ("store", "offsets-00000.npy", wrong_offsets, "its offsets do not divide its 114 tokens into documents"),
        ("store", "offsets-00000.npy", lambda t: t.__setitem__(2, -1), "its offsets do not divide its 114 tokens"),
        ("store", "offsets-00000.npy", lambda t: t.__setitem__(0, 1), "its offsets do not divide its 114 tokens"),
    ],
)
def test_numbers_that_point_elsewhere(
    made: Path, monkeypatch: pytest.MonkeyPatch, shell: Shell, dataset: str, name: str, change: Any, message: str
) -> None:
    """They once ended in memory that is not the dataset's, or in a crash."""
    monkeypatch.chdir(made)
    rewrite(Path(dataset), name, change)
    shuffle = ("shuffle packed -o s", "shuffle packed -o t --memory 1KiB -j 1")
    commands = {
        "packed": (*shuffle, "stats packed", "show packed --row 0"),
        "store": ("pack store -o p --strategy concat -L 16", "stats store"),
    }
    for command in (*commands[dataset], f"verify {dataset}"):
        assert message in shell.refused(*command.split()), command


@pytest.mark.parametrize(("field", "value"), [("bucket", 5), ("first_row", -1), ("rows", 99)])
def test_batches_of_rows_that_are_not_there(made: Path, shell: Shell, field: str, value: int) -> None:
    rewrite(made / "batched", "batches.npy", lambda table: table[field].__setitem__(0, value))
    with pytest.raises(DataError, match="batch 0 names rows that are not there"):
        packtool.open(made / "batched")
    shell.refused("verify", made / "batched", "-q")


def test_documents_longer_than_their_lengths_can_say() -> None:
    most = (1 << 32) - 1
    assert document_lengths(np.array([0, most]), most, "x").tolist() == [most]
    with pytest.raises(DataError, match=r"x: a document of 4,294,967,296 tokens, where 4,294,967,295 is the most"):
        document_lengths(np.array([0, most + 1]), most + 1, "x")


OPTIONS: dict[str, list[Any]] = {
    "atom_size": [10**39, -3, "16", 16.0, True, None],
    "shard_tokens": ["x", 0],
    "document_multiple": [1 << 62, "x"],
    "sequence_length": [[16]],
    "order_by": [3, [1]],
    "mix_rows": ["yes"],
    "max_repetition": ["x"],
    "seed": [-1],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in OPTIONS.items() for value in values])
def test_options_that_no_command_records(made: Path, shell: Shell, name: str, value: Any) -> None:
    """They were believed: a shuffle wrote a manifest that nobody can read, or ended with a traceback."""
    packed, out = made / "packed", made / "out"
    with amended(packed) as manifest:
        manifest["options"][name] = value
    for words in (["info"], ["stats"], ["verify"], ["shuffle", "-o", out, "--epoch", 1], ["show", "--row", 0]):
        said = shell.refused(words[0], packed, *words[1:])
        assert f"error[bad-manifest]: {packed}/manifest.json: not a valid manifest: its option {name}" in said
    assert not out.exists()
    with pytest.raises(DataError, match=f"its option {name}"):
        packtool.open(packed)
