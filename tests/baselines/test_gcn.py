"""`GCN` is PyG's, in values and gradients, on every kind of graph."""

import pytest
import torch
from torch_geometric import nn as pyg

from baselines.conformance import Conformance, edges, features, outer, randomize
from dssgnn.baselines import GCN
from dssgnn.errors import InputError
from dssgnn.training import seeded


class TestGCN(Conformance):
    encoder = GCN
    rates = ("dropout", "input_dropout")


class TestDeepGCNWithBatchNorm(TestGCN):
    options = {"num_layers": 3, "norm": "batch"}  # noqa: RUF012
    optimizer = "sgd"


@pytest.mark.parametrize("kind", ["directed", "undirected", "doubled"])
@pytest.mark.parametrize("norm", [None, "batch"])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_pyg(kind, norm, num_layers):
    edge_index = edges(kind) if kind != "doubled" else torch.cat([edges(), edges()[:, 4:9]], dim=1)
    x, reference = features().requires_grad_(), pyg.GCN(5, 8, num_layers, 3, norm=norm).double()
    randomize(reference)
    model = GCN(5, 8, 3, num_layers=num_layers, dropout=0.0, norm=norm).double()
    with torch.no_grad():
        for weight, conv in zip(model.weights, reference.convs, strict=True):
            weight.copy_(conv.lin.weight.T)
        convs = reference.convs[-1:] if norm else reference.convs
        for bias, conv in zip(model.biases, convs, strict=True):
            bias.copy_(conv.bias)
        for ours, theirs in zip(model.norms, reference.norms or (), strict=False):
            ours.load_state_dict(theirs.module.state_dict())
    wanted, got = reference(x, edge_index), model(x, edge_index)
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-11)
    ours = torch.autograd.grad(got, [x, *model.weights], outer(got))
    theirs = torch.autograd.grad(wanted, [x, *(c.lin.weight for c in reference.convs)], outer(got))
    torch.testing.assert_close(ours[0], theirs[0], rtol=0, atol=1e-11)
    for a, b in zip(ours[1:], theirs[1:], strict=True):
        torch.testing.assert_close(a, b.T, rtol=0, atol=1e-10)


def test_it_starts_as_pyg_does():
    """Glorot: the same bound, and zero biases."""
    with seeded(0):
        model, reference = GCN(50, 40, 30), pyg.GCN(50, 40, 2, 30)
    for weight, conv in zip(model.weights, reference.convs, strict=True):
        assert weight.abs().max().item() == pytest.approx(conv.lin.weight.abs().max().item(), rel=0.02)
    assert not any(bias.any() for bias in model.biases)


def test_dropout_is_on_the_hidden_state_alone():
    model = randomize(GCN(5, 8, 3, dropout=0.5).double()).train()
    x, edge_index = features(), edges()
    with torch.no_grad():
        model.weights[1].fill_(0)
        assert torch.equal(model(x, edge_index), model(x, edge_index))
    with pytest.raises(InputError, match="norm must be one of None, 'batch', got 'layer'"):
        GCN(5, 8, 3, norm="layer")
