"""A population is nothing but its members, trained in one block: the same weights as one after another."""

from dataclasses import replace

import pytest
import torch

from dssgnn import DSSGNN, DSSHybrid
from dssgnn.data.synthetic import minesweeper
from dssgnn.errors import InputError
from dssgnn.graph import SparseFeatures
from dssgnn.nn import Deterministic, make_encoder
from dssgnn.training import (
    OBJECTIVES,
    MarginTerm,
    NodeTask,
    ParameterGroup,
    TrainingConfig,
    fit,
    fit_population,
    seeded,
)

CONFIG = TrainingConfig(epochs=50, patience=None, lr=0.02)
DROPOUT = {"dropout": 0.4, "input_dropout": 0.2, "lift_dropout": 0.3}


@pytest.fixture(scope="module")
def task():
    data = minesweeper(6, 6, seed=1)
    data.x = data.x.double()
    return NodeTask.from_data(data)


def splits(task, members=3):
    """Parts of different sizes, so that the shorter ones are padded."""
    tasks = []
    for seed in range(members):
        order = torch.randperm(len(task.y), generator=torch.Generator().manual_seed(seed))
        train, val = torch.zeros(2, len(task.y), dtype=torch.bool)
        train[order[: 12 + 3 * seed]] = True
        val[order[20 + seed :]] = True
        tasks.append(replace(task, train_mask=train & ~val, val_mask=val, test_mask=None))
    return tasks


def dss(seed, **options):
    with seeded(seed):
        return DSSGNN(
            7, 5, 2, **{"filter_orders": (2, 2), "chaos_order": 1, "dropout": 0.0, **options}
        ).double()


def hybrid(seed, norm=None):
    with seeded(seed):
        base = make_encoder("gcn", 7, 5, 2, dropout=0.0, norm=norm)
        branch = DSSGNN(7, 5, 2, filter_orders=(2, 2), chaos_order=1, **DROPOUT)
        return DSSHybrid(base, branch, warmup_epochs=20).double()


def encoder(seed, name="gcn", dropout=0.0):
    with seeded(seed):
        return Deterministic(make_encoder(name, 7, 8, 2, dropout=dropout)).double()


def compare(make, tasks, configs):
    """Train alone and together; give the results of the population after they were found equal."""
    alone = [make(seed) for seed in range(len(tasks))]
    expected = [fit(*each) for each in zip(alone, tasks, configs, strict=True)]
    for way in ("threads", "block"):
        together = [make(seed) for seed in range(len(tasks))]
        results = fit_population(together, tasks, configs, way=way)
        check(results, together, expected, alone)
    return results


def check(results, together, expected, alone):
    for want, got, model, member in zip(expected, results, alone, together, strict=True):
        assert (got.best_epoch, got.stopped) == (want.best_epoch, want.stopped)
        assert len(got.history) == len(want.history)
        for ours, theirs in zip(got.history, want.history, strict=True):
            assert ours == pytest.approx(theirs, abs=1e-8)
        assert list(member.state_dict()) == list(model.state_dict())
        for name, value in model.state_dict().items():
            torch.testing.assert_close(member.state_dict()[name], value, rtol=0, atol=1e-8, msg=name)
        assert not member.training


def test_splits(task):
    compare(dss, splits(task), [CONFIG] * 3)


def test_seeds_with_dropout_see_the_masks_of_their_own_runs(task):
    configs = [replace(CONFIG, seed=seed) for seed in range(3)]
    results = compare(lambda seed: dss(seed, **DROPOUT), [task] * 3, configs)
    assert results[0].history != results[1].history


