"""Presets build and train; their values are those typed here from the paper's tables and the protocol notes."""

import copy
from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from dssgnn import DSSGNN
from dssgnn.baselines.published_dss import PublishedDSS
from dssgnn.benchmarks.calibration import DATASETS
from dssgnn.benchmarks.calibration.presets import PRESETS, preset
from dssgnn.data.catalog.entries import ENTRIES
from dssgnn.data.prepare import prepare
from dssgnn.errors import InputError
from dssgnn.training import NodeTask, fit, seeded

# Paper: architecture, hidden, layers, optimiser and dropout (table of configurations), P and lambda (selection).
PAPER = {
    "cora": ("first rw", 64, 2, "adam", 0.8, 1, 0.01),
    "citeseer": ("cheb", 64, 2, "adam", 0.5, 2, 0.0),
    "pubmed": ("cheb", 128, 2, "adam", 0.5, 5, 0.01),
    "texas": ("first", 64, 2, "rmsprop", 0.5, 2, 0.01),
    "cornell": ("cheb", 128, 2, "adam", 0.8, 1, 0.01),
    "wisconsin": ("cheb", 64, 2, "adam", 0.6, 2, 0.0),
    "chameleon": ("first sum", 64, 2, "adam", 0.5, 1, 0.01),
    "squirrel": ("first rw", 64, 2, "rmsprop", 0.5, 1, 0.1),
    "coauthor-cs": ("tfe", 64, 2, "adam", 0.5, 1, 0.01),
    "roman-empire": ("tfe", 32, 3, "adam", 0.5, 1, 0.0),
    "amazon-ratings": ("tfe", 64, 3, "adam", 0.5, 8, 0.01),
    "minesweeper": ("cheb", 64, 2, "adam", 0.5, 6, 0.001),
    "tolokers": ("first rw", 64, 2, "rmsprop", 0.5, 2, 0.01),
    "questions": ("first", 64, 2, "rmsprop", 0.5, 4, 0.001),
}
# Notes 2.2, column (b): what runs, hidden, K, layers, dropout, optimiser; P and lambda of the paper; patience (1.6).
PUBLISHED = {
    "cora": ("cheb", 64, (4, 4), 2, 0.8, "adam", 1, 0.01, 200),
    "citeseer": ("cheb", 64, (4, 4), 2, 0.5, "adam", 2, 0.0, 200),
    "pubmed": ("cheb", 128, (4, 4), 2, 0.5, "adam", 5, 0.01, 200),
    "texas": ("con sym", 512, (6, 5), 2, 0.6, "rmsprop", 2, 0.01, 200),
    "cornell": ("cheb", 128, (4, 4), 2, 0.8, "adam", 1, 0.01, 200),
    "wisconsin": ("cheb", 64, (4, 4), 2, 0.6, "adam", 2, 0.0, 200),
    "chameleon": ("sum sym", 512, (6, 5), 2, 0.7, "adam", 1, 0.01, 300),
    "squirrel": ("con rw", 512, (6, 5), 2, 0.8, "rmsprop", 1, 0.1, 400),
    "coauthor-cs": ("cheb", 64, (4, 4), 2, 0.5, "adam", 1, 0.01, 200),
    "roman-empire": ("tfe sym", 32, (2, 2), 3, 0.5, "adam", 1, 0.0, 200),
    "amazon-ratings": ("con sym", 512, (6, 5), 2, 0.6, "adam", 8, 0.01, 200),
    "minesweeper": ("cheb", 64, (4, 4), 2, 0.5, "adam", 6, 0.001, 200),
    "tolokers": ("con rw", 512, (6, 5), 2, 0.6, "rmsprop", 2, 0.01, 200),
    "questions": ("con sym", 512, (6, 5), 2, 0.6, "rmsprop", 4, 0.001, 200),
}
OTHER = {
    "amazon-ratings": ("tfe sym", 128, (6, 5), 3, 0.6, "adam", 8, 0.01, 200),
    "tolokers": ("con rw", 32, (2, 2), 2, 0.5, "rmsprop", 1, 0.01, 200),
}
DIRECTED = {"texas", "cornell", "wisconsin", "chameleon", "squirrel"}
RAW_FEATURES = {
    "coauthor-cs", "roman-empire", "amazon-ratings", "minesweeper", "tolokers", "questions",
}  # fmt: skip


def test_every_dataset_of_the_table_has_both():
    assert {d for d, v in PRESETS if v == "paper"} == set(DATASETS) == set(PAPER)
    assert {d for d, v in PRESETS if v == "published"} == set(DATASETS) == set(PUBLISHED)
    assert {d for d, v in PRESETS if v == "published-other"} == set(OTHER)


