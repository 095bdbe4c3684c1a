"""Smoothing a node score along the edges, as GNNSafe does with the energy."""

from torch import Tensor

from dssgnn.errors import InputError
from dssgnn.graph import GraphOperator
from dssgnn.validation import check_count, check_share

__all__ = ["propagate", "propagation_operator"]


def propagation_operator(graph: GraphOperator) -> GraphOperator:
    """The operator that `propagate` uses: the mean over in-neighbours, edges as they were read, loops kept."""
    return GraphOperator.from_edge_index(
        graph.edge_index,
        graph.num_nodes,
        normalization="rw",
        direction="in",
        self_loops="keep",
        dtype=graph.dtype,
    )


def propagate(score: Tensor, operator: GraphOperator, steps: int = 2, alpha: float = 0.5) -> Tensor:
    r"""Repeat :math:`s \leftarrow \alpha s + (1-\alpha) D^{-1} A s`; differentiable.

    A node without in-edges has an empty mean, which counts as zero, so its score shrinks by ``alpha`` a step
    (GNNSafe's behaviour).

    Args:
        score: ``[N]``.
        operator: from `propagation_operator`.
        steps: how often.
        alpha: the share a node keeps of its own score.

    Returns:
        ``[N]``.

    Example:
        >>> import torch
        >>> graph = GraphOperator.from_edge_index(torch.tensor([[0, 1], [1, 0]]))
        >>> propagate(torch.tensor([1.0, 3.0]), propagation_operator(graph), steps=1)
        tensor([2., 2.])
    """
    check_count(steps, "steps")
    check_share(alpha, "alpha")
    if (operator.options["normalization"], operator.options["direction"]) != ("rw", "in"):
        raise InputError(f"propagate needs the operator that propagation_operator makes, got {operator}")
    for _ in range(steps):
        score = alpha * score - (1 - alpha) * (operator @ score)  # the operator is -D^-1 A
    return score