def test_the_same_start_and_another_seed_differ_by_dropout_alone(task):
    configs = [replace(CONFIG, epochs=5, seed=seed) for seed in (0, 0, 1)]
    models = [dss(0, **DROPOUT) for _ in configs]
    first, same, other = fit_population(models, [task] * 3, configs, way="block")
    assert first.history[-1] == pytest.approx(same.history[-1], abs=1e-12)
    assert first.history[-1] != pytest.approx(other.history[-1], abs=1e-4)


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "rmsprop", "sgd"])
def test_rates_and_weights(optimizer, task):
    groups = (ParameterGroup("*coefficients", 0.01, 0.1),)
    common = replace(CONFIG, optimizer=optimizer, groups=groups, clip=0.05)
    configs = [
        common,
        replace(common, lr=0.005, weight_decay=0.1, chaos_weight=0.0),
        replace(common, groups=(ParameterGroup("*coefficients", 0.1),), chaos_weight=0.5),
    ]
    compare(dss, splits(task), configs)


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "rmsprop", "sgd"])
def test_one_optimizer_for_all(optimizer, task):
    compare(dss, splits(task, 2), [replace(CONFIG, optimizer=optimizer, clip=0.05)] * 2)


@pytest.mark.parametrize(
    "options",
    [
        {"norm": "batch"},
        {"norm": "batch", "residual": True, "chaos_order": 2},
        {"residual": "identity", "readout": "filtered"},
        {"bias": True},
        {"gate_order": 1, "bias": True},
        {"gate_order": 1, "activation": "tanh"},
        {"propagation": "first", "branches": "concat"},
        {"propagation": "first", "branches": "concat", "gate_order": 1},
        {"lift": "shared", "activation": torch.nn.PReLU()},
        {"chaos_order": 0, "num_layers": 3},
        {"norm": "joint", "residual": True},
        {"joint_dropout": True},
        {"residual": "inner", "bias": True},
        {"norm": "joint", "joint_dropout": True, "residual": "inner", "chaos_order": 2},
    ],
)
def test_structures(options, task):
    configs = [replace(CONFIG, seed=seed) for seed in range(2)]
    compare(lambda seed: dss(seed, **DROPOUT, **options), splits(task, 2), configs)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("chaos_nodes", ["train", "all"])
def test_objectives(objective, chaos_nodes, task):
    config = replace(CONFIG, objective=objective, chaos_nodes=chaos_nodes, monitor="nll", chaos_weight=0.1)
    compare(dss, splits(task, 2), [config] * 2)


@pytest.mark.parametrize("patience", [None, 3])
def test_hybrid_with_warm_up(patience, task):
    configs = [replace(CONFIG, seed=seed, patience=patience) for seed in range(2)]
    compare(hybrid, splits(task, 2), configs)


def test_hybrid_with_batch_norm(task):
    """By SGD: Adam would blow up the rounding in the base's biases, which a batch norm takes off again."""
    config = replace(CONFIG, optimizer="sgd", lr=0.1)
    compare(lambda seed: hybrid(seed, "batch"), splits(task, 2), [config] * 2)


@pytest.mark.parametrize("name", ["gcn", "sage"])  # the others: tests/baselines
def test_ordinary_encoders(name, task):
    compare(lambda seed: encoder(seed, name), splits(task, 2), [CONFIG] * 2)


@pytest.mark.parametrize("monitor", ["brier", "accuracy", "ece"])
def test_each_stops_when_its_own_patience_is_out(monitor, task):
    config = replace(CONFIG, patience=4, epochs=60, lr=0.05, monitor=monitor)
    results = compare(dss, splits(task), [config] * 3)
    assert len({len(result.history) for result in results}) > 1


@pytest.mark.parametrize("way", ["block", "threads"])
def test_a_member_that_diverges_leaves_the_others_alone(way, task):
    configs = [CONFIG, replace(CONFIG, lr=1e200), CONFIG]
    models = [dss(seed) for seed in range(3)]
    results = fit_population(models, [task] * 3, configs, way=way)
    assert [result.stopped for result in results] == ["epochs", "diverged", "epochs"]
    assert len(results[1].history) < 5
    alone = dss(2)
    fit(alone, task, CONFIG)
    torch.testing.assert_close(models[2].lift.weight, alone.lift.weight, rtol=0, atol=1e-8)
    # Its best weights so far are left behind, as `fit` leaves them before it raises.
    assert all(bool(torch.isfinite(value).all()) for value in models[1].state_dict().values())


def test_one_member_is_a_plain_run(task):
    results = compare(lambda seed: dss(seed, **DROPOUT), [task], [replace(CONFIG, seed=4)])
    assert results[0].stopped == "epochs"


