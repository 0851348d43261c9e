"""docs/benchmarks.md, its pictures and the table in README.md, all from the JSON files of one run.

No figure is typed by hand: each is the median of the rounds, with the least and the most in brackets where they differ.
"""

from __future__ import annotations

import importlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import quoted
from benchmarks.common import RESULTS
from benchmarks.figures import (
    Figure,
    Result,
    by,
    case,
    checked,
    figure,
    left_out,
    median,
    of,
    picture,
    rate,
    share,
    spread,
    table,
)
from benchmarks.measure import ROOT
from packtool.report.figures import short

PAGE, PICTURES, README = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "benchmarks", ROOT / "README.md"
BEGIN, END = "<!-- benchmarks -->\n", "<!-- end of benchmarks -->"
ONE, TWO = "packtool, 1 worker", "packtool, 2 workers"
COPY = "cp && sync"
STAGE = "stage "
PEAK, CPU, WALL = of("peak_mb"), of("cpu"), of("wall")
QUICK = "**Of a quick run on tiny inputs: it shows that everything runs, and says nothing about speed.**\n\n"
PACKAGES = {
    "mosaicml": "mosaicml-streaming",
    "megatron": "megatron-core",
    "olmo": "ai2-olmo-core",
    "nemo": "nemo-toolkit",
}
"""Names of packages where they are not those of the environments."""


class MixedError(Exception):
    """The files are not of one run."""


def write(results: Path) -> None:
    """Write the page and its pictures; README's table and those of other pages, too, unless the run was a quick one.

    Raises:
        MixedError: a file is missing, or they are of several commits or machines.
    """
    records = read(results)
    PICTURES.mkdir(exist_ok=True)
    for old in PICTURES.glob("*.svg"):
        old.unlink()
    PAGE.write_text(page(records, PICTURES))
    if records["plan"]["scale"] != "quick":
        before, rest = README.read_text().split(BEGIN)
        README.write_text(before + BEGIN + claims(records) + END + rest.partition(END)[2])
        quoted.write(RESULTS)


def read(results: Path) -> dict[str, Any]:
    """The records of one run, by benchmark."""
    for name in SECTIONS:
        if not (results / f"{name}.json").exists():
            raise MixedError(f"{results} has no {name}.json: make it with python -m benchmarks run {name}")
    records = {name: json.loads((results / f"{name}.json").read_bytes()) for name in SECTIONS}
    alike = [{**each, "machine": {**each["machine"], "load_average": 0}} for each in records.values()]
    for what in ("commit", "scale", "machine", "python", "versions"):
        if any(each[what] != alike[0][what] for each in alike):
            raise MixedError(f"the files in {results} are not of one run: {what} differs. Run all of them again.")
    return records


def page(records: Mapping[str, Any], pictures: Path) -> str:
    """The whole page; pictures go to a directory beside it."""
    parts = [_head(records)]
    for name, section in SECTIONS.items():
        title, _, rest = (importlib.import_module(f"benchmarks.{name}").__doc__ or "").strip().partition("\n\n")
        paragraphs = [re.sub(r"\s+", " ", each) for each in (title, *rest.split("\n\n"))]
        parts += [f"## {name}", *paragraphs, *section(records[name], pictures), *left_out(records[name]["results"])]
    return "\n\n".join(part for part in [*parts, quoted.section(RESULTS)] if part)


def _head(records: Mapping[str, Any]) -> str:
    first = records["plan"]
    machine, minutes = first["machine"], sum(record["seconds"] for record in records.values()) / 60
    rounds = max(len(each["runs"]) for record in records.values() for each in record["results"])
    loads = ", ".join(f"{record['machine']['load_average']:.1f}" for record in records.values())
    changed = ", with changes that are not committed" if any(record["changed"] for record in records.values()) else ""
    versions = dict(first["versions"])
    for record in records.values():
        for peer, found in record["peers"].items():
            package = PACKAGES.get(peer, peer)
            known = (
                {name.replace("_", "-"): version for name, version in found.items()} if isinstance(found, dict) else {}
            )
            if package in known:
                versions[package] = known[package]
    listed = ", ".join(f"{name} {version}" for name, version in {"Python": first["python"], **versions}.items())
    return f"""# Benchmarks

{QUICK if first["scale"] == "quick" else ""}`make bench` measured packtool and its peers in {minutes:.0f} minutes. \
`make bench-full` measures what other pages quote.

| | |
|---|---|
| machine | {machine["cores"]} cores of {machine["processor"]}, {machine["memory_gb"]:.0f} GB, {machine["system"]} |
| commit | `{first["commit"][:12]}`{changed} |
| date | {first["date"][:10]} |
| command | {", ".join(f"`{each}`" for each in dict.fromkeys(each["command"] for each in records.values()))} |
| load before each benchmark | {loads} |
| versions | {listed} |

A figure is the median of {rounds} rounds, with the least and the most in brackets; what takes long ran once. CPU \
seconds and peak memory are of all processes, without mapped files. Lost tokens are those that a tool did not store. \
Compare figures within a table only."""


