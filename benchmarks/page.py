"""docs/benchmarks.md, its pictures and the table in README.md, all from the JSON files of one run.

No figure is typed by hand: each is the median of the rounds, with the least and the most in brackets where they differ.
"""

from __future__ import annotations

import importlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.measure import ROOT
from packtool.report.figures import short
from packtool.report.page.axes import HEIGHT, WIDTH, Axis, frame, horizontal, text, vertical

NAMES = ("tokenize", "plan", "move", "load")
PAGE, PICTURES, README = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "benchmarks", ROOT / "README.md"
BEGIN, END = "<!-- benchmarks -->\n", "<!-- end of benchmarks -->"
COLOURS = ("#0b62a8", "#c25a00", "#00805a", "#a8327e", "#7a6a00", "#5a4fc0", "#b3341f", "#2b8ca3", "#666666", "#222222")
STYLE = (
    "text{font:11px sans-serif;fill:#444}.grid{stroke:#ddd}.axis{stroke:#888}"
    ".line{fill:none;stroke-width:2;stroke-linejoin:round}"
)
Runs = Sequence[Mapping[str, float]]
Result = Mapping[str, Any]
Figure = Callable[[Mapping[str, float]], float]


class MixedError(Exception):
    """The files are not of one run."""


def write(results: Path) -> None:
    """Write the page, its pictures and README's table.

    Raises:
        MixedError: a file is missing, or they are of several commits or machines.
    """
    records = read(results)
    PICTURES.mkdir(exist_ok=True)
    for picture in PICTURES.glob("*.svg"):
        picture.unlink()
    PAGE.write_text(page(records, PICTURES))
    if records["plan"]["scale"] != "quick":
        before, rest = README.read_text().split(BEGIN)
        README.write_text(before + BEGIN + claims(records) + END + rest.partition(END)[2])


def read(results: Path) -> dict[str, Any]:
    """The records of one run, by benchmark."""
    missing = [name for name in NAMES if not (results / f"{name}.json").exists()]
    if missing:
        raise MixedError(f"{results} has no {missing[0]}.json: python -m benchmarks run {' '.join(missing)}")
    records = {name: json.loads((results / f"{name}.json").read_bytes()) for name in NAMES}
    for what in ("commit", "scale", "python", "versions"):
        if len({json.dumps(record[what]) for record in records.values()}) > 1:
            raise MixedError(f"the files in {results} are of several runs: {what} differs. Run all of them again.")
    machines = [{**record["machine"], "load_average": 0} for record in records.values()]
    if any(machine != machines[0] for machine in machines):
        raise MixedError(f"the files in {results} are of several machines. Run all of them again.")
    return records


def page(records: Mapping[str, Any], pictures: Path) -> str:
    """The whole page; pictures go to a directory beside it."""
    parts = [_head(records)]
    for name, section in (("tokenize", _tokenize), ("plan", _plan), ("move", _move), ("load", _load)):
        record, module = records[name], importlib.import_module(f"benchmarks.{name}")
        title, _, rest = (module.__doc__ or "").strip().partition("\n\n")
        parts += [f"## {name}", re.sub(r"\s+", " ", title), re.sub(r"\s+", " ", rest), *section(record, pictures)]
        parts += _left_out(record["results"])
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(records: Mapping[str, Any]) -> str:
    first = records["plan"]
    machine, minutes = first["machine"], sum(record["seconds"] for record in records.values()) / 60
    rounds = max(len(each["runs"]) for record in records.values() for each in record["results"])
    loads = ", ".join(f"{record['machine']['load_average']:.1f}" for record in records.values())
    changed = ", with changes that are not committed" if any(record["changed"] for record in records.values()) else ""
    versions = [f"{name} {version}" for name, version in first["versions"].items()]
    own = {
        "mosaicml": "mosaicml-streaming",
        "megatron": "megatron-core",
        "olmo": "ai2-olmo-core",
        "nemo": "nemo-toolkit",
    }
    for record in records.values():
        for peer, found in record["peers"].items():
            named = own.get(peer, peer)
            if isinstance(found, dict) and (version := found.get(named, found.get(named.replace("-", "_")))):
                versions.append(f"{named} {version}")
    quick = (
        "\n\n**These are of a quick run, on tiny inputs: they show that everything runs, and say nothing about speed.**"
        if first["scale"] == "quick"
        else ""
    )
    return f"""# Benchmarks

packtool and its peers on the same input, in one run. `make bench` measures (here {minutes:.0f} minutes, apart from the first
time, when the peers are installed and the text is gathered), `make bench-full` measures more, and `make bench-page` writes
this page from what they found; no figure is typed by hand.{quick}

| | |
|---|---|
| machine | {machine["cores"]} cores of {machine["processor"]}, {machine["memory_gb"]:.0f} GB of memory, {machine["system"]} |
| commit | `{first["commit"][:12]}`{changed} |
| date | {first["date"][:10]} |
| command | `{first["command"]}` |
| load before each | {loads} |
| versions | Python {first["python"]}, {", ".join(dict.fromkeys(versions))} |

Every figure is the median of up to {rounds} rounds, in which all contestants take turns, with the least and the most in
brackets. CPU seconds and peak memory are those of the whole process tree; memory that maps files is left out, as the system
can take it back. Outputs are checked before anything is timed again: lost tokens are those that a tool was given and did not
store. Compare columns within a table: another machine has other figures, and another ratio of disk to processor."""


