"""One temperature for every kind of distribution."""

import pytest
import torch

from dssgnn import DSSGNN, DSSHybrid
from dssgnn.baselines.deep_ensemble import DeepEnsemble
from dssgnn.baselines.mc_dropout import MCDropout
from dssgnn.baselines.temperature import TemperatureScaled, fit_temperature
from dssgnn.data.synthetic import minesweeper
from dssgnn.errors import InputError
from dssgnn.expansion import ChaosExpansion, LogitSamples
from dssgnn.nn import make_encoder
from dssgnn.training import NodeTask, TrainingConfig, fit, seeded
from dssgnn.training.loop import evaluate


def numbers(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


KINDS = {
    "deterministic": lambda n: ChaosExpansion(2 * numbers(n, 1, 4)),
    "expansion": lambda n: ChaosExpansion(
        torch.cat([2 * numbers(n, 1, 4), 0.7 * numbers(n, 2, 4, seed=1)], 1)
    ),
    "samples": lambda n: LogitSamples(2 * numbers(n, 1, 4) + 0.7 * numbers(n, 5, 4, seed=1)),
}


def labelled(kind, nodes, copies=200):
    """A distribution whose every node stands there many times, with labels in the predicted proportions."""
    z = KINDS[kind](nodes).map(lambda c: c.repeat_interleave(copies, dim=0))
    place = (torch.arange(copies) + 0.5).repeat(nodes)[:, None] / copies
    return z, (place > z.predictive().cumsum(dim=1)[:, :-1]).sum(dim=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("factor", [0.4, 1.0, 3.0])
def test_a_known_factor_is_recovered(kind, factor):
    true, y = labelled(kind, 60)
    assert fit_temperature(true.map(lambda z: z * factor), y) == pytest.approx(factor, rel=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_the_slope_vanishes(kind):
    z, y = labelled(kind, 20, copies=30)
    temperature = torch.tensor(fit_temperature(z, y), dtype=torch.float64, requires_grad=True)
    log_p = z.map(lambda c: c / temperature).log_predictive()
    torch.nn.functional.nll_loss(log_p, y).backward()
    assert temperature.grad.abs() < 1e-5


def test_it_stays_within_its_range():
    z, y = ChaosExpansion(numbers(50, 1, 3)), torch.arange(50) % 3
    right = z.mean.argmax(dim=1)
    assert fit_temperature(z, right) == pytest.approx(1 / 20, rel=1e-3)
    assert fit_temperature(z, z.mean.argmin(dim=1)) == pytest.approx(20, rel=1e-3)
    assert 1 / 20 < fit_temperature(z, torch.where(y == 0, y, right)) < 20


@pytest.mark.parametrize(("right", "weak", "cold"), [(0.3, 0.05, True), (0.1, 0.0, False)])
def test_two_valleys(right, weak, cold):
    """Samples that disagree are worst between hot and cold: the whole range must be looked at."""
    torn = torch.tensor([[[right, 0.0], [-3.0, 0.0]]], dtype=torch.float64).expand(40, 2, 2)
    sure = torch.tensor([[[weak, 0.0]]], dtype=torch.float64).expand(40, 2, 2)
    z, y = LogitSamples(torch.cat([torn, sure])), torch.zeros(80, dtype=torch.int64)
    y[40:52] = 1

    def loss(temperature):
        return float(torch.nn.functional.nll_loss(z.map(lambda c: c / temperature).log_predictive(), y))

    assert loss(1.0) > max(loss(1 / 15), loss(20.0)) + 0.05
    got = fit_temperature(z, y)
    assert (got < 1) == cold
    assert loss(got) <= min(loss(20**k) for k in torch.linspace(-1, 1, 500).tolist()) + 1e-7


@pytest.fixture(scope="module")
def task():
    return NodeTask.from_data(minesweeper(8, 8, seed=1))


def hybrid():
    model = DSSHybrid(make_encoder("gcn", 7, 8, 2), DSSGNN(7, 8, 2), warmup_epochs=1)
    model.start_epoch(1)
    return model


@pytest.mark.parametrize(
    "make",
    [
        lambda: DSSGNN(7, 8, 2),
        hybrid,
        lambda: MCDropout(DSSGNN(7, 8, 2), 3),
        lambda: DeepEnsemble([DSSGNN(7, 8, 2) for _ in range(2)]),
    ],
)
def test_every_system(make, task):
    with seeded(0):
        model = make().eval()
    plain, scaled = model(task.x, task.graph), TemperatureScaled(model, 4.0).eval()(task.x, task.graph)
    assert type(scaled) is type(plain)
    assert scaled.mean.dtype == torch.float32
    torch.testing.assert_close(scaled.mean, plain.mean / 4)
    torch.testing.assert_close(scaled.chaos_energy, plain.chaos_energy / 16)
    torch.testing.assert_close(scaled.penalized_energy, plain.penalized_energy / 16)
    torch.testing.assert_close(scaled.energy(), plain.energy(4.0) / 4)


def test_fitted_on_validation_nodes(task):
    with seeded(0):
        model = DSSGNN(7, 8, 2)
    fit(model, task, TrainingConfig(epochs=60, patience=None, monitor="accuracy", lr=0.05))
    scaled = TemperatureScaled.fitted(model, task)
    before, after = (evaluate(m, task, task.val_mask) for m in (model, scaled))
    assert after["nll"] < before["nll"]
    answer = model(task.x, task.graph)[task.val_mask]
    assert float(scaled.temperature) == fit_temperature(answer, task.y[task.val_mask])
    copy = TemperatureScaled(DSSGNN(7, 8, 2))
    copy.load_state_dict(scaled.state_dict())
    assert torch.equal(copy.eval()(task.x, task.graph).mean, scaled(task.x, task.graph).mean)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_temperatures_that_are_none(value):
    with pytest.raises(InputError, match="temperature must be positive and finite"):
        TemperatureScaled(DSSGNN(7, 8, 2), value)
