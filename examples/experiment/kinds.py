"""Runs that differ in their seed alone, and how to tell a difference between kinds of runs from one between seeds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from measures import Floats, difference, final, noise, perplexity, smoothed

COLUMNS = ("final, text", "final, padding counted", "held out, text", "held out, padding counted", "same text")
"""The first four are of the run's own rows: the last hundredth of training (A.6), and rows of held-out documents."""
FINAL, COUNTED, SAME = COLUMNS[0], COLUMNS[1], COLUMNS[4]


class Kind:
    """The runs of one kind, which differ in their seed alone.

    Args:
        runs: what `training.train` returned.
    """

    def __init__(self, runs: Sequence[dict[str, Any]]) -> None:
        self.runs = sorted(runs, key=lambda run: int(run["asked"]["seed"]))
        self.seeds = [int(run["asked"]["seed"]) for run in self.runs]
        self.steps = [np.array(run["steps"]) for run in self.runs]
        self.epochs = int(self.runs[0]["asked"]["epochs"])
        self.curves = [np.array(run["curve"]) for run in self.runs]
        own = [np.array(run["own_rows"]) for run in self.runs]
        same = [np.array(run["same_text"]) for run in self.runs]
        each = {
            FINAL: [final(steps, self.epochs) for steps in self.steps],
            COUNTED: [final(steps, self.epochs, counted=True) for steps in self.steps],
            COLUMNS[2]: [perplexity(rows[:, 0], rows[:, 1]) for rows in own],
            COLUMNS[3]: [perplexity(rows[:, 0] + rows[:, 2], rows[:, 1] + rows[:, 3]) for rows in own],
            SAME: [perplexity(*rows.T) for rows in same],
        }
        self.figures = {name: np.array(values) for name, values in each.items()}
        self.by_place = np.sum(own, axis=0)

    def cells(self) -> list[str]:
        """The number of seeds, then `COLUMNS`."""
        return [str(len(self.seeds)), *(spread(self.figures[name]) for name in COLUMNS)]

    def line(self) -> tuple[Floats, Floats]:
        """Progress in epochs and perplexity of text, the mean over seeds, smoothed for the eye (A.7)."""
        mean = np.mean(self.steps, axis=0)
        return mean[:, 0], np.exp(smoothed(mean[:, 1] / mean[:, 2], 0.9))

    def loss_by_place(self) -> tuple[Floats, Floats]:
        """The perplexity of held-out text at each place of a row, from the second token on."""
        has = self.by_place[:, 1] > 0
        return np.flatnonzero(has) + 2.0, np.exp(self.by_place[has, 0] / self.by_place[has, 1])


class Kinds(dict[str, Kind]):
    """All kinds by name, and by how much runs of a kind differ beyond what their seed does to all."""

    def __init__(self, runs: Iterable[dict[str, Any]]) -> None:
        by_kind: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for run in runs:
            by_kind[run["asked"]["kind"]].append(run)
        super().__init__({name: Kind(found) for name, found in sorted(by_kind.items())})
        self.noise = {column: noise(self._values(column)) for column in COLUMNS}

    def _values(self, column: str) -> list[tuple[str, int, float]]:
        return [
            (name, seed, float(kind.figures[column][at]))
            for name, kind in self.items()
            for at, seed in enumerate(kind.seeds)
        ]

    def difference(self, name: str, other: str, column: str) -> tuple[float, bool]:
        """By how much the first is higher, over the seeds of both, and whether chance would hardly make it so."""
        both = sorted({*self[name].seeds} & {*self[other].seeds})
        a, b = ([kind.figures[column][kind.seeds.index(seed)] for seed in both] for kind in (self[name], self[other]))
        return difference(np.array(a), np.array(b), self.noise[column])

    def verdict(self, name: str, other: str, column: str) -> str:
        """As a cell: ``+3.1 %``; in brackets where seeds differ as much."""
        share, told = self.difference(name, other, column)
        return percent(share) if told else f"({percent(share)})"


def spread(values: Floats) -> str:
    """The mean over seeds and the standard deviation.

    >>> spread(np.array([1.0, 3.0])), spread(np.array([2.0]))
    ('2.0 ± 1.4', '2.0')
    """
    return f"{values.mean():.1f}" + (f" ± {values.std(ddof=1):.1f}" if len(values) > 1 else "")


def percent(share: float) -> str:
    """A difference, with its sign.

    >>> percent(0.0312), percent(-0.2)
    ('+3.1 %', '−20.0 %')
    """
    return f"{'−' if share < 0 else '+'}{abs(share):.1%}".replace("%", " %")
