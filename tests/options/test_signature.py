"""A function of declared arguments: called by name, checked, documented from the declaration."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import packtool
from packtool.errors import PacktoolError
from packtool.options.commands import ARGUMENTS, arguments_of
from packtool.options.declare import declared
from packtool.options.kinds import FLAG
from packtool.options.shuffle import ShuffleArguments
from packtool.options.signature import takes
from tests.sources import parsed


@takes(ShuffleArguments)
def shuffled(options: ShuffleArguments) -> ShuffleArguments:
    """What was given.

    Returns:
        All of it.
    """
    return options


def test_arguments_arrive_as_given_with_defaults_for_the_others() -> None:
    given = shuffled("packed", Path("out"), epoch=3)
    assert isinstance(given, ShuffleArguments)
    assert (given.output, given.epoch, given.overwrite) == (Path("out"), 3, False)
    with pytest.raises(TypeError, match="no_such"):
        shuffled("packed", "out", no_such=1)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"output": "b", "epochs": 2}, "got an unexpected keyword argument 'epochs': did you mean epoch"),
        ({"output": "b"}, "missing a required argument: 'source'"),
    ],
)
def test_what_is_not_taken_is_said_of_the_function_that_was_called(given: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=rf"^shuffled\(\) {message}\??$"):
        shuffled(**given)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus, its token store, rows and an export of it, and two configurations that make no sense."""
    root = tmp_path_factory.mktemp("calls")
    (root / "a.jsonl").write_text('{"text": "some words"}\n' * 3, encoding="utf-8")
    (root / "blames.toml").write_text('[pack]\nstrategy = "concat"\nbuckets = [4, 8]\n', encoding="utf-8")
    (root / "lacks.toml").write_text('[pack]\nstrategy = "concat"\n', encoding="utf-8")
    packtool.tokenize(root / "a.jsonl", root / "store")
    packtool.pack(root / "store", root / "packed", strategy="concat", sequence_length=4)
    packtool.export(root / "store", root / "exported", format="nanogpt")
    return root


MISTAKES: list[tuple[str, dict[str, Any], str]] = [
    ("tokenize", {"inputs": "a.jsonl", "output": "o", "fim_seed": 1}, "fim_seed: has no effect without fim_rate. Give"),
    ("tokenize", {"inputs": "a.jsonl", "output": "store"}, "finished token store already. Give overwrite=True to re"),
    (
        "pack",
        {"stores": "store", "output": "o", "strategy": "concat", "sequence_length": 4, "buckets": [4]},
        'buckets: strategy="concat" does not take this option. Leave it out, or use strategy="buckets" or length-',
    ),
    ("shuffle", {"source": "packed", "output": "o", "method": "partial"}, "Give batch_size and sequence_length."),
    ("materialize", {"source": "packed", "output": "o", "memory": "x"}, "memory: 'x' is not a size."),
    ("export", {"source": "packed", "output": "o", "format": "mds", "holdout": "1%"}, "holdout: has no effect on"),
    ("import_", {"inputs": "a.jsonl", "output": "o", "format": "jsonl"}, "Give tokenizer, so that ids and EOS"),
    ("stats", {"path": "store", "sequence_length": 4}, 'has no effect without compare. Add compare="all".'),
    ("show", {"path": "store", "row": 1}, "row: has no effect on token stores. Give document or find."),
    ("find", {"path": "store", "record": ""}, "is not FILE:LINE. Write it like"),
    ("verify", {"path": "store", "store": ["store"]}, "store: has no effect on token stores."),
    ("verify", {"path": "exported", "store": ["store"]}, "store: has no effect on exports. Leave it out."),
    ("info", {"path": ""}, "path: an empty name. Give a path."),
    (
        "run",
        {"configuration": "blames.toml", "input": "store"},
        'blames.toml:3: buckets: strategy = "concat" does not take this option. Leave it out, or use strategy = "buck',
    ),
    ("run", {"configuration": "lacks.toml", "input": "store"}, 'lacks.toml:1: sequence-length: strategy = "concat" ne'),
]
"""For each function one mistake, and what its error says."""


@pytest.mark.parametrize(("name", "arguments", "said"), MISTAKES)
def test_an_error_names_keywords_or_keys_of_a_file(
    name: str, arguments: dict[str, Any], said: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    with pytest.raises(PacktoolError) as caught:
        getattr(packtool, name)(**arguments)
    assert said in str(caught.value)
    assert "--" not in str(caught.value)


def test_each_command_has_a_mistake_above() -> None:
    assert {name.removesuffix("_") for name, _, _ in MISTAKES} == set(ARGUMENTS) - {"doctor"}


def test_a_message_gives_a_value_behind_an_equals_sign() -> None:
    """Else nobody would know in Python that the word behind an option is its value, nor that the option is a switch."""
    options = {each.flag: each for command in ARGUMENTS for each in declared(arguments_of(command)).values()}
    package = Path(packtool.__file__).parent
    for path in package.rglob("*.py"):
        room = path.parts[len(package.parts)]
        if room in ("cli", "options", "report") or path.name.startswith("info"):  # help, tables and commands to type
            continue
        for text in strings(path):
            for option, value in re.findall(r"(--[a-z-]+) (\w+)", text):
                each = options.get(option)
                assert each is None or value not in (*each.choices, *each.option.suggestions), f"{path}: {text}"
            for option in re.findall(r"\bgive (--[a-z-]+)(?![a-z=-])", text):
                assert option not in options or options[option].option.kind is not FLAG, f"{path}: {text}"


def strings(path: Path) -> list[str]:
    """The texts in a source that are no docstrings, without commands between backticks."""
    tree = parsed(path.read_text(encoding="utf-8"))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [
        node for node in ast.walk(tree) if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in alone
    ]
    return [re.sub("`[^`]*`", "", ast.unparse(text)) for text in texts]
