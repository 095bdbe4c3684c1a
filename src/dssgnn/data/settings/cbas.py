"""CBAS: house motifs on a preferential-attachment graph, with colours that shift (from GOOD).

Four classes: base nodes (0), and the upper corners (1), the floor (2) and the roof (3) of a house. The
features are a node's colour alone, so that a model may learn either the structure or, wrongly, the colour.
"""

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from dssgnn.data.settings.shift_split import ShiftSplit, assemble_split
from dssgnn.errors import InputError
from dssgnn.validation import check_count

__all__ = ["ba_shapes", "cbas"]

BASE_NODES = 300
ATTACHMENTS = 5
HOUSES = 80
HOUSE_EDGES = ((0, 1), (0, 3), (0, 4), (1, 4), (1, 2), (2, 3))
HOUSE_LABELS = (1, 1, 2, 2, 3)

Palette = tuple[tuple[float, ...], ...]

COVARIATE_COLOURS: Palette = (
    (1.0, 0.0, 0.0, 0.5),
    (0.0, 1.0, 0.0, 0.7),
    (0.0, 0.0, 1.0, 0.3),
    (1.0, 1.0, 0.0, 0.4),
    (0.0, 1.0, 1.0, 0.6),
    (1.0, 0.0, 1.0, 1.0),
    (0.0, 0.0, 0.0, 0.1),
)
CONCEPT_COLOURS: Palette = (
    (1.0, 0.0, 0.0, 0.5),
    (0.0, 1.0, 0.0, 0.7),
    (0.0, 0.0, 1.0, 0.3),
    (1.0, 1.0, 0.0, 0.2),
)
COLOUR_IS_LABEL = (0.95, 0.9, 0.85, 0.8, 0.75, 0.3, 0.0)
"""How often the colour is set to the label, by environment: five of training, validation, test."""


def cbas(shift: Literal["covariate", "concept"], seed: int) -> tuple[Data, ShiftSplit]:
    """Draw the CBAS graph, its colours and its split; both shifts of a seed share graph and node order.

    Covariate: every environment has a colour of its own; 420 / 70 / 70 / 70 / 70 nodes.
    Concept: the colour is the label with a probability that falls from .95 in the first environment to 0 in
    test; 140 nodes each.

    Returns:
        The graph (``x [700, 4]``, ``y``, ``colour [700]``) and its split. As in GOOD every node has an
        environment: 0..4 the training pool, 5 validation, 6 test; methods that align environments should use
        those with training nodes.

    >>> graph, split = cbas("concept", seed=0)
    >>> graph.y.bincount().tolist(), split.sizes()
    ([300, 160, 160, 80], (140, 140, 140, 140, 140))
    """
    if shift not in ("covariate", "concept"):
        raise InputError(f"shift must be 'covariate' or 'concept', got {shift!r}")
    streams = np.random.default_rng(check_count(seed, "seed")).spawn(4)
    edge_index, y = ba_shapes(streams[0])
    labels = y.numpy()
    order = streams[1].permutation(len(labels))
    pool, val, id_size = (560, 70, 70) if shift == "covariate" else (420, 140, 140)
    by_place = np.repeat(np.arange(7), [pool // 5] * 5 + [val, val])
    environment = np.empty_like(by_place)
    environment[order] = by_place
    if shift == "covariate":
        palette, colour = COVARIATE_COLOURS, environment
    else:
        palette = CONCEPT_COLOURS
        chance = streams[2].integers(len(palette), size=len(labels))
        tied = streams[2].random(len(labels)) < np.asarray(COLOUR_IS_LABEL)[environment]
        colour = np.where(tied, labels, chance)
    part = np.maximum(environment - 4, 0)
    split = assemble_split(part, environment, id_size, seed, rng=streams[3], keep_environment=True)
    x = torch.tensor(palette)[torch.from_numpy(colour)]
    return Data(x=x, edge_index=edge_index, y=y, colour=torch.from_numpy(colour)), split


def ba_shapes(rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Draw BA-Shapes: 300 base nodes and 80 five-node houses, each on one edge to a base node of its own.

    Returns:
        ``edge_index [2, E]``, undirected, sorted, without loops or duplicates, and the labels ``y [700]``.
    """
    base = _preferential_attachment(rng)
    corners = BASE_NODES + 5 * np.arange(HOUSES)
    walls = (corners[:, None, None] + np.asarray(HOUSE_EDGES)).reshape(-1, 2)
    ropes = np.stack([corners, rng.permutation(BASE_NODES)[:HOUSES]], axis=1)
    once = np.concatenate([base, walls, ropes])
    once = once[once[:, 0] != once[:, 1]]
    edges = np.unique(np.concatenate([once, once[:, ::-1]]), axis=0)
    y = torch.cat([torch.zeros(BASE_NODES, dtype=torch.int64), torch.tensor(HOUSE_LABELS).repeat(HOUSES)])
    return torch.from_numpy(np.ascontiguousarray(edges.T)), y


def _preferential_attachment(rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw the base graph as pairs; loops and duplicates are left in.

    A new node draws its neighbours, with replacement, from all ends of edges so far, its own five included.
    """
    sources = np.repeat(np.arange(ATTACHMENTS - 1, BASE_NODES), ATTACHMENTS)
    sources[:ATTACHMENTS] = np.arange(ATTACHMENTS)
    targets = np.empty_like(sources)
    targets[:ATTACHMENTS] = rng.permutation(ATTACHMENTS)
    for done in range(ATTACHMENTS, len(sources), ATTACHMENTS):
        ends = np.concatenate([sources[: done + ATTACHMENTS], targets[:done]])
        targets[done : done + ATTACHMENTS] = rng.choice(ends, ATTACHMENTS)
    return np.stack([sources, targets], axis=1)
