"""What a manifest lists is what lies there, no file more and none less."""

from __future__ import annotations

from pathlib import Path

import pytest
import xxhash

from packtool.formats import manifest as manifests
from packtool.formats.schema import listed_files

BESIDE = {manifests.MANIFEST, manifests.RUN}


@pytest.mark.parametrize("kind", ["store", "packed", "several", "batched", "export"])
def test_every_file_is_listed_with_its_bytes(sound: Path, kind: str) -> None:
    there = {str(file.relative_to(sound / kind)) for file in (sound / kind).rglob("*") if file.is_file()}
    found = list(listed_files(manifests.read(sound / kind)))
    assert sorted(each.name for each in found) == sorted(there - BESIDE)
    for each in found:
        raw = (sound / kind / each.name).read_bytes()
        assert (each.bytes, each.xxh3_128) == (len(raw), xxhash.xxh3_128_hexdigest(raw))
