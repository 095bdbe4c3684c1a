"""Stochastic block model graphs, sampled pair of blocks by pair of blocks.

Every pair of nodes is an edge with a probability that depends on the two blocks alone, so for each pair of
blocks the number of edges is binomial and, given that number, the edges are a uniform subset of the pairs.
Drawing the count and then the subset gives exactly the distribution of one coin a pair, in memory of the
order of the edges.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from dssgnn.errors import InputError

__all__ = ["block_model", "distinct_integers", "unordered_pair"]

Integers = NDArray[np.int64]


def block_model(block_sizes: Sequence[int], probabilities: ArrayLike, rng: np.random.Generator) -> Tensor:
    """Sample an undirected graph without self-loops from a stochastic block model.

    Args:
        block_sizes: nodes of each of the ``B`` blocks; block ``a`` is a contiguous range of node numbers.
        probabilities: ``[B, B]``, symmetric, the chance of an edge between a node of ``a`` and one of ``b``.
        rng: the source of randomness.

    Returns:
        ``edge_index [2, E]``, both directions of every edge, sorted by source and then target.

    Raises:
        InputError: if a size is negative, or the probabilities are not symmetric and within 0..1.

    >>> block_model([2, 1], [[1.0, 0.0], [0.0, 1.0]], np.random.default_rng(0)).tolist()
    [[0, 1], [1, 0]]
    """
    sizes, chance = _checked(block_sizes, probabilities)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    parts: list[Integers] = []
    for a in range(len(sizes)):
        n = int(sizes[a])
        low, high = unordered_pair(_edges(rng, n * (n - 1) // 2, chance[a, a]))
        parts.append(np.stack([low, high]) + starts[a])
        for b in range(a + 1, len(sizes)):
            row, column = np.divmod(_edges(rng, n * int(sizes[b]), chance[a, b]), max(int(sizes[b]), 1))
            parts.append(np.stack([row + starts[a], column + starts[b]]))
    once = np.concatenate(parts, axis=1)
    both = np.concatenate([once, once[::-1]], axis=1)
    return torch.from_numpy(both[:, np.lexsort((both[1], both[0]))])


def unordered_pair(index: Integers) -> tuple[Integers, Integers]:
    """Return the pairs ``i < j`` numbered ``j (j - 1) / 2 + i``.

    >>> [pair.tolist() for pair in unordered_pair(np.arange(6))]
    [[0, 0, 1, 0, 1, 2], [1, 2, 2, 3, 3, 3]]
    """
    high = ((1.0 + np.sqrt(1.0 + 8.0 * index.astype(np.float64))) / 2.0).astype(np.int64)
    # The square root is rounded, so the guess may be one off beyond 2**50 or so; the integers decide.
    high -= high * (high - 1) // 2 > index
    high += high * (high + 1) // 2 <= index
    return index - high * (high - 1) // 2, high


def distinct_integers(rng: np.random.Generator, population: int, count: int) -> Integers:
    """Draw a uniform subset of ``count`` of the integers ``0..population-1``, in memory for ``count``.

    >>> sorted(distinct_integers(np.random.default_rng(0), 3, 3).tolist())
    [0, 1, 2]
    """
    if 4 * count >= population:
        return rng.choice(population, count, replace=False, shuffle=False)
    # The first `count` different values of a uniform sequence are a uniform subset.
    drawn = rng.integers(population, size=0)
    while True:
        drawn = np.concatenate([drawn, rng.integers(population, size=count + count // 3 + 8)])
        values, first = np.unique(drawn, return_index=True)
        if len(values) >= count:
            return drawn[np.sort(first)[:count]]


def _edges(rng: np.random.Generator, pairs: int, chance: float) -> Integers:
    return distinct_integers(rng, pairs, int(rng.binomial(pairs, chance)))


def _checked(block_sizes: Sequence[int], probabilities: ArrayLike) -> tuple[Integers, NDArray[np.float64]]:
    sizes = np.asarray(block_sizes, dtype=np.int64)
    chance = np.asarray(probabilities, dtype=np.float64)
    if sizes.ndim != 1 or len(sizes) == 0 or bool((sizes < 0).any()):
        raise InputError(f"block_sizes must be one or more numbers >= 0, got {list(block_sizes)}")
    if chance.shape != (len(sizes), len(sizes)):
        raise InputError(f"probabilities must have shape {[len(sizes)] * 2}, got {list(chance.shape)}")
    if not bool(((chance >= 0) & (chance <= 1)).all()):
        raise InputError(f"probabilities must be within 0..1, got {chance.min():g}..{chance.max():g}")
    if not np.array_equal(chance, chance.T):
        raise InputError("probabilities must be symmetric, got a matrix that differs from its transpose")
    return sizes, chance
