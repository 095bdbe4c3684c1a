"""An order of the nodes in which neighbours stand close together, so that a sparse product finds them in the cache."""

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch import Tensor

from dssgnn.graph.operator import GraphOperator

__all__ = ["locality_order", "renumbered"]


def locality_order(graph: GraphOperator) -> Tensor:
    """The nodes in reverse Cuthill-McKee order: ``order[i]`` is the node that comes at place ``i``.

    Example:
        >>> path = torch.tensor([[0, 2, 1], [2, 1, 3]])  # 0 - 2 - 1 - 3
        >>> locality_order(GraphOperator.from_edge_index(path)).tolist()
        [3, 1, 2, 0]
    """
    m = graph.matrix
    columns, starts = (t.cpu().numpy() for t in (m.col_indices(), m.crow_indices()))
    ones, shape = np.ones(len(columns), dtype=np.int8), (graph.num_nodes, graph.num_nodes)
    csr = sp.csr_array((ones, columns, starts), shape=shape)
    order = reverse_cuthill_mckee(csr, symmetric_mode=graph.symmetric)
    return torch.from_numpy(order.astype(np.int64)).to(graph.device)


def renumbered(graph: GraphOperator, order: Tensor) -> GraphOperator:
    """The operator of the same graph with node ``order[i]`` called ``i``."""
    numbers = torch.empty_like(order)
    numbers[order] = torch.arange(len(order), device=order.device)
    return graph.made_again(numbers[graph.edge_index.long()], graph.dtype, "the renumbered graph")
