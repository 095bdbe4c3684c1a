"""Each vmap rule against a loop over the members, values and gradients."""

import pytest
import torch
from torch.func import vmap

from dssgnn import GraphOperator
from dssgnn.data.synthetic import minesweeper
from dssgnn.nn.dropout import drawing_from, dropout
from dssgnn.nn.linear import linear
from dssgnn.nn.projection import evaluate_activate_project
from dssgnn.spectral import projection_tables

BATCH, NODES = 3, 25
EDGES = minesweeper(5, 5).edge_index


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(len(shape)))


def agree(function, in_dims, *inputs):
    """Run both ways on leaves and compare the outputs and every gradient."""
    leaves = [value.clone().requires_grad_() for value in inputs]
    batched = vmap(function, in_dims)(*leaves)
    members = (
        [v if dim is None else v.select(dim, i) for v, dim in zip(leaves, in_dims, strict=True)]
        for i in range(BATCH)
    )
    looped = torch.stack([function(*member) for member in members])
    torch.testing.assert_close(batched, looped, rtol=0, atol=1e-12)
    weight = draw(*batched.shape)
    gradients = [torch.autograd.grad((out * weight).sum(), leaves) for out in (batched, looped)]
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-11)


@pytest.mark.parametrize("direction", ["both", "in"])
@pytest.mark.parametrize("basis", ["chebyshev", "monomial"])
@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0), (2, 1)])
def test_filter(direction, basis, in_dims):
    operator = GraphOperator.from_edge_index(EDGES, direction=direction, dtype=torch.float64)
    h, theta = draw(BATCH, NODES, 2, 4), draw(BATCH, 2, 2, 4)
    inputs = [v[0] if dim is None else v.movedim(0, dim) for v, dim in zip((h, theta), in_dims, strict=True)]
    agree(lambda h, theta: operator.filter(h, theta, basis), in_dims, *inputs)


@pytest.mark.parametrize("in_dim", [0, 1, 2])
def test_multiply(in_dim):
    operator = GraphOperator.from_edge_index(EDGES, direction="out", dtype=torch.float64)
    agree(lambda h: operator @ h, (in_dim,), draw(BATCH, NODES, 4).movedim(0, in_dim))


def test_multiply_vectors():
    operator = GraphOperator.from_edge_index(EDGES, dtype=torch.float64)
    agree(lambda h: operator @ h, (0,), draw(BATCH, NODES))


@pytest.mark.parametrize("in_dim", [0, 1])
def test_project(in_dim):
    tables = projection_tables(2, 4, torch.float64, torch.device("cpu"))
    u = draw(BATCH, NODES, 3, 4).movedim(0, in_dim)
    agree(lambda u: evaluate_activate_project(u, *tables, torch.tanh), (in_dim,), u)


def test_project_with_biases():
    tables = projection_tables(2, 4, torch.float64, torch.device("cpu"))
    function = lambda u, b: evaluate_activate_project(u, *tables, torch.relu, b)  # noqa: E731
    agree(function, (0, 0), draw(BATCH, NODES, 3, 4), draw(BATCH, 4))
    agree(function, (0, None), draw(BATCH, NODES, 3, 4), draw(4))


def test_project_with_random_gates():
    evaluation, projection = projection_tables(1, 4, torch.float64, torch.device("cpu"))
    agree(
        lambda u, gates: evaluate_activate_project(u, evaluation * gates, projection, torch.tanh),
        (0, 0),
        draw(BATCH, NODES, 2, 4),
        draw(BATCH, 4, 2),
    )


@pytest.mark.parametrize("columns", [3, 40])
@pytest.mark.parametrize("in_dims", [(0, 0), (1, 0), (None, 0), (0, None)])
def test_linear(columns, in_dims):
    h, weight = draw(BATCH, NODES, 2, 4), draw(BATCH, 4, columns)
    inputs = [v[0] if dim is None else v.movedim(0, dim) for v, dim in zip((h, weight), in_dims, strict=True)]
    agree(linear, in_dims, *inputs)


@pytest.mark.parametrize("shared", [True, False])
def test_dropout_draws_as_alone(shared):
    h = torch.ones(BATCH, 4, 5).requires_grad_()
    own = [torch.Generator().manual_seed(seed) for seed in range(BATCH)]

    def member(number, h):
        with drawing_from(own, number):
            return dropout(h, 0.25)

    given = h[0] if shared else h
    batched = vmap(member, (0, None if shared else 0))(torch.arange(BATCH), given)
    for seed in range(BATCH):
        torch.manual_seed(seed)
        assert torch.equal(batched[seed], torch.nn.functional.dropout(h[seed], 0.25))
    (gradient,) = torch.autograd.grad(batched.sum(), given)
    assert torch.allclose(gradient, batched.sum(dim=0) if shared else batched)


def test_dropout_is_torchs_own_on_a_cpu():
    h = torch.randn(30, 7, requires_grad=True)
    outputs = []
    for function in (dropout, torch.nn.functional.dropout):
        torch.manual_seed(3)
        out = function(h, 0.4, True)
        outputs.append((out.detach(), *torch.autograd.grad(out.square().sum(), h)))
    for ours, theirs in zip(*outputs, strict=True):
        assert torch.equal(ours, theirs)
    assert dropout(h, 0.4, False) is h
    assert dropout(h, 0.0) is h
