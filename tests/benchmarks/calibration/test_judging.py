"""Judging a run by nodes that did not choose its epoch."""

import numpy as np
import pytest

from dssgnn.benchmarks.calibration.search.judging import judged
from dssgnn.errors import InputError


def test_one_epoch_is_its_mean():
    scores = np.array([[0.1, 0.3, 0.5, 0.7]])
    assert judged(scores, 1000) == pytest.approx(0.4, abs=0.02)


def test_halves_that_agree_choose_the_best_epoch():
    scores = np.full((5, 7), 0.6)
    scores[3] = 0.2
    assert judged(scores, 10) == pytest.approx(0.2)


def test_luck_is_not_rewarded():
    """Epochs of pure noise: the least mean of a thousand is far below what any of them is worth."""
    scores = np.random.default_rng(0).integers(0, 2, size=(1000, 40)).astype(float)
    assert scores.mean(axis=1).min() < 0.3
    assert judged(scores, 500) == pytest.approx(0.5, abs=0.05)


def test_the_judging_half_is_the_other_one():
    """Two nodes: what one likes is always judged by the other."""
    assert judged(np.array([[0.0, 1.0], [1.0, 0.0]]), 50) == 1.0


def test_epochs_that_are_no_numbers_are_not_chosen():
    scores = np.array([[np.nan, 0.0, 0.0], [0.5, 0.5, 0.5]])
    assert judged(scores, 20) == pytest.approx(0.5)
    assert judged(np.full((2, 4), np.nan), 20) == np.inf


def test_draws_repeat():
    scores = np.random.default_rng(1).random((30, 9))
    assert judged(scores, 25) == judged(scores, 25)


@pytest.mark.parametrize(
    ("scores", "halvings"), [(np.zeros((3, 1)), 5), (np.zeros(3), 5), (np.zeros((3, 4)), 0)]
)
def test_what_cannot_be_halved(scores, halvings):
    with pytest.raises(InputError, match=r"two nodes or more, got|halvings"):
        judged(scores, halvings)
