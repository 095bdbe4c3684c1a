"""The paper's ChebNet control, and which rows a dataset has."""

import math
from dataclasses import replace

import pytest
import torch

from dssgnn.benchmarks.calibration import DATASETS
from dssgnn.benchmarks.calibration.ablations import ABLATIONS, ablation, datasets_of
from dssgnn.benchmarks.calibration.presets import preset
from dssgnn.benchmarks.calibration.systems import SYSTEMS, has_row, setup_of
from dssgnn.data.synthetic import minesweeper
from dssgnn.training import NodeTask, ParameterGroup, fit, fit_population, seeded


@pytest.fixture
def task():
    return NodeTask.from_data(minesweeper(6, 6, seed=1))


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_control_is_one_configuration_of_one_branch(dataset):
    """Notes 2.2: P=0, low-pass branch alone, K_lp 4, hidden 64, 2 layers; the rest their defaults (1.8)."""
    made = setup_of("chebnet", "paper", dataset)
    shape = made.config["architecture"]
    assert (shape["chaos_order"], shape["hidden_channels"], shape["num_layers"]) == (0, 64, 2)
    assert (shape["filter_orders"][0], shape["readout"], shape["lift_dropout"]) == (4, "filtered", 0.5)
    assert (made.training.lr, made.training.weight_decay, made.training.chaos_weight) == (0.01, 5e-4, 0.0)
    assert [made.seed(split, 0) for split in (0, 9)] == [42, 42]
    assert made.config["high_branch"] is False


def test_the_control_has_a_low_branch_alone(task):
    made = setup_of("chebnet", "paper", "texas")
    training = replace(made.training, epochs=5, patience=None)
    with seeded(0):
        models = [made.make(7, 2) for _ in range(2)]
    start = models[0].state_dict()["layers.0.low_coefficients"].clone()
    fit_population(models, [task, task], [training, replace(training, seed=1)], way="block")
    for layer in models[0].layers:
        assert not layer.high_gates.any()
        assert not layer.high_coefficients.any()
    assert not torch.equal(models[0].layers[0].low_coefficients, start)
    # The high branch does not act: whatever its filter, the answer is the same.
    expected = models[0].eval()(task.x, task.graph).mean
    with torch.no_grad():
        models[0].layers[0].high_coefficients.fill_(3.0)
    assert torch.equal(models[0](task.x, task.graph).mean, expected)


def test_presets_are_rows_where_they_exist():
    assert {name for name in DATASETS if has_row("dss-gnn", "published-other", name)} == {
        "amazon-ratings",
        "tolokers",
    }
    assert all(has_row("dss-gnn", variant, name) for variant in ("paper", "published") for name in DATASETS)
    assert not has_row("dss-gnn", "published", "amazon-photo")
    assert all(has_row(*row, "amazon-photo") for row in (("gcn", "paper"), ("dss-gnn", "best")))
    made = setup_of("dss-gnn", "published-other", "tolokers")
    assert made.config["architecture"]["hidden_channels"] == 32
    assert all(SYSTEMS[row]("cora").config for row in SYSTEMS if has_row(*row, "cora"))


def test_ablations_are_the_papers():
    """The values that its tables p_brier, lreg_ablation, S_ablation and bn_calibration have."""

    def values(name, key, part=0):
        return [change[part][key] for change in ABLATIONS[name].values()]

    assert values("order", "chaos_order") == [0, 1, 2, 3, 4, 5, 6, 8]
    assert values("regulariser", "chaos_weight", 1) == [0, 1e-3, 1e-2, 1e-1]
    assert values("quadrature", "quadrature_size") == [2, 3, 4, 6, 8]
    assert set(values("regulariser", "chaos_order")) == set(values("quadrature", "chaos_order")) == {2}
    assert list(ABLATIONS["norm"]) == ["norm off", "norm on"]
    assert list(ABLATIONS["objective"]) == ["mean", "quadrature", "predictive", "brier"]
    orders, sizes = (values("order-exact", key) for key in ("chaos_order", "quadrature_size"))
    assert orders == [4, 5, 6, 8]  # where S = 4 aliases
    assert all(size >= order + 1 for order, size in zip(orders, sizes, strict=True))
    labels = [label for changes in ABLATIONS.values() for label in changes]
    assert len(labels) == len(set(labels))


def test_ablations_run_where_the_paper_ran_them():
    for base in ("paper", "published"):
        for name in ("order", "regulariser", "quadrature", "objective", "order-predictive"):
            assert datasets_of(name, base) == DATASETS
        assert datasets_of("norm", base) == ("cora", "citeseer", "wisconsin", "roman-empire")
        assert set(DATASETS) - set(datasets_of("penalty", base)) == {"citeseer", "wisconsin", "roman-empire"}
    assert datasets_of("order-exact", "paper") == DATASETS
    assert datasets_of("order-exact", "published") == (
        "cora", "citeseer", "pubmed", "cornell", "wisconsin", "coauthor-cs", "minesweeper",
    )  # fmt: skip
    assert datasets_of("order", "published-other") == ("amazon-ratings", "tolokers")


@pytest.mark.parametrize(
    ("base", "dataset", "frozen"),
    [
        ("published", "chameleon", True),  # the authors' Prop-first
        ("published", "cora", False),
        ("published", "roman-empire", False),  # their TFE-adj
        ("paper", "chameleon", False),
    ],
)
def test_norms_of_the_authors_prop_first_are_not_trained(base, dataset, frozen, task):
    """Notes 1.6: they are in no group of the optimiser; the rates of the others stay."""
    made = ablation("norm", base)[f"{base}, norm on"](dataset)
    groups = preset(dataset, base).training.groups
    assert made.training.groups == ((ParameterGroup("norms*", 0.0), *groups) if frozen else groups)
    with seeded(0):
        model = made.make(7, 2)
    fit(model, task, replace(made.training, epochs=3, patience=None))
    assert len(model.norms)
    assert all(torch.equal(norm.weight, torch.ones_like(norm.weight)) == frozen for norm in model.norms)
    off = ablation("norm", base)[f"{base}, norm off"](dataset)
    assert off.training == preset(dataset, base).training


@pytest.mark.parametrize("dataset", ["cora", "texas"])
@pytest.mark.parametrize("name", list(ABLATIONS))
def test_ablations_train(name, dataset, task):
    for make in ablation(name, "published").values():
        made = make(dataset)
        with seeded(0):
            model = made.make(7, 2)
        result = fit(model, task, replace(made.training, epochs=2, patience=None))
        assert math.isfinite(result.best_value)
