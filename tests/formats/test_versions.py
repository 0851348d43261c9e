"""The fields of each version of the format, and what becomes of manifests of other versions.

`tests/golden/format-N.json` has every field of the manifests of version N, with its type and limits. From the first
release on these files stay. `python -m tests.formats.test_versions` writes that of today's version.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import packtool
from packtool.errors import DataError
from packtool.formats import manifest as manifests
from packtool.formats import schema
from tests.shell import Shell
from tests.stores import amended

GOLDEN = Path(__file__).parents[1] / "golden"
RECORDED = GOLDEN / f"format-{schema.FORMAT_VERSION}.json"


def fields() -> dict[str, Any]:
    """Every type of a manifest, as JSON Schema."""
    kinds = (schema.StoreManifest, schema.PackedManifest, schema.ExportManifest)
    _, types = msgspec.json.schema_components(kinds, ref_template="{name}")
    for type_ in types.values():
        type_.pop("description", None)  # words may change at any time
    # The version that writes a manifest is no part of the format.
    for kind in kinds:
        del types[kind.__name__]["properties"]["packtool_version"]["default"]
    return types


def test_the_fields_are_those_of_the_version() -> None:
    changed = f"the fields are not those of version {schema.FORMAT_VERSION}: give FORMAT_VERSION the next number"
    assert fields() == json.loads(RECORDED.read_text(encoding="utf-8")), changed


@pytest.mark.parametrize("name", ["store", "packed", "export"])
@pytest.mark.parametrize("before", [{"format_version": 6}, {"format_version": 1}, {"format": "packtool order"}])
def test_what_was_made_before_the_first_release_is_refused(made: Path, name: str, before: dict[str, Any]) -> None:
    with amended(made / name) as manifest:
        manifest.update({"format_version": 3, **before})
    why = r"manifest\.json: format 'packtool [a-z ]+' version \d was made before the first release, whose formats have "
    with pytest.raises(DataError, match=why + r"version 7\. Make it again\.") as caught:
        manifests.read(made / name)
    assert caught.value.code == "unknown-format"


@pytest.mark.parametrize("name", ["store", "packed", "export"])
@pytest.mark.parametrize("deep", [False, True])
def test_a_field_of_another_version_is_named_with_who_wrote_it(made: Path, name: str, deep: bool, shell: Shell) -> None:
    with amended(made / name) as manifest:
        manifest["packtool_version"] = "0.9.2"
        (manifest["tokenizer"] if deep else manifest)["colour"] = "red"
    at = " at `$.tokenizer`" if deep else ""
    assert shell.refused("verify", made / name) == (
        f"packtool: error[unknown-format]: {made / name}/manifest.json: packtool 0.9.2 wrote the field `colour`{at}, "
        f"which packtool {packtool.__version__} does not know. Use the packtool that wrote it, or make it again with "
        "this one.\n"
    )


@pytest.mark.parametrize("wrote", ["0.9.2", "rm -rf ~"])
def test_a_later_version_is_refused_by_name(made: Path, wrote: str) -> None:
    with amended(made / "packed") as manifest:
        manifest["format_version"] = 8
        manifest["packtool_version"] = wrote
    writer = "packtool 0.9.2" if wrote == "0.9.2" else "the packtool that wrote it"
    why = rf"version 8 can't be read by packtool {packtool.__version__}\. Use {writer} or a later one\."
    with pytest.raises(DataError, match=why):
        packtool.open(made / "packed")


if __name__ == "__main__":
    RECORDED.write_text(json.dumps(fields(), indent=1) + "\n", encoding="utf-8")
