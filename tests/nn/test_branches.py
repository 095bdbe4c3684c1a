"""Branches with an operator of their own, and another basis: against dense matrices in float64."""

import math

import numpy as np
import pytest
import torch

from dssgnn import DSSGNN, DSSConv, GraphOperator
from dssgnn.data.synthetic import minesweeper
from dssgnn.errors import InputError
from dssgnn.graph.ordering import renumbered
from dssgnn.graph.pair import published_operators
from dssgnn.training import NodeTask, TrainingConfig, fit_population, seeded

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


def test_halves():
    layer = DSSConv(2, 2, 0, filter_orders=(3, 1), filter_init="halves")
    assert layer.low_coefficients.tolist() == [1.0, 0.5, 0.5, 0.5]
    assert layer.high_coefficients.tolist() == [1.0, 0.5]


@pytest.mark.parametrize(
    "options",
    [
        {"eta": -0.3, "filter_basis": "monomial", "propagation": "first", "branches": "concat"},
        {"eta": -0.5, "gate_order": 1},
    ],
    ids=["concat", "gates"],
)
def test_a_population_trains_like_its_members(options):
    """With masks at every place; the block vectorises over pairs and bases too."""
    data = minesweeper(6, 6, seed=1)
    data.x = data.x.double()
    task = NodeTask.from_data(data, self_loops=True)
    configs = [TrainingConfig(epochs=15, patience=None, seed=seed, capture="never") for seed in range(2)]

    def trained(way):
        models = []
        for seed in range(2):
            with seeded(seed):
                rates = {"dropout": 0.4, "input_dropout": 0.3}
                models.append(
                    DSSGNN(7, 5, 2, chaos_order=1, filter_orders=(2, 3), **rates, **options).double()
                )
        fit_population(models, [task] * 2, configs, way=way)
        return models

    for one, other in zip(trained("block"), trained("threads"), strict=True):
        for name, value in one.state_dict().items():
            torch.testing.assert_close(value, other.state_dict()[name], rtol=0, atol=1e-8, msg=name)


def test_bases_that_are_refused():
    with pytest.raises(InputError, match="filter_basis"):
        DSSConv(2, 2, 1, filter_basis="legendre")


@pytest.mark.parametrize("options", [{"normalization": "rw"}, {"lambda_max": 1.5}])
def test_a_pair_takes_nothing_but_the_adjacency(options):
    model = DSSGNN(3, 4, 2, eta=-0.3).double()
    with pytest.raises(InputError, match="eta goes with an operator of normalization"):
        model(state()[:, 0], operator(**options))


@pytest.mark.parametrize("eta", [0.5, -1.5, math.nan, "sym", True])
def test_exponents_that_are_refused(eta):
    for make in (lambda: DSSGNN(2, 2, 2, eta=eta), lambda: published_operators(operator(), "sym", eta)):
        with pytest.raises(InputError, match=r"eta must be in \[-1, 0\], got"):
            make()
    with pytest.raises(InputError, match="normalization must be one of 'sym', 'rw', got 'x'"):
        published_operators(operator(), "x")


def test_a_pair_is_not_widened():
    """Built again from the edges it would be another operator."""
    graph = GraphOperator.from_edge_index(EDGES, N)
    for each in published_operators(graph):
        with pytest.raises(InputError, match=r"make both from graph\.to\(torch\.float64\)"):
            each.to(F64)
        with pytest.raises(InputError, match="make both from the renumbered graph"):
            renumbered(each, torch.arange(N))
    wide = published_operators(graph.to(F64))[1]
    torch.testing.assert_close(
        wide.to(torch.float32).matrix.to_dense(), published_operators(graph)[1].matrix.to_dense()
    )


