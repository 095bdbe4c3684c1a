"""Branches with an operator of their own, another basis, another start: against dense matrices in float64."""

import math

import numpy as np
import pytest
import torch

from dssgnn import DSSGNN, DSSConv, GraphOperator
from dssgnn.errors import InputError
from dssgnn.graph.pair import published_operators
from dssgnn.nn.dropout import drawing_alone
from dssgnn.training import seeded

F64 = torch.float64
EDGES = torch.tensor([[0, 1, 2, 3, 4, 0, 2, 5], [1, 2, 0, 4, 3, 3, 5, 1]])
N = 7


def operator(**options):
    return GraphOperator.from_edge_index(EDGES, N, dtype=F64, **options)


def conv(**options):
    with seeded(3):
        layer = DSSConv(3, 2, 2, filter_orders=(3, 2), activation=None, **options).double()
        with torch.no_grad():
            for p in layer.parameters():
                p.normal_()
    return layer


def state(channels=3):
    return torch.randn(N, 3, channels, dtype=F64, generator=torch.Generator().manual_seed(0))


def polynomial(matrix, coefficients, basis):
    """Of a dense L~, or of Ahat = -L~ (lambda_max = 2) in powers."""
    if basis == "monomial":
        return sum(c * torch.linalg.matrix_power(-matrix, k) for k, c in enumerate(coefficients))
    terms = [torch.eye(N, dtype=F64), matrix]
    while len(terms) < len(coefficients):
        terms.append(2 * matrix @ terms[-1] - terms[-2])
    return sum(c * t for c, t in zip(coefficients, terms, strict=False))


@pytest.mark.parametrize("basis", ["chebyshev", "monomial"])
@pytest.mark.parametrize("branches", ["sum", "concat"])
@pytest.mark.parametrize("directed", [False, True])
def test_each_branch_has_its_operator(basis, branches, directed):
    layer, h = conv(filter_basis=basis, branches=branches), state()
    low = operator(direction="in" if directed else "both", self_loops=True)
    high = operator(normalization="rw", direction="out" if directed else "both")
    matrices = [op.matrix.to_dense() for op in (low, high)]
    weights = layer.weight.chunk(2) if branches == "concat" else (layer.weight, layer.weight)
    expected = torch.zeros(N, 3, 2, dtype=F64)
    for matrix, c, gates, weight in zip(
        matrices,
        (layer.low_coefficients, layer.high_coefficients),
        (layer.low_gates, layer.high_gates),
        weights,
        strict=True,
    ):
        g = polynomial(matrix, c, basis)
        for n in range(3):
            expected[:, n] += gates[n, 0] * (g @ h[:, n] @ weight)
    found = layer.filter(h @ layer.weight if layer.weight_first else h, (low, high))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)
    for got, want in zip(
        torch.autograd.grad(found.square().sum(), list(layer.parameters())),
        torch.autograd.grad(expected.square().sum(), list(layer.parameters())),
        strict=True,
    ):
        torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("gate_order", [0, 2])
@pytest.mark.parametrize("basis", ["chebyshev", "monomial"])
def test_a_pair_of_one_operator_is_that_operator(gate_order, basis):
    with seeded(0):
        layer = DSSConv(3, 4, 2, gate_order=gate_order, filter_orders=(2, 3), filter_basis=basis).double()
    one, h = operator(), state()
    torch.testing.assert_close(layer.propagate(h, (one, one)), layer.propagate(h, one), rtol=0, atol=1e-12)


@pytest.mark.parametrize("propagation", ["first", "every"])
def test_eta_gives_a_network_the_published_pair(propagation):
    """The same weights with the pair given by hand; and another exponent is another network."""
    options = {"filter_orders": (2, 2), "dropout": 0.0, "propagation": propagation, "num_layers": 2}
    x, graph = state()[:, 0], operator(direction="out", self_loops=True)

    def logits(eta):
        with seeded(1):
            return DSSGNN(3, 4, 2, eta=eta, **options).double().eval()

    found = logits(-0.3)(x, graph).coefficients
    model, pair = logits(None), published_operators(graph, "sym", -0.3)
    h = model.lift(x)
    for layer in model.layers:
        h = layer.activate(layer.filter(h @ layer.weight, pair))
    torch.testing.assert_close(found, h @ model.readout_weight, rtol=0, atol=1e-11)
    assert (found - logits(-0.5)(x, graph).coefficients).abs().max() > 1e-3


def test_start_and_scale():
    layer = DSSConv(2, 2, 0, filter_orders=(3, 1), filter_init="halves", filter_scale=4.0)
    assert layer.low_coefficients.tolist() == [4.0, 2.0, 2.0, 2.0]
    assert layer.high_coefficients.tolist() == [4.0, 2.0]


def test_dropout_and_pairs_train_as_a_population_member_would():
    """Random masks from a generator: the pair takes part in the same stream."""
    with seeded(2):
        model = DSSGNN(3, 4, 2, eta=-0.3, dropout=0.5, input_dropout=0.5).double()
    x, graph = state()[:, 0], operator(self_loops=True)

    def once():
        with drawing_alone(torch.Generator().manual_seed(7)):
            return model(x, graph).coefficients

    assert torch.equal(once(), once())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"filter_scale": 0.0}, "filter_scale must be positive, got 0.0"),
        ({"filter_scale": math.nan}, "filter_scale must be positive, got nan"),
        ({"filter_basis": "legendre"}, "filter_basis"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        DSSConv(2, 2, 1, **options)


@pytest.mark.parametrize("eta", [0.5, -1.5, math.nan, "sym", True])
def test_exponents_that_are_refused(eta):
    with pytest.raises(InputError, match=r"eta must be None or in \[-1, 0\], got"):
        DSSGNN(2, 2, 2, eta=eta)


def test_the_published_pair_by_hand():
    a = np.zeros((3, 3))
    a[0, 1] = a[1, 2] = a[2, 2] = 1  # rows gather
    edges = torch.tensor([[1, 2, 2], [0, 1, 2]])
    graph = GraphOperator.from_edge_index(edges, 3, direction="in", self_loops="keep", dtype=F64)
    low, high = published_operators(graph, "sym", -0.3)
    rows, columns = a.sum(axis=1), np.where(a.sum(axis=0) > 0, a.sum(axis=0), np.inf)
    expected = (columns**-0.5)[:, None] * a * rows**-0.5
    np.testing.assert_allclose(-low.matrix.to_dense().numpy(), expected, atol=1e-12)
    smooth = (columns**-0.3)[:, None] * a * rows**-0.3
    np.testing.assert_allclose(-high.matrix.to_dense().numpy(), np.eye(3) - smooth, atol=1e-12)
