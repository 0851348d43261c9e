"""What the results say: tables, sentences and the lines of charts, all made from the runs that are there.

The only numbers typed by hand are those that the papers printed. A sentence says that one kind of run is better than
another only where the difference is more than twice its standard error between seeds.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from kinds import COLUMNS, COUNTED, FINAL, SAME, Kinds, percent, spread
from measures import Floats, perplexity, rankings, segments, steps_to

import packtool

PAPER_ATOMS = {  # final perplexity and mean rank by atom size in rows: Table 2 and Figures 7 and 9
    ("concat", 64): {
        0.25: (207.04, 5.00),
        0.5: (157.39, 4.00),
        1: (118.08, 1.05),
        2: (119.66, 1.96),
        4: (121.18, 2.99),
    },
    ("padding", 64): {
        0.25: (175.33, 5.00),
        0.5: (134.43, 4.00),
        1: (102.82, 1.18),
        2: (104.46, 2.03),
        4: (105.85, 2.79),
    },
    ("concat", 32): {0.25: (222.14, 5.00), 1: (91.21, 1.00)},
    ("padding", 32): {0.25: (196.83, 5.00), 1: (85.56, 1.10)},
}
PAPER_PADDING = {32: (28120, 31816, 91.01, 87.22), 64: (14058, 17308, 110.45, 99.79)}
"""Table 3: steps of concat and padding, final perplexity of concat and padding."""


@dataclass(frozen=True)
class Chart:
    """Lines of x and y by name; a logarithmic y."""

    title: str
    across: str
    lines: dict[str, tuple[Floats, Floats]]


@dataclass
class Section:
    """A part of the page.

    Attributes:
        notes: of tables that only the whole page has.
        brief: which columns the short page has of a table, by the table's number.
    """

    title: str
    text: list[str]
    tables: list[tuple[list[str], list[list[str]]]] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    brief: dict[int, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """What a page shows.

    Attributes:
        answer: what came out, in a paragraph.
        believed: the controls came out as they must; else there is nothing but them.
    """

    answer: str
    facts: str
    believed: bool
    sections: list[Section]


def read(output: Path) -> Found:
    """What the results of an experiment say.

    Args:
        output: of the experiment.
    """
    files = sorted((output / "results").glob("*.json"))
    kinds = Kinds(json.loads(file.read_text()) for file in files)
    controls, believed = _controls(kinds)
    sections = [controls]
    if believed:
        others = [*_atoms(kinds), *_padding(kinds), *_strategies(kinds), *_questions(kinds)]
        sections = [*_claims(kinds), controls, *others]
    return Found(answer(sections), _facts(kinds, output), believed, sections)


def answer(sections: Iterable[Section]) -> str:
    """Say in a paragraph what came out: how many claims agree, and which strategies differ from concat."""
    found = {section.title: section for section in sections}
    said = []
    if "Strategies" in found:
        rows = found["Strategies"].tables[0][1]
        told = [f"{row[0]} ({row[-1]})" for row in rows if row[-1] and not row[-1].startswith("(")]
        which = ", ".join(told) or "no packing"
        said.append(f"After equal steps, on the same text, {which} differs from concat by more than seeds do.")
    if "What agrees" in found:
        rows = found["What agrees"].tables[0][1]
        counts = []
        for number, where in enumerate(("on a run's own rows", "where padding counts, too", "on the same text"), 1):
            counts.append(f"{[row[number] for row in rows].count('agrees')} {where}")
        against = sum(row.count("does not") for row in rows)
        said.append(f"Claims of the paper that agree, of {len(rows)}: {', '.join(counts)}. The other way: {against}.")
    if "Not in the papers" in found:
        questions = found["Not in the papers"].text[1:]
        still = [each for each in questions if "can't tell" in each]
        said.append(f"Mixed rows, masks and packing anew: {len(still)} of {len(questions)} questions stay open.")
    return " ".join(said) or "The controls did not come out as they must, so nothing is said."


def _controls(kinds: Kinds) -> tuple[Section, bool]:
    """What is known beforehand: if it does not come out for every seed, nothing else is to be believed."""
    known = {"corpus-order-64": "rows in corpus order", "half-padded-64": "half of the tokens padded"}
    text, all_held = ["Two controls whose answer is known: both must be worse on the same text, for every seed."], True
    for name, what in known.items():
        if not {name, "concat-64-64"} <= kinds.keys():
            text.append(f"{what.capitalize()}: not run.")
            all_held = False
            continue
        seeds = sorted({*kinds[name].seeds} & {*kinds["concat-64-64"].seeds})
        worse = [
            kinds[name].figures[SAME][kinds[name].seeds.index(seed)]
            > kinds["concat-64-64"].figures[SAME][kinds["concat-64-64"].seeds.index(seed)]
            for seed in seeds
        ]
        held = bool(worse) and all(worse)
        all_held &= held
        share, _ = kinds.difference(name, "concat-64-64", SAME)
        end = "as it must be" if held else "NOT as it must be: nothing else is shown"
        text.append(f"With {what}: {percent(share)}, worse for {sum(worse)} of {len(seeds)} seeds: {end}.")
    rows = [[name, *kinds[name].cells()] for name in ("concat-64-64", *known) if name in kinds]
    return Section("Controls", text, [(["run", "seeds", *COLUMNS], rows)]), all_held


def _shapes(kinds: Kinds) -> Iterator[tuple[str, int, dict[float, str]]]:
    """Strategy, row length, and the kind for each atom size in rows, where that of one row is there."""
    found: dict[tuple[str, int], dict[float, str]] = defaultdict(dict)
    for name in kinds:
        if shape := re.fullmatch(r"(concat|padding)-(\d+)-(\d+)", name):
            length = int(shape[2])
            found[shape[1], length][int(shape[3]) / length] = name
    for (strategy, length), atoms in sorted(found.items()):
        if 1 in atoms and len(atoms) > 1:
            yield strategy, length, dict(sorted(atoms.items()))


def _atoms(kinds: Kinds) -> Iterator[Section]:
    perplexities, ranks, charts = [], [], []
    for strategy, length, atoms in _shapes(kinds):
        paper = PAPER_ATOMS.get((strategy, length), {})
        by_column = [_ranks(kinds, atoms, counted=False), _ranks(kinds, atoms, counted=True), _same_ranks(kinds, atoms)]
        for atom, name in atoms.items():
            label = f"{strategy}, L = {length}, {atom:g} L"
            perplexities.append([label, *kinds[name].cells()])
            told = ["" if atom == 1 else kinds.verdict(name, atoms[1], column) for column in (FINAL, COUNTED, SAME)]
            theirs = ["", ""]
            if atom in paper:
                theirs = ["" if atom == 1 else percent(paper[atom][0] / paper[1][0] - 1), f"{paper[atom][1]:.2f}"]
            mean_ranks = [spread(each[name]) for each in by_column]
            ranks.append([label, *told, theirs[0], *mean_ranks, theirs[1]])
        lines = {f"{atom:g} L": kinds[name].line() for atom, name in atoms.items()}
        charts.append(Chart(f"atoms, {strategy}, L = {length}", "epochs", lines))
    if not perplexities:
        return
    text = ["Atoms of 0.25 to 4 rows, for equal epochs."]
    notes = [
        "The first table has perplexities; the second by how much each is above that of atoms of 1 L, and mean ranks "
        "from 1, the lowest perplexity, over the hundredths of the last epoch (for the same text: over the times in "
        "it at which it was scored)."
    ]
    head = ["run", *(f"to 1 L: {column}" for column in (FINAL, COUNTED, SAME)), "paper: to 1 L"]
    head += ["rank: text", "rank: padding counted", "rank: same text", "paper: rank"]
    tables = [(["run", "seeds", *COLUMNS], perplexities), (head, ranks)]
    yield Section("Atom size", text, tables, charts, notes)


def _common(kinds: Kinds, names: Iterable[str]) -> list[int]:
    return sorted(set.intersection(*({*kinds[name].seeds} for name in names)))


def _ranks(kinds: Kinds, atoms: dict[float, str], *, counted: bool) -> dict[str, Floats]:
    """The mean rank of each kind (A.6), of each seed that all of them have."""
    found = []
    for seed in _common(kinds, atoms.values()):
        steps = {name: kinds[name].steps[kinds[name].seeds.index(seed)] for name in atoms.values()}
        parts = {name: segments(each, kinds[name].epochs, counted=counted) for name, each in steps.items()}
        found.append(rankings(parts))
    return {name: np.array([ranks[name] for ranks in found]) for name in atoms.values()}


def _same_ranks(kinds: Kinds, atoms: dict[float, str]) -> dict[str, Floats]:
    found = []
    for seed in _common(kinds, atoms.values()):
        curves = {name: kinds[name].curves[kinds[name].seeds.index(seed)][:, 1] for name in atoms.values()}
        last = {name: curve[-(len(curve) // kinds[name].epochs) :] for name, curve in curves.items()}
        found.append(rankings(last))
    return {name: np.array([ranks[name] for ranks in found]) for name in atoms.values()}


def _padded_lengths(kinds: Kinds) -> list[int]:
    lengths = (int(name.rpartition("-")[2]) for name in kinds if re.fullmatch(r"concat-(\d+)-\1", name))
    return sorted(length for length in lengths if f"padding-{length}-{length}" in kinds)


def _padding(kinds: Kinds) -> Iterator[Section]:
    rows, beside = [], []
    for length in _padded_lengths(kinds):
        concat, padding, trained = (
            f"concat-{length}-{length}",
            f"padding-{length}-{length}",
            f"padding-counted-{length}",
        )
        steps = {name: float(np.mean([len(each) for each in kinds[name].steps])) for name in (concat, padding)}
        labels = {concat: "concat", padding: "padding, masked", trained: "padding, trained on as well"}
        rows += [[f"{labels[name]}, L = {length}", *kinds[name].cells()] for name in labels if name in kinds]
        for name in (padding, trained):
            if name in kinds:
                shares = [kinds.verdict(name, concat, column) for column in (FINAL, COUNTED, SAME)]
                more = percent(steps[padding] / steps[concat] - 1)
                theirs = ["", ""]
                if length in PAPER_PADDING:
                    a, b, high, low = PAPER_PADDING[length]
                    theirs = [percent(b / a - 1), percent(low / high - 1)]
                beside.append([f"{labels[name]}, L = {length}", more, *shares, *theirs])
    if not rows:
        return
    text = [
        "Atoms of a row. Padding takes more steps for the same epochs. The paper counted padding among the targets, "
        "and does not say whether it also trained on padding: here are both."
    ]
    head = ["padding against concat", "steps", FINAL, COUNTED, SAME, "paper, Table 3: steps", "paper: final perplexity"]
    tables = [(["run", "seeds", *COLUMNS], rows), (head, beside)]
    yield Section("Padding against concat", text, tables, brief={1: [head[0], FINAL, COUNTED, SAME, head[-1]]})


STRATEGIES = {
    "concat-64-64": "concat",
    "padding-equal-64": "padding",
    "bfd-64": "best fit",
    "bfd-unmixed-64": "best fit, rows not mixed",
    "first-fit-shuffle-64": "first fit, shuffled",
    "seamless-64": "seamless",
    "buckets-64": "buckets of 32, 64, 128",
    "partial-64": "partial shuffle",
    "concat-masked-64": "concat, masks",
    "bfd-masked-64": "best fit, masks",
    "concat-fresh-64": "concat, packed anew",
    "bfd-fresh-64": "best fit, packed anew",
}


def _strategies(kinds: Kinds) -> Iterator[Section]:
    shown = [name for name in STRATEGIES if name in kinds]
    if shown == ["concat-64-64"]:
        return
    base = kinds["concat-64-64"]
    wanted = float(np.exp(np.mean([np.log(curve[len(curve) * 3 // 4 - 1, 1]) for curve in base.curves])))
    rows, work = [], []
    for name in shown:
        kind = kinds[name]
        rows.append(
            [STRATEGIES[name], *kind.cells(), "" if kind is base else kinds.verdict(name, "concat-64-64", SAME)]
        )
        tokens = float(np.mean([steps[:, 2].mean() for steps in kind.steps]))
        until = np.array([steps_to(curve, wanted) for curve in kind.curves])
        reached = "not by all seeds" if np.isnan(until).any() else f"{until.mean():,.0f}"
        in_tokens = "" if np.isnan(until).any() else f"{until.mean() * tokens / 1e6:.2f}"
        eighth = max(1, len(kind.by_place) // 8)
        first, last = kind.by_place[:eighth].sum(axis=0), kind.by_place[-eighth:].sum(axis=0)
        places = [f"{perplexity(part[0], part[1]):.1f}" for part in (first, last)]
        work.append([STRATEGIES[name], f"{tokens:,.0f}", reached, in_tokens, *places])
    text = [
        "Rows of 64, equal steps, and batches of equally many tokens. The same text is scored for all, without other "
        "documents in context.",
    ]
    notes = [
        "The second table has text tokens trained on in a step; steps, and millions of text tokens, until the same "
        f"text has the perplexity {wanted:.1f}, which concat has after three quarters of its steps; and the perplexity "
        "of held-out text in the first and the last eighth of the run's own rows.",
    ]
    second = ["run", "text tokens a step", f"steps to {wanted:.1f}", "M tokens", "first eighth", "last eighth"]
    tables = [(["run", "seeds", *COLUMNS, "same text, to concat"], rows), (second, work)]
    names = [
        name for name in ("concat-64-64", "padding-equal-64", "bfd-64", "seamless-64", "bfd-masked-64") if name in kinds
    ]
    charts = [
        Chart("strategies, L = 64", "epochs of concat", {STRATEGIES[name]: kinds[name].line() for name in names}),
        Chart("by place in the row", "place", {STRATEGIES[name]: kinds[name].loss_by_place() for name in names}),
    ]
    brief = {0: ["run", "same text, to concat"]}
    yield Section("Strategies", text, tables, charts, notes, brief)


QUESTIONS = {
    "bfd-64": ("bfd-unmixed-64", "best fit: mixed rows, against rows as they are filled"),
    "concat-masked-64": ("concat-64-64", "concat: document masks, against none"),
    "bfd-masked-64": ("bfd-64", "best fit: document masks, against none"),
    "concat-fresh-64": ("concat-64-64", "concat: packed anew in each epoch, against the same rows"),
    "bfd-fresh-64": ("bfd-64", "best fit: packed anew in each epoch, against the same rows"),
}


def _questions(kinds: Kinds) -> Iterator[Section]:
    rows, text = [], ["Questions that no paper answered."]
    for name, (other, label) in QUESTIONS.items():
        if {name, other} <= kinds.keys():
            rows.append([label, *(kinds.verdict(name, other, column) for column in COLUMNS)])
            share, told = kinds.difference(name, other, SAME)
            what = f"{'worse' if share > 0 else 'better'} by {abs(share):.1%}" if told else "can't tell"
            text.append(f"{label.capitalize()}: {what} on the same text.".replace("%", " %"))
    if rows:
        yield Section("Not in the papers", text, [(["question", *COLUMNS], rows)])


def _claims(kinds: Kinds) -> Iterator[Section]:
    """What the papers say, and what comes out here, in each of the three columns."""
    rows = []
    for strategy, length, atoms in _shapes(kinds):
        for what, chosen in (("smaller", [a for a in atoms if a < 1]), ("larger", [a for a in atoms if a > 1])):
            pairs = [(atoms[atom], atoms[1]) for atom in chosen]
            rows.append([f"{strategy}, L = {length}: {what} atoms than 1 L are worse", *_judged(kinds, pairs)])
    for length in _padded_lengths(kinds):
        pairs = [(f"concat-{length}-{length}", f"padding-{length}-{length}")]
        rows.append([f"L = {length}: padding ends lower than concat", *_judged(kinds, pairs)])
    if rows:
        text = [
            "Claims of Optimizing Packing and Shuffling Strategies, for runs of equal epochs. A claim agrees where all "
            "of its comparisons differ by more than seeds do, and does not where one of them differs the other way. "
            "Otherwise so few and small runs can't tell. One comparison in twenty differs by chance."
        ]
        yield Section("What agrees", text, [(["claim", FINAL, COUNTED, SAME], rows)])


def _judged(kinds: Kinds, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Whether the first of each pair has the higher perplexity, by column."""
    cells = []
    for column in (FINAL, COUNTED, SAME):
        found = [kinds.difference(name, other, column) for name, other in pairs]
        against = any(told and share < 0 for share, told in found)
        agrees = all(told and share > 0 for share, told in found)
        cells.append("does not" if against else "agrees" if agrees else "can't tell")
    return cells


