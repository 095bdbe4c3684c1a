"""An ensemble is its members, trained as each alone would be, and their averaged probabilities."""

from dataclasses import replace

import pytest
import torch

from dssgnn import DSSGNN
from dssgnn.baselines.deep_ensemble import DeepEnsemble, ensemble_seeds, fit_ensemble
from dssgnn.data.synthetic import minesweeper
from dssgnn.errors import InputError
from dssgnn.expansion import LogitSamples
from dssgnn.metrics import calibration_metrics
from dssgnn.training import NodeTask, TrainingConfig, fit, seeded
from dssgnn.training.loop import evaluate

CONFIG = TrainingConfig(epochs=30, patience=4, lr=0.05)


@pytest.fixture(scope="module")
def task():
    data = minesweeper(6, 6, seed=1)
    data.x = data.x.double()
    return NodeTask.from_data(data)


def make():
    return DSSGNN(7, 6, 2, chaos_order=1, filter_orders=(2, 2), norm="batch").double()


def test_identical_members_are_the_member(task):
    with seeded(0):
        member = DSSGNN(7, 6, 2, chaos_order=0).double().eval()
    got, alone = DeepEnsemble([member] * 3)(task.x, task.graph), member(task.x, task.graph)
    torch.testing.assert_close(got.predictive(), alone.predictive())
    torch.testing.assert_close(got.energy(), alone.energy())
    torch.testing.assert_close(got.mutual_information(), torch.zeros(36).double(), rtol=0, atol=1e-14)
    torch.testing.assert_close(got.chaos_energy, torch.zeros(36).double(), rtol=0, atol=1e-25)
    ours, theirs = (calibration_metrics(z, task.y) for z in (got, alone))
    assert ours == pytest.approx(theirs, abs=1e-12)


def test_probabilities_are_averaged(task):
    with seeded(0):
        models = [make().eval() for _ in range(3)]
    got = DeepEnsemble(models)(task.x, task.graph)
    assert isinstance(got, LogitSamples)
    means = torch.stack([model(task.x, task.graph).mean for model in models])
    torch.testing.assert_close(got.predictive(), means.softmax(dim=-1).mean(dim=0))
    torch.testing.assert_close(got.chaos_energy, means.var(dim=0, correction=0).sum(dim=-1))
    torch.testing.assert_close(got.energy(), -means.mean(dim=0).logsumexp(dim=-1))


def test_published_seeds():
    assert ensemble_seeds(0) == (42, 1001, 1002, 1003, 1004)
    assert ensemble_seeds(9, 2) == (51, 10001)
    everything = [seed for run in range(10) for seed in ensemble_seeds(run)]
    assert len(set(everything)) == 50
    with pytest.raises(InputError, match="members must be an integer >= 1, got 0"):
        ensemble_seeds(0, 0)


@pytest.mark.parametrize("way", ["threads", "block"])
def test_members_are_those_of_separate_runs(way, task):
    seeds = ensemble_seeds(3, 3)
    ensemble, results = fit_ensemble(make, task, CONFIG, seeds=seeds, way=way)
    assert len({len(result.history) for result in results}) > 1
    for seed, result, member in zip(seeds, results, ensemble.models, strict=True):
        with seeded(seed):
            alone = make()
        expected = fit(alone, task, replace(CONFIG, seed=seed))
        assert (result.best_epoch, result.stopped) == (expected.best_epoch, expected.stopped)
        torch.testing.assert_close(member.state_dict(), alone.state_dict(), rtol=0, atol=1e-8)
    assert not ensemble.training
    assert evaluate(ensemble, task, task.val_mask)["chaos_energy"] > 0


def test_five_members_by_default(task):
    ensemble, _ = fit_ensemble(make, task, TrainingConfig(epochs=1))
    assert len(ensemble.models) == 5
    assert ensemble.sparse_features


def test_convexity_of_the_scores(task):
    """By Jensen the NLL and the Brier score of the mean are at most the members' mean."""
    with seeded(0):
        models = [make().eval() for _ in range(4)]
    whole = calibration_metrics(DeepEnsemble(models)(task.x, task.graph), task.y)
    members = [calibration_metrics(DeepEnsemble([m])(task.x, task.graph), task.y) for m in models]
    for name in ("nll", "brier"):
        assert whole[name] < sum(member[name] for member in members) / 4


def test_nothing_to_ask(task):
    with pytest.raises(InputError, match="an ensemble needs at least one model"):
        DeepEnsemble([])
    config = replace(CONFIG, lr=1e300, optimizer="sgd")
    with pytest.raises(InputError, match="the member of seed 42 was never finite"):
        fit_ensemble(make, replace(task, x=task.x * 1e200), config, members=2)
