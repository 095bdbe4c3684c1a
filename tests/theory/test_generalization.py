"""Proposition generalization: at P = 0 the layer is a polynomial spectral GNN."""

import math

import pytest
import torch
from torch_geometric import nn as pyg

from dssgnn import DSSGNN, DSSConv, GraphOperator
from dssgnn.baselines import GPRGNN
from dssgnn.spectral import bernstein_to_chebyshev, monomial_to_chebyshev
from theory.support import F64, chebyshev_matrices, gap, normal, random_graph, randomize, set_parameters

GRAPH = random_graph(30)
X = normal(30, 6, seed=1)
RENORMALIZED = GraphOperator.from_edge_index(GRAPH.edge_index, self_loops=True, dtype=F64)


def random_layer(order: int = 0, activation: str | None = "relu") -> DSSConv:
    conv = DSSConv(6, 5, order, filter_orders=(4, 2), activation=activation).double()
    randomize(conv, seed=2)
    return conv


def scalar_coefficients(conv: DSSConv) -> torch.Tensor:
    """``c_k = a c_k^lp + b c_k^hp`` of a layer with constant gates."""
    c = conv.low_gates[0, 0] * conv.low_coefficients.detach()
    c[: conv.high_coefficients.numel()] += conv.high_gates[0, 0] * conv.high_coefficients
    return c.detach()


def filter_layer(c: torch.Tensor) -> DSSConv:
    """A layer of P = 0 that is the filter ``c`` alone: one branch, no activation, ``W = I``."""
    conv = DSSConv(6, 6, 0, filter_orders=(c.numel() - 1, 0), activation=None).double()
    set_parameters(conv, low_coefficients=c, low_gates=1, high_gates=0, weight=torch.eye(6))
    return conv


@torch.no_grad()
def run(conv: DSSConv, graph: GraphOperator | torch.Tensor = GRAPH.edge_index) -> torch.Tensor:
    return conv(X[:, None], graph)[:, 0]


def test_chebnet_with_scalar_coefficients():
    """Proposition generalization, step 4: ``sigma(sum_k c_k T_k(L~) H W)``, built densely."""
    conv = random_layer()
    terms = chebyshev_matrices(-GRAPH.normalized(), 4)
    dense = sum(c * t for c, t in zip(scalar_coefficients(conv), terms, strict=True))
    assert gap(run(conv), torch.relu(dense @ X @ conv.weight.detach())) < 1e-10


def test_chebnet_of_pyg():
    """Special cases: PyG's ``ChebConv`` with ``Theta_k = c_k W``."""
    conv = random_layer()
    reference = pyg.ChebConv(6, 5, K=5, bias=False).double()
    for lin, c in zip(reference.lins, scalar_coefficients(conv), strict=True):
        set_parameters(lin, weight=c * conv.weight.detach().T)
    assert gap(run(conv), torch.relu(reference(X, GRAPH.edge_index)).detach()) < 1e-10


def test_not_chebnet_with_a_wrong_sign():
    """Negative twin: odd coefficients of the wrong sign (``L~ = +Ahat``) are another filter."""
    conv = random_layer()
    terms = chebyshev_matrices(GRAPH.normalized(), 4)
    dense = sum(c * t for c, t in zip(scalar_coefficients(conv), terms, strict=True))
    assert gap(run(conv), torch.relu(dense @ X @ conv.weight.detach())) > 0.1


def test_not_chebnet_with_a_higher_order():
    """Negative twin: with P = 1 and a non-zero order 1, order 0 is no ChebNet of the features."""
    conv, deterministic = random_layer(1), random_layer(0)
    set_parameters(
        conv,
        low_coefficients=deterministic.low_coefficients,
        high_coefficients=deterministic.high_coefficients,
        weight=deterministic.weight,
        low_gates=deterministic.low_gates.item(),
        high_gates=deterministic.high_gates.item(),
    )
    state = torch.stack([X, torch.zeros_like(X)], dim=1)
    assert gap(conv(state, GRAPH.edge_index)[:, 0], run(deterministic)) < 1e-10
    state[:, 1] = normal(30, 6, seed=3)
    assert gap(conv(state, GRAPH.edge_index)[:, 0], run(deterministic)) > 0.1


def test_gcn_of_pyg():
    """Special cases: ``beta_0 = 0``, ``K_lp = 1`` with the renormalisation trick is ``GCNConv``."""
    reference = pyg.GCNConv(6, 6, bias=False).double()
    conv = filter_layer(torch.tensor([0.0, -1.0]))
    set_parameters(conv, weight=reference.lin.weight.T)
    expected = reference(X, GRAPH.edge_index).detach()
    assert gap(run(conv, RENORMALIZED), expected) < 1e-10
    assert gap(expected, GRAPH.normalized(self_loops=True) @ X @ reference.lin.weight.detach().T) < 1e-10


