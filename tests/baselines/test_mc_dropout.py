"""MC-dropout against closed forms, and with nobody else's random numbers."""

import pytest
import torch
from torch import nn

from dssgnn import DSSGNN, DSSHybrid
from dssgnn.baselines.mc_dropout import MCDropout
from dssgnn.expansion import ChaosExpansion, LogitSamples
from dssgnn.metrics import calibration_metrics
from dssgnn.nn import Deterministic, make_encoder
from dssgnn.nn.dropout import dropout
from dssgnn.training import seeded

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]])
X = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))


class Line(nn.Module):
    """``dropout(x) W``, by this package's dropout or by torch's."""

    def __init__(self, rate, ours):
        super().__init__()
        self.rate = rate
        self.weight = nn.Parameter(torch.randn(5, 3, generator=torch.Generator().manual_seed(1)))
        self.drop = nn.Dropout(rate) if not ours else lambda x: dropout(x, rate, self.training)

    def forward(self, x, graph):
        return ChaosExpansion((self.drop(x) @ self.weight)[:, None])


def line(dropout=0.5):
    return Line(dropout, ours=False)


def gcn(**options):
    with seeded(0):
        return Deterministic(make_encoder("gcn", 5, 8, 3, **options))


def dss(**options):
    with seeded(0):
        return DSSGNN(5, 8, 3, **options)


@pytest.mark.parametrize("ours", [True, False])
def test_moments_of_a_linear_model(ours):
    rate, samples = 0.3, 20_000
    model = MCDropout(Line(rate, ours), samples).eval()
    with torch.no_grad():
        got = model(X, EDGES)
    weight = model.weight.detach()
    mean, variance = X @ weight, rate / (1 - rate) * X.square() @ weight.square()
    error = (got.mean - mean) / (variance / samples).sqrt()
    assert error.abs().max() < 4.5
    torch.testing.assert_close(got.logits.var(dim=1), variance, rtol=0.06, atol=0)
    torch.testing.assert_close(got.chaos_energy, variance.sum(dim=1), rtol=0.06, atol=0)


def test_probabilities_are_averaged():
    got = MCDropout(gcn(), 7).eval()(X, EDGES)
    assert isinstance(got, LogitSamples)
    assert got.num_samples == 7
    expected = got.logits.softmax(dim=-1).mean(dim=1)
    torch.testing.assert_close(got.predictive(), expected)
    assert bool((got.mutual_information() > 0).all())


@pytest.mark.parametrize(
    "make", [line, gcn, dss, lambda: gcn(norm="batch"), lambda: dss(norm="batch"), lambda: dss(norm="joint")]
)
def test_the_seed_decides_and_nobody_is_disturbed(make):
    model = MCDropout(make(), 3, seed=5).eval()
    torch.manual_seed(1)
    before, state = torch.get_rng_state(), {k: v.clone() for k, v in model.state_dict().items()}
    first = model(X, EDGES).logits
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert torch.equal(model(X, EDGES).logits, first)
    assert not torch.equal(MCDropout(model.model, 3, seed=6).eval()(X, EDGES).logits, first)
    assert not torch.equal(first[:, 0], first[:, 1])
    for name, value in model.state_dict().items():
        assert torch.equal(value, state[name]), name
    assert not any(module.training for module in model.modules())


def test_norms_keep_their_statistics():
    class Normed(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.drop = nn.BatchNorm1d(5), nn.Dropout(0.5)

        def forward(self, x, graph):
            return ChaosExpansion(self.drop(self.norm(x))[:, None])

    model = Normed()
    model.norm.running_mean.fill_(3.0)
    got = MCDropout(model, 2).eval()(X, EDGES).logits
    expected = 2 * (X - 3) / (1 + 1e-5) ** 0.5
    kept = got != 0
    torch.testing.assert_close(got[kept], expected[:, None].expand_as(got)[kept])
    assert 0 < kept.float().mean() < 1


def test_in_training_it_is_the_model():
    model = dss(norm="batch").train()
    with seeded(3):
        expected = model(X, EDGES).coefficients
    with seeded(3):
        got = MCDropout(model).train()(X, EDGES)
    assert torch.equal(got.coefficients, expected)


@pytest.mark.parametrize("make", [line, gcn, dss])
def test_without_dropout_it_warns(make):
    model = make(dropout=0.0).eval()
    with pytest.warns(UserWarning, match="no dropout is active, so every pass of MC-dropout is the same"):
        got = MCDropout(model, 4).eval()(X, EDGES)
    torch.testing.assert_close(got.mean, model(X, EDGES).mean)
    torch.testing.assert_close(got.chaos_energy, torch.zeros(4))


def test_metrics():
    got = calibration_metrics(MCDropout(dss(), 4).eval()(X, EDGES), torch.tensor([0, 1, 2, 0]))
    assert got["chaos_energy"] > 0
    assert got["nll"] < got["nll_mean"] + 1
    assert 0 <= got["ece"] <= 1


def test_it_answers_for_the_model():
    with seeded(0):
        model = MCDropout(DSSHybrid(make_encoder("gcn", 5, 8, 3), DSSGNN(5, 8, 3), warmup_epochs=2))
    assert model.sparse_features
    assert model.warming_up
    model.start_epoch(2)
    assert not model.model.warming_up
    assert not hasattr(MCDropout(gcn()), "start_epoch")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("make", [line, gcn, dss])
def test_on_a_gpu(make):
    model, x, edges = MCDropout(make().cuda(), 3).eval(), X.cuda(), EDGES.cuda()
    torch.cuda.manual_seed(1)
    before = torch.cuda.get_rng_state()
    first = model(x, edges).logits
    assert torch.equal(torch.cuda.get_rng_state(), before)
    torch.cuda.manual_seed(2)
    assert torch.equal(model(x, edges).logits, first)
    assert not torch.equal(first[:, 0], first[:, 1])
    with pytest.warns(UserWarning, match="no dropout is active"):
        MCDropout(make(dropout=0.0).cuda(), 2).eval()(x, edges)
