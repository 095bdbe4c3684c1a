"""`GPRGNN` is APPNP at its start, and a filter of order 0 by conversion (dense: `tests/theory`)."""

import pytest
import torch
from torch_geometric import nn as pyg

from baselines.conformance import Conformance, edges, features, randomize
from dssgnn import DSSConv, GraphOperator
from dssgnn.baselines import GPRGNN
from dssgnn.errors import InputError
from dssgnn.spectral import monomial_to_chebyshev


class TestGPRGNN(Conformance):
    encoder = GPRGNN
    rates = ("dropout", "input_dropout", "propagation_dropout")

    def test_groups(self):
        self.groups("*encoder.weights")


@pytest.mark.parametrize("kind", ["directed", "undirected"])
@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
def test_it_starts_as_appnp(kind, alpha):
    model = GPRGNN(5, 8, 3, degree=10, alpha=alpha).double().eval()
    model.reset_parameters()  # in float64
    x, edge_index = features(), edges(kind)
    expected = pyg.APPNP(K=10, alpha=alpha)(model.mlp(x), edge_index)
    torch.testing.assert_close(model(x, edge_index), expected, rtol=0, atol=1e-12)
    assert model.weights.sum().item() == pytest.approx(1)


def test_it_is_a_filter_of_order_0():
    model = randomize(GPRGNN(5, 8, 3, degree=7).double()).eval()
    conv = DSSConv(3, 3, 0, filter_orders=(7, 0), activation=None).double()
    with torch.no_grad():
        conv.low_coefficients.copy_(monomial_to_chebyshev(model.weights))
        conv.low_gates.fill_(1)
        conv.high_gates.fill_(0)
        conv.weight.copy_(torch.eye(3))
        x, edge_index = features(), edges("undirected")
        operator = GraphOperator.from_edge_index(edge_index, 12, self_loops=True, dtype=torch.float64)
        expected = conv(model.mlp(x)[:, None], operator)[:, 0]
        torch.testing.assert_close(model(x, edge_index), expected, rtol=0, atol=1e-11)


def test_alpha_is_a_share():
    with pytest.raises(InputError, match=r"alpha must be in \[0, 1\], got 2"):
        GPRGNN(5, 8, 3, alpha=2)
