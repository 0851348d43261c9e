"""An option of a strategy is added in one place, as CONTRIBUTING says; the example there is the one added."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.added import copy_of, examples_of, manifest, packtool, replace
from tests.stores import write_store


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with the option of CONTRIBUTING added to `decompose`, and a token store."""
    place = copy_of(tmp_path_factory.mktemp("added"), "packtool")
    declaration, use, rule = examples_of("Adding an option")
    options = place / "packtool/options/plans.py"
    replace(options, "    mix_rows: Annotated[", f"{declaration}    mix_rows: Annotated[")
    shutil.copy(options, place / "ruled.py")
    taken = '            taken_by=("decompose",),\n'
    ruled = declaration.replace(taken, f"{taken}{rule}")
    replace(place / "ruled.py", declaration, ruled)
    replace(place / "ruled.py", "import Option", "import Needs, Option")
    before = "    top = 1 << (options.row_length.bit_length() - 1)\n"
    replace(place / "packtool/planning/packing/decompose.py", before, use)
    write_store(place / "store", [5, 9, 20, 3])
    return place


def test_it_is_in_the_help(place: Path) -> None:
    tuning = packtool(place, "pack", "-h").partition("\nTuning of strategies:\n")[2]
    assert re.search(r"--max-bucket N +decompose: the longest row\.\s+\[default: \(the\s+sequence length\)\]", tuning)


def test_the_manifest_records_it_and_the_strategy_obeys(place: Path) -> None:
    base = ("pack", "store", "--strategy", "decompose", "-L", "16", "-q")
    assert packtool(place, *base, "-o", "p", "--max-bucket", "4") == ""
    made = manifest(place / "p")
    assert made["options"]["max_bucket"] == 4
    assert max(bucket["sequence_length"] for bucket in made["buckets"]) == 4
    assert packtool(place, *base, "-o", "q") == ""
    assert "max_bucket" not in manifest(place / "q")["options"]


def test_a_file_may_have_it_and_is_blamed(place: Path) -> None:
    (place / "c.toml").write_text("[pack]\nmax-bucket = 2\n", encoding="utf-8")
    base = ("pack", "store", "-L", "16", "-q", "--config", "c.toml")
    assert packtool(place, *base, "-o", "r", "--strategy", "decompose") == ""
    assert manifest(place / "r")["options"]["max_bucket"] == 2
    assert packtool(place, *base, "-o", "s", "--strategy", "concat") == (
        'packtool: error[option-not-taken]: c.toml:2: max-bucket: strategy = "concat" does not take this option. '
        'Leave it out, or use strategy = "decompose".\n'
    )


def test_it_is_checked(place: Path) -> None:
    found = packtool(place, "pack", "store", "-o", "t", "--strategy", "decompose", "-L", "16", "--max-bucket", "0")
    assert found == "packtool: error[bad-option]: --max-bucket: 0 is out of range. Give 1 or more.\n"


def test_a_rule_is_one_line_more(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "packtool", tmp_path / "packtool")
    shutil.copy(place / "ruled.py", tmp_path / "packtool/options/plans.py")
    (tmp_path / "c.toml").write_text("[pack]\nmax-bucket = 4\n", encoding="utf-8")
    base = ("pack", str(place / "store"), "--strategy", "decompose", "-L", "16", "-q")
    found = packtool(tmp_path, *base, "-o", "v", "--max-bucket", "4")
    said = "has no effect without --min-bucket. Give --min-bucket with it, such as 512."
    assert found == f"packtool: error[bad-option]: --max-bucket: {said}\n"
    found = packtool(tmp_path, *base, "-o", "v", "--config", "c.toml")
    assert found == f"packtool: error[bad-option]: c.toml:2: max-bucket: {said.replace('--', '')}\n"
    assert packtool(tmp_path, *base, "-o", "v", "--max-bucket", "4", "--min-bucket", "2") == ""
    assert re.search(
        r"--max-bucket N +decompose: the longest row\. Needs\s+--min-bucket\.", packtool(tmp_path, "pack", "-h")
    )


def test_python_has_it(place: Path) -> None:
    program = (
        "import inspect, packtool; "
        "print(inspect.signature(packtool.pack).parameters['max_bucket'], packtool.pack.__doc__)"
    )
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, cwd=place, capture_output=True, text=True, check=True).stdout
    assert found.startswith("max_bucket: int | None = None ")
    assert "    max_bucket: decompose: the longest row. In tokens. Default: the sequence length.\n" in found
