"""Tables of benchmarks beside the run of all peers, each from one JSON file, with where it was measured.

Those that a page only quotes a figure of stand in docs/benchmarks.md.

A page has a pair of comments for each, and what lies between them is replaced:

    <!-- measured: soak -->
    <!-- end -->
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.figures import figure, table
from benchmarks.measure import ROOT

PAGES = (
    "benchmarks",
    "blends",
    "cluster",
    "conversations",
    "index-only",
    "long-context",
    "reliability",
    "strategies",
    "training",
)
"""Pages in docs/ that quote figures."""
BLOCK = re.compile(r"<!-- measured: ([\w, ]+) -->\n.*?<!-- end -->\n", re.DOTALL)
Lines = list[str]


def write(results: Path) -> None:
    """Write all tables anew, from the files of a directory."""
    for name in PAGES:
        page = ROOT / "docs" / f"{name}.md"
        page.write_text(filled(page.read_text(), results))


def section(results: Path) -> str:
    """Return the section of docs/benchmarks.md with the tables that other pages quote a figure of."""
    parts = ["## What pages quote"]
    for name, what in WHOLE.items():
        parts += [what, f"<!-- measured: {name} -->\n<!-- end -->"]
    return filled("\n\n".join(parts) + "\n", results)


def filled(page: str, results: Path) -> str:
    """Put the tables of these results between the comments of a page."""

    def block(found: re.Match[str]) -> str:
        file, command, lines = TABLES[found[1]]
        record = json.loads((results / f"{file}.json").read_bytes())
        inside = "\n\n".join([*lines(record), measured(record, command)])
        return f"<!-- measured: {found[1]} -->\n{inside}\n<!-- end -->\n"

    return BLOCK.sub(block, page)


def measured(record: Mapping[str, Any], command: str) -> str:
    """Say where, when and how.

    >>> machine = {"cores": 2, "processor": "AMD EPYC"}
    >>> measured({"machine": machine, "commit": "abc" * 9, "date": "2026-11-22T17:20"}, "soak")
    '(`python -m benchmarks.soak` on 2 cores of AMD EPYC, commit `abcabcabcabc`, 2026-11-22.)'
    """
    machine = record["machine"]
    gpu = f" and an {record['gpu']}" if "gpu" in record else ""
    where = f"`python -m benchmarks.{command}` on {machine['cores']} cores of {machine['processor']}{gpu}"
    if "commit" not in record:
        return f"({where}, before results named their commit.)"
    return f"({where}, commit `{record['commit'][:12]}`, {record['date'][:10]}.)"


def _reading(record: Any) -> Lines:
    rows = [
        [each["reader"].replace("dataset.batch", "`dataset.batch`").replace("Loader", "`Loader`"), each["rows"]]
        + [figure(each[name]) for name in ("tokens", "index", "index / tokens")]
        for each in record["found"]
    ]
    header = ("reader", "rows in a batch", "written tokens", "index", "ratio")
    return ["Random rows from the page cache, million tokens a CPU second:", table(header, rows)]


def _beyond(record: Any) -> Lines:
    names = ("tokens", "index", "index / tokens")
    rows = [[each["order"], each["figure"], *(figure(each[name]) for name in names)] for each in record["found"]]
    store = f"{record['found'][0]['of the store'] / 1e6:,.0f} million tokens"
    memory = "a quarter of their bytes as memory" if record["found"][0]["limited"] else "nothing in the page cache"
    header = ("order of rows", "figure", "written tokens", "index", "index / written tokens")
    return [f"{store}, {memory}:", table(header, rows)]


def _writing(record: Any) -> Lines:
    rows = [
        [
            f"{each['documents'] / 1e6:.0f} million",
            each["rows"],
            *(figure(each[name]) for name in ("planned, CPU s", "in all, CPU s", "in all / planned")),
            f"{each['index / token bytes']:.1%}",
        ]
        for each in record["found"]
    ]
    what = f"Documents of {record['found'][0]['tokens a document']:.0f} tokens on average:"
    header = ("documents", "rows", "planning, CPU s", "in all, CPU s", "ratio", "bytes of the index / of the tokens")
    return [what, table(header, rows)]


def _soak(record: Any) -> Lines:
    sizes = record["gigabytes"]
    rows = [[f"`{each['command']}`", *(f"{each[f'peak_mb_{n}_gb']:.0f}" for n in sizes)] for each in record["rows"]]
    documents = record["counts"]["documents"] / 1e6
    return [
        f"Peaks in MB; the largest corpus has {documents:.1f} million documents:",
        table(("command", *(f"{n} GB" for n in sizes)), rows),
    ]


_KINDS = {
    "mixture": "`concat`, a mixture of 1.3 epochs",
    "again": "shuffled again, rows of 128",
    "partial": "partial shuffle",
}


def _memory(record: Any) -> Lines:
    most = max(each["documents"] for each in record["rows"])
    rows = [
        [
            _KINDS.get(each["kind"], f"`{each['kind']}`"),
            f"{each['given_peak_mb']:.0f}",
            f"{each['free_peak_mb']:.0f}",
        ]
        for each in record["rows"]
        if each["documents"] == most
    ]
    header = ("rows", f"`--memory {record['memory']}`, peak MB", "without, peak MB")
    return [f"{most / 1e6:.0f} million documents of 41 tokens on average, two threads:", table(header, rows)]


_COMMANDS = {"tokenize": "`tokenize`", "pack": "`pack`", "two passes": "`pack`, two passes"}


def _processes(record: Any) -> Lines:
    largest = record["sizes"][-1]
    rows = []
    for command, name in _COMMANDS.items():
        runs = [run for run in largest["runs"] if run["command"] == command and run["where"] == "dask"]
        rows.append([name, *(f"{max(run[who] for run in runs):.0f}" for who in ("peak_mb", "scheduler", "worker"))])
    return [
        f"Peak resident memory in MB, {largest['text_bytes'] / 1e9:.1f} GB of text, on a Dask cluster:",
        table(("", "command", "scheduler", "a worker"), rows),
    ]


def _mix(record: Any) -> Lines:
    cases: dict[str, list[Any]] = {}
    for each in record["quality"]:
        name = each["lengths"].removeprefix("lognormal, ").removeprefix("real, ")
        cases.setdefault(f"{each['documents']:,} {name}, L = {each['sequence_length']}", []).append(each)
    rows = []
    for name, (plain, mixed, shuffled) in cases.items():
        padding = [f"{100 * each['padding']:.2g} %" for each in (plain, shuffled)]
        between = [f"{each['between_rows']:.2g}" for each in (plain, mixed, shuffled)]
        alike = [f"{100 * each['equal_but_one']:.2g} %" for each in (plain, mixed)]
        rows.append(
            [name, " / ".join(padding), " / ".join([*between, f"{plain['random_rows']:.2g}"]), " / ".join(alike)]
        )
    header = (
        "lengths",
        "padding: `bfd` / `first-fit-shuffle`",
        "between rows: `bfd` / mixed / `first-fit-shuffle` / random",
        "rows of one length but one: `bfd` / mixed",
    )
    return [table(header, rows)]


def _conversations(record: Any) -> Lines:
    rows = []
    for name, shown in (("packtool", "`tokenize`, `pack`"), ("peer", "`apply_chat_template`, TRL's packing")):
        each = record[name]
        rows.append(
            [shown, *(figure(each[what]) for what in ("cpu", "cpu_after_imports")), each["tokens"], each["rows"]]
        )
    times = [figure(record[f"times_{what}"]) for what in ("cpu", "cpu_after_imports")]
    what = f"{record['megabytes']:.0f} MB of {record['packtool']['conversations']:,} chats, one process each, medians:"
    header = ("", "CPU s", "CPU s after imports", "tokens", "rows")
    return [what, table(header, [*rows, ["times as long", *times, "", ""]])]


def _gpu_waiting(record: Any) -> Lines:
    names = {"step": "once a step", "turn": "after each row"}
    rows = [
        [
            f"{each['row length']:,}",
            names[each["ranks meet"]],
            each["rows"] if each["rows"] == "as they come" else f'`"{each["rows"]}"`',
            f"{each['waited']:.1%}",
        ]
        for each in record["waiting"]
    ]
    hidden = record["waiting"][0]["hidden size"]
    what = f"{record['batch']} rows of one layer of hidden size {hidden}, {record['ranks']} ranks, each row timed:"
    return [what, table(("row length", "ranks meet", "rows", "waited"), rows)]


def _gpu_training(record: Any) -> Lines:
    rows = [
        [each["batches"], f"{each['tokens a second']:,.0f}", f"{each['waited']:.2%}"] for each in record["training"]
    ]
    what = f"A Llama of GPT-2's size, {record['rows']} rows of {record['row length']:,} a step:"
    return [what, table(("batches", "tokens a second", "waited for a batch"), rows)]


def _gpu_waiting_short(record: Any) -> Lines:
    longest = max(each["row length"] for each in record["waiting"])
    plain, dealt = (
        each["waited"] for each in record["waiting"] if (each["row length"], each["ranks meet"]) == (longest, "step")
    )
    return [
        f"Of rows of {longest:,} tokens, {record['ranks']} ranks that meet once a step wait {plain:.1%} of the time; "
        f'with `"step"` {dealt:.1%}.'
    ]


def _blend_shares_short(record: Any) -> Lines:
    farthest = {
        rule: max(each["rows off"] for each in record["shares"] if each["rule"] == rule)
        for rule in ("packtool", "Megatron-LM", "grain", "levanter")
    }
    listed = ", ".join(f"{rule} {rows:,.1f}" for rule, rows in farthest.items())
    return [f"Rows that any source is off its share at most, after {record['samples']:,} samples: {listed}."]


def _conversations_short(record: Any) -> Lines:
    times = figure(record["times_cpu"])
    return [f"`apply_chat_template` and TRL's packing take {times} times as long on the same chats, with Qwen 3."]


def _multiples_short(record: Any) -> Lines:
    (found,) = (each for each in record["rows"] if (each["cp"], each["average"]) == (4, 600))
    return [
        f"Documents of {found['average']} tokens on average at multiples of {found['multiple']} take "
        f"{found['more rows']:.1%} more rows."
    ]


def _dealing(record: Any) -> Lines:
    names = ("step, as they come", "step", "bound", "turn, as they come", "turn")
    rows = [
        [f"{each['length']:,}", each["sigma"], f"{each['batch']} to {each['ranks']}"]
        + [f"{each[name]:.1%}" for name in names]
        + [figure(each["step, ms"])]
        for each in record["found"]
    ]
    header = ("row length", "σ", "rows to ranks", "a step", '`"step"`', "bound", "turns of one row", '`"turn"`')
    what = f"Documents of lognormal lengths, median {record['median']:,}; attention alone; share of the time waited:"
    return [what, table((*header, '`"step"`, ms a batch'), rows)]


def _multiples(record: Any) -> Lines:
    cases: dict[tuple[int, int], list[Any]] = {}
    for each in record["rows"]:
        cases.setdefault((each["cp"], each["multiple"]), []).append(each)
    averages = [each["average"] for each in next(iter(cases.values()))]
    rows = [[*case, *(f"{each['more rows']:.1%}" for each in found)] for case, found in cases.items()]
    header = ("cp", "multiple", *(f"documents of {average:,} tokens on average" for average in averages))
    return [table(header, rows)]


def _multiples_planning(record: Any) -> Lines:
    rows = [
        [f"`{each['strategy']}`", figure(each["plain, ms"]), figure(each["rounded, ms"]), figure(each["ratio"])]
        for each in record["times"]
    ]
    header = ("strategy", "without, CPU ms", "multiples of 8, CPU ms", "ratio")
    return [f"A million documents, of {record['documents'] / 1e6:g} million planned:", table(header, rows)]


def _workers(record: Any) -> Lines:
    found: dict[str, dict[int, Any]] = {}
    for each in record["found"]:
        found.setdefault(each["command"], {})[each["workers"]] = each
    counts = list(next(iter(found.values())))
    rows = []
    for command, runs in found.items():
        cells = [f"{figure(runs[n]['wall'])} ({figure(runs[1]['wall'] / runs[n]['wall'])})" for n in counts]
        rows.append([f"`{command}`", *cells])
    header = ("", *(f"{count} worker{'s' * (count > 1)}" for count in counts))
    return [f"{record['text_bytes'] / 1e9:.1f} GB of text, seconds (times as fast as one worker):", table(header, rows)]


def _blend_shares(record: Any) -> Lines:
    rows = [
        [
            each["weights"],
            each["rule"],
            f"{each['rows off']:,.1f}",
            f"{each['share off']:.2%}",
            each["never read"],
            f"{each['off in a stretch']:.1f}",
        ]
        for each in record["shares"]
    ]
    header = ("weights", "rule of", "rows off its share", "of its share", "sources never read", "rows off in any 512")
    large = record["laid out"]
    return [
        f"The source that is furthest off, after {record['samples']:,} samples:",
        table(header, rows),
        f"A run of {large['rows']:,} rows, 20 sources and ten ramps is laid out in {large['CPU s']:.1f} CPU s and "
        f"{large['peak MB']:.0f} MB, NumPy included.",
    ]


def _blend_reading(record: Any) -> Lines:
    names = ("blend, loader", "sources, loader", "blend, call", "sources, call")
    rows = [[each["rows"], *(figure(each[name]) for name in names)] for each in record["reading"]]
    header = (
        "rows in a batch",
        "a blend of four",
        "its sources, one after the other",
        "the blend, a call for each batch",
        "its sources, a call for each batch",
    )
    return ["Million tokens a CPU second, all fields, from the page cache:", table(header, rows)]


TABLES: dict[str, tuple[str, str, Callable[[Any], Lines]]] = {
    "index only reading": ("index_only_reading", "index_only reading", _reading),
    "index only beyond": ("index_only_beyond", "index_only beyond", _beyond),
    "index only writing": ("index_only_writing", "index_only writing", _writing),
    "soak": ("soak", "soak", _soak),
    "memory": ("memory", "memory", _memory),
    "cluster memory": ("cluster", "cluster", _processes),
    "gpu waiting, in short": ("gpu", "gpu", _gpu_waiting_short),
    "blend shares, in short": ("blends", "blends", _blend_shares_short),
    "conversations, in short": ("conversations", "conversations", _conversations_short),
    "multiples, in short": ("multiples", "multiples", _multiples_short),
    "gpu waiting": ("gpu", "gpu", _gpu_waiting),
    "gpu training": ("gpu", "gpu", _gpu_training),
    "dealing": ("dealing", "dealing", _dealing),
    "multiples": ("multiples", "multiples", _multiples),
    "multiples planning": ("multiples", "multiples", _multiples_planning),
    "workers": ("workers", "workers", _workers),
    "conversations": ("conversations", "conversations", _conversations),
    "mix": ("mix", "mix", _mix),
    "blend shares": ("blends", "blends", _blend_shares),
    "blend reading": ("blends", "blends", _blend_reading),
}
"""Of each table: the file, the benchmark that writes it, and what makes the table of it."""

WHOLE = {
    "blend shares": "Blends: how far sources are off their shares.",
    "blend reading": "Reading a blend.",
    "gpu training": "A GPU that waits for the loader.",
    "gpu waiting": "Ranks that wait for the slowest, with `Loader(balance=…)`: half of the tokens are in books.",
    "dealing": "The same, computed from query-key pairs; no dealing waits less than the bound.",
    "multiples": "Rows that `pack --document-multiple` adds, of 8,192 tokens with `bfd`; lengths are lognormal, σ 1.",
    "multiples planning": "Planning with `--document-multiple`.",
    "conversations": "From chats to rows of 4,096 tokens, with Qwen 3's tokenizer and `bfd`.",
}
"""The tables in docs/benchmarks.md, in order, with what each is about."""
