"""`show` against the row itself."""

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken

import packtool
from packtool.commands.show import show
from packtool.errors import UsageError
from packtool.formats.token_store import TokenStore
from packtool.support.sizes import plural
from tests.making import Make
from tests.report.printing import RECORDS, TEXTS, printed
from tests.shell import Shell
from tests.stores import document_loss, write_store
from tests.text.encoding import shapes


@pytest.fixture
def packed(make: Make) -> Path:
    buckets = {"strategy": "buckets", "buckets": [16, 64]}
    return make(RECORDS, packed={"strategy": "padding", "sequence_length": 32}, buckets=buckets) / "packed"


@pytest.fixture
def store(packed: Path) -> Path:
    return packed.parent / "store"


def test_pieces_make_up_the_row(packed: Path) -> None:
    dataset = packtool.open(packed)
    texts = dict.fromkeys(range(len(TEXTS)), "")
    segments = []
    for number in range(len(dataset)):
        row = show(packed, number)
        assert [token for segment in row.segments for token in segment.tokens] == dataset[number].tolist()
        segments += [segment for segment in row.segments if segment.kind == "document"]
    for segment in sorted(segments, key=lambda segment: (segment.document, segment.start)):
        texts[segment.document] += segment.text
    assert [text.replace("<|endoftext|>", "") for text in texts.values()] == TEXTS