def test_members_own_their_weights_afterwards(task):
    models = [dss(seed) for seed in range(2)]
    fit_population(models, [task] * 2, [replace(CONFIG, epochs=2)] * 2, way="block")
    for model in models:
        for value in (*model.parameters(), *model.buffers()):
            assert value.untyped_storage().nbytes() == value.nbytes
            assert value.grad is None
    fit(models[0], task, replace(CONFIG, epochs=2))


@pytest.mark.parametrize("way", ["block", "threads"])
def test_an_interruption_leaves_the_best_models_so_far(way, task):
    models, whole = [dss(seed) for seed in range(2)], [dss(seed) for seed in range(2)]
    fit_population(whole, [task] * 2, [replace(CONFIG, epochs=4)] * 2, way=way)

    def interrupt(row):
        if row["epoch"] == 3 and row["member"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_population(models, [task] * 2, [CONFIG] * 2, way=way, on_epoch=interrupt)
    for model, expected in zip(models, whole, strict=True):
        torch.testing.assert_close(model.state_dict(), expected.state_dict())


def test_on_epoch_names_the_member(task):
    rows = []
    fit_population([dss(0), dss(1)], [task] * 2, [replace(CONFIG, epochs=2)] * 2, on_epoch=rows.append)
    assert [(row["epoch"], row["member"]) for row in rows] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert all(type(row["member"]) is int for row in rows)


@pytest.mark.parametrize("way", ["block", "threads"])
@pytest.mark.parametrize("make", [lambda seed: dss(seed, **DROPOUT), lambda seed: encoder(seed, dropout=0.5)])
def test_the_callers_settings_are_untouched(way, make, task):
    threads = torch.get_num_threads()
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    fit_population([make(0), make(1)], [task] * 2, [replace(CONFIG, epochs=2)] * 2, way=way)
    assert torch.equal(torch.rand(3), expected)
    assert torch.get_num_threads() == threads


def test_other_random_operations_differ_between_members_and_repeat(task):
    def histories():
        models = [encoder(0, "sage", dropout=0.5) for _ in range(2)]  # PyG's own dropout
        results = fit_population(models, [task] * 2, [replace(CONFIG, epochs=3)] * 2, way="block")
        return [result.history for result in results]

    first, second = histories()
    assert first[-1] != pytest.approx(second[-1], abs=1e-4)
    assert histories() == [first, second]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"objective": "brier"},
            "configurations of a population must share objective, got 'brier' for member 1",
        ),
        ({"epochs": 3}, "must share epochs, got 3 for member 1 and 50 for member 0"),
        ({"patience": 3}, "must share patience, got 3 for member 1 and None for member 0"),
        ({"monitor": "nll"}, "must share monitor"),
        ({"optimizer": "sgd"}, "must share optimizer"),
        ({"precision": "bf16"}, "must share precision"),
        ({"clip": 1.0}, "must share clip"),
        ({"chaos_nodes": "all"}, "must share chaos_nodes"),
        ({"capture": "never"}, "must share capture"),
        (
            {"groups": (ParameterGroup("*gates", 0.1),)},
            r"must share the patterns of groups, got \['\*gates'\] for member 1 and \[\] for member 0",
        ),
        ({"margin": MarginTerm(-5.0, -1.0, 1.0)}, "a population has no energy-margin term; use fit"),
    ],
)
def test_configurations_that_cannot_be_one_block(change, message, task):
    with pytest.raises(InputError, match=message):
        fit_population([dss(0), dss(1)], [task] * 2, [CONFIG, replace(CONFIG, **change)])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (lambda: dss(1, chaos_order=2), r"lift\.weight is \(3, 7, 5\), expected \(2, 7, 5\)"),
        (lambda: dss(1, bias=True), r"layers\.0\.bias is in one of them alone"),
        (lambda: dss(1).float(), "readout_weight is torch.float32, expected torch.float64"),
        (lambda: dss(1, dropout=0.3), r"member 1 differs from member 0: dropout is 0\.3, expected 0\.0"),
        (lambda: dss(1, activation="tanh"), "activation is .*tanh.*, expected .*relu"),
        (lambda: encoder(1), "is a Deterministic, expected a DSSGNN"),
        (lambda: "gcn", "fit_population needs a Module, got a str"),
    ],
)
def test_models_that_cannot_be_one_block(other, message, task):
    with pytest.raises(InputError, match=message):
        fit_population([dss(0), other()], [task] * 2, [CONFIG] * 2)