@pytest.mark.parametrize("dataset", DATASETS)
def test_paper(dataset):
    kind, hidden, layers, optimizer, dropout, order, weight = PAPER[dataset]
    chosen = preset(dataset, "paper")
    shape, training = chosen.architecture, chosen.training
    assert chosen.model == "DSSGNN"
    assert (shape["hidden_channels"], shape["num_layers"], shape["chaos_order"]) == (hidden, layers, order)
    assert shape["filter_orders"] == ((2, 2) if dataset == "roman-empire" else (4, 4))
    assert shape["quadrature_size"] == 4
    assert shape["propagation"] == ("first" if kind.startswith("first") else "every")
    if kind.startswith("first"):
        assert shape["branches"] == ("sum" if dataset == "chameleon" else "concat")
    assert shape["readout"] == "linear"
    assert shape["dropout"] == 0
    assert {shape["lift_dropout"], shape["input_dropout"]} == {0.0, dropout}
    assert chosen.operator["normalization"] == ("rw" if "rw" in kind else "sym")
    assert (training.optimizer, training.chaos_weight) == (optimizer, weight)
    assert training.lr == (0.005 if dataset == "minesweeper" else 0.01)
    assert (training.weight_decay, training.epochs, training.patience) == (5e-4, 1000, 200)
    assert (training.objective, training.monitor, training.chaos_nodes) == ("mean", "nll_mean", "train")
    assert training.groups == ()


@pytest.mark.parametrize(
    ("dataset", "variant", "expected"),
    [(d, "published", row) for d, row in PUBLISHED.items()]
    + [(d, "published-other", row) for d, row in OTHER.items()],
)
def test_published(dataset, variant, expected):
    kind, hidden, degrees, layers, dropout, optimizer, order, weight, patience = expected
    chosen = preset(dataset, variant)
    shape, training, operator = chosen.architecture, chosen.training, chosen.operator
    assert (shape["hidden_channels"], shape["num_layers"], shape["chaos_order"]) == (hidden, layers, order)
    assert (shape["filter_orders"], shape["quadrature_size"]) == (degrees, 4)
    assert (training.optimizer, training.chaos_weight, training.patience) == (optimizer, weight, patience)
    assert (training.epochs, training.monitor, training.objective) == (1000, "nll_mean", "mean")
    assert (training.chaos_nodes, training.seed) == ("all", 42)
    assert chosen.preparation.features == ("raw" if dataset in RAW_FEATURES else "row")
    assert chosen.preparation.edges == ("directed" if dataset in DIRECTED else "undirected")
    first = kind.startswith(("con", "sum"))
    rates = {(group.pattern, group.lr, group.weight_decay) for group in training.groups}
    if kind == "cheb":
        assert chosen.model == "DSSGNN"
        assert (shape["lift_dropout"], shape["input_dropout"], shape["dropout"]) == (dropout, 0, 0)
        assert (shape["readout"], shape["filter_init"], shape["weight_init"]) == (
            "filtered",
            "published",
            "published",
        )
        assert dict(operator) == {
            "normalization": "sym",
            "direction": "both",
            "symmetrize": "mean",
            "self_loops": False,
        }
    else:
        assert chosen.model == "PublishedDSS"
        assert (shape["dropout"], shape["eta"]) == (dropout, -0.3)
        assert shape["propagation"] == ("first" if first else "every")
        assert shape["branches"] == ("concat" if kind.startswith("con") else "sum")
        assert shape["normalization"] == ("rw" if kind.endswith("rw") else "sym")
        assert operator["direction"] == ("out" if dataset in DIRECTED else "both")
        assert (chosen.preparation.self_loops, operator["self_loops"]) == ("add", "keep")
    if first:
        assert (training.lr, training.weight_decay) == (0.005, 0.0)
        assert rates == {("*coefficients", 0.1, 0.05), ("*gates", 0.1, 0.05)}
    else:
        assert (training.lr, training.weight_decay) == (0.005 if dataset == "minesweeper" else 0.01, 5e-4)
        assert rates == set()


@pytest.mark.parametrize(("dataset", "variant"), PRESETS)
def test_builds_and_trains(dataset, variant):
    chosen, size = preset(dataset, variant), ENTRIES[dataset].variants[""].statistics
    with seeded(0):
        graph = random_graph(size.features, size.classes)
        model = chosen.make_model(size.features, size.classes)
    assert isinstance(model, PublishedDSS if chosen.model == "PublishedDSS" else DSSGNN)
    data = prepare(graph, chosen.preparation)
    task = NodeTask.from_data(data, size.classes, **chosen.operator)
    start = copy.deepcopy(model.state_dict())
    result = fit(model, task, replace(chosen.training, epochs=2))
    assert len(result.history) == 2
    assert any(not torch.equal(value, start[name]) for name, value in model.state_dict().items())


def random_graph(features, classes):
    nodes = 3 * classes
    train = torch.arange(nodes) < 2 * classes
    return Data(
        x=(torch.rand(nodes, features) < 0.3).float(),
        y=torch.arange(nodes) % classes,
        edge_index=torch.randint(nodes, (2, 4 * nodes)),
        train_mask=train,
        val_mask=~train,
    )


def test_a_preset_cannot_be_changed():
    chosen = preset("cora", "paper")
    with pytest.raises(TypeError):
        chosen.architecture["chaos_order"] = 3
    with pytest.raises(TypeError):
        PRESETS["cora", "paper"] = chosen
    assert chosen.config()["architecture"]["chaos_order"] == 1


@pytest.mark.parametrize(
    ("dataset", "variant", "message"),
    [
        ("cora", "best", "for cora one of paper, published$"),
        ("karate", "paper", "a dataset of cora, citeseer"),
    ],
)
def test_unknown(dataset, variant, message):
    with pytest.raises(InputError, match=message):
        preset(dataset, variant)