def _tokenize(record: Any, _: Path) -> list[str]:
    peers = _case(record, "peers")
    size = peers[0]["facts"]["megabytes"]
    start = _pairs(_case(record, "start-up"), "tokenizer")
    rows = [
        (
            each["contestant"],
            _spread(each, lambda run: size / run["cpu"]),
            _spread(each, lambda run: size / run["wall"]),
            _spread(each, lambda run: run["peak_mb"]),
            _spread(each, lambda run: run["written_mb"]),
            *_checked(each),
        )
        for each in peers
        if each["runs"]
    ]
    header = ("", "MB per CPU s", "MB per s", "peak MB", "written MB", "lost tokens", "same documents")
    parts = [
        f"{size:.1f} MB of text, {peers[0]['facts']['tokenizer']}, one process each, start-up and imports included:",
        _table(header, rows),
        "Start-up: CPU seconds of `packtool tokenize` on one short document.",
        _table(
            ("tokenizer", "1 worker", "2 workers"),
            [
                (name, *(_spread(each, lambda run: run["cpu"]) for each in found.values()))
                for name, found in start.items()
            ],
        ),
    ]
    slices, whole = _pairs(_case(record, "slice"), "tokenizer"), _pairs(_case(record, "families"), "tokenizer")
    rows = []
    for family, found in whole.items():
        one, two = found["packtool, 1 worker"], found["packtool, 2 workers"]
        size = one["facts"]["megabytes"]
        small = slices[family]["tokenizers alone"]
        speed = small["facts"]["megabytes"] / _median(small, lambda run: run["cpu"])
        ours = size / _median(one, lambda run: run["cpu"])
        alone = [
            _median(found[name], lambda run: size / run["encoding_cpu"])
            for name in ("gigatoken alone", "fastokens alone")
        ]
        rows.append(
            (
                family,
                f"{size:.0f}",
                _spread(one, lambda run: size / run["cpu"]),
                _figure(speed),
                _figure(ours / speed),
                *map(_figure, alone),
                f"{ours / max(each for each in alone if not math.isnan(each)):.0%}",
                _figure(_median(one, lambda run: run["wall"]) / _median(two, lambda run: run["wall"])),
            )
        )
    header = (
        "tokenizer",
        "text MB",
        "packtool",
        "`tokenizers`",
        "times",
        "gigatoken",
        "fastokens",
        "of the encoder",
        "2 workers",
    )
    parts += [
        "Each family, MB per CPU second: packtool with one worker, `tokenizers` on the slice, the encoders on strings in memory "
        "without their start, packtool's share of the faster one, and how much faster two workers are in seconds:",
        _table(header, rows),
    ]
    return parts


