"""`export`: what is lost is told, what can't be is refused."""

import re
from pathlib import Path

import msgspec
import pytest

import packtool
from tests.exchange.streams import small_large_and_empty
from tests.shell import Shell


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return small_large_and_empty(tmp_path_factory.mktemp("exchange"))


def test_what_is_lost_of_batches_and_repeated_tokens_is_said(stores: dict[str, Path], tmp_path: Path) -> None:
    packtool.pack(stores["small"], tmp_path / "several", strategy="buckets", buckets=(8, 16, 32))
    packtool.shuffle(tmp_path / "several", tmp_path / "batches", method="bucket", batch_tokens=64)
    batches = "which rows make a batch"
    for source, expected in (("several", []), ("batches", [batches])):
        manifest = packtool.export(tmp_path / source, tmp_path / "out", format="parquet", overwrite=True).manifest
        assert manifest.lost == expected
    packtool.pack(stores["small"], tmp_path / "rows", strategy="seamless", sequence_length=32)
    manifest = packtool.export(tmp_path / "rows", tmp_path / "out", format="parquet", overwrite=True).manifest
    assert [what for what in manifest.lost if "repeated" in what] == [
        f"which tokens are repeated ({packtool.open(tmp_path / 'rows').manifest.ledger.repeated} are)"
    ]


def test_documents_that_are_left_out_are_said(stores: dict[str, Path], tmp_path: Path, shell: Shell) -> None:
    chosen = (stores["small"], "--max-tokens", "15")
    printed = shell("export", *chosen, "-o", tmp_path / "out", "--format", "olmo").splitlines()
    assert re.fullmatch(r"left out: \d+ too long", printed[1])
    assert re.search(rf"^  left out +{printed[1].removeprefix('left out: ')}$", shell("info", tmp_path / "out"), re.M)
    shell("pack", *chosen, "-o", tmp_path / "rows", "--strategy", "bfd", "-L", "16")
    assert printed[1].removeprefix("left out: ") in shell("info", tmp_path / "rows")


def test_on_the_command_line(stores: dict[str, Path], tmp_path: Path, shell: Shell) -> None:
    out = str(tmp_path / "out")
    said = shell("export", stores["small"], "-o", out, "--format", "olmo", "--dry-run")
    assert f"packtool export {stores['small']} -o {out} --format olmo\n" in said
    assert f"would read 15 documents, 294 tokens\nwould write to {out}, which is new (" in said
    printed = shell("export", stores["small"], "-o", out, "--format", "olmo")
    assert printed.splitlines() == [
        "15 documents, 294 tokens, as olmo.",
        "Not kept: where documents end, except for the EOS after each.",
        "Not kept: the tokens at the end of each file that fill no row of its reader.",
        f"Wrote {out}.",
    ]
    assert (
        msgspec.json.decode(shell("import", out, "-o", tmp_path / "back", "--format", "olmo", "--json"))["counts"][
            "documents"
        ]
        == 15
    )
    assert "error[format-too-small]: --format: nanogpt holds ids of 16 bits" in shell.refused(
        "export", stores["large"], "-o", out, "--format", "nanogpt", status=2
    )
