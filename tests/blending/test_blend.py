"""Blends as they are written: every value arrives, every mistake is named with its place."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from packtool.blending.blend import Blend, Sizes
from packtool.errors import DataError, UsageError

WHOLE = """\
tokens = "40B"
batch-size = 512
sources.books = "/data/books"

[sources.web]
path = "web-rows"

[sources.code]
path = "s3://bucket/code"
max-epochs = 4
stop = true
seed = 7

[[stages]]
weights = { web = 0.8, code = 0.2 }

[[stages]]
from = "60%"
ramp = true
[stages.weights]
web = 0.3
code = 0.7
books = 1e-2
"""


def read(tmp_path: Path, text: str) -> Blend:
    path = tmp_path / "blend.toml"
    path.write_text(text)
    return Blend.read(path)


def refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    return str(caught.value).replace(str(tmp_path / "blend.toml"), "FILE")


def test_every_value_arrives(tmp_path: Path) -> None:
    blend = read(tmp_path, WHOLE)
    web, code, books = (blend.sources[name] for name in ("web", "code", "books"))
    assert (web.path, code.path, books.path) == (str(tmp_path / "web-rows"), "s3://bucket/code", "/data/books")
    assert (code.max_epochs, code.stop, code.seed, code.where) == (4, True, 7, f"{tmp_path / 'blend.toml'}:8")
    assert (web.max_epochs, web.stop, web.seed, web.shuffle, web.repack) == (None, False, None, True, False)
    first, second = blend.stages
    assert (first.weights, first.start, first.ramp) == ({"web": Fraction(4, 5), "code": Fraction(1, 5)}, None, False)
    assert second.weights == {"web": Fraction(3, 10), "code": Fraction(7, 10), "books": Fraction(1, 100)}
    assert second.places["code"] == f"{tmp_path / 'blend.toml'}:22"
    stages = blend.resolved(Sizes(tokens=2000, samples=20_000_000))
    assert [(each.first, each.reached) for each in stages] == [(0, None), (12_000_000, 20_000_000)]


def test_the_same_in_python(tmp_path: Path) -> None:
    blend = Blend(
        {"web": tmp_path / "web", "code": {"path": "code", "max_epochs": 4}},
        [{"weights": {"web": 1}}, {"from": "24B tokens", "ramp": "30B tokens", "weights": {"code": 0.1}}],
        steps=100_000,
        batch_size=500,
    )
    assert (blend.sources["web"].path, blend.sources["code"].path) == (str(tmp_path / "web"), "code")
    assert blend.length is not None
    samples = blend.samples(blend.length, Sizes(1000, 0))
    assert samples == 50_000_000
    assert [(each.first, each.reached) for each in blend.resolved(Sizes(1000, samples))] == [
        (0, None),
        (24_000_000, 30_000_000),
    ]
    with pytest.raises(UsageError, match=r"^stages\[0\]\.weights\.web: a weight can't be 'x'\."):
        Blend({"web": "web"}, [{"weights": {"web": "x"}}])
    with pytest.raises(UsageError, match=r"^sources\.web\.max_epochs: max-epochs can't be 0\."):
        Blend({"web": {"path": "web", "max_epochs": 0}})


@pytest.mark.parametrize(
    ("written", "samples"),
    [("50%", 500), ("33.3%", 333), ("12k tokens", 120), ("7 rows", 7), ("0.25k rows", 250), ("3 steps", 24)],
)
def test_where_a_stage_begins(written: str, samples: int) -> None:
    stages = [{"weights": {"a": 1}}, {"from": written, "weights": {"a": 1}}]
    blend = Blend({"a": "a"}, stages, rows=1000, batch_size=8)
    assert blend.resolved(Sizes(100, 1000))[1].first == samples


ONE = '[sources]\na = "a"\nb = "b"\n'
ENDLESS = f"{ONE}[[stages]]\nweights.a=1\n[[stages]]\nweights.a=1\nfrom = "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "FILE:1: no sources. Give sources: at least one packed dataset by its name."),
        ("sources = 3", "FILE:1: no sources. Give sources"),
        ("[sources.a]\npth = 'x'", "FILE:2: a blend has no key 'pth' here. Did you mean path?"),
        ("[sources.a]\npath = ''", "FILE:2: path can't be ''. Give a path or URL."),
        ("[sources.a]\npath = 'x'\nrepack = 1", "FILE:3: repack can't be 1. Give true or false."),
        ("[sources.a]\npath = 'x'\nmax-epochs = 0", "FILE:3: max-epochs can't be 0. Give a whole number from 1."),
        ("[sources.a]\npath = 'x'\nmax-epochs = 2\nmax_epochs = 3", "FILE:4: max_epochs is given twice. Keep one"),
        ("[sources.a]\npath = 'x'\n[sources.a]\npath = 'y'", "FILE:3: not TOML: cannot declare ('sources', 'a') twice"),
        ("[sources]\na = 3", "FILE:2: 3 is not a table. Give a path, or a table of options."),
        (f"weights = {{a = 1}}\n{ONE}", "FILE:1: a blend has no key 'weights' here. Choose one of sources, stages"),
        (f"tokens = '4X'\n{ONE}", "FILE:1: tokens can't be '4X'. Give a number, such as 300B, 5M or 1000000."),
        (f"tokens = 5\nrows = 7\n{ONE}", "FILE:2: the run has tokens already. Give one length of the run."),
        (f"{ONE}[stages]\nx = 1", "FILE:4: stages are not a list. Write [[stages]] for each."),
        (f"{ONE}[[stages]]\n", "FILE:4: no weights. Give a weight for each source."),
        (f"{ONE}[[stages]]\n\nweights = {{a = 0, b = 0.0}}", "FILE:6: all weights are zero. Give a source a weight."),
        (f"{ONE}[[stages]]\nweights = {{a = -1}}", "FILE:5: a weight can't be -1. Give a number of 0 or more."),
        (f"{ONE}[[stages]]\nweights = {{a = nan}}", "FILE:5: a weight can't be nan. Give a number of 0 or more."),
        (f"{ONE}[[stages]]\nweights.b = true", "FILE:5: a weight can't be true. Give a number of 0 or more."),
        (f"{ONE}[[stages]]\nfrom = '5%'\nweights.a = 1", "FILE:4: the first stage does not begin with the run. Leave"),
        (f"{ONE}[[stages]]\nramp = true\nweights.a = 1", "FILE:5: there is nothing to ramp from. Leave it out in the"),
        (f"{ONE}[[stages]]\nweights.a=1\n[[stages]]\nweights.a=1", "FILE:6: it is not said where it begins. Give from"),
        (
            f"{ONE}[[stages]]\nweights.a=1\n[[stages]]\nfrom = 'soon'\nweights.a=1",
            "FILE:7: from can't be 'soon'. Give a share of the run, or tokens, rows or steps, as \"60%\"",
        ),
        (f"{ONE}[[stages]]\nweights.a=1\n[[stages]]\nfrom = 12\nweights.a=1", "FILE:7: from can't be 12. Give a share"),
        # Values beyond their limits.
        (f"{ENDLESS}'1e999999999%'", "FILE:8: from can't be '1e999999999%'. Give a share"),
        (f"{ENDLESS}'5%'\nramp = '1/1e999999999%'", "FILE:9: ramp can't be '1/1e999999999%'. Give a share"),
        (f"{ENDLESS}'{'9' * 5000} rows'", "FILE:8: from can't be '999"),
        (f"{ONE}[[stages]]\nweights.a = 1e300", "FILE:5: a weight can't be 1e+300. Give a number of 0 or more."),
        (f"batch-size = {1 << 63}\n{ONE}", f"FILE:1: batch-size can't be {1 << 63}. Give a whole number from 1."),
        (
            "[sources.a]\npath = 'a'\nseed = 9223372036854775808",
            "FILE:3: seed can't be 9223372036854775808. Give a whole",
        ),
        ("[sources]\na = 'a\\u0000b'".replace("'", '"'), "FILE:2: path can't be 'a\\x00b'. Give a path or URL."),
    ],
)
def test_mistakes_are_named_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    assert refused(tmp_path, text).startswith(message)


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([("60%", False), ("50%", False)], r"stages\[2\]: begins with sample 500, and the stage before it with 600"),
        ([("60%", "60%")], r"stages\[1\]: the ramp would end at sample 600, but begins at 600. Let it end later"),
        ([("600 rows", "3 rows")], r"stages\[1\]: the ramp would end at sample 3, but begins at 600"),
    ],
)
def test_stages_out_of_order(stages: list[tuple[str, Any]], message: str) -> None:
    written = [{"from": begin, "ramp": ramp, "weights": {"a": 1}} for begin, ramp in stages]
    blend = Blend({"a": "a"}, [{"weights": {"a": 1}}, *written], rows=1000)
    with pytest.raises(UsageError, match=message):
        blend.resolved(Sizes(10, 1000))


def test_steps_need_a_size(tmp_path: Path) -> None:
    blend = read(tmp_path, f"steps = 5\n{ONE}")
    assert blend.length is not None
    with pytest.raises(
        UsageError, match=r"blend.toml:1: steps of an unknown size. Give batch-size, the rows of a step"
    ):
        blend.samples(blend.length, Sizes(10, 0))
    assert blend.samples(blend.length, Sizes(10, 0, batches=True)) == 5


def test_limits_in_python() -> None:
    with pytest.raises(UsageError, match=r"sources\.a\.path: path can't be 'a\\x00b'"):
        Blend({"a": "a\0b"})
    with pytest.raises(UsageError, match="a weight can't be a number of thousands of digits"):
        Blend({"a": "a"}, [{"weights": {"a": 10**5000}}])
    blend = Blend({"a": "a"}, steps=1 << 61, batch_size=1 << 62)
    assert blend.length is not None
    with pytest.raises(UsageError, match="of which a run has 1,000,000,000,000 at most"):
        blend.samples(blend.length, Sizes(8, 0))


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"blend\.toml: no such file"):
        Blend.read(tmp_path / "blend.toml")
