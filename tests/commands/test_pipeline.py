"""What each stage of a pipeline reads and writes."""

from fractions import Fraction
from pathlib import Path

import pytest

from packtool import config
from packtool.commands.run import PipelineStage, stages
from packtool.errors import UsageError


def plan(tmp_path: Path, text: str, inputs: tuple[str, ...] = (), root: str = "out") -> list[PipelineStage]:
    file = tmp_path / "c.toml"
    file.write_text(text, encoding="utf-8")
    return stages(config.read(file), inputs, root)


def flow(tmp_path: Path, text: str, *inputs: str, root: str = "out") -> list[tuple[str, tuple[str, ...], str | None]]:
    found = plan(tmp_path, text, inputs, root)
    return [(stage.name, stage.inputs, None if stage.output is None else str(stage.output)) for stage in found]


def refused(tmp_path: Path, text: str, *inputs: str) -> str:
    with pytest.raises(UsageError) as caught:
        plan(tmp_path, text, inputs)
    return f"[{caught.value.code}] {caught.value}".replace(str(tmp_path / "c.toml"), "FILE")


def test_several_stores_and_packs(tmp_path: Path) -> None:
    text = """
    [[pack]]
    output = "a"
    [[pack]]
    output = "/b"
    input = ["web", "code"]
    [[shuffle]]
    input = "a"
    output = "c/d"
    [[shuffle]]
    input = "/b"
    output = "e"
    """
    assert flow(tmp_path, text, "x", "y") == [
        ("pack", ("x", "y"), "out/a"),
        ("pack", ("web", "code"), "/b"),
        ("shuffle", ("out/a",), "out/c/d"),
        ("shuffle", ("/b",), "out/e"),
    ]
    first, _, third, _ = plan(tmp_path, text, ("x", "y"))
    assert first.arguments() == (["x", "y"], Path("out/a"))
    assert third.arguments() == ("out/a", Path("out/c/d"))
    assert third.needs == (Path("out/a"),)
    assert first.needs == ()


def test_several_corpora_are_packed_together(tmp_path: Path) -> None:
    text = """
    [[tokenize]]
    input = "web.jsonl"
    output = "web"
    [[tokenize]]
    input = ["code/*.py", "more"]
    output = "code"
    [pack]
    [stats]
    """
    assert flow(tmp_path, text) == [
        ("tokenize", ("web.jsonl",), "out/web"),
        ("tokenize", ("code/*.py", "more"), "out/code"),
        ("pack", ("out/web", "out/code"), "out/packed"),
        ("stats", ("out/packed",), None),
    ]
    assert "[ambiguous-input] FILE:2: tokenize: one of several" in refused(tmp_path, text, "x.jsonl")
    assert "[ambiguous-input] FILE:1: shuffle: takes one input" in refused(tmp_path, "[shuffle]", "a", "b")


def test_what_works_on_tokens_reads_the_store(tmp_path: Path) -> None:
    text = """
    [tokenize]
    [pack]
    [shuffle]
    method = "partial"
    [[stats]]
    compare = "all"
    html = "page.html"
    [export]
    format = "mds"
    [[stats]]
    """
    found = plan(tmp_path, text, ("corpus",))
    assert [(stage.name, *stage.inputs, str(stage.output)) for stage in found] == [
        ("tokenize", "corpus", "out/tokens"),
        ("pack", "out/tokens", "out/packed"),
        ("shuffle", "out/tokens", "out/shuffled"),
        ("export", "out/shuffled", "out/exported"),
        ("stats", "out/tokens", "None"),
        ("stats", "out/shuffled", "None"),
    ]
    assert found[4].options == {"compare": ["all"], "html": "out/page.html"}


def test_options_are_passed_on(tmp_path: Path) -> None:
    (stage,) = plan(tmp_path, "[pack]\nsequence-length = 8\noutput = 'x'\ninput = 's'\nmax-repetition = 0.1\n")
    assert stage.options == {"sequence_length": 8, "max_repetition": Fraction(1, 10)}


TWO = "[[pack]]\ninput='s'\noutput='a'\n[[pack]]\ninput='s'\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "[nothing-to-do] FILE: the file has no table. Write [tokenize], [pack], [shuffle], [materialize], [expo"),
        ("\n[pack]\n", "[missing-input] FILE:2: pack has no input. Give input, or name it in the table."),
        (TWO, "[missing-option] FILE:4: one of several [[pack]] tables without an output of its own. Give each a name"),
        (f"{TWO}output='a/b'\n", "[same-output] FILE:6: writes out/a/b, where FILE:1 writes out/a. Give each an out"),
        (f"{TWO}output='b'\n[shuffle]\n", "[ambiguous-input] FILE:7: shuffle: has several possible inputs: out/a, out"),
        ("[pack]\noutput='../x'\ninput='s'\n[shuffle]\noutput='../x'", "[same-output] FILE:5: writes out/../x"),
    ],
)
def test_what_makes_no_sense_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    assert refused(tmp_path, text).startswith(message)
