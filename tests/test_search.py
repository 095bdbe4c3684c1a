"""Successive halving: what it trains, how long, and what it answers."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

from dssgnn import DSSClassifier
from dssgnn.data import minesweeper
from dssgnn.errors import InputError
from dssgnn.search import BUDGETS, SPACE, halving


def recorder(value=lambda parameters, epochs: parameters.get("dropout", 0.5) + 1 / epochs):
    calls = []

    def score(parameters, epochs):
        calls.append((parameters, epochs))
        return value(parameters, epochs)

    return calls, score


@pytest.mark.parametrize(
    ("kind", "rounds"), [("quick", [(40, 9), (150, 3)]), ("thorough", [(40, 27), (120, 9), (360, 3)])]
)
def test_a_third_survives_each_round(kind, rounds):
    calls, score = recorder()
    trials = halving(score, kind)
    assert [(e, sum(epochs == e for _, epochs in calls)) for e, _ in rounds] == rounds
    assert calls[0][0] == {}
    assert len(trials) == len(calls)
    assert trials[0].epochs == rounds[-1][0]
    last = [trial.brier for trial in trials if trial.epochs == trials[0].epochs]
    assert trials[0].brier == min(last)
    assert len(last) == 3


def test_candidates_come_from_the_space_and_repeat_with_the_seed():
    drawn = [recorder() for _ in range(3)]
    for (_, score), seed in zip(drawn, (0, 0, 1), strict=True):
        halving(score, "quick", seed=seed)
    calls = [calls for calls, _ in drawn]
    assert calls[0] == calls[1] != calls[2]
    for parameters, _ in calls[0][1:9]:
        assert set(parameters) == set(SPACE)
        assert all(parameters[name] in SPACE[name] for name in SPACE)


def test_own_settings_win_where_they_are_best():
    _, score = recorder(lambda parameters, epochs: 1.0 if parameters else 0.1)
    assert halving(score, "quick")[0].parameters == {}


def test_time_stops_the_search_but_not_before_one_trial():
    calls, score = recorder()
    trials = halving(score, "thorough", seconds=1e-9)
    assert len(calls) == len(trials) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "slow"}, "search must be one of 'quick', 'thorough', got 'slow'"),
        ({"seconds": 0}, "search_seconds"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(InputError, match=message):
        halving(lambda p, e: 0.0, **({"kind": "quick"} | options))


def test_an_estimator_chooses_for_itself(tmp_path, monkeypatch):
    """The search sees no test label, and what it chose is what is fitted, saved and loaded."""
    monkeypatch.setitem(BUDGETS, "quick", (3, (2, 4)))
    board = minesweeper(10, 10)
    plain = DSSClassifier(hidden_channels=4, epochs=6, search="quick", seed=3)
    model = clone(plain).fit(board)
    assert [trial.epochs for trial in model.trials_] == [4, 2, 2, 2]
    assert model.get_params() == plain.get_params()
    assert model.state_.parameters["search"] is None
    chosen = model.trials_[0].parameters
    assert {k: model.state_.parameters[k] for k in chosen} == chosen
    model.save(tmp_path / "m")
    loaded = DSSClassifier.load(tmp_path / "m")
    assert np.array_equal(loaded.predict_proba(board), model.predict_proba(board))

    shuffled = minesweeper(10, 10)
    shuffled.y = torch.where(shuffled.test_mask, 1 - shuffled.y, shuffled.y)
    again = clone(plain).fit(shuffled)
    assert again.trials_ == model.trials_
    assert np.array_equal(again.predict_proba(board), model.predict_proba(board))
