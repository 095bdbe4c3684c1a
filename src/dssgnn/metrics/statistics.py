"""Whether one system is better than another over the same splits."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dssgnn.errors import InputError
from dssgnn.validation import check_count

__all__ = ["PairedComparison", "compare_paired", "holm"]


@dataclass(frozen=True)
class PairedComparison:
    """The differences ``ours - theirs`` over the same splits.

    Attributes:
        difference: their mean; negative is better for a score that should be low.
        low: lower end of the bootstrap interval of that mean.
        high: its upper end.
        p_value: of Wilcoxon's signed-rank test, two-sided; 1 where nothing differs.
        wins: splits on which ours is lower.
        count: splits.
    """

    difference: float
    low: float
    high: float
    p_value: float
    wins: int
    count: int


def compare_paired(
    ours: Sequence[float],
    theirs: Sequence[float],
    *,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> PairedComparison:
    """Compare two systems split by split.

    The interval is the percentile bootstrap over splits; the test is exact up to 50 splits without ties.

    Args:
        ours: a value a split.
        theirs: the other system's values on the same splits, in the same order.
        level: of the interval.
        resamples: of the bootstrap.
        seed: of the bootstrap.

    Raises:
        InputError: if the two do not hold the same number of finite values.

    Example:
        >>> compare_paired([0.10, 0.20, 0.15, 0.12, 0.18], [0.12, 0.25, 0.16, 0.15, 0.22]).p_value
        0.0625
    """
    from scipy.stats import wilcoxon  # half a second that nobody else should pay

    a, b = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    if a.ndim != 1 or a.shape != b.shape or not len(a):
        raise InputError(f"a paired comparison needs two lists of equal length, got {a.shape} and {b.shape}")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise InputError("a paired comparison needs finite values, got nan or infinity")
    if not 0 < level < 1:
        raise InputError(f"level must be between 0 and 1, got {level!r}")
    d = a - b
    draws = np.random.default_rng(seed).integers(
        len(d), size=(check_count(resamples, "resamples", minimum=1), len(d))
    )
    low, high = np.quantile(d[draws].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    p_value = 1.0 if not d.any() else float(wilcoxon(d).pvalue)
    return PairedComparison(float(d.mean()), float(low), float(high), p_value, int((d < 0).sum()), len(d))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction: p-values that may be compared with a level although so many were looked at.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=float)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise InputError(f"p-values must lie in [0, 1], got {list(p_values)!r}")
    order = np.argsort(p, kind="stable")
    adjusted = np.minimum(1.0, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
    out = np.empty_like(p)
    out[order] = adjusted
    return [float(value) for value in out]
