"""Parts of the inputs, a store each: together they are what one run makes, and nothing less is packed."""

import gzip
import io
import shutil
import warnings
from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import packtool
from packtool.errors import DataError, UsageError
from packtool.formats.token_store import Corpus, TokenStore
from packtool.warnings import PacktoolWarning
from tests.shell import Shell
from tests.stores import amended
from tests.text.tokenizing.runs import ASSET, documents, fails, jsonl, run

PARTS = 4


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that can be divided, at lines and at groups of rows, and one that can't."""
    place = tmp_path_factory.mktemp("corpus")
    texts = [f"document {number} " * (1 + number % 5) for number in range(40)]
    (place / "a.jsonl").write_bytes(jsonl(texts) + b"no JSON\n\n" + jsonl(texts[:9]))
    (place / "b.jsonl.gz").write_bytes(gzip.compress(jsonl(texts[9:20])))
    parquet.write_table(pa.table({"id": range(40), "text": texts}), place / "c.parquet", row_group_size=3)
    (place / "d.jsonl").write_bytes(b"")
    return place


@pytest.fixture(scope="module")
def divided(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The stores of all parts."""
    place = tmp_path_factory.mktemp("parts")
    return [part(corpus, place / str(number), number) for number in range(1, PARTS + 1)]


def part(corpus: Path, output: Path, number: int, parts: int = PARTS, **options: object) -> Path:
    """Make the store of a part; one record of the corpus can't be used, and some parts have no document."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PacktoolWarning)
        run(corpus, output, part=f"{number}/{parts}", columns=["id"], on_error="quarantine", **options)
    return output


def origins(store: TokenStore) -> list[str]:
    return [store.origin(number) for number in range(store.documents)]


def rejects(store: Path) -> str:
    file = store / "rejected.jsonl"
    return file.read_text() if file.exists() else ""


@pytest.mark.filterwarnings("ignore:.*holds no document")
@pytest.mark.parametrize("parts", [1, 2, 3, 4, 7, 60])
def test_all_parts_are_the_documents_of_one_run_in_order(parts: int, corpus: Path, tmp_path: Path) -> None:
    """Their tokens, files, lines and columns, also where a part begins inside a file; and the same rows."""
    whole = part(corpus, tmp_path / "whole", 1, 1)
    stores = [part(corpus, tmp_path / str(number), number, parts) for number in range(1, parts + 1)]
    tokens, names, ids, rejected = [], [], [], ""
    for place in stores:
        store = TokenStore(place)
        tokens += documents(place)
        names += origins(store)
        ids += store.column("id").to_pylist() if store.documents else []
        rejected += rejects(place)
        sizes = [(corpus / entry.name).stat().st_size for entry in store.manifest.inputs]
        assert sizes == [entry.bytes for entry in store.manifest.inputs]
    one = TokenStore(whole)
    assert tokens == documents(whole)
    assert names == origins(one)
    assert ids == one.column("id").to_pylist()
    assert rejected == rejects(whole)
    digests = {entry.name: entry for entry in one.manifest.inputs}
    for place in stores:
        for entry in TokenStore(place).manifest.inputs:
            assert entry == digests[entry.name]
    rows = packtool.pack(stores, tmp_path / "rows", strategy="bfd", sequence_length=64, quiet=True)
    once = packtool.pack(whole, tmp_path / "once", strategy="bfd", sequence_length=64, quiet=True)
    assert (rows.path / "tokens-00000.npy").read_bytes() == (once.path / "tokens-00000.npy").read_bytes()


def test_parts_of_lines_have_about_equally_many_bytes(tmp_path: Path) -> None:
    """One file is enough for several parts."""
    file = tmp_path / "a.jsonl"
    file.write_bytes(jsonl([f"document {number}" for number in range(100)]))
    counts = [TokenStore(part(file, tmp_path / str(number), number)).documents for number in range(1, PARTS + 1)]
    assert sum(counts) == 100
    assert min(counts) >= 23


@pytest.mark.parametrize("size", range(1, PARTS))
def test_fewer_than_all_are_refused_and_named(size: int, divided: list[Path], tmp_path: Path) -> None:
    for chosen in combinations(range(PARTS), size):
        with pytest.raises(UsageError) as caught:
            packtool.pack(
                [divided[number] for number in chosen], tmp_path / "rows", strategy="concat", sequence_length=8
            )
        missing = [f"{number + 1}/{PARTS}" for number in range(PARTS) if number not in chosen]
        if len(missing) == 1:
            said = f"of which part {missing[0]} is missing"
        else:
            said = f"of which {len(missing)} parts are missing: {', '.join(missing)}"
        assert (caught.value.code, caught.value.where) == ("parts-incomplete", str(divided[chosen[0]]))
        assert said in caught.value.what
        assert not (tmp_path / "rows").exists()


def test_parts_that_do_not_belong_together(corpus: Path, divided: list[Path], tmp_path: Path) -> None:
    copied = shutil.copytree(divided[1], tmp_path / "copied")
    other_count = part(corpus, tmp_path / "of-five", 2, 5)
    other_options = part(corpus, tmp_path / "short", 2, max_chars=30)
    grown = shutil.copytree(corpus, tmp_path / "grown")
    (grown / "e.jsonl").write_bytes(jsonl(["one more"]))
    other_inputs = part(grown, tmp_path / "more", 2)
    first, _, *rest = divided
    refusals = {
        "part 2/4 of the inputs, as .*: its documents would be packed twice": [*divided, copied],
        "part 2/5 of the same inputs as .*, part 1/4": [first, other_count, *rest],
        "part 1/4 of other inputs, or with other options, than .*short, part 2/4": [first, other_options, *rest],
        "part 1/4 of other inputs, or with other options, than .*more, part 2/4": [first, other_inputs, *rest],
        "part 2/4 of other inputs, .*, part 1/4: parts of two": [other_inputs, *divided],
    }
    for message, stores in refusals.items():
        with pytest.raises(UsageError, match=message) as caught:
            packtool.pack(stores, tmp_path / "rows", strategy="concat", sequence_length=8)
        assert caught.value.code == "parts-incomplete"


def test_two_whole_divisions_and_stores_without_parts_go_together(divided: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "web.jsonl"
    file.write_bytes(jsonl([f"another {number}" for number in range(20)]))
    others = [part(file, tmp_path / f"web-{number}", number, 2) for number in (1, 2)]
    plain = run(file, tmp_path / "plain").path
    result = packtool.pack(
        [others[1], *divided, plain, others[0]], tmp_path / "rows", strategy="concat", sequence_length=8
    )
    assert result.report is not None
    assert result.report.lengths is not None
    assert result.report.lengths.documents == 140


def test_a_part_that_is_no_part_is_a_damaged_manifest(divided: list[Path], tmp_path: Path) -> None:
    for written in ("0/4", "5/4", "x", 3, None):
        store = shutil.copytree(divided[0], tmp_path / f"store-{written!r}".replace("/", "-"))
        with amended(store) as manifest:
            manifest["options"]["part"] = written
        with pytest.raises(DataError, match="its part is no part of anything"):
            Corpus([store])


def test_what_is_refused(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for given in ("0/5", "6/5", "5", "1/0", "-1/5", "1/5/5"):
        said = fails(UsageError, corpus, tmp_path / "store", part=given)
        assert said == f"part: {given!r} can't be used. Give a part by its number, from 1/8 to 8/8."
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(jsonl(["a"]))))
    for inputs in ("-", [{"text": "a"}], iter(["a"])):
        assert "can't be divided. Write it to a file first" in fails(UsageError, inputs, tmp_path / "store", part="1/2")


def test_a_part_without_anything_says_so(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl.gz"
    file.write_bytes(gzip.compress(jsonl(["a"])))
    with pytest.warns(PacktoolWarning, match=r"falls to this part.*Nothing is lost"):
        assert run(file, tmp_path / "store", part="1/2").counts["documents"] == 0


def test_by_the_command_line_a_part_resumes_and_info_does_not_say_pack(
    corpus: Path, tmp_path: Path, shell: Shell
) -> None:
    words = ["tokenize", corpus, "-o", tmp_path / "store", "--tokenizer", ASSET, "--on-error", "skip", "--resume"]
    shell(*words, "--part", "3/4")
    assert "was finished already" in shell(*words, "--part", "03/4")
    assert "begun with other options: --part was 3/4" in shell.refused(*words, "--part", "2/4", status=2)
    assert "packtool pack" not in shell("info", tmp_path / "store")
    assert "a dry run estimates all parts together" in shell(
        "tokenize", corpus, "-o", tmp_path / "new", "--part", "1/4", "--dry-run"
    )