def _tokenize(record: Any, _: Path) -> list[str]:
    everyone = [each for each in case(record, "peers") if each["runs"]]
    size = everyone[0]["facts"]["megabytes"]
    cpu, wall, written = rate(size, "cpu"), rate(size, "wall"), of("written_mb")
    rows = [
        (each["contestant"], *(spread(each, value) for value in (cpu, wall, PEAK, written)), *checked(each))
        for each in everyone
    ]
    header = ("", "MB per CPU s", "MB per s", "peak MB", "written MB", "lost tokens", "same documents")
    starts = by(case(record, "start-up"), "tokenizer")
    return [
        f"{size:.1f} MB of text, {everyone[0]['facts']['tokenizer']}, start-up included:",
        table(header, rows),
        "One short document, CPU seconds:",
        table(
            ("tokenizer", "1 worker", "2 workers"),
            [(name, spread(found[ONE], CPU), spread(found[TWO], CPU)) for name, found in starts.items()],
        ),
        "MB per CPU second; gigatoken and fastokens encode strings in memory, and start beforehand:",
        _families(record),
        "CPU seconds of one worker:",
        stages({family: each["packtool"] for family, each in by(case(record, "stages"), "tokenizer").items()}),
    ]


def stages(found: Mapping[str, Result]) -> str:
    """Where CPU time goes: a row for each stage, a column for each of the names."""
    names = {name for each in found.values() for run in each["runs"] for name in run if name.startswith(STAGE)}
    seconds = {name: [median(each, _seconds(name)) for each in found.values()] for name in names}
    totals = [sum(column) for column in zip(*seconds.values(), strict=True)]
    rows = [
        (
            name.removeprefix(STAGE),
            *(f"{figure(each)} ({100 * each / total:.0f} %)" for each, total in zip(spent, totals, strict=True)),
        )
        for name, spent in sorted(seconds.items(), key=lambda row: -sum(row[1]))
    ]
    return table(("", *found), rows)


def _seconds(stage: str) -> Figure:
    return lambda run: run.get(stage, 0.0)  # what is rare may not be met in every round


def _families(record: Any) -> str:
    slices, starts = (by(case(record, name), "tokenizer") for name in ("slice", "start-up"))
    rows = []
    for family, found in by(case(record, "families"), "tokenizer").items():
        size = found[ONE]["facts"]["megabytes"]
        ours, times = _against_tokenizers(found[ONE], slices[family]["tokenizers alone"])
        alone = _encoders(found)
        with_start = 100 * ours / np.nanmax(alone)
        sooner = median(found[ONE], WALL) / median(found[TWO], WALL)
        shown = (ours / times, times, *alone, with_start, 100 * _of_the_encoder(found, starts[family]), sooner)
        rows.append((family, f"{size:.0f}", spread(found[ONE], rate(size, "cpu")), *map(figure, shown)))
    shares = ("% of the faster", "% without start-up")
    named = ("`tokenizers`", "times", "gigatoken", "fastokens", *shares, "2 workers, times")
    return table(("tokenizer", "text MB", "packtool", *named), rows)


def _encoders(found: Mapping[str, Result]) -> list[float]:
    """MB per CPU second of each fast encoder alone, without its start; NaN where it does not serve."""
    both = (found["gigatoken alone"], found["fastokens alone"])
    return [median(alone, rate(alone["facts"]["megabytes"], "encoding_cpu")) for alone in both]


def _of_the_encoder(found: Mapping[str, Result], started: Mapping[str, Result]) -> float:
    """The speed of one pass of packtool, start-up taken off, as a share of that of the faster encoder alone."""
    size = found[ONE]["facts"]["megabytes"]
    seconds = median(found[ONE], CPU) - median(started[ONE], CPU)
    return float(size / seconds / np.nanmax(_encoders(found)))


def _against_tokenizers(ours: Result, theirs: Result) -> tuple[float, float]:
    """MB per CPU second, and how many times as fast as `tokenizers`."""
    speeds = [median(each, rate(each["facts"]["megabytes"], "cpu")) for each in (ours, theirs)]
    return speeds[0], speeds[0] / speeds[1]


