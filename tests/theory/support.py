"""What the theorems' tests share: a graph with its dense matrices, and drawing of parameters."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

F64 = torch.float64


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int) -> Tensor:
    """Standard normal numbers in float64."""
    return torch.randn(*shape, generator=generator(seed), dtype=F64)


@dataclass(frozen=True)
class DenseGraph:
    """An undirected graph without loops: its edges as PyG has them, and its adjacency matrix."""

    edge_index: Tensor
    adjacency: Tensor

    @property
    def num_nodes(self) -> int:
        return self.adjacency.size(0)

    def normalized(self, self_loops: bool = False) -> Tensor:
        """``D^-1/2 A D^-1/2``, after adding ``I`` to ``A`` where ``self_loops`` (the renormalisation trick)."""
        a = self.adjacency + torch.eye(self.num_nodes, dtype=F64) * self_loops
        scale = a.sum(dim=1).rsqrt()
        return scale[:, None] * a * scale

    def laplacian(self) -> Tensor:
        """``L = I - D^-1/2 A D^-1/2``."""
        return torch.eye(self.num_nodes, dtype=F64) - self.normalized()


def random_graph(num_nodes: int = 30, seed: int = 0) -> DenseGraph:
    """A ring with random chords, so that no node is isolated."""
    chords = torch.rand(num_nodes, num_nodes, generator=generator(seed)) < 0.1
    ring = torch.eye(num_nodes, dtype=torch.bool).roll(1, dims=0)
    upper = (chords | ring | ring.T).triu(1)
    adjacency = (upper | upper.T).to(F64)
    return DenseGraph(adjacency.nonzero().T.contiguous(), adjacency)


def chebyshev_matrices(operator: Tensor, degree: int) -> list[Tensor]:
    """``T_0..T_degree`` of a dense matrix by the three-term recurrence."""
    terms = [torch.eye(operator.size(0), dtype=F64), operator]
    for _ in range(degree - 1):
        terms.append(2 * operator @ terms[-1] - terms[-2])
    return terms[: degree + 1]


@torch.no_grad()
def set_parameters(module: nn.Module, **values: Tensor | float) -> None:
    """Write parameters by name; a number fills the parameter."""
    parameters = dict(module.named_parameters())
    for name, value in values.items():
        target = parameters[name.replace("__", ".")]
        target.copy_(torch.as_tensor(value, dtype=F64).expand_as(target))


@torch.no_grad()
def randomize(module: nn.Module, seed: int) -> None:
    """Draw every parameter anew from a standard normal."""
    rng = generator(seed)
    for parameter in module.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=rng, dtype=F64))


def gap(left: Tensor, right: Tensor) -> float:
    """The largest difference of two tensors of one shape."""
    assert left.shape == right.shape
    return (left - right).abs().max().item()
