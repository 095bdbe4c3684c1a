"""The nodes worth looking at, with their probabilities and neighbourhoods."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from dssgnn.report.folder import PARTS, SCORES, Floats, Ints, ModelFolder
from dssgnn.report.statistics import node_scores
from dssgnn.report.structure import neighbourhood

__all__ = ["node_table"]

HARDEST = 250
OUTSIDE = 250
SAMPLE = 100
CLASSES = 12  # most probable ones listed for a node
ID_LENGTH = 120


def node_table(
    model: ModelFolder, graph: sp.csr_array | None, place: Mapping[str, Floats], *, seed: int = 0
) -> dict[str, Any]:
    """The hardest and the most out-of-distribution nodes and a random sample, with what they are drawn from.

    All are of the test part or of none. Hardest are the labelled ones whose label was given the least
    probability. ``nodes`` describes every node that a row or a neighbourhood names; other lists point into it.
    """
    loss = _loss(model)
    eligible = ~(model.parts["train"] | model.parts["val"])
    chosen = choose(loss, model.scores["ood_score"], eligible, seed)
    rows = np.unique(np.concatenate(list(chosen.values())))
    members = {name: set(nodes.tolist()) for name, nodes in chosen.items()}
    around = [] if graph is None else [neighbourhood(graph, int(row), seed=seed) for row in rows]
    named = np.unique(np.concatenate([rows, *(near.nodes for near in around)]))
    columns = {name: model.scores[name][rows] for name in SCORES} | {
        name: values[rows] for name, values in place.items()
    }
    return {
        "nodes": _describe(model, named),
        "row": np.searchsorted(named, rows),
        "kinds": [[name for name in chosen if row in members[name]] for row in rows.tolist()],
        "loss": loss[rows],
        **columns,
        "top": _top(model.probabilities[rows], model.labels[rows]),
        "near": [
            {
                "nodes": np.searchsorted(named, near.nodes),
                "hops": near.hops,
                "edges": near.edges.T.ravel(),
                "hidden": near.hidden,
            }
            for near in around
        ],
        "counts": {name: len(nodes) for name, nodes in chosen.items()},
        "eligible": int(eligible.sum()),
    }


def choose(loss: Floats, ood_score: Floats, eligible: np.ndarray, seed: int) -> dict[str, Ints]:
    """Node numbers by kind; a node may be of several."""

    def largest(values: Floats, most: int) -> Ints:
        nodes = np.flatnonzero(eligible & np.isfinite(values))
        return nodes[np.argsort(-values[nodes], kind="stable")[:most]]

    everyone = np.flatnonzero(eligible)
    rng = np.random.default_rng(seed)
    sample = rng.choice(everyone, min(SAMPLE, len(everyone)), replace=False)
    return {"hard": largest(loss, HARDEST), "ood": largest(ood_score, OUTSIDE), "sample": np.sort(sample)}


def _loss(model: ModelFolder) -> Floats:
    known = model.labels >= 0
    loss = np.full(model.num_nodes, np.nan)
    loss[known] = node_scores(model.probabilities[known], model.labels[known]).nll
    return loss


def _describe(model: ModelFolder, nodes: Ints) -> dict[str, Any]:
    part = np.full(model.num_nodes, -1)
    for number, name in enumerate(PARTS):
        part[model.parts[name]] = number
    probabilities = model.probabilities[nodes]
    return {
        "id": [str(name)[:ID_LENGTH] for name in model.ids[nodes]],
        "label": model.labels[nodes],
        "prediction": probabilities.argmax(axis=1),
        "confidence": probabilities.max(axis=1),
        "part": part[nodes],
    }


def _top(probabilities: Floats, labels: Ints) -> list[list[float]]:
    """Of each row, class and probability by turns: the most probable ones, and always the label."""
    order = np.argsort(-probabilities, axis=1, kind="stable")[:, :CLASSES]
    result = []
    for row, classes, label in zip(probabilities, order, labels, strict=True):
        listed = classes.tolist() if label < 0 or label in classes else [*classes.tolist(), int(label)]
        result.append([value for c in listed for value in (c, row[c])])
    return result
