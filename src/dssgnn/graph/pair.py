"""Two operators of one graph: one for the low-pass and one for the high-pass branch."""

from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp

from dssgnn.errors import InputError
from dssgnn.graph.laplacian import adjacency, power, rescale
from dssgnn.graph.operator import GraphOperator
from dssgnn.graph.product import csr_tensor
from dssgnn.validation import check_choice, is_number

__all__ = ["PublishedNormalization", "check_eta", "published_operators"]

PublishedNormalization = Literal["sym", "rw"]
_Pair = tuple[GraphOperator, GraphOperator]
# The members of a population share what is here.
_MADE: WeakKeyDictionary[GraphOperator, dict[tuple[str, float], _Pair]] = WeakKeyDictionary()


def published_operators(
    graph: GraphOperator, normalization: PublishedNormalization = "sym", eta: float = -0.3
) -> _Pair:
    r"""The authors' low and high operators, each as a `GraphOperator` whose :math:`\hat A` it is; made once a graph.

    With the adjacency ``A`` of ``graph``, its row sums ``R`` and its column sums ``C``: ``"sym"`` is
    :math:`M = C^{-1/2} A R^{-1/2}` and :math:`B = I - C^\eta A R^\eta`, ``"rw"`` is :math:`M = A R^{-1}` and
    :math:`B = I - M`. On a directed graph the sums are so exchanged against those of `GraphOperator`.

    Example:
        >>> import torch
        >>> graph = GraphOperator.from_edge_index(torch.tensor([[0, 1], [1, 0]]), self_loops=True)
        >>> for each in published_operators(graph, eta=-1.0):
        ...     each.filter(torch.eye(2)[:, None], torch.tensor([[[0.0, 1.0]]]), "monomial")[:, 0, 0]
        tensor([[0.5000, 0.5000],
                [0.5000, 0.5000]])
        tensor([[ 0.7500, -0.2500],
                [-0.2500,  0.7500]])
    """
    check_choice(normalization, PublishedNormalization, "normalization")
    check_eta(eta)
    made = _MADE.setdefault(graph, {})
    if (normalization, eta) not in made:
        options = graph.options
        index, weight = graph.edge_index.cpu().numpy(), graph.edge_weight
        weights = np.ones(index.shape[1]) if weight is None else weight.detach().double().cpu().numpy()
        placed = (options[name] for name in ("direction", "symmetrize", "self_loops"))
        a = adjacency(index[0], index[1], weights, graph.num_nodes, *placed)
        if normalization == "sym":
            low, smooth = _scaled(a, -0.5, -0.5), _scaled(a, eta, eta)
        else:
            low = smooth = _scaled(a, None, -1.0)
        high = sp.eye_array(graph.num_nodes, format="csr") - smooth
        # What `GraphOperator.symmetric` is read from; with "rw" even an undirected graph's operators are not.
        options |= {
            "normalization": "sym" if normalization == "sym" else "col",
            "lambda_max": 2.0,
            "eta": eta,
        }
        made[normalization, eta] = (_operator(low, graph, options), _operator(high, graph, options))
    return made[normalization, eta]


def check_eta(eta: object) -> None:
    """Check that the exponent of the degrees is a number in ``[-1, 0]``."""
    if not (is_number(eta) and -1 <= eta <= 0):
        raise InputError(f"eta must be in [-1, 0], got {eta!r}")


def _scaled(a: sp.csr_array, left: float | None, right: float) -> sp.csr_array:
    """``C^left A R^right``, or ``A R^right``; a power of zero is zero."""
    scaled = a @ sp.diags_array(power(a.sum(axis=1), right))
    return sp.csr_array(scaled if left is None else sp.diags_array(power(a.sum(axis=0), left)) @ scaled)


def _operator(ahat: sp.csr_array, like: GraphOperator, options: dict[str, Any]) -> GraphOperator:
    matrix = rescale(ahat, 2.0)
    tensor = csr_tensor(matrix, like.dtype, like.device)
    return GraphOperator(tensor, 2.0, like.edge_index, like.edge_weight, options)
