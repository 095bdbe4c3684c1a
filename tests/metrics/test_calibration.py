"""Metrics against scikit-learn, torchmetrics, and loops written out."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import log_loss
from torchmetrics.functional.classification import multiclass_accuracy, multiclass_calibration_error

from dssgnn import ChaosExpansion
from dssgnn.errors import InputError
from dssgnn.metrics import (
    accuracy,
    brier,
    calibration_metrics,
    expected_calibration_error,
    nll,
    reliability_curve,
)
from dssgnn.metrics.calibration import METRICS, metric_values


def draw(seed, nodes=200, classes=5):
    generator = torch.Generator().manual_seed(seed)
    p = torch.randn(nodes, classes, generator=generator, dtype=torch.float64).mul(2).softmax(-1)
    return p, torch.randint(classes, (nodes,), generator=generator)


@pytest.mark.parametrize("seed", range(3))
def test_second_opinions(seed):
    p, y = draw(seed)
    assert accuracy(p, y).item() == pytest.approx(
        multiclass_accuracy(p, y, num_classes=5, average="micro").item(), abs=1e-7
    )
    assert nll(p.log(), y).item() == pytest.approx(log_loss(y, p, labels=range(5)), abs=1e-12)
    by_loop = sum(
        sum((p[i, c].item() - (c == y[i].item())) ** 2 for c in range(5)) for i in range(len(y))
    ) / len(y)
    assert brier(p, y).item() == pytest.approx(by_loop, abs=1e-12)
    reference = multiclass_calibration_error(p.float(), y, num_classes=5, n_bins=10)
    assert expected_calibration_error(p, y).item() == pytest.approx(reference.item(), abs=1e-6)


def test_bins_are_closed_on_the_left_and_the_last_on_both_sides():
    p = torch.tensor([[0.5, 0.5], [0.6, 0.4], [1.0, 0.0], [0.9, 0.1]], dtype=torch.float64)
    y = torch.tensor([0, 1, 0, 0])
    curve = reliability_curve(p, y)
    assert curve.support.tolist() == [0, 0, 0, 0, 0, 1, 1, 0, 0, 2]
    assert curve.accuracy[[5, 6, 9]].tolist() == [1, 0, 1]
    assert curve.confidence[9].item() == pytest.approx(0.95)


@given(st.integers(0, 10_000), st.integers(2, 6), st.integers(1, 40))
def test_properties(seed, classes, nodes):
    p, y = draw(seed, nodes, classes)
    curve = reliability_curve(p, y)
    assert curve.support.sum() == nodes
    assert 0 <= expected_calibration_error(p, y) <= 1
    assert 0 <= brier(p, y) <= 2
    order = torch.randperm(nodes, generator=torch.Generator().manual_seed(seed))
    assert brier(p[order], y[order]).item() == pytest.approx(brier(p, y).item(), abs=1e-12)


def test_brier_is_proper():
    """The true distribution has the lowest expected Brier score; a sharpened one does worse."""
    p, _ = draw(0, 20_000)
    y = torch.multinomial(p, 1, generator=torch.Generator().manual_seed(1))[:, 0]
    sharpened = p**2 / (p**2).sum(-1, keepdim=True)
    assert brier(p, y) < brier(sharpened, y)
    assert expected_calibration_error(p, y) < 0.01 < expected_calibration_error(sharpened, y)


def test_record_metrics_are_of_the_readouts_they_name():
    z = ChaosExpansion(torch.randn(50, 3, 4, generator=torch.Generator().manual_seed(2)) * 2)
    y = torch.randint(4, (50,), generator=torch.Generator().manual_seed(3))
    metrics = calibration_metrics(z, y)
    assert metrics["brier"] == pytest.approx(brier(z.predictive(), y).item(), abs=1e-6)
    assert metrics["brier_mean"] == pytest.approx(brier(z.mean.softmax(-1), y).item(), abs=1e-6)
    assert metrics["accuracy_mean"] == pytest.approx(accuracy(z.mean, y).item(), abs=1e-6)
    assert metrics["chaos_energy"] == pytest.approx(z.chaos_energy.mean().item(), rel=1e-5)
    assert set(metrics) >= {"accuracy", "brier", "nll", "ece"}


def test_bad_input():
    with pytest.raises(InputError, match=r"probabilities must have shape \[N, C\]"):
        brier(torch.ones(3), torch.zeros(3, dtype=torch.long))
    with pytest.raises(InputError, match=r"label of node 1 is 4, expected 0\.\.1"):
        brier(torch.full((2, 2), 0.5), torch.tensor([0, 4]))
    with pytest.raises(InputError, match="bins must be an integer >= 1, got 0"):
        reliability_curve(torch.full((2, 2), 0.5), torch.tensor([0, 1]), bins=0)
    assert np.isfinite(brier(torch.full((1, 1), 1.0), torch.tensor([0])).item())


def test_nodes_of_weight_zero_count_for_nothing():
    """Padded nodes change no metric, not even in its last bit where the metric is a share."""
    z = ChaosExpansion(torch.randn(30, 2, 3, generator=torch.Generator().manual_seed(4)))
    y = torch.randint(3, (30,), generator=torch.Generator().manual_seed(5))
    weight = torch.ones(30)
    weight[21:] = 0
    padded = dict(zip(METRICS, metric_values(z, y, weight).tolist(), strict=True))
    alone = calibration_metrics(z[:21], y[:21])
    assert padded == pytest.approx(alone, abs=1e-14)
    assert [padded[k] for k in ("accuracy", "accuracy_mean")] == [
        alone[k] for k in ("accuracy", "accuracy_mean")
    ]


def test_a_population_is_measured_at_once():
    coefficients = torch.randn(4, 30, 2, 3, generator=torch.Generator().manual_seed(6))
    y = torch.randint(3, (4, 30), generator=torch.Generator().manual_seed(7))
    batched = torch.func.vmap(lambda z, y: metric_values(ChaosExpansion(z), y))(coefficients, y)
    for row, z, labels in zip(batched.tolist(), coefficients, y, strict=True):
        assert row == pytest.approx(list(calibration_metrics(ChaosExpansion(z), labels).values()), abs=1e-14)