def _planning(run: Mapping[str, float]) -> float:
    """CPU seconds of planning; of the whole command where that is what ran."""
    return run.get("plan_cpu", run["cpu"])


def _by(results: list[Result], fact: str, value: Figure) -> dict[str, list[tuple[float, float]]]:
    """For each contestant its curve: a fact, and the median of a figure."""
    curves: dict[str, list[tuple[float, float]]] = {}
    for each in results:
        if each["runs"] and not math.isnan(median(each, value)):
            curves.setdefault(each["contestant"], []).append((each["facts"][fact], median(each, value)))
    return curves


def _plan(record: Any, pictures: Path) -> list[str]:
    documents = [each for each in case(record, "documents") if each["runs"]]
    sizes = sorted({each["facts"]["documents"] for each in documents})
    found: dict[str, dict[float, Result]] = {}
    for each in documents:
        found.setdefault(each["contestant"], {})[each["facts"]["documents"]] = each

    def across(value: Figure) -> str:
        rows = [[name, *(spread(at[n], value) if n in at else "" for n in sizes)] for name, at in found.items()]
        return table(("documents", *map(short, sizes)), rows)

    curves = _by(documents, "documents", _planning)
    parts = [
        "CPU seconds of planning; `pack --index-only` is the whole command:",
        picture(pictures / "plan-documents.svg", "CPU seconds by documents", curves, "documents", "CPU seconds"),
        across(_planning),
        "Peak memory, MB:",
        across(PEAK),
        "Rows needed:",
        across(lambda run: run.get("rows", math.nan)),
        *(_mixing(record) if case(record, "stages") else []),
    ]
    for name, fact, words in (
        ("row length", "sequence_length", "tokens in a row"),
        ("distinct lengths", "distinct", "distinct lengths"),
    ):
        results = case(record, name)
        curves = _by(results, fact, _planning)
        points = sorted({x for curve in curves.values() for x, _ in curve})
        rows = [[who, *(figure(y) for _, y in curve)] for who, curve in curves.items()]
        file = pictures / f"plan-{name.replace(' ', '-')}.svg"
        parts += [
            f"{short(results[0]['facts']['documents'])} documents, CPU seconds:",
            picture(file, f"CPU seconds by {words}", curves, words, "CPU seconds"),
            table((words, *map(short, points)), rows),
        ]
    strategies = case(record, "strategies")
    rows = [[each["contestant"], spread(each, _planning), spread(each, PEAK)] for each in strategies]
    (compared,) = case(record, "stats --compare all")
    return [
        *parts,
        f"Each strategy, {short(strategies[0]['facts']['documents'])} documents, rows not mixed:",
        table(
            ("strategy", "CPU s", "peak MB"),
            [*rows, ["`stats --compare all`", spread(compared, CPU), spread(compared, PEAK)]],
        ),
    ]


def _mixing(record: Any) -> list[str]:
    """Where the CPU time of planning goes, with rows mixed, and what it takes to sort or gather as many numbers."""
    looked = {each["facts"]["documents"]: each for each in case(record, "stages")}
    once = [
        (f"`{each['contestant']}`", short(each["facts"]["documents"]), figure(median(each, _planning)))
        for each in case(record, "once")
    ]
    return [
        "CPU seconds of planning with mixed rows:",
        stages({f"{short(documents)} documents": each for documents, each in looked.items()}),
        "Sorting and gathering as many numbers:",
        table(("", "numbers", "CPU s"), once),
    ]


def _writing(run: Mapping[str, float]) -> float:
    return run.get("written_wall", run["wall"])