def _facts(kinds: Kinds, output: Path) -> str:
    runs = [run for kind in kinds.values() for run in kind.runs]
    asked = runs[0]["asked"]
    tokens = packtool.open(output / "train" / "concat-64-64").manifest.ledger
    minutes = sum(run["cpu_seconds"] for run in runs) / 60
    seeds = sorted({len(kind.seeds) for kind in kinds.values()})
    given = json.loads((output / "corpus.json").read_text())
    corpus = "the language reference and docstrings of Python" if given["input"] is None else Path(given["input"]).name
    differ = ", ".join(f"{kinds.noise[name]:.1%} ({name})".replace("%", " %") for name in (FINAL, COUNTED, SAME))
    noisy = (
        f"Runs of one kind with other seeds differ by {differ}. Kinds are compared by equal seeds; "
        "a difference in brackets is no larger than between seeds"
    )
    return (
        f"The text is {corpus}: {tokens.input:,} tokens to train on. A GPT-2 with ALiBi of width {asked['width']}, "
        f"{asked['layers']} layer(s) and {asked['heads']} heads, AdamW with a peak of {asked['learning_rate']:g}, "
        f"{asked['batch_tokens']:,} places for tokens in a batch, {asked['epochs']} epochs. {len(runs)} runs of "
        f"{len(kinds)} kinds, {' or '.join(map(str, seeds))} seeds of each, {minutes:,.0f} CPU minutes. packtool "
        f"{packtool.__version__}, PyTorch {torch.__version__}. Perplexities are means over seeds ± the standard "
        f"deviation. "
        f"{'With one seed nothing can be told apart' if np.isnan(kinds.noise[SAME]) else noisy}. "
        "So small a model can't tell how any of it scales."
    )