def test_in_threads_other_random_operations_are_those_of_separate_runs(task):
    configs = [replace(CONFIG, epochs=5, seed=seed) for seed in range(2)]

    def hybrid_with_dropout(seed):
        with seeded(seed):
            base = make_encoder("sage", 7, 5, 2, dropout=0.5, norm="batch")
            return DSSHybrid(base, DSSGNN(7, 5, 2, chaos_order=1), warmup_epochs=2).double()

    alone, together = ([hybrid_with_dropout(seed) for seed in range(2)] for _ in range(2))
    expected = [fit(*each) for each in zip(alone, [task] * 2, configs, strict=True)]
    check(fit_population(together, [task] * 2, configs, way="threads"), together, expected, alone)


@pytest.mark.parametrize("options", [{}, DROPOUT])
def test_sparse_features(options, task):
    sparse = replace(task, x=SparseFeatures.from_dense(task.x))
    configs = [replace(CONFIG, seed=seed) for seed in range(2)]
    compare(lambda seed: dss(seed, **options), splits(sparse, 2), configs)


def test_an_unknown_way(task):
    with pytest.raises(InputError, match="way must be one of 'auto', 'block', 'threads', got 'process'"):
        fit_population([dss(0)], [task], [CONFIG], way="process")


def test_the_same_model_twice(task):
    model = dss(0)
    with pytest.raises(InputError, match="members 0 and 1 are the same model; make one for each"):
        fit_population([model, model], [task] * 2, [CONFIG] * 2)


def test_members_share_a_graph(task):
    other = replace(task, x=task.x.clone())
    with pytest.raises(InputError, match="tasks of a population must share x: the same object, got another"):
        fit_population([dss(0), dss(1)], [task, other], [CONFIG] * 2)
    with pytest.raises(InputError, match="needs a NodeTask, got a dict"):
        fit_population([dss(0), dss(1)], [task, {}], [CONFIG] * 2)


def test_one_of_each(task):
    with pytest.raises(InputError, match="as many models as tasks and configurations, got 2, 1 and 2"):
        fit_population([dss(0), dss(1)], [task], [CONFIG] * 2)
    with pytest.raises(InputError, match="a population needs at least one model"):
        fit_population([], [], [])


def own_storage(model):
    return all(value.untyped_storage().nbytes() == value.nbytes for value in model.state_dict().values())


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"groups": (ParameterGroup("nope", 0.1),)}, InputError, "no parameter is left for the group 'nope'"),
        ({"precision": "bf16"}, UserWarning, "bf16"),  # warnings are errors in these tests
    ],
)
@pytest.mark.parametrize("way", ["block", "threads"])
def test_a_setup_that_fails_changes_no_model(way, change, error, message, task):
    models = [dss(seed) for seed in range(2)]
    before = [value.data_ptr() for model in models for value in model.state_dict().values()]
    with pytest.raises(error, match=message):
        fit_population(models, [task] * 2, [replace(CONFIG, **change)] * 2, way=way)
    assert [value.data_ptr() for model in models for value in model.state_dict().values()] == before
    assert all(own_storage(model) and model.training for model in models)


