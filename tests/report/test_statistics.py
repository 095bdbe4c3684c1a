"""Scores, intervals and curves against known answers, brute force and the library's own metrics."""

from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from dssgnn.metrics import accuracy, brier, expected_calibration_error, nll
from dssgnn.report.statistics import (
    NodeScores,
    auroc,
    bin_edges,
    bootstrap,
    chance_ece,
    density,
    node_scores,
    risk_coverage,
    wilson,
)


def example(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet([1.0, 0.7, 0.5], n), rng.integers(3, size=n)


def test_point_values_are_those_of_the_metrics() -> None:
    p, y = example()
    values = bootstrap(node_scores(p, y), draws=5)
    tensors = torch.from_numpy(p), torch.from_numpy(y)
    assert values["accuracy"].value == pytest.approx(float(accuracy(*tensors)))
    assert values["brier"].value == pytest.approx(float(brier(*tensors)))
    assert values["nll"].value == pytest.approx(float(nll(tensors[0].log(), tensors[1])))
    assert values["ece"].value == pytest.approx(float(expected_calibration_error(*tensors)))
    assert values["gap"].value == pytest.approx(p.max(axis=1).mean() - values["accuracy"].value)


def test_a_probability_of_zero_keeps_the_mean_finite() -> None:
    assert np.isfinite(node_scores(np.array([[1.0, 0.0]]), np.array([1])).nll).all()


def test_bootstrap_is_brute_force_resampling_and_repeats_itself() -> None:
    p, y = example(60)
    scores, draws = node_scores(p, y), 40
    rng = np.random.default_rng(7)
    order = np.argsort((scores.confidence * 10).astype(int).clip(0, 9), kind="stable")
    resamples = [order[rng.integers(60, size=60)] for _ in range(draws)]
    result = bootstrap(scores, seed=7, draws=draws)
    assert result == bootstrap(scores, seed=7, draws=draws)
    assert result != bootstrap(scores, seed=8, draws=draws)
    low, high = np.quantile([scores.brier[rows].mean() for rows in resamples], [0.025, 0.975])
    assert (result["brier"].low, result["brier"].high) == pytest.approx((low, high))
    ece = [
        float(expected_calibration_error(torch.from_numpy(p[rows]), torch.from_numpy(y[rows])))
        for rows in resamples
    ]
    value, (low, high) = result["ece"].value, np.quantile(ece, [0.025, 0.975])
    assert result["ece"].low == pytest.approx(max(0, 2 * value - high))
    assert result["ece"].high == pytest.approx(max(value, 2 * value - low))


def test_bootstrap_interval_of_the_accuracy_is_the_binomial_one() -> None:
    correct = np.arange(1000) < 800
    scores = NodeScores(np.full(1000, 0.8), correct, np.zeros(1000), np.zeros(1000))
    result = bootstrap(scores, draws=2000)["accuracy"]
    low, high = stats.binom.ppf([0.025, 0.975], 1000, 0.8) / 1000
    assert (result.low, result.high) == pytest.approx((low, high), abs=0.003)


def test_chance_ece_covers_a_calibrated_model_nineteen_times_of_twenty() -> None:
    rng = np.random.default_rng(3)
    confidence = rng.uniform(0.4, 1, 500)
    limit = chance_ece(confidence)
    zeros = np.zeros(500)
    inside = [
        bootstrap(NodeScores(confidence, rng.random(500) < confidence, zeros, zeros), draws=1)["ece"].value
        <= limit
        for _ in range(400)
    ]
    assert np.mean(inside) == pytest.approx(0.95, abs=0.035)


def test_wilson_is_scipys() -> None:
    for right, n in [(0, 5), (5, 5), (3, 7), (80, 100)]:
        expected = stats.binomtest(right, n).proportion_ci(method="wilson")
        assert np.concatenate(wilson(np.array([right]), np.array([n]))) == pytest.approx(expected)
    assert [float(end[0]) for end in wilson(np.array([0]), np.array([0]))] == [0, 1]


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=30), st.randoms())
def test_risk_coverage_by_brute_force_in_any_order(nodes: list[tuple[int, bool]], random: Random) -> None:
    random.shuffle(nodes)
    uncertainty, wrong = np.array([u for u, _ in nodes], dtype=float), np.array([w for _, w in nodes])
    curve = risk_coverage(uncertainty, wrong)
    for threshold, coverage, risk, n in zip(sorted(set(uncertainty)), *curve, strict=True):
        answered = uncertainty <= threshold
        assert n == answered.sum()
        assert coverage == pytest.approx(answered.mean())
        assert risk == pytest.approx(wrong[answered].mean())
    assert curve.coverage[-1] == 1


def test_auroc_is_sklearns_with_ties() -> None:
    rng = np.random.default_rng(0)
    inside, outside = rng.integers(5, size=40).astype(float), rng.integers(2, 8, size=30).astype(float)
    truth = np.repeat([0, 1], [40, 30])
    assert auroc(inside, outside) == pytest.approx(roc_auc_score(truth, np.concatenate([inside, outside])))


def test_density_integrates_to_one_and_is_scipys() -> None:
    values = np.random.default_rng(0).normal(2, 0.5, 20_000)
    grid = np.linspace(-1, 5, 241)
    result = density(values, grid)
    assert result.sum() * (grid[1] - grid[0]) == pytest.approx(1, abs=1e-3)
    low, high = np.quantile(values, [0.25, 0.75])
    width = 0.9 * min(values.std(), (high - low) / 1.34) * 20_000**-0.2
    exact = stats.gaussian_kde(values, bw_method=width / values.std(ddof=1))(grid)
    assert np.abs(result - exact).max() < 2e-3


def test_density_of_one_repeated_value_is_finite() -> None:
    grid = np.linspace(0, 2, 101)
    assert density(np.ones(50), grid).sum() * 0.02 == pytest.approx(1, abs=1e-2)


def test_bin_edges_are_not_squeezed_by_a_far_value() -> None:
    values = np.append(np.random.default_rng(0).normal(size=1000), 1e6)
    edges = bin_edges(values, 30)
    assert edges[0] < -2.5
    assert 2.5 < edges[-1] < 10
    assert bin_edges(np.full(4, 3.0), 2).tolist() == [2.5, 3.0, 3.5]
