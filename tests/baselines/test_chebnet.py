"""`ChebNet`: the scalar one is a `DSSGNN` of order 0, the full one is PyG's."""

from itertools import pairwise

import pytest
import torch
from torch_geometric import nn as pyg

from baselines.conformance import NODES, Conformance, edges, features, outer, randomize
from dssgnn import DSSGNN
from dssgnn.baselines import ChebNet
from dssgnn.errors import InputError


class TestScalar(Conformance):
    encoder = ChebNet
    rates = ("dropout", "input_dropout")


class TestFull(TestScalar):
    options = {"coefficients": "full", "degree": 3, "num_layers": 3}  # noqa: RUF012


@pytest.mark.parametrize("degree", [0, 1, 2, 5])
@pytest.mark.parametrize("num_layers", [1, 2])
def test_pyg(degree, num_layers):
    model = ChebNet(5, 8, 3, num_layers, degree, "full", dropout=0.0).double()
    randomize(model)
    widths = [5, 8, 3] if num_layers == 2 else [5, 3]
    convs = [pyg.ChebConv(a, b, K=degree + 1).double() for a, b in pairwise(widths)]
    with torch.no_grad():
        for weight, bias, conv in zip(model.weights, model.biases, convs, strict=True):
            conv.bias.copy_(bias)
            for theta, lin in zip(weight, conv.lins, strict=True):
                lin.weight.copy_(theta.T)
    x, edge_index = features().requires_grad_(), edges("undirected")
    lambda_max = torch.tensor(2.0, dtype=torch.float64)
    wanted = x
    for i, conv in enumerate(convs):
        wanted = conv(wanted.relu() if i else wanted, edge_index, lambda_max=lambda_max)
    got = model(x, edge_index)
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-10)
    ours = torch.autograd.grad(got, [x, *model.weights], outer(got))
    theirs = torch.autograd.grad(wanted, [x, *(lin.weight for c in convs for lin in c.lins)], outer(got))
    torch.testing.assert_close(ours[0], theirs[0], rtol=0, atol=1e-9)
    stacked = torch.cat([weight.mT.flatten() for weight in ours[1:]])
    torch.testing.assert_close(stacked, torch.cat([t.flatten() for t in theirs[1:]]), rtol=0, atol=1e-9)


def test_scalar_is_the_network_of_order_0():
    model = randomize(ChebNet(5, 8, 3, degree=4, dropout=0.0).double())
    options = {"chaos_order": 0, "filter_orders": (4, 0), "readout": "filtered", "bias": True, "dropout": 0.0}
    network = DSSGNN(5, 8, 3, num_layers=2, **options).double()
    with torch.no_grad():
        network.lift.weight.copy_(model.weights[0])
        network.layers[0].weight.copy_(torch.eye(8))
        network.layers[1].weight.copy_(model.weights[1][0])
        for layer, c, bias in zip(network.layers, model.coefficients, model.biases, strict=True):
            layer.low_coefficients.copy_(c)
            layer.low_gates.fill_(1)
            layer.high_gates.fill_(0)
            layer.bias.copy_(bias)
    x, edge_index = features(), edges()
    torch.testing.assert_close(model(x, edge_index), network(x, edge_index).mean, rtol=0, atol=1e-11)


def test_scalar_is_full_with_proportional_matrices():
    scalar = randomize(ChebNet(5, 8, 3, degree=3).double()).eval()
    full = ChebNet(5, 8, 3, degree=3, coefficients="full").double().eval()
    with torch.no_grad():
        for ours, c, weight in zip(full.weights, scalar.coefficients, scalar.weights, strict=True):
            ours.copy_(c[:, None, None] * weight)
        for ours, bias in zip(full.biases, scalar.biases, strict=True):
            ours.copy_(bias)
    x = features()
    torch.testing.assert_close(full(x, edges()), scalar(x, edges()), rtol=0, atol=1e-11)


def test_flat_start_is_a_perceptron():
    model = ChebNet(5, 8, 3, filter_init="flat").double().eval()
    x = features()
    expected = (x @ model.weights[0][0]).relu() @ model.weights[1][0]
    torch.testing.assert_close(model(x, edges()), expected, rtol=0, atol=1e-12)
    assert expected.shape == (NODES, 3)


def test_choices():
    with pytest.raises(InputError, match="coefficients must be one of 'scalar', 'full', got 'matrix'"):
        ChebNet(5, 8, 3, coefficients="matrix")
    with pytest.raises(InputError, match="degree must be an integer >= 0, got -1"):
        ChebNet(5, 8, 3, degree=-1)
