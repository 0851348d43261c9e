"""Show the results on a page: curves, tables with the spread of seeds, and the paper's figures beside them.

No number is typed by hand but those that the paper printed.
"""

from __future__ import annotations

import html
import json
import platform
import re
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measures import Floats, final, rankings, segments, smoothed

import packtool

PAPER = {  # final perplexity, Table 2: rows of 64, GPT-2 124M
    "concat": {16: 207.04, 32: 157.39, 64: 118.08, 128: 119.66, 256: 121.18},
    "padding": {16: 175.33, 32: 134.43, 64: 102.82, 128: 104.46, 256: 105.85},
}
COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#9c6b4e", "#a463f2", "#97bbf5", "#3ca951")
STYLE = """body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0 } td, th { padding: .2rem .8rem; text-align: right }
td:first-child, th:first-child { text-align: left } thead { border-bottom: 1px solid #999 } .best { font-weight: 700 }
.no { color: #b00020 } .yes { color: #1b7a2f } svg { max-width: 100% } figcaption { color: #555 }"""


class Trained:
    """The runs of one kind that differ in their seed alone.

    Args:
        runs: what `training.train` returned.
    """

    def __init__(self, runs: Sequence[dict[str, Any]]) -> None:
        self.runs = sorted(runs, key=lambda run: int(run["run"]["seed"]))
        self.seeds = [int(run["run"]["seed"]) for run in self.runs]
        self.steps = [np.array(run["steps"]) for run in self.runs]

    def final(self, *, counted: bool = False) -> Floats:
        """The final perplexity of each seed."""
        found = zip(self.steps, self.runs, strict=True)
        return np.array([final(steps, run["epochs"], counted=counted) for steps, run in found])

    def figure(self, name: str) -> Floats:
        """A figure of each seed, by its name in the results."""
        return np.array([run[name] for run in self.runs], np.float64)

    def measures(self) -> list[str]:
        """The five perplexities of `COLUMNS`."""
        held_out = [self.figure(name) for name in ("own_rows", "own_rows_counted", "same_text")]
        return [spread(each) for each in (self.final(), self.final(counted=True), *held_out)]

    def curve(self) -> tuple[Floats, Floats]:
        """Progress in epochs and smoothed perplexity of text, the mean over seeds."""
        mean = np.mean(self.steps, axis=0)
        return mean[:, 0], np.exp(smoothed(mean[:, 1] / mean[:, 2], 0.9))


Groups = dict[str, Trained]
Section = tuple[str, str, list[str], list[list[str]], str]
"""Title, text, head and rows of the table, pictures."""
COLUMNS = ["final, own rows", "final, padding counted", "held out, own rows", "held out, counted", "same text"]


def write(output: Path, results: Path) -> None:
    """Write `report.html`, and its tables as `report.md`, from the results that are there."""
    found = [json.loads(file.read_text()) for file in sorted(results.glob("*.json"))]
    by_name: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for each in found:
        by_name[re.sub(r"-\d+$", "", each["run"]["name"])].append(each)
    groups = {name: Trained(runs) for name, runs in by_name.items()}
    parts = [f"<h1>Packing and shuffling, trained</h1><p>{_facts(found)}</p>"]
    tables = ["# Packing and shuffling, trained", _facts(found)]
    for section in (_controls, _atoms, _padding, _strategies):
        title, text, head, rows, pictures = section(groups)
        if rows:
            parts.append(f"<h2>{title}</h2><p>{text}</p>{_table(head, rows)}{pictures}")
            tables += [f"## {title}", re.sub("<[^>]+>", "", text).strip(), _markdown(head, rows)]
    page = f"<!doctype html><meta charset=utf-8><title>Experiment</title><style>{STYLE}</style>{''.join(parts)}"
    (output / "report.html").write_text(page, encoding="utf-8")
    (output / "report.md").write_text("\n\n".join(tables) + "\n", encoding="utf-8")