def _plan(record: Any, pictures: Path) -> list[str]:
    documents = _case(record, "documents")
    sizes = sorted({each["facts"]["documents"] for each in documents})
    found = {(each["contestant"], each["facts"]["documents"]): each for each in documents}
    names = list(dict.fromkeys(each["contestant"] for each in documents))

    def cpu(run: Mapping[str, float]) -> float:
        return run.get("plan_cpu", run["cpu"])

    rows = [
        (
            name,
            *(
                _spread(found[name, size], cpu) if (name, size) in found and found[name, size]["runs"] else ""
                for size in sizes
            ),
        )
        for name in names
        if any(found[name, size]["runs"] for size in sizes if (name, size) in found)
    ]
    largest = [
        (
            name,
            *(
                _spread(found[name, size], lambda run: run["peak_mb"])
                if (name, size) in found and found[name, size]["runs"]
                else ""
                for size in sizes
            ),
        )
        for name, *_ in rows
    ]
    needed = [
        (
            name,
            *(
                str(int(found[name, size]["runs"][0]["rows"]))
                if (name, size) in found and found[name, size]["runs"] and "rows" in found[name, size]["runs"][0]
                else ""
                for size in sizes
            ),
        )
        for name, *_ in rows
    ]
    curves = {
        name: [
            (size, _median(found[name, size], cpu))
            for size in sizes
            if (name, size) in found and found[name, size]["runs"]
        ]
        for name, *_ in rows
    }
    header = ("documents", *map(short, sizes))
    parts = [
        "CPU seconds; `pack --index-only` is the whole command, with start-up, writing and hashing:",
        _picture(pictures / "plan-documents.svg", "CPU seconds by documents", curves, "documents", "CPU seconds"),
        _table(header, rows),
        "Peak memory of the process, MB:",
        _table(header, largest),
        "Rows needed:",
        _table(header, [row for row in needed if any(row[1:])]),
    ]
    for case, fact, words in (
        ("row length", "sequence_length", "tokens in a row"),
        ("distinct lengths", "distinct", "distinct lengths"),
    ):
        results = _case(record, case)
        curves = {
            name: [
                (each["facts"][fact], _median(each, cpu))
                for each in results
                if each["contestant"] == name and each["runs"]
            ]
            for name in dict.fromkeys(each["contestant"] for each in results)
        }
        title = f"CPU seconds for {short(results[0]['facts']['documents'])} documents by {words}"
        parts += [_picture(pictures / f"plan-{fact.replace('_', '-')}.svg", title, curves, words, "CPU seconds")]
        points = sorted({x for curve in curves.values() for x, _ in curve})
        parts.append(
            _table(
                (words, *map(short, points)),
                [(name, *(_figure(y) for _, y in curve)) for name, curve in curves.items()],
            )
        )
    strategies = _case(record, "strategies")
    parts += [
        f"Each strategy, {short(strategies[0]['facts']['documents'])} documents, rows not mixed:",
        _table(
            ("strategy", "CPU s", "peak MB"),
            [
                (each["contestant"], _spread(each, cpu), _spread(each, lambda run: run["peak_mb"]))
                for each in strategies
                if each["runs"]
            ],
        ),
    ]
    (compare,) = _case(record, "stats --compare all")
    if compare["runs"]:
        parts.append(
            f"`stats --compare all` on {short(compare['facts']['documents'])} documents, the whole command: "
            f"{_spread(compare, lambda run: run['cpu'])} CPU seconds, {_spread(compare, lambda run: run['peak_mb'])} MB."
        )
    return parts


def _move(record: Any, pictures: Path) -> list[str]:
    parts = []
    for case in ("pack", "shuffle"):
        results = _case(record, case)
        by = {each["contestant"]: each for each in results}
        rows = [
            (
                each["contestant"],
                _spread(each, lambda run: run["wall"]),
                _spread(each, lambda run: run.get("written_wall", run["wall"])),
                _share(by["cp && sync"], each),
                _spread(each, lambda run: run["cpu"]),
                _spread(each, lambda run: run["peak_mb"]),
                _spread(each, lambda run: run["written_mb"]),
                str(each["checked"].get("lost_tokens", "")),
            )
            for each in results
            if each["runs"]
        ]
        parts += [
            f'{results[0]["facts"]["megabytes"]:.0f} MB of tokens. "Writing" is without start-up and planning; its speed is '
            "given as a share of that of `cp && sync` in the same round.",
            _table(
                (case, "seconds", "writing", "of `cp && sync`", "CPU s", "peak MB", "written MB", "lost tokens"), rows
            ),
        ]
    inside = _case(record, "in memory")
    rows = [
        (
            each["contestant"],
            _spread(each, lambda run: run["move_mb"] / run["move_wall"] / 1000),
            _spread(each, lambda run: run["move_mb"] / run["move_cpu"] / 1000),
        )
        for each in inside
        if each["runs"]
    ]
    parts += ["In memory, one thread:", _table(("", "GB per s", "GB per CPU s"), rows)]
    atoms = _case(record, "atoms")
    base = {each["facts"]["atom"]: each for each in atoms if each["contestant"] != "shuffle"}
    moved = [each for each in atoms if each["contestant"] == "shuffle" and each["runs"]]
    curve = {
        "shuffle": [(each["facts"]["atom"], _median(each, lambda run: run["written_wall"])) for each in moved],
        "cp && sync": [(size, _median(each, lambda run: run["wall"])) for size, each in base.items()],
    }
    parts += [
        f"Shuffling {atoms[0]['facts']['megabytes']:.0f} MB in atoms of so many tokens, in memory:",
        _picture(pictures / "move-atoms.svg", "Seconds by tokens in an atom", curve, "tokens in an atom", "seconds"),
        _table(
            ("atom", "seconds", "writing", "of `cp && sync`", "CPU s"),
            [
                (
                    each["facts"]["atom"],
                    _spread(each, lambda run: run["wall"]),
                    _spread(each, lambda run: run["written_wall"]),
                    _share(base[each["facts"]["atom"]], each),
                    _spread(each, lambda run: run["cpu"]),
                )
                for each in moved
            ],
        ),
    ]
    return parts


