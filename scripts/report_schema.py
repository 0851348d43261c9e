"""Write the descriptions of reports and of manifests, from the types that they are made of.

python scripts/report_schema.py docs
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from packtool.formats.schema import ExportManifest, PackedManifest, StoreManifest
from packtool.report.blend_types import BlendReport
from packtool.report.types import MeasuredReport, PackedReport, StoreReport

SCHEMA = "report.schema.json"
ROOTS: tuple[Any, ...] = (PackedReport, MeasuredReport, StoreReport, BlendReport)
INTRODUCTION = """# The report

Written from the types in `packtool/report/types.py` and `packtool/report/blend_types.py` by
`scripts/report_schema.py`; a test fails when this page and they differ. The same as [JSON Schema](report.schema.json),
for those who check or generate.

`packtool pack` and `packtool shuffle` write `report.json`, a [PackedReport](#packedreport), beside the manifest.
`packtool stats --json` prints a [MeasuredReport](#measuredreport) of a packed dataset, a [StoreReport](#storereport) of
token stores or text files, or a [BlendReport](#blendreport) of a blend. From Python
they are these classes:
`packtool.stats("packed").metrics.padding_ratio`.

All figures follow from the rows and the document lengths: no timings (but in `timings`), no paths (but in `path`), so
equal datasets have equal reports. Shares and ratios are numbers from 0 (1 is everything), never percentages. Token
counts are whole numbers. A figure that the packtool which wrote a report did not know yet is null.

A *document's length* includes its EOS; its *text* does not. A *piece* is the part of a document that lies together in
one row. L is the sequence length. A *pair* is two documents that follow each other in the corpus.

In the paper, both sums of equation 6 of Seamless Packing include the interval k = ceil(1 / r_max); here each document
counts once, which gives the paper's own figures (6716 documents and 2.6 million tokens for its Table 13).
"""


MANIFESTS = """# Manifests

Written from the types in `packtool/formats/schema.py` by `scripts/report_schema.py`; a test fails when this page and
they differ. [What packtool writes](format.md) says what the files hold.

`manifest.json` of a token store is a [StoreManifest](#storemanifest), of a packed dataset a
[PackedManifest](#packedmanifest), of an export an [ExportManifest](#exportmanifest). Every manifest has all of its
fields: what is absent is null; only `untrained` of a ledger is not there where it would be 0. The last field,
`xxh3_128`, is the hash of everything before it.
"""
PAGES: dict[str, tuple[str, tuple[Any, ...]]] = {
    "report-schema.md": (INTRODUCTION, ROOTS),
    "manifest.md": (MANIFESTS, (StoreManifest, PackedManifest, ExportManifest)),
}
"""What each page begins with, and the types that it describes."""


def page(name: str) -> str:
    """Return a whole page: a section for each type, those that hold others first."""
    introduction, roots = PAGES[name]
    lines = [introduction]
    for kind in kinds(roots):
        lines += [f"## {kind.__name__}", "", summary(kind), "", "| name | type | meaning |", "| --- | --- | --- |"]
        lines += [f"| `{name}` | {shown(type_)} | {meaning} |" for name, type_, meaning in members(kind)]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def schema() -> str:
    """The JSON Schema of all reports, with the meaning of each name."""
    schemas, components = msgspec.json.schema_components(ROOTS, ref_template="#/$defs/{name}")
    for kind in kinds(ROOTS):
        component = components[kind.__name__]
        component["description"] = summary(kind)
        for name, _, meaning in members(kind):
            component["properties"][name]["description"] = meaning
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "packtool report",
        "anyOf": list(schemas),
        "$defs": {name: components[name] for name in sorted(components)},
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def kinds(roots: tuple[Any, ...]) -> list[Any]:
    """Every structure that the roots are made of, in the order in which a reader meets it."""
    found: list[Any] = []

    def visit(type_: Any) -> None:
        if structured(type_) and type_ not in found:
            found.append(type_)
            for _, inner, _ in members(type_):
                visit(inner)
        for inner in typing.get_args(type_):
            visit(inner)

    for root in roots:
        visit(root)
    return found


def structured(type_: Any) -> bool:
    return isinstance(type_, type) and (issubclass(type_, msgspec.Struct) or dataclasses.is_dataclass(type_))


def members(kind: Any) -> Iterator[tuple[str, Any, str]]:
    """Name in JSON, type and meaning of each member."""
    types_ = typing.get_type_hints(kind)
    said = {name: text for base in reversed(kind.__mro__) for name, text in meanings(base)}
    if issubclass(kind, msgspec.Struct):
        names = [(field.name, field.encode_name) for field in msgspec.structs.fields(kind)]
    else:
        names = [(field.name, field.name) for field in dataclasses.fields(kind)]
    for name, written in names:
        if name not in said:
            raise SystemExit(f"{kind.__module__}.{kind.__name__}.{name} is not described in the docstring")
        yield written, types_[name], said[name]


def meanings(kind: Any) -> Iterator[tuple[str, str]]:
    """Names and what a docstring says of them, under "Attributes:"."""
    _, _, listed = (inspect.cleandoc(kind.__doc__ or "")).partition("Attributes:\n")
    entry = re.compile(r"^    (\w+(?:, \w+)*): (.+(?:\n     .+)*)", re.MULTILINE)
    for names, text in entry.findall(listed):
        for name in names.split(", "):
            yield name, " ".join(text.split()).replace("|", "&#124;").replace("None", "null")


def summary(kind: Any) -> str:
    """What a docstring says before its attributes."""
    text, _, _ = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:")
    return "\n\n".join(" ".join(part.split()) for part in text.strip().split("\n\n"))


def shown(type_: Any) -> str:
    """A type in words."""
    origin, inner = typing.get_origin(type_), typing.get_args(type_)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(shown(each) for each in inner if each is not msgspec.UnsetType)
    if origin is Literal:
        return " or ".join(f"`{json.dumps(value)}`" for value in inner)
    if origin in (list, tuple):
        return f"list of {shown(inner[0])}"
    if origin is dict:
        return "object" if inner[1] is Any else f"object of {shown(inner[1])}"
    if structured(type_):
        return f"[{type_.__name__}](#{type_.__name__.lower()})"
    words = {int: "integer", float: "number", str: "string", type(None): "null", bool: "true or false"}
    return words[type_]


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name in PAGES:
        (folder / name).write_text(page(name), encoding="utf-8")
    (folder / SCHEMA).write_text(schema(), encoding="utf-8")
