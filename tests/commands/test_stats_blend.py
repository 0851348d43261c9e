"""What a run takes of each source, before its first batch: counted from the samples that a trainer would get."""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from rich.console import Console

import packtool
from packtool.errors import PacktoolError, UsageError
from packtool.reading.batches import GlobalBatches
from packtool.reading.stream import Stream
from packtool.report.blend_tables import largest
from packtool.report.blend_types import BlendReport
from packtool.report.page import page
from packtool.report.terminal import print_answer, print_stats
from tests.stores import write_store

TEXT = """\
rows = 1000
[sources]
web = "web"
[sources.code]
path = "code"
max-epochs = 3
stop = true
[sources.chat]
path = "chat"
[[stages]]
weights = { web = 0.8, code = 0.2 }
[[stages]]
from = "60%"
ramp = true
weights = { web = 0.1, code = 0.6, chat = 0.3 }
"""


@pytest.fixture(scope="module")
def blend(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("blend")
    for number, (name, documents) in enumerate({"web": 100, "code": 160, "chat": 20}.items()):
        lengths = np.random.default_rng(number).integers(2, 60, documents).tolist()
        store = write_store(root / f"{name}-store", lengths, first=1000 * number)
        packtool.pack(store, root / name, strategy="bfd", sequence_length=64)
    (root / "blend.toml").write_text(TEXT)
    return root / "blend.toml"


def test_what_is_said_is_what_comes(blend: Path) -> None:
    report, rows = packtool.stats(blend), packtool.open(blend)
    source, number = rows.origins(slice(None))
    assert (report.samples, report.tokens, report.sample_tokens) == (1000, 64_000, 64)
    assert [each.name for each in report.sources] == ["chat", "code", "web"]
    for place, each in enumerate(report.sources):
        mine = np.flatnonzero(source == place)
        epoch = len(packtool.open(blend.parent / each.name))
        assert (each.samples, each.tokens, each.epoch_samples) == (len(mine), 64 * len(mine), epoch)
        assert (each.share, each.epochs) == (len(mine) / 1000, len(mine) / epoch)
        assert each.repeats_from == mine[epoch]
        assert number[each.repeats_from] == epoch
        fifth = mine[4 * epoch :]  # none where the run does not come to that
        assert each.fifth_from == (fifth[0] if len(fifth) else None)
    code = report.sources[1]
    assert (code.max_epochs, code.epochs) == (3, 3)
    assert np.flatnonzero(source == 1).max() < code.stops_at < 1000
    for stage, (first, last) in zip(report.stages, ((0, 600), (600, 1000)), strict=True):
        assert (stage.first_sample, stage.samples, stage.ramp) == (first, last - first, first > 0)
        counts = np.bincount(source[first:last], minlength=3).tolist()
        assert [each.samples for each in stage.sources] == counts
        assert [each.share for each in stage.sources] == [count / (last - first) for count in counts]
    assert [each.begin for each in report.stages[1].sources] == [0, 0.2, 0.8]
    assert [(point.sample, [round(share, 3) for share in point.shares]) for point in report.weights[:2]] == [
        (0, [0, 0.2, 0.8]),
        (600, [0, 0.2, 0.8]),
    ]
    assert all(sum(point.shares) == pytest.approx(1) for point in report.weights)
    assert repr(report) == f"<BlendReport: {blend}, 1,000 rows of chat, code, web>"
    assert msgspec.json.decode(msgspec.json.encode(report), type=BlendReport) == report


def test_a_source_stops_before_the_weights_change(blend: Path) -> None:
    """Where it gave its last row, not where a later stage begins."""
    other = blend.with_name("stops.toml")
    other.write_text(f"{TEXT}[[stages]]\nfrom = '98%'\nweights = {{ web = 1, chat = 1 }}\n")
    report, rows = packtool.stats(other), packtool.open(other)
    last = int(np.flatnonzero(rows.origins(slice(None))[0] == 1).max())
    assert 0 <= report.sources[1].stops_at - last < 4
    assert last < 970


def printed(show: Callable[[Console], None], width: int = 80) -> str:
    out = io.StringIO()
    show(Console(file=out, width=width))
    return out.getvalue()


def test_it_is_shown(blend: Path) -> None:
    report = packtool.stats(blend)
    text = printed(lambda console: print_stats(report, console))
    wide = printed(lambda console: print_stats(report, console), width=200)
    assert f"{blend} · 1,000 rows of 64 tokens, 64,000 in all" in wide
    assert "Stage 2, from row 600 (60%), a ramp" in text
    chat, code, web = (line for line in text.splitlines() if "│" in line)
    assert chat.split("│")[1].startswith(" " * 24 + "▁")
    assert code.split("│")[1].startswith("▂" * 24)
    assert code.split("│")[1].endswith(" ")
    assert web.split("│")[1].startswith("▆" * 24) or web.split("│")[1].startswith("▇" * 24)
    assert printed(lambda console: print_answer(report, console)).splitlines()[0] == text.splitlines()[0]


def test_it_is_a_page(blend: Path, tmp_path: Path) -> None:
    report = packtool.stats(blend, html=tmp_path / "blend.html")
    whole = (tmp_path / "blend.html").read_text()
    often = [f"{each.name}: 5th pass" for each in report.sources if each.fifth_from is not None]  # type: ignore[union-attr]
    assert often
    assert sorted(re.findall(r'class="mark-label"[^>]*>(.*?)</text>', whole)) == often
    assert whole == page(report)
    for part in ("<h2>Sources</h2>", "Shares over the run", 'class="swatch c2"', f"Blend: {blend}"):
        assert part in whole


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 8}, "batch_size: a blend does not take this option. Give it for one of its sources."),
        ({"tokenizer": "t"}, "tokenizer: a blend does not take this option."),
    ],
)
def test_options_of_other_things(blend: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        packtool.stats(blend, **options)
    assert str(caught.value).startswith(message)
    with pytest.raises(UsageError, match="only token stores can be measured together"):
        packtool.stats([blend, blend])


def test_row_lengths_over_time(blend: Path) -> None:
    root = blend.parent
    lengths = np.random.default_rng(8).integers(2, 300, 300).tolist()
    store = write_store(root / "several-store", lengths)
    packtool.pack(store, root / "several", strategy="decompose", sequence_length=128, min_bucket=32)
    text = "batch-tokens = 256\n[sources]\nall = 'several'\n[[stages]]\nweights = { 32 = 9, 128 = 1 }\n"
    (root / "lengths.toml").write_text(f"{text}[[stages]]\nfrom = '50%'\nweights = {{ 64 = 1, 128 = 1 }}\n")
    report = packtool.stats(root / "lengths.toml")
    batches = GlobalBatches(Stream(root / "lengths.toml", drop_rest=True))
    assert (report.unit, report.samples, report.sample_tokens) == ("batches", len(list(batches)), 256)
    rows = sum(map(len, packtool.open(root / "several").buckets.values()))
    assert report.left_out == batches.left_out == rows - sum(len(turn.addresses) for turn in batches) > 0
    assert [each.name for each in report.sources] == ["32", "64", "128"]
    assert all(each.samples == each.epoch_samples for each in report.sources)
    text = printed(lambda console: print_stats(report, console))
    assert "Row lengths" in text
    assert "Stage 2, from batch " in text
    said = f"{report.left_out} rows fill no batch, and are left out: Loader(drop_last=False) makes smaller batches"
    assert said in " ".join(text.split())
    assert said in page(report)
    (root / "none.toml").write_text((root / "lengths.toml").read_text().replace("256", str(1 << 20)))
    with pytest.raises(UsageError, match="batch_tokens: a batch of 1 sample is more than the 0 of a pass"):
        packtool.stats(root / "none.toml")


def test_info_knows_a_blend_and_commands_for_datasets_say_what_takes_one(blend: Path) -> None:
    found = packtool.info(blend)
    assert (found.kind, found.next) == ("blend", [f"packtool stats {blend}"])
    assert {name: found.facts[name] for name in ("sources", "stages")} == {"sources": "chat, code, web", "stages": 2}
    with pytest.raises(PacktoolError, match=r"a TOML file, not a token store .* `packtool.open` take a blend"):
        packtool.verify(blend)


IS_FOR_RUN = "is for packtool run, and this is no blend, which has [sources]. Run it: packtool run FILE."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            TEXT.replace("stop = true\n", ""),
            "FILE:4: the run takes 280 rows of code, 3.26 epochs of 86, where max-epochs = 3 allows 258. ",
        ),
        ('[sources]\ngone = "gone"\n', "FILE:2: ROOT/gone: no such directory. Check the path."),
        ("# rows\n[pack]\nsequence-length = 64\n", f"FILE:2: pack {IS_FOR_RUN}"),
        ("\ntext-field = 'body'\n", f"FILE:2: text-field {IS_FOR_RUN}"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_its_line(blend: Path, text: str, message: str) -> None:
    root = blend.parent
    (root / "wrong.toml").write_text(text)
    for call in (packtool.open, packtool.stats):
        with pytest.raises(PacktoolError) as caught:
            call(root / "wrong.toml")
        said = str(caught.value).replace(str(root / "wrong.toml"), "FILE").replace(str(root), "ROOT")
        assert said.startswith(message)


def test_of_many_sources_the_largest_are_listed(blend: Path) -> None:
    """And the others as one, so that tables still add up; all of them by --full and in the report."""
    written = ["rows = 3000\n[sources]"]
    for number in range(30):
        written.append(f's{number:02} = {{ path = "web", seed = {number} }}')
    weights = ", ".join(f"s{number:02} = {number + 1}" for number in range(30))
    written.append(f'[[stages]]\nweights = {{ {weights} }}\n[[stages]]\nfrom = "50%"\nweights = {{ s00 = 1, s29 = 9 }}')
    path = blend.parent / "many.toml"
    path.write_text("\n".join(written))
    report = packtool.stats(path)
    listed = largest(report)
    assert [each.name for each in listed.sources] == [f"s{n:02}" for n in (0, *range(11, 30))] + ["10 others"]
    for whole, part in [(report, listed), *zip(report.stages, listed.stages, strict=True)]:
        for figure in ("samples", "tokens", "share"):
            expected = sum(getattr(each, figure) for each in whole.sources)
            assert sum(getattr(each, figure) for each in part.sources) == pytest.approx(expected)
    for point in listed.weights:
        assert (len(point.shares), sum(point.shares)) == (21, pytest.approx(1))
    assert listed.sources[-1].epoch_samples == 10 * report.sources[1].epoch_samples
    assert listed.sources[-1].samples == sum(each.samples for each in report.sources[1:11])
    for full, others in ((False, True), (True, False)):
        out = io.StringIO()
        print_stats(report, Console(file=out, width=100), full=full)
        assert ("10 others" in out.getvalue()) == others
        assert ("s05" in out.getvalue()) == full