@pytest.mark.parametrize("most", [1, 7, 31, 32])
def test_of_what_is_too_long_the_beginning_is_shown(
    packed: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Rows, and documents of which some tokens do not train."""
    chats = write_store(tmp_path / "chats", [40, 9], loss=document_loss)
    whole = [show(packed, 0), show(packed, 6), *(show(path, document=0) for path in (store, chats))]
    monkeypatch.setattr("packtool.commands.show.SHOWN", most)
    again = [show(packed, 0), show(packed, 6), *(show(path, document=0) for path in (store, chats))]
    for row, expected in zip(again, whole, strict=True):
        found = [token for segment in row.segments for token in segment.tokens]
        assert found == [token for segment in expected.segments for token in segment.tokens][:most]
        assert row.sequence_length == expected.sequence_length == len(found) + row.left_out
        for segment in row.segments:
            assert not segment.runs or [token for run in segment.runs for token in run.tokens] == segment.tokens
        said = f"What is shown ends after {plural(most, 'token')}."
        assert (said in printed(row)) is (most < row.sequence_length)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("packed", {"row": 99}, "row: 99 is not among its 7 rows. Give a number from 0."),
    ("packed", {"document": 0}, "document: has no effect on packed datasets. Give row."),
    ("buckets", {"row": 0}, "bucket: the dataset has rows of several lengths. Give one of 16, 64."),
    ("buckets", {"row": 0, "bucket": 32}, "bucket: there are no rows of 32 tokens"),
    ("store", {"document": -5}, "document: -5 is not among its 4 documents. Give a number from 0."),
    ("store", {"row": 0}, "row: has no effect on token stores. Give document or find."),
]


def test_rows_are_of_datasets_and_documents_of_stores(store: Path, packed: Path) -> None:
    for name, options, said in REFUSED:
        with pytest.raises(UsageError) as caught:
            show(store.parent / name, **options)
        assert str(caught.value).startswith(said)
    assert show(store.parent / "buckets", 0, bucket=64).sequence_length == 64
    assert show(store, document=1, store=[]).row == 1
    assert show(packed, -1) == show(packed, len(packtool.open(packed)) - 1)


def test_on_the_command_line(packed: Path, shell: Shell) -> None:
    found = json.loads(shell("show", packed, "--row", "0", "--json"))
    assert found["schema_version"] == 1
    assert sum(len(segment["tokens"]) for segment in found["segments"]) == 32
    text = shell("show", packed, "--row", "0", "--ids")
    first = show(packed, 0).segments[0]
    assert " ".join(map(str, first.tokens)) in text.replace("\n", " ").replace("✂ ", "")
    assert str(first.text)[:12] not in text


def test_another_tokenizer_is_refused(packed: Path, tmp_path: Path) -> None:
    data = (Path(packtool.__file__).parent / "assets" / "tokenizer.json").read_bytes()
    (tmp_path / "tokenizer.json").write_bytes(data + b"\n")
    with pytest.raises(UsageError, match=r"tokenizer: its sha256 is .*but the dataset was made with"):
        show(packed, 0, tokenizer=tmp_path)
    (tmp_path / "tokenizer.json").write_bytes(data)
    assert show(packed, 0, tokenizer=tmp_path) == show(packed, 0)


def test_ids_where_the_tokenizer_is_not_known(tmp_path: Path) -> None:
    write_store(tmp_path / "store", [5, 40, 12])
    packtool.pack(tmp_path / "store", tmp_path / "packed", strategy="concat", sequence_length=32)
    row = show(tmp_path / "packed", 0)
    assert row.segments[0].text is None
    assert str(row.segments[0].tokens[0]) in printed(row)


def test_without_segments(store: Path, tmp_path: Path) -> None:
    packtool.pack(store, tmp_path / "packed", strategy="concat", sequence_length=32, segments=False)
    row = show(tmp_path / "packed", 0)
    assert [segment.kind for segment in row.segments] == ["unknown"]
    assert "boundaries unknown" in printed(row)


TOKENS = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>")


@pytest.fixture
def rearranged(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    spec = shapes.with_added(*(AddedToken(text, special=True) for text in TOKENS))
    (tmp_path / "tokenizer.json").write_bytes(shapes.data(spec))
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "one two three four"}) + "\n")
    options = {"tokenizer": tmp_path, "fim_rate": 1, "fim_spm_rate": 0, "fim_seed": 4, "fim_tokens": request.param}
    packtool.tokenize(tmp_path / "a.jsonl", tmp_path / "store", **options)
    packtool.pack(tmp_path / "store", tmp_path / "packed", strategy="bfd", sequence_length=64)
    return tmp_path / "packed"


@pytest.mark.parametrize("rearranged", [None, ["!", "$", "%"]], indirect=True, ids=["found", "named"])
def test_prefix_suffix_and_middle_have_a_colour_each(rearranged: Path, shell: Shell) -> None:
    row = show(rearranged, 0)
    parts = row.segments[0].parts
    roles = ["sentinel", "prefix", "sentinel", "suffix", "sentinel", "middle", "text"]
    assert [part.role for part in parts] == roles
    assert [number for part in parts for number in part.tokens] == row.segments[0].tokens
    prefix, suffix, middle = (part.text or "" for part in parts[1:6:2])
    assert prefix + middle + suffix == "one two three four"
    assert parts[-1].text == shapes.EOS
    coloured = printed(row, force_terminal=True, color_system="standard")
    for text, colour in ((prefix, "32"), (suffix, "34"), (middle, "35")):
        assert text.strip()
        assert f"\x1b[{colour}m{text.rstrip()}" in coloured
    found = json.loads(shell("show", rearranged, "--row", "0", "--json"))["segments"][0]["parts"]
    assert [part["role"] for part in found] == roles
    assert found[1]["text"] == prefix


@pytest.mark.parametrize("rearranged", [None], indirect=True)
def test_sentinels_are_known_by_name_where_the_store_is_gone(rearranged: Path) -> None:
    parts = show(rearranged, 0).segments[0].parts
    (rearranged.parent / "store").rename(rearranged.parent.parent / f"{rearranged.parent.name}-elsewhere")
    assert show(rearranged, 0).segments[0].parts == parts


def test_a_text_that_spells_sentinels_was_not_rearranged(tmp_path: Path) -> None:
    spec = shapes.with_added(*(AddedToken(text, special=True) for text in TOKENS))
    (tmp_path / "tokenizer.json").write_bytes(shapes.data(spec))
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "one <fim_prefix> two"}) + "\n")
    with pytest.warns(packtool.warnings.PacktoolWarning, match="texts hold special tokens"):
        packtool.tokenize(tmp_path / "a.jsonl", tmp_path / "store", tokenizer=tmp_path)
    packtool.pack(tmp_path / "store", tmp_path / "packed", strategy="padding", sequence_length=64)
    assert show(tmp_path / "packed", 0).segments[0].parts == []


def test_a_document_of_a_store_before_it_is_packed(store: Path, shell: Shell) -> None:
    shown = show(store, document=-1)
    assert (shown.kind, shown.row, shown.rows) == ("document", 3, 4)
    [segment] = shown.segments
    assert (segment.text, segment.origin, segment.runs) == ("Four.<|endoftext|>", "store.jsonl:4", [])
    assert segment.tokens == TokenStore(store).document(3).tolist()
    assert show(store) == show(store, document=0)
    assert shell("show", store, "--document", "3") == (
        f"document 3 of 4 · {len(segment.tokens)} tokens\n"
        f"── document 3 · store.jsonl:4 · whole, {len(segment.tokens)} tokens\n"
        "Four.<|endoftext|>\n"
    )


def test_what_trains_of_a_conversation_is_shown_before_it_is_packed(tmp_path: Path, shell: Shell) -> None:
    messages = [{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "Four."}]
    (tmp_path / "chats.jsonl").write_text(json.dumps({"id": "a", "messages": messages}))
    (tmp_path / "chat.jinja").write_text(
        "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
        "{% endgeneration %}{% else %}{{ m.content }}{% endif %}{% endfor %}"
    )
    packtool.tokenize(
        tmp_path / "chats.jsonl", tmp_path / "store", chat_template=tmp_path / "chat.jinja", id_field="id"
    )
    [segment] = show(tmp_path / "store", document=0).segments
    assert [(part.trained, part.text) for part in segment.runs] == [
        (False, "<user>2 + 2?<assistant>"),
        (True, "Four.<|endoftext|>"),
    ]
    assert segment.id == "a"
    [said] = json.loads(shell("show", tmp_path / "store", "--json"))["segments"]
    assert [part["trained"] for part in said["runs"]] == [False, True]
    coloured = printed(show(tmp_path / "store"), force_terminal=True, color_system="standard")
    assert "\x1b[1;4;36mFour.<|endoftext|>\x1b[0m" in coloured
