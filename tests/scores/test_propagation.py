"""Score propagation against a loop over edges."""

import pytest
import torch

from dssgnn import GraphOperator
from dssgnn.errors import InputError
from dssgnn.scores import propagate, propagation_operator


def by_loop(score, edges, steps, alpha):
    for _ in range(steps):
        total, count = [0.0] * len(score), [0] * len(score)
        for source, target in edges:
            total[target] += score[source]
            count[target] += 1
        score = [
            alpha * s + (1 - alpha) * (t / c if c else 0.0)
            for s, t, c in zip(score, total, count, strict=True)
        ]
    return score


@pytest.mark.parametrize(("steps", "alpha"), [(0, 0.5), (1, 0.5), (2, 0.5), (3, 0.2)])
def test_equals_the_loop(steps, alpha):
    edges = [(0, 1), (1, 0), (2, 1), (3, 3), (0, 1), (4, 2)]  # directed, a self-loop, a duplicate; 4 isolated
    score = [-5.0, -1.0, 2.0, 3.0, -8.0]
    graph = GraphOperator.from_edge_index(torch.tensor(edges).T, 5, dtype=torch.float64)
    result = propagate(torch.tensor(score, dtype=torch.float64), propagation_operator(graph), steps, alpha)
    assert result.tolist() == pytest.approx(by_loop(score, edges, steps, alpha), abs=1e-12)


def test_a_node_without_in_edges_shrinks():
    graph = GraphOperator.from_edge_index(torch.tensor([[0], [1]]), 2)
    assert propagate(torch.tensor([-8.0, 0.0]), propagation_operator(graph))[0].item() == -2.0


def test_gradient():
    graph = GraphOperator.from_edge_index(torch.tensor([[0, 1, 2], [1, 2, 1]]), 4, dtype=torch.float64)
    operator = propagation_operator(graph)
    score = torch.randn(
        4, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True
    )
    assert torch.autograd.gradcheck(lambda s: propagate(s, operator), (score,))


def test_bad_input():
    operator = propagation_operator(GraphOperator.from_edge_index(torch.tensor([[0], [1]]), 2))
    with pytest.raises(InputError, match=r"alpha must be in \[0, 1\], got 2"):
        propagate(torch.zeros(2), operator, alpha=2)
