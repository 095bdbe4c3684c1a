"""`DSSClassifier` with each of its methods keeps to the estimator contract, and to what is its own."""

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from dssgnn import DSSClassifier
from dssgnn.errors import InputError
from dssgnn.systems import METHODS
from estimator_checks import CHECKS, assert_same_weights, board


def make(method: str, /, **parameters: Any) -> DSSClassifier:
    # The hybrid's branch must train in these few epochs, and GAT has eight heads.
    return DSSClassifier(
        **({"method": method, "hidden_channels": 8, "epochs": 3, "warmup_epochs": 1} | parameters)
    )


FACTORIES = {method: partial(make, method) for method in METHODS}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
@pytest.mark.parametrize("method", FACTORIES)
def test_contract(method: str, check: Callable[[Any], None]) -> None:
    check(FACTORIES[method])


@pytest.mark.parametrize("norm", [None, "batch", "joint"])
@pytest.mark.parametrize(
    "options",
    [{"chaos_order": 0}, {"chaos_order": 3, "gate_order": 1}, {"num_layers": 1}, {"residual": "inner"}],
)
def test_shapes_survive_a_folder(tmp_path, norm, options) -> None:
    model = make("dss-gnn", norm=norm, filter_orders=(2, 3), **options).fit(board())
    model.save(tmp_path / "m")
    again = DSSClassifier.load(tmp_path / "m")
    assert_same_weights(model, again)
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.predict_proba(board(5)), model.predict_proba(board(5)))


def test_without_an_order_the_joint_norm_is_batch_norm() -> None:
    assert_same_weights(*(make("gcn-res", norm=norm).fit(board()) for norm in ("joint", "batch")))


def test_a_norm_that_there_is_not() -> None:
    for method in ("gcn-res", "dss-gnn"):
        with pytest.raises(InputError, match=r"norm must be .* got 'bogus'"):
            make(method, norm="bogus").fit(board())


def test_a_hybrid_that_never_left_its_warm_up(tmp_path) -> None:
    with pytest.warns(UserWarning, match="ends within the warm-up"):
        model = make("dss-hybrid", warmup_epochs=50).fit(board())
    assert model.state_.metrics["model"]["chaos_energy_by_order"] == []
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(
        DSSClassifier.load(tmp_path / "m").predict_proba(board()), model.predict_proba(board())
    )


def test_numbers_of_numpy_are_parameters(tmp_path) -> None:
    """As sweeps bring them; the folder holds plain JSON all the same."""
    model = make("dss-gnn", epochs=np.int64(3), lr=np.float64(0.01), hidden_channels=np.int32(8)).fit(board())
    model.save(tmp_path / "m")
    assert_same_weights(DSSClassifier.load(tmp_path / "m"), make("dss-gnn").fit(board()))


def test_weights_of_edges_count() -> None:
    data = board()
    plain = make("dss-gnn").fit(data).predict_proba(data)
    data.edge_weight = torch.linspace(0.1, 3, data.num_edges)
    weighted = make("dss-gnn").fit(data)
    assert not np.allclose(weighted.predict_proba(data), plain)
    np.testing.assert_array_equal(weighted.state_.edge_weight, data.edge_weight.numpy())


def test_it_learns_and_knows_its_filters() -> None:
    """A board is far from homophilous: the default must beat the majority class."""
    data = board(24)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = DSSClassifier(hidden_channels=16, epochs=120).fit(data)
    majority = 1 - data.y[data.test_mask].float().mean().item()
    metrics = model.state_.metrics
    assert metrics["test"]["accuracy"] > majority + 0.02
    assert metrics["test"] == model.evaluate(data, data.test_mask)
    assert [f["layer"] for f in metrics["model"]["filters"]] == [0, 1]
    assert len(metrics["model"]["filters"][0]["low"]) == 5
    assert len(metrics["model"]["chaos_energy_by_order"]) == 1
    assert metrics["training"]["parameters"] == sum(p.numel() for p in model.model_.parameters())


def test_auto_input_dropout_depends_on_the_features() -> None:
    assert make("dss-gnn")._make_model(99, 2).input_dropout == 0.0
    assert make("dss-gnn")._make_model(100, 2).input_dropout == 0.5


def test_dropout_of_random_variables_is_a_parameter() -> None:
    assert not make("dss-gnn")._make_model(5, 2).joint_dropout
    assert make("dss-gnn", joint_dropout=True)._make_model(5, 2).joint_dropout
