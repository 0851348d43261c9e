"""What is read off a training run, as the papers define it. Pure functions of the losses of its steps.

A step is a row of (progress in epochs, summed loss over text, text targets, summed loss over padding, padding targets).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
SEGMENTS = 100
"""Parts of the last epoch by which runs are ranked (A.6)."""
SMOOTHING = 0.98
"""Of the curves in pictures, and of nothing else (A.7)."""


def perplexity(losses: Floats, targets: Floats) -> float:
    """The exponential of the mean loss of all targets."""
    return float(np.exp(losses.sum() / max(targets.sum(), 1)))


def segments(steps: Floats, epochs: float, *, counted: bool = False) -> Floats:
    """The perplexity in each hundredth of the last epoch (A.6); NaN where no step ends in one.

    Args:
        steps: (steps, 5).
        epochs: progress at the end of the run.
        counted: with padding among the targets.

    >>> steps = np.array([[1.5, 8.0, 4.0, 0.0, 0.0], [2.0, 2.0, 2.0, 0.0, 0.0]])
    >>> found = segments(steps, 2)
    >>> np.flatnonzero(~np.isnan(found)), found[[49, 99]].round(3)
    (array([49, 99]), array([7.389, 2.718]))
    """
    part = np.ceil((steps[:, 0] - (epochs - 1)) * SEGMENTS - 1e-6).astype(int) - 1
    losses, targets = _totals(steps, counted=counted)
    out = np.full(SEGMENTS, np.nan)
    for number in np.unique(part[(part >= 0) & (part < SEGMENTS)]):
        here = part == number
        out[number] = perplexity(losses[here], targets[here])
    return out


def final(steps: Floats, epochs: float, *, counted: bool = False) -> float:
    """The perplexity of the last hundredth of the last epoch; of its last step where steps are longer."""
    found = segments(steps, epochs, counted=counted)
    return float(found[np.flatnonzero(~np.isnan(found))[-1]])


def rankings(runs: dict[str, Floats]) -> dict[str, float]:
    """The mean rank of each run over the hundredths that all of them have, 1 the lowest perplexity (A.6).

    Args:
        runs: of each, what `segments` found.

    >>> rankings({"a": np.array([3.0, 1.0]), "b": np.array([2.0, 2.0])})
    {'a': 1.5, 'b': 1.5}
    """
    table = np.stack(list(runs.values()))
    table = table[:, ~np.isnan(table).any(axis=0)]
    ranks = np.argsort(np.argsort(table, axis=0, kind="stable"), axis=0) + 1
    return {name: round(float(mean), 2) for name, mean in zip(runs, ranks.mean(axis=1), strict=True)}


def noise(runs: Sequence[tuple[str, int, float]]) -> float:
    """The standard deviation of the logarithm of a perplexity that neither the kind of a run nor its seed explains.

    Three seeds of one kind say little of it; all kinds together say more. A seed stands for the same initialization in
    all kinds, which makes all of them better or worse, and nothing of a difference between them.

    Args:
        runs: kind, seed and perplexity of each.

    >>> runs = [("a", 0, 2.0), ("a", 1, 4.0), ("b", 0, 3.0), ("b", 1, 6.0), ("c", 0, 5.0)]
    >>> round(noise(runs), 6)
    0.0
    """
    kinds, seeds = sorted({kind for kind, _, _ in runs}), sorted({seed for _, seed, _ in runs})
    design = np.array(
        [[*(kind == one for one in kinds), *(seed == one for one in seeds[1:])] for kind, seed, _ in runs]
    )
    logs = np.log([value for _, _, value in runs])
    free = len(runs) - len(kinds) - len(seeds) + 1
    fitted = np.linalg.lstsq(design.astype(np.float64), logs, rcond=None)[0]
    return float(np.sqrt(((logs - design @ fitted) ** 2).sum() / free)) if free > 0 else float("nan")


def difference(a: Floats, b: Floats, deviation: float) -> tuple[float, bool]:
    """By how much a perplexity is higher than another, as a share, and whether chance would hardly make it so.

    Args:
        a, b: of the same seeds.
        deviation: what `noise` found.

    Returns:
        Of geometric means; and whether it is more than twice its standard error.

    >>> difference(np.array([110.0, 110.0]), np.array([100.0, 100.0]), 0.01)
    (0.1, True)
    """
    logs = float(np.log(a).mean() - np.log(b).mean())
    error = deviation * float(np.sqrt(1 / len(a) + 1 / len(b)))
    return round(float(np.expm1(logs)), 6), abs(logs) > 2 * error


def steps_to(curve: Floats, wanted: float) -> float:
    """Steps until a run has this perplexity, between the points at which it was scored; NaN if it never had.

    Args:
        curve: (points, 2), steps and perplexity.

    >>> steps_to(np.array([[10.0, 8.0], [20.0, 2.0]]), 4.0)
    15.0
    """
    at = np.flatnonzero(curve[:, 1] <= wanted)
    if not len(at):
        return float("nan")
    last = int(at[0])
    if not last:
        return float(curve[0, 0])
    (before, high), (after, low) = curve[last - 1 : last + 1]
    return float(before + (after - before) * np.log(high / wanted) / np.log(high / low))


def smoothed(values: Floats, keep: float = SMOOTHING) -> Floats:
    """The exponential moving average, from the first value (A.7).

    >>> smoothed(np.array([1.0, 3.0, 3.0]), 0.5)
    array([1. , 2. , 2.5])
    """
    out = np.array(values, np.float64)
    for number in range(1, len(out)):
        out[number] = keep * out[number - 1] + (1 - keep) * out[number]
    return out


def _totals(steps: Floats, *, counted: bool) -> tuple[Floats, Floats]:
    if counted:
        return steps[:, 1] + steps[:, 3], steps[:, 2] + steps[:, 4]
    return steps[:, 1], steps[:, 2]
