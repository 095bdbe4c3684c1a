"""`GAT` is PyG's ``GATConv`` twice, in values and gradients."""

import pytest
import torch
from torch_geometric import nn as pyg

from baselines.conformance import Conformance, edges, features, outer, randomize
from dssgnn.baselines import GAT
from dssgnn.baselines.gat import _both_ends
from dssgnn.errors import InputError
from dssgnn.training import seeded


class TestGAT(Conformance):
    encoder = GAT


class TestOneHead(TestGAT):
    options = {"heads": 1}  # noqa: RUF012


def pair(heads=4):
    """PyG's two layers, and ours with the same weights."""
    first, second = pyg.GATConv(5, 8 // heads, heads).double(), pyg.GATConv(8, 3).double()
    model = GAT(5, 8, 3, heads, dropout=0.0).double()
    with torch.no_grad():
        for ours, theirs in ((model.first, first), (model.second, second)):
            randomize(theirs, seed=heads)
            ours.weight.copy_(theirs.lin.weight.T)
            ours.source.copy_(theirs.att_src[0])
            ours.target.copy_(theirs.att_dst[0])
            ours.bias.copy_(theirs.bias)
    return model, first, second


@pytest.mark.parametrize("kind", ["directed", "undirected", "doubled", "none"])
@pytest.mark.parametrize("heads", [1, 4, 8])
def test_pyg(kind, heads):
    edge_index = {
        "doubled": torch.cat([edges(), edges()[:, 4:9]], dim=1),
        "none": torch.empty(2, 0, dtype=torch.int64),
    }.get(kind)
    edge_index = edges(kind) if edge_index is None else edge_index
    model, first, second = pair(heads)
    x = features().requires_grad_()
    wanted = second(torch.nn.functional.elu(first(x, edge_index)), edge_index)
    got = model(x, edge_index)
    torch.testing.assert_close(got, wanted, rtol=0, atol=1e-11)
    ours = torch.autograd.grad(got, [x, *model.first.parameters(), *model.second.parameters()], outer(got))
    order = [p for c in (first, second) for p in (c.lin.weight, c.att_src, c.att_dst, c.bias)]
    theirs = torch.autograd.grad(wanted, [x, *order], outer(got))
    for a, b in zip(ours, theirs, strict=True):
        b = b[0] if b.dim() == 3 else b
        torch.testing.assert_close(a, b if a.shape == b.shape else b.T, rtol=0, atol=1e-10)


def test_large_scores_do_not_overflow():
    model, first, second = pair()
    x = 1e3 * features()
    wanted = second(torch.nn.functional.elu(first(x, edges())), edges())
    torch.testing.assert_close(model(x, edges()), wanted, rtol=1e-9, atol=1e-9)


def test_vmap_is_a_loop():
    models = [randomize(GAT(5, 8, 3, 4, dropout=0.0).double(), seed) for seed in range(3)]
    parameters, _ = torch.func.stack_module_state(models)
    x, edge_index = features(), edges()
    xs = torch.stack([features(seed) for seed in range(3)])

    def call(own, x):
        return torch.func.functional_call(models[0], own, (x, edge_index))

    shared = torch.vmap(call, in_dims=(0, None))(parameters, x)
    each = torch.vmap(call)(parameters, xs)
    (each * outer(each)).sum().backward()
    for i, model in enumerate(models):
        torch.testing.assert_close(shared[i], model(x, edge_index), rtol=0, atol=1e-12)
        alone = model(xs[i], edge_index)
        torch.testing.assert_close(each[i], alone, rtol=0, atol=1e-12)
        grads = torch.autograd.grad(alone, list(model.parameters()), outer(each)[i])
        for (name, _), grad in zip(model.named_parameters(), grads, strict=True):
            torch.testing.assert_close(parameters[name].grad[i], grad, rtol=0, atol=1e-12)


def test_gathering_and_summing_are_adjoint():
    """``<gather(h), v> = <h, sum(v)>``, which is what either's gradient relies on."""
    source, target = _both_ends(edges(), 12, torch.float64)
    for ends in (source, target):
        h, v = features(), features(seed=2, nodes=ends.nodes.numel())
        assert (ends.gather(h) * v).sum().item() == pytest.approx((h * ends.sum(v)).sum().item())
        torch.testing.assert_close(ends.largest(v)[3], v[ends.nodes == 3].amax(dim=0))


def test_attention_is_dropped():
    """A layer by itself drops nothing else; its outputs scatter around those of evaluation."""
    layer = randomize(GAT(5, 8, 3, dropout=0.5).double()).first
    ends = _both_ends(edges(), 12, torch.float64)
    with seeded(0), torch.no_grad():
        drawn = torch.stack([layer(features(), *ends) for _ in range(1000)])
    error = drawn.std(dim=0) / 1000**0.5
    assert (error > 0).all()
    assert ((drawn.mean(dim=0) - layer.eval()(features(), *ends)).abs() < 5 * error).all()


def test_heads_share_the_width():
    with pytest.raises(InputError, match="hidden_channels must be a multiple of 8 heads, got 12"):
        GAT(5, 12, 3)


def test_input_dropout_is_of_the_features_alone():
    model = randomize(GAT(5, 8, 3, dropout=0.0, input_dropout=0.5).double())
    x = torch.ones(4, 5, dtype=torch.float64)
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    plain = GAT(5, 8, 3, dropout=0.0).double()
    plain.load_state_dict(model.state_dict())
    model.eval()
    assert torch.equal(model(x, edges), plain(x, edges))
    model.train()
    assert not torch.equal(model(x, edges), plain(x, edges))
    assert torch.equal(model(0 * x, edges), plain(0 * x, edges))
