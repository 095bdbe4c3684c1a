"""Where a node sits in its graph: degree, homophily, distance to the training nodes, neighbourhood."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from dssgnn.report.folder import Floats, Ints

__all__ = [
    "Groups",
    "Neighbourhood",
    "adjacency",
    "distance",
    "distance_groups",
    "homophily",
    "homophily_groups",
    "integer_groups",
    "neighbourhood",
]


class Groups(NamedTuple):
    """A partition of nodes: names of the groups and each node's group number (-1: in none)."""

    names: list[str]
    number: Ints


class Neighbourhood(NamedTuple):
    """Nodes near one (itself first), how many hops away each is, and the edges among them by position."""

    nodes: Ints
    hops: Ints
    edges: Ints  # [2, E]
    hidden: int  # neighbours left out


def adjacency(edge_index: Ints, size: int) -> sp.csr_array:
    """The simple undirected graph: directions, repeated edges and self-loops dropped; ones as weights."""
    source, target = edge_index[:, edge_index[0] != edge_index[1]]
    rows, columns = np.concatenate([source, target]), np.concatenate([target, source])
    graph = sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=(size, size)).tocsr()
    graph.sum_duplicates()
    graph.data[:] = 1
    return graph


def homophily(graph: sp.csr_array, labels: Ints) -> Floats:
    """The share of a node's labelled neighbours that have its label ``[N]``; NaN where there is none."""
    rows = np.repeat(np.arange(len(labels)), np.diff(graph.indptr))
    there = labels[graph.indices]
    known = (there >= 0) & (labels[rows] >= 0)
    total = np.bincount(rows[known], minlength=len(labels))
    same = np.bincount(rows[known & (there == labels[rows])], minlength=len(labels))
    return np.where(total > 0, same / np.maximum(total, 1), np.nan)


def distance(graph: sp.csr_array, sources: Ints) -> Floats:
    """Edges on the shortest path to the nearest source ``[N]``; infinite where there is no path."""
    if not len(sources):
        return np.full(graph.shape[0], np.inf)
    result: Any = dijkstra(graph, directed=True, indices=sources, unweighted=True, min_only=True)
    return np.asarray(result, dtype=np.float64)


def integer_groups(values: Ints, most: int = 6) -> Groups:
    """Integers in at most ``most`` ranges of about equally many nodes; one range a value where they fit.

    Example:
        >>> integer_groups(np.array([1, 1, 2, 3, 3, 4, 5, 9]), most=3).names
        ['1', '2–3', '4–9']
    """
    distinct = np.unique(values)
    if len(distinct) <= most:
        lower = distinct
    else:
        lower = np.unique(np.quantile(values, np.arange(most) / most, method="inverted_cdf"))
    index = np.searchsorted(lower, values, side="right") - 1
    upper = [values[index == group].max(initial=0) for group in range(len(lower))]
    names = [
        f"{low:,}" if low == high else f"{low:,}–{high:,}" for low, high in zip(lower, upper, strict=True)
    ]
    return Groups(names, index.astype(np.int64))


def homophily_groups(values: Floats) -> Groups:
    """Five even ranges of 0..1, and one for the nodes none of whose neighbours is labelled."""
    names = ["0–0.2", "0.2–0.4", "0.4–0.6", "0.6–0.8", "0.8–1", "none labelled"]
    bins = np.searchsorted([0.2, 0.4, 0.6, 0.8], values, side="right")
    return Groups(names, np.where(np.isnan(values), 5, bins))


def distance_groups(values: Floats) -> Groups:
    """Hops 1, 2, 3, 4 and more, and one for the nodes that no path joins to a training node."""
    names = ["itself in training", "1 hop", "2 hops", "3 hops", "4 or more", "no path"]
    return Groups(names, np.where(np.isinf(values), 5, np.minimum(values, 4)).astype(np.int64))


def neighbourhood(graph: sp.csr_array, node: int, *, most: int = 14, seed: int = 0) -> Neighbourhood:
    """Up to ``most`` neighbours of a node and up to ``most`` nodes two hops away, drawn where there are more."""
    rng = np.random.default_rng([seed, node])

    def draw(candidates: Ints) -> Ints:
        chosen = candidates if len(candidates) <= most else rng.choice(candidates, most, replace=False)
        return np.sort(chosen).astype(np.int64)

    near = graph.indices[graph.indptr[node] : graph.indptr[node + 1]].astype(np.int64)
    first = draw(near)
    # A hub's neighbours are sampled before they are gathered: what is drawn is bounded, and so is the work.
    reached = [graph.indices[graph.indptr[i] : graph.indptr[i + 1]] for i in first]
    beyond = [row if len(row) <= 100 else rng.choice(row, 100, replace=False) for row in reached]
    gathered = np.unique(np.concatenate([*beyond, np.empty(0, dtype=np.int64)])).astype(np.int64)
    second = draw(np.setdiff1d(gathered, np.append(near, node)))
    nodes = np.concatenate([[node], first, second])
    hops = np.repeat([0, 1, 2], [1, len(first), len(second)])
    pairs = sp.triu(graph[nodes][:, nodes], format="coo")
    return Neighbourhood(
        nodes, hops, np.stack([pairs.row, pairs.col]).astype(np.int64), len(near) - len(first)
    )
