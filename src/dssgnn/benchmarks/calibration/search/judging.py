"""Judging a training run by validation nodes that did not choose its epoch."""

import numpy as np

from dssgnn.errors import InputError
from dssgnn.validation import check_count

__all__ = ["judged"]


def judged(scores: np.ndarray, halvings: int, seed: int = 0) -> float:
    """What a run is worth on nodes that did not choose its epoch.

    One half of the validation nodes, drawn at random, chooses the epoch with the least mean score; the mean of the
    other half at that epoch is what counts, averaged over ``halvings`` draws. Where a few dozen nodes choose among a
    thousand epochs, the least mean itself is mostly luck. (How long a run goes on is for all of them to say.)

    Args:
        scores: of every validation node after every epoch, ``[epochs, n]``; epochs with a score that is not finite
            are not chosen.
        halvings: how many draws.
        seed: of the draws.

    Returns:
        The mean score; infinite where no epoch can be chosen.

    Raises:
        InputError: for fewer than two nodes, or no draw.

    Example:
        >>> lucky = np.array([[0.0, 1.0, 0.0, 1.0], [0.4, 0.4, 0.4, 0.4]])
        >>> judged(lucky, 200) > float(lucky.mean(axis=1).min())
        True
    """
    check_count(halvings, "halvings", minimum=1)
    if scores.ndim != 2 or scores.shape[1] < 2:
        raise InputError(f"scores must be [epochs, n] of two nodes or more, got {list(scores.shape)}")
    scores = scores[np.isfinite(scores).all(axis=1)]
    if not len(scores):
        return np.inf
    n = scores.shape[1]
    order = np.random.default_rng(seed).permuted(np.tile(np.arange(n), (halvings, 1)), axis=1)
    choosing = np.zeros((halvings, n))
    np.put_along_axis(choosing, order[:, : (n + 1) // 2], 1.0, axis=1)
    epochs = (choosing @ scores.T).argmin(axis=1)  # [halvings]
    kept = 1 - choosing
    return float(((scores[epochs] * kept).sum(axis=1) / kept.sum(axis=1)).mean())