def _move(record: Any, pictures: Path) -> list[str]:
    parts = []
    for name in ("pack", "shuffle"):
        results = [each for each in case(record, name) if each["runs"]]
        (base,) = (each for each in results if each["contestant"] == COPY)
        rows = []
        for each in results:
            shown = [spread(each, value) for value in (CPU, PEAK, of("written_mb"))]
            lost = each["checked"].get("lost_tokens", "")
            if each["checked"].get("eos_left_out"):
                lost = f"{lost}; {each['checked']['eos_left_out']} EOS left out"
            rows.append(
                [each["contestant"], spread(each, WALL), spread(each, _writing), share(base, each), *shown, lost]
            )
        header = ("seconds", "writing", f"speed, of `{COPY}`", "CPU s", "peak MB", "written MB", "lost tokens")
        parts += [
            f"`{name}`, {results[0]['facts']['megabytes']:.0f} MB of tokens; *writing* leaves out start-up and "
            "planning:",
            table((name, *header), rows),
        ]
    rows = [
        [each["contestant"], *(spread(each, lambda run, of=of: run["move_mb"] / run[of] / 1000) for of in _MOVED)]
        for each in case(record, "in memory")
    ]
    parts += ["In memory, one thread:", table(("", "GB per s", "GB per CPU s"), rows)]
    atoms = [each for each in case(record, "atoms") if each["runs"]]
    base_of = {each["facts"]["atom"]: each for each in atoms if each["contestant"] == COPY}
    rows = []
    for each in (each for each in atoms if each["contestant"] != COPY):
        at = each["facts"]["atom"]
        shown = spread(each, WALL), spread(each, _writing), share(base_of[at], each), spread(each, CPU)
        rows.append([at, *shown, spread(each, of("written_mb"))])
    curves = _by(atoms, "atom", _writing)
    return [
        *parts,
        f"Shuffling {atoms[0]['facts']['megabytes']:.0f} MB in memory, by the tokens of an atom:",
        picture(pictures / "move-atoms.svg", "Seconds of writing by tokens in an atom", curves, "tokens", "seconds"),
        table(("atom", "seconds", "writing", f"speed, of `{COPY}`", "CPU s", "written MB"), rows),
    ]


_MOVED = ("move_wall", "move_cpu")


def _load(record: Any, pictures: Path) -> list[str]:
    results = [each for each in case(record, "workers") if each["runs"]]
    shown = {
        "million tokens/s": of("tokens_per_s", 1e-6),
        "million tokens/CPU s": of("tokens_per_cpu_s", 1e-6),
        "first batch, ms": of("first_batch", 1000),
        "peak MB": PEAK,
    }
    parts = []
    for words, value in list(shown.items())[:2]:
        curves = {name: curve for name, curve in _by(results, "workers", value).items() if len(curve) > 1}
        file = pictures / f"load-{'cpu' if 'CPU' in words else 'wall'}.svg"
        parts.append(picture(file, f"{words.capitalize()} by workers", curves, "workers", words, across=float))
    rows = [
        [each["contestant"], each["facts"]["workers"], *(spread(each, value) for value in shown.values())]
        for each in results
    ]
    return [*parts, table(("reader", "workers", *shown), rows)]


SECTIONS = {"tokenize": _tokenize, "plan": _plan, "move": _move, "load": _load}


def claims(records: Mapping[str, Any]) -> str:
    """The table of README.md."""
    rows: list[list[str]] = []
    names = ("slice", "families", "start-up")
    slices, whole, starts = (by(case(records["tokenize"], name), "tokenizer") for name in names)
    for family, found in whole.items():
        ours, times = _against_tokenizers(found[ONE], slices[family]["tokenizers alone"])
        what = f"tokenize {found[ONE]['facts']['megabytes']:.0f} MB of text, {family}"
        alone = f"{100 * _of_the_encoder(found, starts[family]):.0f} % of its fast encoder alone, start-up taken off"
        rows.append([what, f"{figure(ours)} MB per CPU second", f"{figure(times)} times `tokenizers`; {alone}"])
    curves = {
        name: dict(curve) for name, curve in _by(case(records["plan"], "documents"), "documents", _planning).items()
    }
    plain, mixed = curves["packtool, not mixed"], curves["packtool, mixed"]
    for size in sorted(plain)[2::2]:
        others = [
            f"{who} {figure(curve[size] / plain[size])} times as long"
            for who, curve in curves.items()
            if size in curve and not who.startswith("packtool")
        ]
        took = (
            f"{figure(plain[size])} CPU s; mixed, the default, {figure(mixed[size]) if size in mixed else 'too slow'}"
        )
        rows.append([f"plan {short(size)} documents, best fit", took, ", ".join(others)])
    for name, who, words in (
        ("pack", "pack bfd, mixed", "pack {} MB of tokens, shuffled, hashed and synced"),
        ("shuffle", "shuffle rows, an eighth in memory", "shuffle {} MB of tokens in an eighth as much memory"),
    ):
        moved = {each["contestant"]: each for each in case(records["move"], name)}
        what = words.format(f"{moved[who]['facts']['megabytes']:.0f}")
        writing = median(moved[who], _writing)
        times = figure(writing / median(moved[COPY], _writing))
        rows.append([what, f"{figure(writing)} s", f"{times} times as long as to copy these files and sync them"])
    machine = records["plan"]["machine"]
    where = f"{machine['cores']} cores of {machine['processor']}"
    link = "[all figures, and how to repeat them](docs/benchmarks.md)"
    return f"On {where} ({link}):\n\n{table(('', 'packtool', 'compared with'), rows)}\n"