def spread(values: Floats) -> str:
    """The mean over seeds and the standard deviation.

    >>> spread(np.array([1.0, 3.0])), spread(np.array([2.0]))
    ('2.0 ± 1.4', '2.0')
    """
    return f"{values.mean():.1f}" + (f" ± {values.std(ddof=1):.1f}" if len(values) > 1 else "")


def _controls(groups: Groups) -> Section:
    """What is known beforehand: if it does not come out, nothing else is to be believed."""
    names = [name for name in ("shuffled", "corpus-order", "half-padded") if name in groups]
    text = "Two controls whose answer is known. "
    for name, what in (("corpus-order", "rows in corpus order"), ("half-padded", "half of the tokens padded")):
        if {name, "shuffled"} <= groups.keys():
            held = bool((groups[name].figure("same_text") > groups["shuffled"].figure("same_text")).all())
            text += f"With {what} the same text is {'worse' if held else 'not worse'} for every seed: "
            text += f'<span class="{"yes" if held else "no"}">'
            text += f"{'as it must be' if held else 'NOT as it must be, so believe nothing below'}</span>. "
    return "Controls", text, ["run", *COLUMNS], [[name, *groups[name].measures()] for name in names], ""


def _atoms(groups: Groups) -> Section:
    rows, text, pictures = [], "", ""
    shapes = [match.groups() for name in groups if (match := re.fullmatch(r"(concat|padding)-(\d+)-(\d+)", name))]
    for strategy, length in sorted({(strategy, int(length)) for strategy, length, _ in shapes}):
        sizes = sorted(int(atom) for *shape, atom in shapes if shape == [strategy, str(length)])
        atoms = {atom: groups[f"{strategy}-{length}-{atom}"] for atom in sizes}
        ranks = _ranks(atoms)
        for atom, trained in atoms.items():
            paper = PAPER[strategy].get(atom) if length == 64 else None
            label = f"{strategy}, L = {length}, A = {atom / length:g} L"
            rows.append([label, *trained.measures(), spread(ranks[atom]), f"{paper:.1f}" if paper else ""])
        best = min(sizes, key=lambda atom: atoms[atom].final().mean())
        same = min(sizes, key=lambda atom: atoms[atom].figure("same_text").mean())
        text += (
            f"{strategy}, L = {length}: atoms of {best / length:g} L have the lowest final perplexity, so the paper's "
            f"1 L {'comes' if best == length else 'does not come'} out here; on the same text, {same / length:g} L. "
        )
        lines = {f"{atom / length:g} L": trained.curve() for atom, trained in atoms.items()}
        pictures += _curves(lines, f"{strategy}, L = {length}")
    return "Atom size", text, ["run", *COLUMNS, "mean rank", "paper, Table 2"], rows, pictures


def _ranks(atoms: dict[int, Trained]) -> dict[int, Floats]:
    """The mean rank of each atom size, of each seed that all of them have."""
    seeds = set.intersection(*(set(trained.seeds) for trained in atoms.values()))
    by_seed = []
    for seed in sorted(seeds):
        parts = {}
        for atom, trained in atoms.items():
            at = trained.seeds.index(seed)
            parts[str(atom)] = segments(trained.steps[at], trained.runs[at]["epochs"])
        by_seed.append(rankings(parts))
    return {atom: np.array([ranks[str(atom)] for ranks in by_seed]) for atom in atoms}


def _padding(groups: Groups) -> Section:
    rows, text = [], "The same rows with padding among the targets of training, and without. "
    for length in sorted(int(name.rpartition("-")[2]) for name in groups if name.startswith("padding-counted-")):
        kinds = {
            "concat": f"concat-{length}-{length}",
            "padding": f"padding-{length}-{length}",
            "padding, trained on": f"padding-counted-{length}",
        }
        if not groups.keys() >= set(kinds.values()):
            continue
        for label, name in kinds.items():
            steps = np.mean([len(each) for each in groups[name].steps])
            rows.append([f"{label}, L = {length}", *groups[name].measures(), f"{steps:,.0f}"])
        concat, masked, counted = (groups[name] for name in kinds.values())
        text += (
            f"L = {length}: padding ends {_than(counted.final(counted=True), concat.final(counted=True))} than concat "
            "where its tokens count, as in the paper, and "
            f"{_than(masked.figure('same_text'), concat.figure('same_text'))} on the same text. "
        )
    return "Padding against concat", text, ["run", *COLUMNS, "steps"], rows, ""


