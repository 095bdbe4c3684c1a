"""What encoders multiply a state with: sparse matrices made once of an edge list."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from dssgnn.graph import SparseFeatures, polynomial_filter
from dssgnn.graph.filter import multiply
from dssgnn.graph.laplacian import Direction, SelfLoops, adjacency
from dssgnn.graph.product import csr_tensor
from dssgnn.validation import check_edge_index

__all__ = ["EdgeCache", "Propagation", "edge_matrix", "renormalized"]

T = TypeVar("T")


class EdgeCache(Generic[T]):
    """Makes something of an edge list once, and keeps it as long as that tensor lives unmodified.

    Args:
        make: called with ``edge_index [2, E]``, the number of nodes, and the type to compute in.
    """

    def __init__(self, make: Callable[[Tensor, int, torch.dtype], T]) -> None:
        self._make = make
        self._made: WeakTensorKeyDictionary = WeakTensorKeyDictionary()

    def __call__(self, edge_index: Tensor, like: Tensor | SparseFeatures) -> T:
        """What was made of ``edge_index``, for a state ``like [N, ...]``."""
        dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
        # A tensor made under inference_mode counts no versions, so it is never known to be unmodified.
        tracked = isinstance(edge_index, Tensor) and not edge_index.is_inference()
        key = (like.size(0), dtype, edge_index._version if tracked else None)
        known = self._made[edge_index] if tracked and edge_index in self._made else None
        if known is None or known[0] != key:
            check_edge_index(edge_index, like.size(0))
            with torch.inference_mode(False):
                known = key, self._make(edge_index, like.size(0), dtype)
            if tracked:
                self._made[edge_index] = known
        made: T = known[1]
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return EdgeCache, (self._make,)  # a copy starts empty


class Propagation:
    """A matrix ``M [N, N]`` of a graph; products are differentiable in the state, repeat to the bit, and vmap.

    Args:
        matrix: ``M``.
        dtype: to hold it in.
        device: where.
    """

    def __init__(self, matrix: sp.csr_array, dtype: torch.dtype, device: torch.device) -> None:
        matrix.sort_indices()
        turned = matrix.T.tocsr()
        self.matrix = csr_tensor(matrix, dtype, device)
        symmetric = abs(matrix - turned).sum() == 0
        self.transposed = self.matrix if symmetric else csr_tensor(turned, dtype, device)

    def __matmul__(self, h: Tensor) -> Tensor:
        """``M h`` for ``h [N, ...]``."""
        return multiply(self.matrix, self.transposed, h)

    def filter(self, h: Tensor, weights: Tensor) -> Tensor:
        """``sum_k weights[k] M^k h`` for ``h [N, d]`` and ``weights [K+1]``."""
        # The filter's matrix is L~ = -Ahat, and its powers those of Ahat: here Ahat = -M.
        odd = torch.arange(weights.numel(), device=weights.device) % 2
        theta = (weights * (1 - 2 * odd))[None, None]
        return polynomial_filter(self.matrix, self.transposed, h[:, None], theta, "monomial")[:, 0, 0]


def edge_matrix(
    edge_index: Tensor, num_nodes: int, direction: Direction, self_loops: SelfLoops
) -> sp.csr_array:
    """The adjacency matrix of an unweighted graph; see `dssgnn.graph.laplacian.adjacency`."""
    source, target = edge_index.detach().cpu().numpy()
    return adjacency(source, target, np.ones(len(source)), num_nodes, direction, "max", self_loops)


def renormalized(edge_index: Tensor, num_nodes: int, dtype: torch.dtype) -> Propagation:
    r""":math:`\hat A = D^{-1/2} (A + I) D^{-1/2}` with one loop a node and in-degrees ``D`` on both sides.

    PyG's ``gcn_norm``, on directed edges too; there it differs from `GraphOperator`'s ``"sym"``, which divides by
    in-degrees on the left and by out-degrees on the right.
    """
    a = edge_matrix(edge_index, num_nodes, "in", True)
    scale = sp.diags_array(a.sum(axis=1) ** -0.5)
    return Propagation((scale @ a @ scale).tocsr(), dtype, edge_index.device)
