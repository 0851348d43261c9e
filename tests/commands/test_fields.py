"""What is kept beside the tokens, and ids that are tokens already: JSON Lines, Parquet, CSV and TSV."""

import csv
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from pyarrow import parquet
from tokenizers import Tokenizer

import packtool
from packtool.errors import PacktoolError
from packtool.formats.token_store import TokenStore
from packtool.warnings import PacktoolWarning
from tests.shell import Shell, python
from tests.stores import contents

TEXTS = [f"document number {n}, " * (1 + n % 5) for n in range(60)]
TOKENIZER = Tokenizer.from_file(str(Path(packtool.__file__).parent / "assets" / "tokenizer.json"))
EOS = "<|endoftext|>"


def lines(path: Path, records: list[Any]) -> Path:
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in records))
    return path


def records(**more: Any) -> list[dict[str, Any]]:
    return [
        {"id": f"doc-{n}", "text": text, "meta": {"lang": "en" if n % 3 else None, "score": n / 4}, "n": n, **more}
        for n, text in enumerate(TEXTS)
    ]


def column(store: TokenStore, name: str) -> list[str | None]:
    found: list[str | None] = store.column(name).to_pylist()
    return found


def test_scalars_of_every_type_of_column(tmp_path: Path) -> None:
    """Times that pandas writes have nanoseconds, which Python has not."""
    moment = 1_700_000_000_123_456_789
    typed = {
        "int8": (pa.array([-5, None], pa.int8()), "-5"),
        "uint64": (pa.array([2**64 - 1, None], pa.uint64()), "18446744073709551615"),
        "float16": (pa.array(np.array([0.1, 0], np.float16)), "0.1"),
        "float32": (pa.array([0.1, None], pa.float32()), "0.1"),
        "double": (pa.array([0.1, None]), "0.1"),
        "bool": (pa.array([True, None]), "true"),
        "decimal": (pa.array([Decimal("1.10"), None]), "1.10"),
        "seconds": (pa.array([1_700_000_000, None], pa.timestamp("s")), "2023-11-14 22:13:20.000"),
        "moment": (pa.array([moment, None], pa.timestamp("ns")), "2023-11-14 22:13:20.123456789"),
        "zoned": (pa.array([moment // 1000, None], pa.timestamp("us", "Asia/Tokyo")), "2023-11-14 22:13:20.123456Z"),
        "date": (pa.array([19_000, None], pa.date32()), "2022-01-08"),
        "time": (pa.array([86_399_000_000_001, None], pa.time64("ns")), "23:59:59.000000001"),
        "span": (pa.array([90, None], pa.duration("ns")), "90"),
        "word": (pa.array(["a", None]).dictionary_encode(), "a"),
        "large": (pa.array(["a", None], pa.large_string()), "a"),
    }
    table = {"text": ["one", "two"], **{name: values for name, (values, _) in typed.items()}}
    parquet.write_table(pa.table(table), tmp_path / "a.parquet")
    packtool.tokenize(tmp_path / "a.parquet", tmp_path / "s", columns=list(typed), workers=1)
    store = TokenStore(tmp_path / "s")
    kept = {name: column(store, name) for name in typed}
    assert kept == {name: [expected, "0.0" if name == "float16" else None] for name, (_, expected) in typed.items()}
    with pytest.warns(PacktoolWarning, match="1 record could not be used"):
        packtool.tokenize(tmp_path / "a.parquet", tmp_path / "i", id_field="uint64", on_error="skip", workers=1)
    packtool.pack(tmp_path / "i", tmp_path / "p", strategy="bfd", sequence_length=8)
    assert packtool.find(tmp_path / "p", str(2**64 - 1), store=tmp_path / "i").documents == [0]


def test_documents_are_excluded_by_id(tmp_path: Path) -> None:
    packtool.tokenize(lines(tmp_path / "a.jsonl", records()), tmp_path / "s", id_field="id", workers=1)
    (tmp_path / "ids.txt").write_text("doc-17\ndoc-3\na.jsonl:6\n")
    packtool.pack(tmp_path / "s", tmp_path / "p", strategy="bfd", sequence_length=64, exclude=tmp_path / "ids.txt")
    left_out = [n for n in range(60) if not packtool.find(tmp_path / "p", f"doc-{n}", store=tmp_path / "s").documents]
    assert left_out == [3, 5, 17]


@pytest.mark.parametrize(
    ("record", "options", "message"),
    [
        ({"text": "a"}, {"id_field": "id"}, r"a\.jsonl:2: no field 'id'; there are text"),
        ({"text": "a", "id": None}, {"id_field": "id"}, r"a\.jsonl:2: no field 'id'"),
        ({"text": "a", "id": [1]}, {"columns": ["id"]}, r"a\.jsonl:2: field 'id' is an array, not a scalar"),
        ({"text": "a", "ids": "x"}, {"ids_field": "ids"}, r"a\.jsonl:2: field 'ids' is a string, not a list of token"),
        ({"text": "a", "ids": [1, 0.5]}, {"ids_field": "ids"}, "'ids' holds something else than whole numbers"),
        ({"text": "a", "ids": [1, -1]}, {"ids_field": "ids"}, "id -1, but the vocabulary of the tokenizer ends at"),
        ({"text": "a", "ids": [1, 10**6]}, {"ids_field": "ids"}, r"a\.jsonl:2: id 1000000, but the vocabulary"),
        ({"text": "a"}, {"ids_field": "ids"}, r"a\.jsonl:2: no field of ids 'ids'; there are text"),
    ],
)
def test_fields_that_can_not_be_used_are_named(tmp_path: Path, record: Any, options: Any, message: str) -> None:
    lines(tmp_path / "a.jsonl", [{"text": "b", "id": "1", "ids": [5, 6]}, record])
    with pytest.raises(PacktoolError, match=message):
        packtool.tokenize(tmp_path / "a.jsonl", tmp_path / "s", workers=1, **options)
    with pytest.warns(PacktoolWarning, match="1 record could not be used"):
        packtool.tokenize(tmp_path / "a.jsonl", tmp_path / "s", workers=1, on_error="skip", **options)
    assert TokenStore(tmp_path / "s").documents == 1


def test_columns_and_texts_that_have_no_such_field(tmp_path: Path) -> None:
    for number, values in enumerate(([b"a"], [[1]], [{"a": 1}])):
        parquet.write_table(pa.table({"text": ["one"], "x": pa.array(values)}), tmp_path / f"{number}.parquet")
        with pytest.raises(PacktoolError, match=rf"{number}\.parquet: column 'x' holds .*, not scalars"):
            packtool.tokenize(tmp_path / f"{number}.parquet", tmp_path / "s", columns=["x"], workers=1)
    lines(tmp_path / "a.txt", ["plain"])
    with pytest.raises(PacktoolError, match="plain text, which has no field 'id'"):
        packtool.tokenize(tmp_path / "a.txt", tmp_path / "s", id_field="id", workers=1)


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_ids_are_stored_as_they_are(tmp_path: Path, kind: str) -> None:
    ids = [TOKENIZER.encode(text).ids for text in TEXTS]
    eos = TOKENIZER.token_to_id(EOS)
    given = [{"input_ids": each + [eos] * (n % 2), "id": str(n)} for n, each in enumerate(ids)]
    given.append({"input_ids": [], "id": "none"})
    path = tmp_path / f"a.{kind}"
    if kind == "parquet":
        parquet.write_table(pa.Table.from_pylist(given), path)
    else:
        lines(path, given)
    options: dict[str, Any] = {"ids_field": "input_ids", "id_field": "id", "max_tokens": 30}
    packtool.tokenize(path, tmp_path / "s", workers=1, **options)
    lines(tmp_path / "t.jsonl", [{"text": text} for text in TEXTS])
    packtool.tokenize(tmp_path / "t.jsonl", tmp_path / "t", workers=1, max_tokens=30)
    store, texts = TokenStore(tmp_path / "s"), TokenStore(tmp_path / "t")
    assert contents(tmp_path / "s")["tokens-00000-000.npy"] == contents(tmp_path / "t")["tokens-00000-000.npy"]
    kept = [n for n, each in enumerate(ids) if len(each) < 30]
    assert column(store, "id") == [str(n) for n in kept]
    assert [store.document(n).tolist()[:-1] for n in range(store.documents)] == [ids[n] for n in kept]
    for counts in (store.manifest.counts, texts.manifest.counts):
        assert counts["filtered"] == len(ids) - len(kept)
        assert counts["filtered_tokens"] == sum(len(each) + 1 for each in ids if len(each) >= 30)
    assert store.manifest.counts["empty"] == 1


def test_ids_need_no_encoder(tmp_path: Path) -> None:
    """A vocabulary takes a second to load: nothing of it is needed where ids are stored as they are."""
    lines(tmp_path / "a.jsonl", [{"ids": [5, 6, 7]}] * 2000)
    script = (
        "import sys; import packtool; from packtool.text.corpus import blocks; blocks.SMALLEST = 3000\n"
        "from packtool.text.tokenizing import block\n"
        "block.load_encoder = None  # whoever calls it fails\n"
        "for workers in (1, 2):\n"
        "    packtool.tokenize('a.jsonl', str(workers), ids_field='ids', workers=workers)\n"
        "packtool.tokenize('a.jsonl', 'x', ids_field='ids', dry_run=True)\n"
        "assert 'tokenizers' not in sys.modules, 'loaded here'\n"
    )
    python(script, cwd=tmp_path)
    assert TokenStore(tmp_path / "2").documents == 2000


def test_tables_are_read_when_asked_for(tmp_path: Path) -> None:
    texts = [*TEXTS, 'a "quoted" text,\twith\na newline', "", "NA"]
    rows: list[list[Any]] = [["id", "text"], *enumerate(texts)]  # type: ignore[list-item]
    rows.insert(7, ["too", "many", "values"])
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    options: dict[str, Any] = {"format": "csv", "id_field": "id", "workers": 1}
    with pytest.raises(PacktoolError, match=r":7: 3 values, where the header has 2"):
        packtool.tokenize(tmp_path / "a.csv", tmp_path / "s", **options)
    with pytest.warns(PacktoolWarning, match="1 record could not be used"):
        packtool.tokenize(tmp_path / "a.csv", tmp_path / "s", **options, on_error="skip")
    store = TokenStore(tmp_path / "s")
    kept = [n for n, text in enumerate(texts) if text]
    assert column(store, "id") == [str(n) for n in kept]
    assert store.origins()["hash"].tolist() == [xxhash.xxh3_64_intdigest(texts[n].encode()) for n in kept]
    assert store.origins()["record"].tolist() == [n + 1 + (n > 5) for n in kept]


def test_a_dry_run_lists_what_it_would_read(tmp_path: Path, shell: Shell) -> None:
    (tmp_path / "c").mkdir()
    lines(tmp_path / "c" / "a.jsonl", records())
    lines(tmp_path / "c" / "b.jsonl", [*records(), {"txt": 1}])
    lines(tmp_path / "c" / "d.txt", ["hello"])
    out = shell("tokenize", tmp_path / "c", "-o", tmp_path / "s", "--dry-run")
    for line in ("a.jsonl: jsonl, ", "b.jsonl: jsonl, ", "d.txt: text, 6 B\n", "would read 3 files, "):
        assert line in out
    assert re.search("would write what is not known: a run would stop at .*b.jsonl:61: no text field 'text'", out)
    found = json.loads(shell("tokenize", tmp_path / "c", "-o", tmp_path / "s", "--dry-run", "--json"))["inputs"]
    assert [each["format"] for each in found] == ["jsonl", "jsonl", "text"]
    assert not (tmp_path / "s").exists()


BESIDE: list[tuple[dict[str, Any], str]] = [
    ({"attention_mask": [1, 1, 0]}, "field 'attention_mask' says more of the ids: some are padding or other documents"),
    ({"attention_mask": [1, 2, 2]}, "'attention_mask' says more of the ids: some are padding or other documents"),
    ({"labels": [-100, 6, 7]}, "'labels' says more of the ids: some do not train, or have other labels"),
    ({"labels": 3}, "'labels' says more of the ids: it is no list of numbers"),
    ({"loss_mask": [0.0, 1.0, 1.0]}, "'loss_mask' says more of the ids: some do not train"),
    ({"assistant_masks": [1, 1]}, "'assistant_masks' says more of the ids: some do not train"),
    ({"document_ids": [0, 1, 1]}, "'document_ids' says more of the ids: several documents are in a row"),
    ({"segment_ids": [-1, -1, -1]}, "'segment_ids' says more of the ids: several documents are in a row"),
    ({"position_ids": [0, 0, 1]}, "'position_ids' says more of the ids: several documents are in a row"),
    ({"seq_lengths": [1, 2]}, "'seq_lengths' says more of the ids: several documents are in a row"),
    ({"cu_seqlens": [0, 1, 3]}, "'cu_seqlens' says more of the ids: several documents are in a row"),
    ({"pad_mask": [False, False, True]}, "'pad_mask' says more of the ids: some are padding or other"),
]
PLAIN = {
    "attention_mask": [1, 1, 1],
    "labels": [5, 6, 7],
    "loss_mask": [1.0, 1.0, 1.0],
    "completion_mask": [True, True, True],
    "document_ids": [4, 4, 4],
    "segment_id": "s",
    "position_ids": [0, 1, 2],
    "seq_lengths": [3],
    "seq_start_id": [0],
    "cu_seqlens": [0, 3],
    "pad_mask": [0, 0, 0],
    "targets": None,
}


@pytest.mark.parametrize(("kind", "nested"), [("jsonl", False), ("slow jsonl", True), ("parquet", True)])
def test_fields_that_say_more_of_ids_are_refused(tmp_path: Path, kind: str, nested: bool) -> None:
    """Padding, what does not train, and other documents would silently become text of one document."""
    path = tmp_path / f"a.{kind.rpartition(' ')[2]}"
    options: dict[str, Any] = {"ids_field": "x.ids" if nested else "ids", "workers": 1, "overwrite": True}

    def tokenize(*beside: dict[str, Any], **more: Any) -> list[list[int]]:
        given: list[Any] = [{"ids": [5, 6, 7], **fields} for fields in beside]
        given = [{"x": record} for record in given] if nested else given
        if kind == "parquet":
            parquet.write_table(pa.Table.from_pylist(given), path)
        else:
            lines(path, [" " + json.dumps(record) if kind == "slow jsonl" else record for record in given])
        packtool.tokenize(path, tmp_path / "s", **options, **more)
        store = TokenStore(tmp_path / "s")
        return [store.document(number)[:-1].tolist() for number in range(store.documents)]

    assert tokenize(PLAIN) == [[5, 6, 7]]
    for fields, message in BESIDE:
        name = next(iter(fields))
        shown = message.replace(f"'{name}'", f"'x.{name}'") if nested else message
        with pytest.raises(PacktoolError, match=shown) as caught:
            tokenize({name: None}, fields)
        assert caught.value.code == "bad-ids"
        assert str(caught.value.where).endswith(f"{path.name}:2")
        assert "packtool import" in str(caught.value)
    assert tokenize({name: None}, fields, ids_only=True) == [[5, 6, 7]] * 2
    with pytest.warns(PacktoolWarning, match="1 record could not be used"):
        assert tokenize({name: None}, fields, on_error="skip") == [[5, 6, 7]]
    assert TokenStore(tmp_path / "s").manifest.counts["rejected"] == 1


@pytest.mark.parametrize("batches", [1, 3])
def test_a_column_that_no_document_has_is_named(tmp_path: Path, batches: int) -> None:
    files = []
    for number in range(batches):
        held = [{"text": "one", "lang": "en" if number else None, "page": {"n": 1}}, {"text": "two", "lang": None}]
        files.append(lines(tmp_path / f"{number}.jsonl", held))
    with pytest.warns(PacktoolWarning) as warned:
        packtool.tokenize(files, tmp_path / "s", columns=["nosuch", "lang", "page.n"], workers=1)
    empty = "'nosuch'" if batches > 1 else "'nosuch', 'lang'"
    assert str(warned[0].message) == (
        f"columns: {empty}: missing or null in all of {2 * batches} documents. Check the name: a.b is the field b of "
        "an object a; in the first record, there are text, lang, page."
    )