def test_gcn_before_the_trick():
    """Special cases: ``theta (I + Ahat)``, which the trick replaces, is ``c = (1, -1)`` without loops."""
    conv = filter_layer(torch.tensor([1.0, -1.0]))
    assert gap(run(conv), X + GRAPH.normalized() @ X) < 1e-10


@pytest.mark.parametrize(
    ("c", "operator"), [([0, 1], RENORMALIZED), ([0, -1], None), ([1, -1], RENORMALIZED)]
)
def test_not_gcn(c, operator):
    """Negative twins: the wrong sign, no self-loops, and the trick applied twice."""
    conv = filter_layer(torch.tensor(c, dtype=F64))
    graph = GRAPH.edge_index if operator is None else operator
    assert gap(run(conv, graph), GRAPH.normalized(self_loops=True) @ X) > 0.1


def test_gcn_network():
    """Special cases: PyG's two-layer GCN is a ``DSSGNN`` of order 0 whose last layer filters."""
    reference = pyg.models.GCN(6, 8, 2, 3).double()
    randomize(reference, seed=4)
    first, second = reference.convs
    options = {"chaos_order": 0, "filter_orders": (1, 0), "readout": "filtered", "bias": True}
    model = DSSGNN(6, 8, 3, num_layers=2, dropout=0, **options).double()
    for layer, conv in zip(model.layers, (first, second), strict=True):
        set_parameters(
            layer, low_coefficients=torch.tensor([0.0, -1.0]), low_gates=1, high_gates=0, bias=conv.bias
        )
    set_parameters(model.lift, weight=first.lin.weight.T[None])
    set_parameters(model.layers[0], weight=torch.eye(8))
    set_parameters(model.layers[1], weight=second.lin.weight.T)
    expected = reference(X, GRAPH.edge_index)
    assert gap(model(X, RENORMALIZED).mean, expected) < 1e-10
    assert gap(model(X, GRAPH.edge_index).mean, expected) > 0.1  # twin: without the renormalisation trick


def test_gprgnn():
    """Special cases: GPR-GNN's ``sum_k gamma_k P^k`` by conversion, dense and as the library's encoder."""
    encoder = GPRGNN(6, 8, 6, dropout=0.0, degree=10).double()
    randomize(encoder, seed=5)
    gamma = encoder.weights.detach()
    hidden = encoder.mlp(X).detach()
    p = GRAPH.normalized(self_loops=True)
    dense = sum(g * torch.linalg.matrix_power(p, k) for k, g in enumerate(gamma)) @ hidden
    conv = filter_layer(monomial_to_chebyshev(gamma))
    with torch.no_grad():
        converted = conv(hidden[:, None], RENORMALIZED)[:, 0]
        wrong_sign = filter_layer(monomial_to_chebyshev(gamma * (-1.0) ** torch.arange(11)))
        assert gap(converted, dense) < 1e-10
        assert gap(encoder(X, GRAPH.edge_index), dense) < 1e-10
        assert gap(wrong_sign(hidden[:, None], RENORMALIZED)[:, 0], dense) > 0.1  # negative twin


def test_gprgnn_starts_as_appnp():
    """baselines.md 5.5: the PageRank weights that GPR-GNN starts from are APPNP with the same K and alpha."""
    encoder = GPRGNN(6, 8, 6, degree=10, alpha=0.2).double().eval()
    encoder.weights.data = 0.2 * 0.8 ** torch.arange(11, dtype=F64)
    encoder.weights.data[-1] = 0.8**10
    fresh = GPRGNN(6, 8, 6, degree=10, alpha=0.2)
    assert gap(fresh.weights.double(), encoder.weights) < 1e-7
    hidden = encoder.mlp(X).detach()
    expected = pyg.APPNP(K=10, alpha=0.2)(hidden, GRAPH.edge_index)
    assert gap(encoder(X, GRAPH.edge_index), expected) < 1e-10
    assert gap(encoder(X, GRAPH.edge_index), pyg.APPNP(K=10, alpha=0.3)(hidden, GRAPH.edge_index)) > 1e-4


def test_bernnet():
    """Special cases: BernNet's ``sum_k relu(theta_k) 2^-K C(K,k) (2I - L)^(K-k) L^k`` by conversion."""
    theta = torch.relu(normal(11, seed=6))
    laplacian, degree = GRAPH.laplacian(), 10
    rest = 2 * torch.eye(30, dtype=F64) - laplacian
    power = torch.linalg.matrix_power
    dense = sum(
        theta[k] * 2.0**-degree * math.comb(degree, k) * power(rest, degree - k) @ power(laplacian, k)
        for k in range(degree + 1)
    )
    assert gap(run(filter_layer(bernstein_to_chebyshev(theta))), dense @ X) < 1e-10
    assert gap(run(filter_layer(bernstein_to_chebyshev(theta.flip(0)))), dense @ X) > 0.1  # negative twin