@pytest.mark.parametrize("kind", ["lowpass", "highpass", "flat", "published"])
def test_a_start_is_the_same_response_in_either_basis(kind):
    """A constant and an alternating signal on a cycle of even length are its lowest and highest frequency."""
    cycle = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    graph = GraphOperator.from_edge_index(cycle, 4, dtype=F64)
    h = torch.eye(4, dtype=F64)[:, None]
    found = []
    for basis in ("chebyshev", "monomial"):
        for branches in ("sum", "concat"):
            layer = DSSConv(
                4,
                4,
                0,
                activation=None,
                filter_orders=(5, 3),
                filter_init=kind,
                filter_basis=basis,
                branches=branches,
            ).double()
            with torch.no_grad():
                layer.weight.copy_(torch.eye(4).repeat(2 if branches == "concat" else 1, 1))
            found.append(layer(h, graph))
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=0, atol=1e-6)  # coefficients start in float32


def test_the_published_pair_by_hand():
    a = np.zeros((3, 3))
    a[0, 1] = a[1, 2] = a[2, 2] = 1  # rows gather
    edges = torch.tensor([[1, 2, 2], [0, 1, 2]])
    graph = GraphOperator.from_edge_index(edges, 3, direction="in", self_loops="keep", dtype=F64)
    assert not any(op.symmetric for op in published_operators(graph, "sym", -0.3))
    low, high = published_operators(graph, "sym", -0.3)
    rows, columns = a.sum(axis=1), np.where(a.sum(axis=0) > 0, a.sum(axis=0), np.inf)
    expected = (columns**-0.5)[:, None] * a * rows**-0.5
    np.testing.assert_allclose(-low.matrix.to_dense().numpy(), expected, atol=1e-12)
    smooth = (columns**-0.3)[:, None] * a * rows**-0.3
    np.testing.assert_allclose(-high.matrix.to_dense().numpy(), np.eye(3) - smooth, atol=1e-12)


@pytest.mark.parametrize("direction", ["both", "out"])
@pytest.mark.parametrize("normalization", ["sym", "rw"])
def test_the_published_pair_of_weighted_edges(normalization, direction):
    """Row sums that differ; and the gradient goes through the transpose, which "rw" is not its own."""
    weight = torch.tensor([0.5, 2.0, 1.0, 3.0, 0.25, 1.5, 4.0, 1.0], dtype=F64)
    graph = GraphOperator.from_edge_index(EDGES, N, weight, direction=direction, self_loops=True)
    a = np.eye(N)
    for s, t, w in zip(*EDGES.tolist(), weight.tolist(), strict=True):
        a[(t, s) if direction == "both" else (s, t)] = w
    a = np.maximum(a, a.T) if direction == "both" else a
    rows, columns = a.sum(axis=1), a.sum(axis=0)
    if normalization == "sym":
        expected = [
            (columns**-0.5)[:, None] * a * rows**-0.5,
            np.eye(N) - (columns**-0.3)[:, None] * a * rows**-0.3,
        ]
    else:
        expected = [a / rows, np.eye(N) - a / rows]
    theta = torch.tensor([[[0.3, 0.7, -0.2]]], dtype=F64)
    for op, matrix in zip(published_operators(graph, normalization, -0.3), expected, strict=True):
        dense = torch.from_numpy(matrix)
        h = state()[:, :1].requires_grad_()
        found, power = op.filter(h, theta, "monomial")[:, 0], h[:, 0]
        want = 0
        for c in theta.flatten():
            want, power = want + c * power, dense @ power
        torch.testing.assert_close(found[:, 0], want, rtol=0, atol=1e-12)
        (got,), (wanted,) = (
            torch.autograd.grad(y.sum(dim=-1).square().sum(), h) for y in (found[:, 0], want)
        )
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-11)


def test_powers_of_degrees_are_continuous_in_eta():
    """A node that nobody gathers from has column sum 0, and no row in C^eta A, also at eta = 0."""
    graph = GraphOperator.from_edge_index(EDGES, N, direction="in", dtype=F64)
    at_zero, near = (published_operators(graph, "sym", eta)[1].matrix.to_dense() for eta in (0.0, -1e-9))
    torch.testing.assert_close(at_zero, near, rtol=0, atol=1e-7)
