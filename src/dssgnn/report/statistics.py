"""Scores of nodes, their intervals, and the curves drawn from them; numpy in, numpy out."""

from typing import NamedTuple

import numpy as np

from dssgnn.report.folder import Bools, Floats, Ints

__all__ = [
    "Interval",
    "NodeScores",
    "RiskCurve",
    "auroc",
    "bin_edges",
    "bootstrap",
    "chance_ece",
    "density",
    "node_scores",
    "risk_coverage",
    "wilson",
]

BINS = 10  # of confidence, as in `dssgnn.metrics`
NORMAL_95 = 1.959963984540054


class NodeScores(NamedTuple):
    """Of each labelled node, ``[n]``."""

    confidence: Floats
    correct: Bools
    brier: Floats
    nll: Floats


class Interval(NamedTuple):
    """A value and its 95 % interval."""

    value: float
    low: float
    high: float


class RiskCurve(NamedTuple):
    """The share of errors among the ``answered`` most certain nodes, at every count that ties allow."""

    coverage: Floats
    risk: Floats
    answered: Ints


def node_scores(probabilities: Floats, labels: Ints) -> NodeScores:
    """Confidence, correctness, Brier score and negative log-probability of the label, a node.

    A stored probability of 0 counts as float32's smallest normal number, so that a mean stays finite.
    """
    of_label = np.take_along_axis(probabilities, labels[:, None], axis=1)[:, 0]
    return NodeScores(
        confidence=probabilities.max(axis=1),
        correct=probabilities.argmax(axis=1) == labels,
        brier=np.square(probabilities).sum(axis=1) - 2 * of_label + 1,
        nll=-np.log(np.maximum(of_label, np.finfo(np.float32).tiny)),
    )


def _bins(confidence: Floats) -> Ints:
    return np.searchsorted(np.linspace(0, 1, BINS + 1)[1:-1], confidence, side="right").astype(np.int64)


def bootstrap(scores: NodeScores, *, seed: int = 0, draws: int = 1000) -> dict[str, Interval]:
    """Bootstrap 95 % intervals over nodes of accuracy, Brier, NLL, ECE and mean confidence minus accuracy.

    Percentile intervals, except for the ECE: a mean of absolute values, it is biased upwards, and more so in
    a resample. Its interval is the reversed (basic) one, cut at 0 and widened to hold the value itself.
    """
    n = len(scores.correct)
    order = np.argsort(_bins(scores.confidence), kind="stable")
    starts = np.flatnonzero(np.diff(_bins(scores.confidence)[order], prepend=-1))
    gap = (scores.confidence - scores.correct)[order]
    means = np.stack([scores.correct[order], scores.brier[order], scores.nll[order], gap])
    rng = np.random.default_rng(seed)

    def statistics(weight: Floats) -> Floats:
        ece = np.abs(np.add.reduceat(weight * gap, starts)).sum()
        return np.append(means @ weight, ece) / n

    value = statistics(np.ones(n))
    resampled = np.stack(
        [statistics(np.bincount(rng.integers(n, size=n), minlength=n).astype(float)) for _ in range(draws)]
    )
    low, high = np.quantile(resampled, [0.025, 0.975], axis=0)
    low[-1], high[-1] = max(0.0, 2 * value[-1] - high[-1]), max(value[-1], 2 * value[-1] - low[-1])
    names = ("accuracy", "brier", "nll", "gap", "ece")
    return {
        name: Interval(*map(float, triple)) for name, *triple in zip(names, value, low, high, strict=True)
    }


def chance_ece(confidence: Floats, *, seed: int = 0, draws: int = 400) -> float:
    """The ECE that a perfectly calibrated model of these confidences exceeds in one draw of twenty."""
    rng = np.random.default_rng(seed)
    ordered = confidence[np.argsort(_bins(confidence), kind="stable")]
    starts = np.flatnonzero(np.diff(_bins(ordered), prepend=-1))
    values = [
        np.abs(np.add.reduceat(ordered - (rng.random(len(ordered)) < ordered), starts)).sum()
        for _ in range(draws)
    ]
    return float(np.quantile(values, 0.95) / len(ordered))


def wilson(successes: Floats | Ints, count: Floats | Ints) -> tuple[Floats, Floats]:
    """Wilson's 95 % interval of a share; 0..1 where there is nothing to count.

    Example:
        >>> low, high = wilson(np.array([8]), np.array([10]))
        >>> round(float(low[0]), 4), round(float(high[0]), 4)
        (0.4902, 0.9433)
    """
    n = np.maximum(np.asarray(count, dtype=np.float64), 1)
    share, z2 = np.asarray(successes) / n, NORMAL_95**2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = NORMAL_95 * np.sqrt(share * (1 - share) / n + z2 / (4 * n**2)) / (1 + z2 / n)
    empty = np.asarray(count) == 0
    return np.where(empty, 0.0, np.maximum(centre - half, 0)), np.where(
        empty, 1.0, np.minimum(centre + half, 1)
    )


def risk_coverage(uncertainty: Floats, wrong: Bools) -> RiskCurve:
    """Answer only the most certain nodes: how many of them are wrong.

    Nodes of equal uncertainty enter together, so that the curve does not depend on their order.

    Example:
        >>> risk_coverage(np.array([0.1, 0.4, 0.4, 0.9]), np.array([False, True, False, True])).risk.round(2)
        array([0.  , 0.33, 0.5 ])
    """
    order = np.argsort(uncertainty, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(uncertainty[order])), len(order) - 1) + 1
    errors = np.cumsum(wrong[order])[ends - 1]
    return RiskCurve(ends / len(order), errors / ends, ends.astype(np.int64))


def bin_edges(values: Floats, bins: int) -> Floats:
    """Equal-width edges over the bulk of the values: a few far ones do not squeeze the rest.

    The range is that of the middle 99 %, a quarter wider on each side, and never beyond the values; what lies
    outside is for the caller to count in the outer bins.
    """
    low, high = np.quantile(values, [0.005, 0.995])
    margin = (high - low) / 4
    low, high = max(low - margin, values.min()), min(high + margin, values.max())
    if high <= low:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, bins + 1)


def density(values: Floats, grid: Floats) -> Floats:
    """A Gaussian kernel estimate on an even ``grid``, with Silverman's bandwidth (at least two grid steps).

    The values are first counted in 1024 fine bins, so the cost does not depend on how many there are.
    """
    low, high = np.quantile(values, [0.25, 0.75])
    spread = min(values.std(), (high - low) / 1.34) or values.std()
    width = max(0.9 * spread * len(values) ** -0.2, 2 * (grid[1] - grid[0]))
    edges = np.linspace(values.min() - 1e-9, values.max() + 1e-9, 1025)
    counts, _ = np.histogram(values, edges)
    at = ((edges[1:] + edges[:-1]) / 2)[counts > 0]
    kernel = np.exp(-0.5 * ((grid[:, None] - at) / width) ** 2) / (width * np.sqrt(2 * np.pi))
    return np.asarray(kernel @ counts[counts > 0] / len(values))


def auroc(inside: Floats, outside: Floats) -> float:
    """The chance that a value of ``outside`` is larger than one of ``inside``; equal ones count half.

    Example:
        >>> auroc(np.array([0.0, 1.0]), np.array([1.0, 2.0]))
        0.875
    """
    ordered = np.sort(inside)
    below = np.searchsorted(ordered, outside, side="left") + np.searchsorted(ordered, outside, side="right")
    return float(below.mean() / (2 * len(inside)))
