"""Rules between options, and between options and input: declared once, and so refused, described and documented."""

import re
from pathlib import Path
from typing import Any

import pytest

from packtool.errors import UsageError
from packtool.options import kinds
from packtool.options.check import check_input, check_together, checked
from packtool.options.declare import Declared, Needs, Only, declared
from packtool.options.order import ORDER
from packtool.options.stats import StatsArguments
from packtool.options.tokenize import TokenizeArguments
from packtool.options.where import WHERE
from packtool.spelling import as_typed
from tests.options.test_declare import COMMANDS

RULED = [
    (arguments, each)
    for arguments in COMMANDS.values()
    for each in declared(arguments).values()
    if each.option.needs or each.option.excludes or each.option.only
]
IDS = [f"{arguments.__name__}-{each.name}" for arguments, each in RULED]
VALUES: dict[kinds.Kind, Any] = {
    kinds.AMOUNT: 7,
    kinds.COUNT: 7,
    kinds.COUNTS: [8, 9],
    kinds.FIELD: "f",
    kinds.FIELDS: ["f", "g"],
    kinds.FLAG: True,
    kinds.NAMES: ["a", "b"],
    kinds.TAGS: ["<a>,</a>"],
    kinds.NUMBER: 7,
    kinds.OBJECT: {"a": 1},
    kinds.PART: "7%",
    kinds.SHARE: "7%",
    kinds.TEMPERATURE: 2,
    WHERE: "a == 1",
    ORDER: ["repo", "-size:number"],
}
PAGE = (Path(__file__).parents[2] / "docs/cli.md").read_text(encoding="utf-8")


def some(each: Declared) -> Any:
    """A value that is not the option's default."""
    if each.choices:
        return next(choice for choice in each.choices if choice != each.default)
    if isinstance(each.default, bool):
        return not each.default
    return VALUES.get(each.option.kind, "1/8")


def given(arguments: Any, *names: str, **values: Any) -> Any:
    """The arguments of a command of which these options have a value, and those that can't be left out."""
    options = declared(arguments)
    named = {name: "x" for name, each in options.items() if each.required}
    return arguments(**named, **{name: some(options[name]) for name in names}, **values)


def needed(options: dict[str, Declared], each: Declared) -> dict[str, Any]:
    """What an option needs, and what that needs."""
    found: dict[str, Any] = {}
    rule = each.option.needs
    while rule is not None and rule.name not in (*found, each.name):
        found[rule.name] = some(options[rule.name])
        rule = options[rule.name].option.needs
    return found


def refused(check: Any, *arguments: Any) -> str:
    with pytest.raises(UsageError) as caught:
        check(*arguments)
    return f"[{caught.value.code}] {caught.value}"


@pytest.mark.parametrize(("arguments", "each"), RULED, ids=IDS)
def test_an_option_that_breaks_a_rule_is_refused_and_one_that_keeps_it_is_not(arguments: Any, each: Declared) -> None:
    options, rules = declared(arguments), each.option
    beside: dict[str, Any] = {}
    if rules.needs is not None:
        assert rules.needs.name in options
        what = f"[{rules.needs.code}] {each.name}: has no effect w"
        assert refused(checked, given(arguments, each.name)).startswith(what)
        for value in rules.needs.values or [some(options[rules.needs.name])]:
            beside = {**needed(options, each), rules.needs.name: value}
            checked(given(arguments, each.name, **beside))
    if rules.excludes is not None:
        for other in rules.excludes.names:
            what = f"[{rules.excludes.code}] {each.name}: has no effect with {other}. "
            assert refused(checked, given(arguments, each.name, other, **beside)).startswith(what)
        checked(given(arguments, each.name, **beside))
    if rules.only is not None:
        both = checked(given(arguments, each.name, **beside))
        kinds = {kind for of in declared(arguments).values() if of.option.only for kind in of.option.only.inputs}
        for kind in kinds - set(rules.only.inputs):
            said = refused(check_input, both, kind)
            assert said.startswith(f"[{rules.only.code}] ")
            assert f": has no effect on {kind}. " in said
        check_input(given(arguments), next(iter(kinds)))


@pytest.mark.parametrize(("arguments", "each"), RULED, ids=IDS)
def test_help_and_the_reference_tell_the_rule(arguments: Any, each: Declared) -> None:
    command = arguments.__name__.removesuffix("Arguments").lower()
    section = PAGE.partition(f"\n## packtool {command}\n")[2].partition("\n## ")[0]
    [line] = re.findall(rf"^\|[^|]*`(?:-\w, )?{each.flag}(?![\w-]).*$", section, re.MULTILINE)
    for rule in (each.option.needs, each.option.excludes, each.option.only):
        assert rule is None or (rule.help in each.help and as_typed(rule.help) in line)


def test_values_that_mean_the_default_break_no_rule() -> None:
    check_together(checked(StatsArguments("store", too_long="drop", exact=False)))
    check_input(checked(StatsArguments("store", mix={}, text_field=None)), "packed datasets")
    check_together(checked(TokenizeArguments("a", "b", fim_spm_rate=0.5, fim_tokens=[], text_field="text")))


def test_rules_in_words() -> None:
    assert Needs("a_b", "give it").help == "Needs --a-b."
    assert Needs("a", "give it", ("x", "y", "z")).help == "Needs --a=x, y or z."
    assert Only(("texts",)).help == "Only for texts."