def _load(record: Any, pictures: Path) -> list[str]:
    results = [each for each in _case(record, "workers") if each["runs"]]
    parts = []
    for figure, words in (
        ("tokens_per_s", "million tokens a second"),
        ("tokens_per_cpu_s", "million tokens a CPU second"),
    ):
        curves: dict[str, list[tuple[float, float]]] = {}
        for each in results:
            curves.setdefault(each["contestant"], []).append(
                (each["facts"]["workers"], _median(each, lambda run: run[figure] / 1e6))
            )
        several = {name: curve for name, curve in curves.items() if len(curve) > 1}
        name = f"load-{figure.replace('_', '-')}.svg"
        parts.append(
            _picture(pictures / name, f"{words.capitalize()} by workers", several, "workers", words, across=float)
        )
    rows = [
        (
            each["contestant"],
            each["facts"]["workers"],
            _spread(each, lambda run: run["tokens_per_s"] / 1e6),
            _spread(each, lambda run: run["tokens_per_cpu_s"] / 1e6),
            _spread(each, lambda run: run["first_batch"] * 1000),
            _spread(each, lambda run: run["peak_mb"]),
        )
        for each in results
    ]
    header = ("reader", "workers", "million tokens/s", "million tokens/CPU s", "first batch, ms", "peak MB")
    return [*parts, _table(header, rows)]


def claims(records: Mapping[str, Any]) -> str:
    """The table of README.md."""
    rows: list[tuple[str, str, str]] = []
    slices, whole = (_pairs(_case(records["tokenize"], case), "tokenizer") for case in ("slice", "families"))
    for family in whole:
        one, alone = whole[family]["packtool, 1 worker"], slices[family]["tokenizers alone"]
        ours = one["facts"]["megabytes"] / _median(one, lambda run: run["cpu"])
        theirs = alone["facts"]["megabytes"] / _median(alone, lambda run: run["cpu"])
        what = f"tokenize {one['facts']['megabytes']:.0f} MB of text, {family}"
        rows.append((what, f"{_figure(ours)} MB per CPU second", f"{_figure(ours / theirs)} times `tokenizers`"))
    planned = {(each["contestant"], each["facts"]["documents"]): each for each in _case(records["plan"], "documents")}
    for size in sorted({size for _, size in planned})[2::2]:
        took = {
            who: _median(each, lambda run: run["plan_cpu"])
            for (who, at), each in planned.items()
            if at == size and each["runs"] and "plan_cpu" in each["runs"][0]
        }
        least = took["packtool, not mixed"]
        others = ", ".join(
            f"{who} {_figure(took[who] / least)} times as long" for who in took if not who.startswith("packtool")
        )
        rows.append(
            (
                f"plan {short(size)} documents, best fit",
                f"{_figure(least)} CPU s; mixed, the default, {_figure(took['packtool, mixed'])}",
                others,
            )
        )
    for case, who, words in (
        ("pack", "pack bfd, mixed", "pack, shuffled, hashed and synced"),
        ("shuffle", "shuffle rows, an eighth in memory", "shuffle with an eighth of it in memory"),
    ):
        by = {each["contestant"]: each for each in _case(records["move"], case)}
        if by[who]["runs"]:
            seconds = _median(by[who], lambda run: run["written_wall"])
            rows.append(
                (
                    f"{words}, {by[who]['facts']['megabytes']:.0f} MB of tokens",
                    f"{_figure(seconds)} s",
                    f"{_share(by['cp && sync'], by[who])} of the speed of `cp && sync`",
                )
            )
    machine = records["plan"]["machine"]
    return (
        f"On {machine['cores']} cores of {machine['processor']} ([all figures, and how to repeat them](docs/benchmarks.md)):\n\n"
        + _table(("", "packtool", "compared with"), rows)
        + "\n"
    )


