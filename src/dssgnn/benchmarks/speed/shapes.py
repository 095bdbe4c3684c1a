"""Random graphs with the counts of known ones, and graphs of any size drawn where they are used."""

import math
import warnings
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from dssgnn.errors import InputError
from dssgnn.graph import GraphOperator

__all__ = ["SHAPES", "Degrees", "Shape", "draw_operator", "draw_pairs"]

Degrees = Literal["power", "uniform"]

# Degrees fall like k^-2.5 where the weight of the i-th node falls like i^(-1/(2.5 - 1)); its integral is i^(1/3).
_ROOT = 3


@dataclass(frozen=True)
class Shape:
    """The counts of a graph.

    Attributes:
        nodes: ``N``.
        edges: undirected, each counted once.
        features: ``F``.
        classes: ``C``.
        largest_degree: about what the largest expected degree of a power law is.
        nonzero: the share of the features that is not zero; less than 1 is a bag of words.
    """

    nodes: int
    edges: int
    features: int
    classes: int
    largest_degree: int
    nonzero: float = 1.0

    def draw(self, degrees: Degrees = "power", seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """Features ``[N, F]``, edges in both directions ``[2, 2E]`` and labels ``[N]``, on the CPU."""
        generator = torch.Generator().manual_seed(seed)
        pairs = draw_pairs(self.nodes, self.edges, generator, degrees, self.largest_degree)
        if self.nonzero < 1:
            x = (torch.rand(self.nodes, self.features, generator=generator) < self.nonzero).float()
        else:
            x = torch.randn(self.nodes, self.features, generator=generator)
        y = torch.randint(self.classes, (self.nodes,), generator=generator)
        return x, torch.cat([pairs, pairs.flip(0)], dim=1), y


# Nodes, undirected edges, features, classes and largest degree of the graphs that the paper times.
SHAPES = {
    "cora": Shape(2708, 5278, 1433, 7, 168, nonzero=0.0127),
    "amazon-ratings": Shape(24492, 93050, 300, 5, 132),
    "ogbn-arxiv": Shape(169343, 1166243, 128, 40, 13161),
}


def draw_pairs(
    nodes: int,
    edges: int,
    generator: torch.Generator,
    degrees: Degrees = "power",
    largest_degree: int | None = None,
) -> Tensor:
    """Undirected edges ``[2, E]`` without loops and duplicates, on the generator's device.

    Both ends of an edge are drawn independently, with the weights of the expected-degree model (Chung and Lu,
    2002) for ``"power"``; what repeats is drawn again until exactly ``edges`` are left.

    Example:
        >>> draw_pairs(4, 6, torch.Generator().manual_seed(0), "uniform")
        tensor([[0, 0, 0, 1, 1, 2],
                [1, 2, 3, 2, 3, 3]])
    """
    if edges > nodes * (nodes - 1) // 2:
        raise InputError(f"{nodes} nodes have at most {nodes * (nodes - 1) // 2} edges, got {edges}")
    device = generator.device
    share = 0.0 if largest_degree is None else largest_degree / (2 * edges)
    offset = _offset(nodes, share) if degrees == "power" else 0.0
    keys = torch.empty(0, dtype=torch.int64, device=device)
    while keys.numel() < edges:
        count = edges - keys.numel() + edges // 8 + 16
        ends = torch.rand(2, count, generator=generator, dtype=torch.float64, device=device)
        if degrees == "power":
            low, high = offset ** (1 / _ROOT), (nodes + offset) ** (1 / _ROOT)
            ends.mul_(high - low).add_(low).pow_(_ROOT).sub_(offset)
        else:
            ends.mul_(nodes)
        i, j = ends.long().clamp_(0, nodes - 1)
        new = (torch.minimum(i, j) * nodes + torch.maximum(i, j))[i != j]
        keys = torch.unique(torch.cat([keys, new]))
    if keys.numel() > edges:
        chosen = torch.randperm(keys.numel(), generator=generator, device=device)[:edges]
        keys = keys[chosen].sort().values
    pairs = torch.stack([keys // nodes, keys % nodes])
    if degrees == "power":  # a node's number must not tell its degree
        pairs = torch.randperm(nodes, generator=generator, device=device)[pairs]
    return pairs


def _offset(nodes: int, share: float) -> float:
    """The shift of the power law at which its first node gets ``share`` of all ends (0 where it gets less)."""

    def first(offset: float) -> float:
        low, second, last = ((i + offset) ** (1 / _ROOT) for i in (0, 1, nodes))
        return float((second - low) / (last - low))

    if not 0 < share < first(0.0):
        return 0.0
    low, high = 0.0, 1e3 * nodes
    for _ in range(100):
        middle = math.sqrt(low * high) if low else high / 2**10
        low, high = (middle, high) if first(middle) > share else (low, middle)
        if high < 1e-9:
            break
    return high


def draw_operator(pairs: Tensor, nodes: int) -> GraphOperator:
    """What `GraphOperator.from_edge_index` makes of undirected edges ``[2, E]``, without leaving their device.

    For edges without loops and duplicates; at 10^8 entries the detour over the CPU would take minutes.
    """
    device = pairs.device
    keys = torch.cat([pairs[0] * nodes + pairs[1], pairs[1] * nodes + pairs[0]]).sort().values
    rows, columns = keys // nodes, keys % nodes
    del keys
    degree = torch.bincount(rows, minlength=nodes)
    root = degree.double().pow(-0.5)  # infinite for isolated nodes, which no entry asks for
    values = (-root[rows] * root[columns]).float()
    pointers = torch.zeros(nodes + 1, dtype=torch.int32, device=device)
    pointers[1:] = degree.cumsum(0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="(?i)sparse csr tensor support")
        matrix = torch.sparse_csr_tensor(
            pointers, columns.int(), values, size=(nodes, nodes), check_invariants=False
        )
    options = {
        "normalization": "sym",
        "direction": "both",
        "self_loops": False,
        "symmetrize": "max",
        "lambda_max": 2.0,
    }
    return GraphOperator(matrix, 2.0, pairs.int(), None, options)
