"""`BernNet` against its equation, written densely."""

import math

import pytest
import torch

from baselines.conformance import F64, NODES, Conformance, edges, features, outer, randomize
from dssgnn.baselines import BernNet
from dssgnn.graph import filter as graph_filter


class TestBernNet(Conformance):
    encoder = BernNet
    rates = ("dropout", "input_dropout", "propagation_dropout")

    def random(self):
        model = super().random()
        model.theta.data.abs_()  # relu lets all of them through
        return model

    def test_groups(self):
        self.groups("*theta")


def dense(theta, z, edge_index):
    a = torch.zeros(NODES, NODES, dtype=F64)
    a[edge_index[1], edge_index[0]] = 1
    a.fill_diagonal_(0)
    scale = a.sum(dim=1).rsqrt().nan_to_num(posinf=0)
    laplacian = torch.eye(NODES, dtype=F64) - scale[:, None] * a * scale
    rest, degree, power = (
        2 * torch.eye(NODES, dtype=F64) - laplacian,
        len(theta) - 1,
        torch.linalg.matrix_power,
    )
    return sum(
        torch.relu(t)
        * 2.0**-degree
        * math.comb(degree, k)
        * power(rest, degree - k)
        @ power(laplacian, k)
        @ z
        for k, t in enumerate(theta)
    )


@pytest.mark.parametrize("degree", [0, 1, 4, 10])
def test_equation(degree):
    model = randomize(BernNet(5, 8, 3, degree=degree, dropout=0.0).double())
    if degree:
        model.theta.data[0], model.theta.data[-1] = -0.5, 0.7  # one of each sign
    x, edge_index = features(), edges("undirected")
    got, wanted = model(x, edge_index), dense(model.theta, model.mlp(x), edge_index)
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-11)
    parameters = list(model.parameters())
    ours, theirs = (torch.autograd.grad(z, parameters, outer(got)) for z in (got, wanted))
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-10)


def test_it_starts_as_its_perceptron():
    model = BernNet(5, 8, 3).double().eval()
    x = features()
    torch.testing.assert_close(model(x, edges()), model.mlp(x), rtol=0, atol=1e-12)


def test_a_filter_costs_k_products(monkeypatch):
    products, real = [], graph_filter.matrix_product

    def counted(matrix, dense):
        products.append(1)
        return real(matrix, dense)

    monkeypatch.setattr(graph_filter, "matrix_product", counted)
    BernNet(5, 8, 3, degree=6).double()(features(), edges())
    assert len(products) == 6