def _case(record: Any, name: str) -> list[Result]:
    return [each for each in record["results"] if each["case"] == name]


def _pairs(results: Iterable[Result], fact: str) -> dict[str, dict[str, Result]]:
    found: dict[str, dict[str, Result]] = {}
    for each in results:
        found.setdefault(each["facts"][fact], {})[each["contestant"]] = each
    return found


def _median(result: Result, figure: Figure) -> float:
    return median(map(figure, result["runs"])) if result["runs"] else math.nan


def _spread(result: Result, figure: Figure) -> str:
    return _range(list(map(figure, result["runs"])))


def _range(values: Sequence[float]) -> str:
    if not values:
        return ""
    middle, least, most = map(_figure, (median(values), min(values), max(values)))
    return middle if least == most else f"{middle} ({least}–{most})"


def _share(base: Result, result: Result) -> str:
    """Speed against the base, round by round, as a range."""
    shares = [a["wall"] / b.get("written_wall", b["wall"]) for a, b in zip(base["runs"], result["runs"], strict=False)]
    least, middle, most = (f"{100 * value:.0f}" for value in (min(shares), median(shares), max(shares)))
    return f"{middle} %" if least == most else f"{middle} % ({least}–{most})"


def _checked(result: Result) -> tuple[str, str]:
    found = result["checked"]
    same = found.get("same_documents")
    return str(found.get("lost_tokens", "")), "" if same is None else f"{math.floor(same * 10000) / 100:g} %"


def _figure(value: float) -> str:
    """Three digits, without exponents.

    >>> _figure(0.01234), _figure(123.4), _figure(5678.9)
    ('0.0123', '123', '5679')
    """
    if math.isnan(value):
        return ""
    digits = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:.{digits}f}"


def _table(header: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _left_out(results: Iterable[Result]) -> list[str]:
    """Who took no part, and why."""
    reasons: dict[str, str] = {}
    for each in results:
        if each["missing"]:
            facts = ", ".join(
                f"{value:g} {name}" for name, value in each["facts"].items() if isinstance(value, int | float)
            )
            reasons.setdefault(f"{each['contestant']}: {each['missing']}", facts)
    lines = [f"- {why}" + ("" if "not installable" in why else f" ({facts})") for why, facts in reasons.items()]
    return ["Not measured:", "\n".join(lines)] if lines else []


def _picture(
    path: Path, title: str, curves: Mapping[str, Sequence[tuple[float, float]]], x: str, y: str, across: Any = math.log
) -> str:
    """Write curves on logarithmic axes, and give the Markdown that shows them."""
    points = [point for curve in curves.values() for point in curve if point[1] > 0]
    if not points:
        return ""
    xs = sorted({a for a, _ in points})
    ys = [b for _, b in points]
    low, high = 10 ** math.floor(math.log10(min(ys))), 10 ** math.ceil(math.log10(max(ys)) + 1e-9)
    horizontally, vertically = horizontal(xs[0], xs[-1], across), vertical(low, high, math.log)
    ticks = [10.0**power for power in range(round(math.log10(low)), round(math.log10(high)) + 1)]
    parts = [frame(Axis(horizontally, xs, x), Axis(vertically, ticks, f"{y}, logarithmic", lambda value: f"{value:g}"))]
    for number, (name, curve) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        places = [(horizontally(a), vertically(b)) for a, b in curve if b > 0]
        line = "L".join(f"{a:g} {b:g}" for a, b in places)
        parts.append(f'<path class="line" stroke="{colour}" d="M{line}"/>')
        parts += [f'<circle fill="{colour}" cx="{a:g}" cy="{b:g}" r="3"/>' for a, b in places]
        at = 40 + 16 * number
        parts.append(f'<rect fill="{colour}" x="{WIDTH + 8}" y="{at - 9}" width="10" height="10"/>')
        parts.append(text(WIDTH + 23, at, name))
    body = "".join(parts)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + 230} {HEIGHT}" role="img" aria-label="{title}">'
        f'<style>{STYLE}</style><rect width="100%" height="100%" fill="white"/>{body}</svg>\n'
    )
    return f"![{title}]({path.parent.name}/{path.name})"
