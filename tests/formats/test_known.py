"""Every file of a manifest is described in docs/format.md, and exports account for it; what is missing is named."""

import typing
from pathlib import Path

import pytest

from packtool.exchange import FORMATS, model
from packtool.formats import names, schema
from packtool.places.npy import FileEntry

ROOT = Path(__file__).parents[2]
FILES = (FileEntry, schema.OtherFile)
OF_SHARDS = sorted(
    {
        kind
        for shard in (schema.TokenShard, schema.PackedShard)
        for kind, hint in typing.get_type_hints(shard).items()
        if set(typing.get_args(hint) or (hint,)) - {type(None)} <= set(FILES)
    }
)
OF_DATASETS = [names.LENGTHS, names.CHOSEN, names.BATCHES, names.REPORT, names.REJECTED, names.TOKENIZER]
EXPORTED = {
    # What becomes of a file in an export: it is kept, its contents are listed as lost by a word, a format without room
    # for them is refused by a code, or they are of no use to a trainer.
    "tokens": "kept",
    names.TOKENIZER: "kept",
    "offsets": "boundaries",
    "segments": "boundaries",
    "segment_offsets": "boundaries",
    names.LENGTHS: "boundaries",
    names.BATCHES: "batches",
    "loss": "format-without-loss",
    "documents": "of no use to a trainer",
    "columns": "of no use to a trainer",
    "atoms": "of no use to a trainer",
    names.CHOSEN: "of no use to a trainer",
    names.REPORT: "of no use to a trainer",
    names.REJECTED: "of no use to a trainer",
}


def test_the_files_are_found() -> None:
    assert " ".join(OF_SHARDS) == "atoms columns documents loss offsets segment_offsets segments tokens"


@pytest.mark.parametrize("file", [*OF_SHARDS, *OF_DATASETS])
def test_the_page_describes_it_and_exports_account_for_it(file: str) -> None:
    page = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")
    suffix = "parquet" if file == "columns" else "npy"
    described = file if file in OF_DATASETS else f"{file}-NNNNN.{suffix}"
    assert f"`{described}`" in page, f"docs/format.md does not describe {described}"
    becomes = EXPORTED.get(file)
    words = {word for format in FORMATS.values() for word in format.losses}
    codes = {reject.code for reject in model._REJECTS}
    assert becomes in {"kept", "of no use to a trainer", *words, *codes}, f"say what exports do with {file}"
