"""`ResidualGCN` against its equation, written densely."""

import pytest
import torch

from baselines.conformance import F64, NODES, Conformance, edges, features, randomize
from dssgnn.baselines import ResidualGCN


class TestResidualGCN(Conformance):
    encoder = ResidualGCN
    rates = ("dropout", "input_dropout")
    options = {"num_layers": 3}  # noqa: RUF012


class TestWithoutNorm(TestResidualGCN):
    options = {"norm": None}  # noqa: RUF012


class TestWithBatchNorm(TestResidualGCN):
    options = {"norm": "batch"}  # noqa: RUF012
    optimizer = "sgd"


@pytest.mark.parametrize("norm", [None, "layer", "batch"])
def test_equation(norm):
    model = randomize(ResidualGCN(5, 8, 3, num_layers=3, dropout=0.0, norm=norm).double()).train()
    x, edge_index = features(), edges()
    a = torch.zeros(NODES, NODES, dtype=F64)
    a[edge_index[1], edge_index[0]] = 1
    a.fill_diagonal_(1)
    scale = a.sum(dim=1).rsqrt()
    ahat = scale[:, None] * a * scale
    h = x @ model.lift + model.lift_bias
    for weight, residual, layer in zip(model.weights, model.residual_weights, model.norms, strict=True):
        h = ahat @ h @ weight + h @ residual
        if norm is None:
            h = h + layer.bias
        else:
            dim = 0 if norm == "batch" else 1
            variance = h.var(dim=dim, correction=0, keepdim=True)
            h = (h - h.mean(dim=dim, keepdim=True)) / (variance + 1e-5).sqrt() * layer.weight + layer.bias
        h = torch.relu(h)
    expected = h @ model.readout + model.readout_bias
    torch.testing.assert_close(model(x, edge_index), expected, rtol=0, atol=1e-11)
