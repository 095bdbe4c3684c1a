"""Preparation of a graph between its files and a model: features, edge direction, self-loops."""

import copy
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from dssgnn.errors import InputError

__all__ = ["Preparation", "normalize_rows", "prepare", "set_self_loops", "symmetrize_edges"]

_CHOICES = {
    "features": ("raw", "row", "pyg"),
    "edges": ("directed", "undirected"),
    "self_loops": ("keep", "drop", "add"),
}


@dataclass(frozen=True)
class Preparation:
    """How a graph is prepared; the paper's runs differ by dataset (protocols in `dssgnn.data.catalog.entries`).

    Args:
        features: ``"raw"`` as read; ``"row"`` each row divided by its absolute sum; ``"pyg"`` as PyG's
            ``NormalizeFeatures``, which first subtracts the smallest entry and divides by 1 at least.
        edges: ``"directed"`` as listed, ``"undirected"`` with every edge in both directions.
        self_loops: ``"keep"`` the listed ones, ``"drop"`` them, or ``"add"`` one to every node, A + I:
            a node that has one already then lists two.

    Raises:
        InputError: for any other value.
    """

    features: str = "raw"
    edges: str = "undirected"
    self_loops: str = "keep"

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if value not in allowed:
                raise InputError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")


def normalize_rows(x: Tensor) -> Tensor:
    """Divide each row by its absolute sum; rows of zeros stay zero.

    >>> normalize_rows(torch.tensor([[1.0, 3.0], [0.0, 0.0]])).tolist()
    [[0.25, 0.75], [0.0, 0.0]]
    """
    total = torch.linalg.vector_norm(x, ord=1, dim=1, keepdim=True)
    normalized: Tensor = x / total.masked_fill(total == 0, 1.0)
    return normalized


def symmetrize_edges(
    edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """Return every edge in both directions, each entry once; of two weights the larger is kept.

    >>> symmetrize_edges(torch.tensor([[0, 1, 2], [1, 0, 2]]), 3)[0].tolist()
    [[0, 1, 2], [1, 0, 2]]
    """
    if edge_weight is None:
        return to_undirected(edge_index, num_nodes=num_nodes), None
    index, weight = to_undirected(edge_index, edge_weight, num_nodes=num_nodes, reduce="max")
    return index, weight


def set_self_loops(
    edge_index: Tensor, num_nodes: int, mode: str, edge_weight: Tensor | None = None
) -> tuple[Tensor, Tensor | None]:
    """Keep, drop or add self-loops (`Preparation.self_loops`); added ones come last, with weight 1.

    >>> set_self_loops(torch.tensor([[0, 1], [1, 1]]), 2, "drop")[0].tolist()
    [[0], [1]]
    """
    if mode == "drop":
        rest = edge_index[0] != edge_index[1]
        return edge_index[:, rest], None if edge_weight is None else edge_weight[rest]
    if mode == "add":
        loops = torch.arange(num_nodes, dtype=edge_index.dtype, device=edge_index.device)
        if edge_weight is not None:
            edge_weight = torch.cat([edge_weight, edge_weight.new_ones(num_nodes)])
        return torch.cat([edge_index, loops.expand(2, -1)], dim=1), edge_weight
    return edge_index, edge_weight


def prepare(data: Data, preparation: Preparation) -> Data:
    """Return a shallow copy of ``data``, prepared; the tensors of ``data`` are not changed."""
    out = copy.copy(data)
    nodes = int(data.num_nodes)
    if preparation.features == "row":
        out.x = normalize_rows(data.x)
    elif preparation.features == "pyg":
        shifted = data.x - data.x.min()
        out.x = shifted / shifted.sum(dim=1, keepdim=True).clamp(min=1.0)
    index, weight = data.edge_index, data.get("edge_weight")
    if preparation.edges == "undirected":
        index, weight = symmetrize_edges(index, nodes, weight)
    index, weight = set_self_loops(index, nodes, preparation.self_loops, weight)
    out.edge_index = index
    if weight is not None:
        out.edge_weight = weight
    return out