def _than(a: Floats, b: Floats) -> str:
    ratio = a.mean() / b.mean()
    return f"{abs(1 - ratio):.1%} {'lower' if ratio < 1 else 'higher'}"


def _strategies(groups: Groups) -> Section:
    shown = {name.removeprefix("steps-"): each for name, each in sorted(groups.items()) if name.startswith("steps-")}
    rows = [[name, *each.measures(), f"{each.figure('tokens_per_step').mean():,.0f}"] for name, each in shown.items()]
    text = (
        "Equal steps and equal tokens in a batch. Each strategy's own rows differ; the same text is the same for all. "
    )
    if shown:
        order = sorted(shown, key=lambda name: shown[name].figure("same_text").mean())
        text += f"On it the lowest perplexity has {order[0]}, the highest {order[-1]}. "
    return "Strategies", text, ["run", *COLUMNS, "text tokens a step"], rows, ""


def _curves(lines: dict[str, tuple[Floats, Floats]], title: str) -> str:
    """A picture of perplexity over the last half of training, on a logarithmic axis."""
    width, height, left = 640, 260, 60
    shown = {name: (x[len(x) // 3 :], np.log(y[len(y) // 3 :])) for name, (x, y) in lines.items()}
    xs = np.concatenate([x for x, _ in shown.values()])
    ys = np.concatenate([y for _, y in shown.values()])
    low, high = ys.min(), ys.max() + 1e-9

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - xs.min()) / (np.ptp(xs) + 1e-9) * (width - left - 90)
        return round(left + across, 1), round(15 + (high - y) / (high - low) * (height - 50), 1)

    out = [f'<figure><svg viewBox="0 0 {width} {height}" role="img" aria-label="{html.escape(title)}">']
    for tick in np.linspace(low, high, 5):
        _, y = place(xs.min(), tick)
        out.append(f'<text x="{left - 6}" y="{y + 4}" text-anchor="end" font-size="11">{np.exp(tick):.0f}</text>')
        out.append(f'<line x1="{left}" x2="{width - 90}" y1="{y}" y2="{y}" stroke="#ddd"/>')
    for number, (name, (line_x, line_y)) in enumerate(shown.items()):
        colour, every = COLOURS[number % len(COLOURS)], max(1, len(line_x) // 200)
        corners = (place(x, y) for x, y in zip(line_x[::every], line_y[::every], strict=True))
        points = " ".join(f"{x},{y}" for x, y in corners)
        out.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{points}"/>')
        label = html.escape(name)
        out.append(f'<text x="{width - 84}" y="{30 + 18 * number}" fill="{colour}" font-size="13">{label}</text>')
    middle = (width - 90 + left) / 2
    out.append(f'<text x="{middle}" y="{height - 8}" text-anchor="middle" font-size="12">epochs</text></svg>')
    out.append(f"<figcaption>Perplexity of text while training, smoothed: {html.escape(title)}</figcaption></figure>")
    return "".join(out)


def _facts(found: Sequence[dict[str, Any]]) -> str:
    size = found[0]["asked"] if found else {}
    seconds = sum(each["cpu_seconds"] for each in found)
    return (
        f"{len(found)} runs, {seconds / 60:,.0f} CPU minutes; width {size.get('width')}, {size.get('layers')} layers, "
        f"{size.get('epochs')} epochs; packtool {packtool.__version__}, PyTorch {torch.__version__}, "
        f"{platform.machine()}, {datetime.now(UTC):%Y-%m-%d}. ± is the standard deviation over seeds. "
        "What so small a model can't tell: whether differences below that spread are real, and how any of it scales."
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = "".join(f"<th>{html.escape(each)}</th>" for each in head)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(each)}</td>" for each in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