class Breaks(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(7).double()

    def forward(self, x, graph):
        self.norm(x)
        raise RuntimeError("out of order")


@pytest.mark.parametrize("way", ["block", "threads"])
def test_a_model_that_raises_is_left_as_it_was(way, task):
    models = [Breaks(), Breaks()]
    with pytest.raises(RuntimeError, match="out of order"):
        fit_population(models, [task] * 2, [CONFIG] * 2, way=way)
    for model in models:
        assert not model.training
        assert own_storage(model)
        torch.testing.assert_close(model.state_dict(), Breaks().state_dict(), rtol=0, atol=0)


class Tied(torch.nn.Module):
    """One linear map and one norm, each under two names."""

    def __init__(self):
        super().__init__()
        self.a, self.norm = torch.nn.Linear(7, 7), torch.nn.BatchNorm1d(7)
        self.b, self.out = self.a, torch.nn.Linear(7, 2)
        self.c = torch.nn.Linear(7, 7, bias=False)
        self.c.weight = self.a.weight
        self.norm.register_buffer("shift", torch.ones(7))
        self.double()  # would part buffers that are one
        self.register_buffer("shift", self.norm.shift)

    def forward(self, x, edge_index):
        return self.out(self.c(self.norm(self.b(self.a(x).tanh()))) + self.shift)


@pytest.mark.parametrize("lr", [0.02, 0.05])
def test_tied_weights(lr, task):
    def make(seed):
        with seeded(seed):
            return Deterministic(Tied())

    config = replace(CONFIG, optimizer="sgd", clip=0.5)
    compare(make, splits(task, 2), [config, replace(config, lr=lr)])
    models = [make(seed) for seed in range(2)]
    fit_population(models, [task] * 2, [config] * 2, way="block")
    for encoder in (model.encoder for model in models):
        assert encoder.c.weight is encoder.a.weight
        assert encoder.shift is encoder.norm.shift


def test_a_phase_that_draws_by_default_is_the_one_of_separate_runs(task):
    """Its branch, which alone draws, first runs after the warm-up."""
    configs = [replace(CONFIG, epochs=6, seed=seed) for seed in range(3)]

    def make(seed):
        with seeded(seed):
            branch = DSSGNN(7, 5, 2, chaos_order=1, dropout=0.3, activation=torch.nn.RReLU())
            return DSSHybrid(make_encoder("gcn", 7, 5, 2, dropout=0.0), branch, warmup_epochs=2).double()

    alone, together = ([make(seed) for seed in range(3)] for _ in range(2))
    expected = [fit(*each) for each in zip(alone, [task] * 3, configs, strict=True)]
    check(fit_population(together, [task] * 3, configs, way="threads"), together, expected, alone)


def test_hybrids_are_trained_again(task):
    models = [hybrid(seed) for seed in range(2)]
    models[1].start_epoch(37)
    models[1]._residual_start = 0.2  # where it began says nothing of what it computes
    config = replace(CONFIG, epochs=22)
    for way in ("block", "threads"):
        results = fit_population(models, splits(task, 2), [config] * 2, way=way)
        assert [len(result.history) for result in results] == [22, 22]


def test_a_member_that_is_not_ready_is_named(task):
    models = [dss(seed) for seed in range(2)]
    models[0]._ready, models[1]._ready = True, False
    with pytest.raises(InputError, match="member 1 differs from member 0: _ready is False, expected True"):
        fit_population(models, [task] * 2, [CONFIG] * 2)


@pytest.mark.parametrize("way", ["block", "threads"])
def test_a_frozen_population(way, task):
    models = [dss(seed).requires_grad_(False) for seed in range(2)]
    with pytest.raises(InputError, match="no parameter that requires a gradient"):
        fit_population(models, [task] * 2, [CONFIG] * 2, way=way)
    assert all(own_storage(model) for model in models)


@pytest.mark.parametrize("way", ["threads", "block"])
def test_scores_of_every_validation_node(way, task):
    """Their mean after every epoch is the score of the history, padded parts or not; nobody else gets any."""
    tasks = splits(task)
    models = [dss(seed) for seed in range(3)]
    results = fit_population(
        models, tasks, [replace(CONFIG, epochs=6, patience=2)] * 3, way=way, node_scores=True
    )
    for result, own in zip(results, tasks, strict=True):
        assert result.node_scores.shape == (len(result.history), int(own.val_mask.sum()))
        expected = [row["val_brier"] for row in result.history]
        assert result.node_scores.mean(dim=1).tolist() == pytest.approx(expected, abs=1e-12)
    (alone,) = fit_population([dss(0)], tasks[:1], [replace(CONFIG, epochs=2)], way=way)
    assert alone.node_scores is None
