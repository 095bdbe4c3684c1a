"""The loop: it learns, stops, restores, repeats to the bit, and resumes to the bit."""

import hashlib
from dataclasses import replace

import pytest
import torch

from dssgnn import DSSGNN, DSSHybrid
from dssgnn.checkpoint import save_tensors
from dssgnn.data.synthetic import minesweeper
from dssgnn.errors import InputError
from dssgnn.graph import SparseFeatures
from dssgnn.nn import Deterministic, make_encoder
from dssgnn.training import MarginTerm, NodeTask, Outliers, ParameterGroup, TrainingConfig, fit, seeded
from dssgnn.training.loop import evaluate
from dssgnn.training.optimizer import make_optimizer

CONFIG = TrainingConfig(epochs=12, patience=None, seed=3, checkpoint_every=4)


@pytest.fixture(scope="module")
def task():
    return NodeTask.from_data(minesweeper(14, 14, seed=1))


def make_dss(**options):
    with seeded(7):
        return DSSGNN(7, 8, 2, filter_orders=(2, 2), dropout=0.3, **options)


def make_hybrid(warmup_epochs=5):
    with seeded(7):
        return DSSHybrid(
            make_encoder("gcn", 7, 8, 2, norm="batch"), DSSGNN(7, 8, 2), warmup_epochs=warmup_epochs
        )


def make_gcn():
    with seeded(7):
        return Deterministic(make_encoder("gcn", 7, 8, 2))


def same_weights(a, b):
    return all(
        torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    )


def test_it_learns(task):
    model = make_dss()
    before = evaluate(model.eval(), task, task.val_mask)["brier"]
    result = fit(model, task, replace(CONFIG, epochs=60))
    share = task.y[task.train_mask].float().mean()
    prior = float((share * (1 - share) ** 2 * 2 + (1 - share) * share**2 * 2).item())
    assert result.best_value < min(before, prior)
    assert result.best_value == evaluate(model, task, task.val_mask)["brier"]
    assert not model.training


@pytest.mark.parametrize("make", [make_dss, make_hybrid, make_gcn])
def test_same_seed_same_bits(make, task):
    first, second = make(), make()
    histories = [fit(model, task, CONFIG).history for model in (first, second)]
    assert histories[0] == histories[1]
    assert same_weights(first, second)


def test_another_seed_other_bits(task):
    first, second = make_dss(), make_dss()
    fit(first, task, CONFIG)
    fit(second, task, replace(CONFIG, seed=4))
    assert not same_weights(first, second)


def test_the_callers_random_state_is_untouched(task):
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    fit(make_dss(), task, replace(CONFIG, epochs=2))
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("make", [make_dss, make_hybrid])
@pytest.mark.parametrize("interrupted_at", [3, 4, 6, 9])
def test_resume_gives_the_same_bits(make, interrupted_at, task, tmp_path):
    whole = make()
    expected = fit(whole, task, CONFIG).history

    class Killed(Exception):
        pass

    def kill(row):
        if row["epoch"] == interrupted_at:
            raise Killed

    file = tmp_path / "run.safetensors"
    with pytest.raises(Killed):
        fit(make(), task, CONFIG, checkpoint=file, on_epoch=kill)
    resumed = make()
    result = fit(resumed, task, CONFIG, checkpoint=file, resume=True)
    assert result.history == expected
    assert same_weights(whole, resumed)


def test_resume_refuses_another_run(task, tmp_path):
    file = tmp_path / "run.safetensors"
    fit(make_dss(), task, CONFIG, checkpoint=file)
    with pytest.raises(InputError, match=r"trained with lr=0\.01, not 0\.02"):
        fit(make_dss(), task, replace(CONFIG, lr=0.02), checkpoint=file, resume=True)
    with pytest.raises(InputError, match="another model"):
        fit(make_gcn(), task, CONFIG, checkpoint=file, resume=True)
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(InputError, match=r"run\.safetensors: not a readable dssgnn file"):
        fit(make_dss(), task, CONFIG, checkpoint=file, resume=True)


@pytest.mark.parametrize(
    ("name", "value", "other"),
    [
        ("residual", "True", "inner"),
        ("joint_dropout", "False", True),
        ("input_dropout", "0.0", 0.4),
        ("eta", "None", -0.3),
        (r"layers\.0\.filter_basis", "chebyshev", "monomial"),
        (r"layers\.0\.activation", "relu", "tanh"),
    ],
)
def test_resume_refuses_a_model_that_only_its_settings_tell_apart(task, tmp_path, name, value, other):
    file, option = tmp_path / "run.safetensors", name.rpartition(".")[2]
    fit(make_dss(residual=True), task, CONFIG, checkpoint=file)
    with pytest.raises(
        InputError, match=f"made for another model: {name} is .*{value}.*, expected .*{other}"
    ):
        fit(make_dss(**({"residual": True} | {option: other})), task, CONFIG, checkpoint=file, resume=True)
    fit(make_dss(residual=True), task, CONFIG, checkpoint=file, resume=True)


def test_settings_are_compared_as_values_and_functions_by_name(task, tmp_path):
    class Mine(DSSGNN):
        pass

    file = tmp_path / "run.safetensors"

    def made(kind, **others):
        model = make_dss()
        model.__class__ = kind
        for name, value in others.items():
            setattr(model, name, value)
        return model

    fit(made(DSSGNN, rate=0, steps=(torch.relu, (1, 2))), task, CONFIG, checkpoint=file)
    again = made(DSSGNN, rate=0.0, steps=[torch.relu, [1, 2]])
    fit(again, task, CONFIG, checkpoint=file, resume=True)
    with pytest.raises(InputError, match="made for another model: it is 'DSSGNN', expected 'Mine'"):
        fit(made(Mine, rate=0, steps=(torch.relu, (1, 2))), task, CONFIG, checkpoint=file, resume=True)
    for less, what in (
        ({"rate": 0}, r"steps is \['.*relu', \[1, 2\]\], expected None"),
        ({}, "rate is 0.0, expected None"),
    ):
        with pytest.raises(InputError, match=f"made for another model: {what}"):
            fit(made(DSSGNN, **less), task, CONFIG, checkpoint=file, resume=True)


def test_no_temporary_file_is_left(task, tmp_path):
    fit(make_dss(), task, CONFIG, checkpoint=tmp_path / "run.safetensors")
    assert [path.name for path in tmp_path.iterdir()] == ["run.safetensors"]


def test_patience_stops_and_the_best_weights_come_back(task):
    config = replace(CONFIG, epochs=200, patience=5, lr=0.05)
    model = make_dss()
    result = fit(model, task, config)
    assert result.stopped == "patience"
    assert len(result.history) == result.best_epoch + 1 + 5
    values = [row["val_brier"] for row in result.history]
    assert result.best_value == min(values) == values[result.best_epoch]
    assert evaluate(model, task, task.val_mask)["brier"] == result.best_value


@pytest.mark.parametrize(("monitor", "choose"), [("accuracy", max), ("nll_mean", min)])
def test_monitor(monitor, choose, task):
    result = fit(make_dss(), task, replace(CONFIG, monitor=monitor))
    values = [row[f"val_{monitor}"] for row in result.history]
    assert result.best_epoch == values.index(choose(values))


def test_test_labels_are_never_read(task):
    """Training with the test labels shuffled gives the same bits."""
    other = replace(task, y=torch.where(task.test_mask, 1 - task.y, task.y))
    first, second = make_dss(), make_dss()
    fit(first, task, CONFIG)
    fit(second, other, CONFIG)
    assert same_weights(first, second)


def test_warm_up_freezes_the_branch(task):
    model = make_hybrid(warmup_epochs=7)
    start = {k: v.clone() for k, v in model.state_dict().items()}
    with pytest.warns(UserWarning, match="within the warm-up of 7 epochs"):
        fit(model, task, replace(CONFIG, epochs=6, weight_decay=0.1))
    moved = {k for k, v in model.state_dict().items() if not torch.equal(v, start[k])}
    assert moved
    assert not any(k.startswith("branch") or k == "residual_scale" for k in moved)
    model = make_hybrid(warmup_epochs=6)
    fit(model, task, replace(CONFIG, epochs=9, monitor="accuracy"))
    # Whatever epoch was best, the model is back in that epoch's phase.
    assert model.warming_up == (int(model.epoch) < 6)


def test_after_warm_up_everything_moves(task):
    model = make_hybrid(warmup_epochs=0)
    start = {k: v.detach().clone() for k, v in model.named_parameters()}
    fit(model, task, replace(CONFIG, epochs=3, patience=None))
    still = [k for k, v in model.named_parameters() if torch.equal(v, start[k])]
    assert still == []


def test_parameter_groups():
    model = make_dss()
    groups = (ParameterGroup("*coefficients", 0.1, 0.05), ParameterGroup("*gates", 0.2))
    optimizer = make_optimizer(model, TrainingConfig(groups=groups, lr=0.01, weight_decay=5e-4))
    rates = [(g["lr"], g["weight_decay"], len(g["params"])) for g in optimizer.param_groups]
    assert rates == [(0.1, 0.05, 4), (0.2, 0.0, 4), (0.01, 5e-4, 4)]
    with pytest.raises(InputError, match="no parameter is left for the group 'nothing'"):
        make_optimizer(model, TrainingConfig(groups=(ParameterGroup("nothing", 0.1),)))


def test_clipping_bounds_the_step(task):
    free, clipped = make_dss(), make_dss()
    start = free.lift.weight.detach().clone()
    sgd = replace(CONFIG, epochs=1, optimizer="sgd", lr=1.0, weight_decay=0.0)
    fit(free, task, sgd)
    fit(clipped, task, replace(sgd, clip=1e-3))
    moves = [float((m.lift.weight.detach() - start).norm()) for m in (free, clipped)]
    assert moves[1] <= 1e-3 < moves[0]


def test_margin_term_separates_energies(task):
    noise = torch.randn(task.x.shape, generator=torch.Generator().manual_seed(0)) * 3
    outliers = Outliers(noise, task.graph, torch.ones(task.x.size(0), dtype=torch.bool))
    gaps = []
    for weight in (0.0, 1.0):
        model = make_dss()
        config = replace(CONFIG, epochs=40, margin=MarginTerm(-5.0, -1.0, weight))
        fit(model, task, config, outliers=outliers)
        with torch.no_grad():
            inside, outside = model(task.x, task.graph).energy(), model(noise, task.graph).energy()
        gaps.append(float(outside.mean() - inside.mean()))
    assert gaps[1] > gaps[0] + 0.5


def test_bf16_without_a_gpu_says_so(task):
    with pytest.warns(UserWarning, match="bf16"):
        fit(make_dss(), task, replace(CONFIG, epochs=1, precision="bf16"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"margin": MarginTerm(-5.0, -1.0, 1.0)}, "needs both config.margin and outliers"),
        ({"lr": 1e30}, "the training loss became"),
    ],
)
def test_bad_runs(change, message, task):
    with pytest.raises(InputError, match=message):
        fit(make_dss(), task, replace(CONFIG, **change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"objective": "hinge"},
            "objective must be one of 'mean', 'quadrature', 'predictive', 'brier', got 'hinge'",
        ),
        ({"monitor": "loss"}, "monitor must be one of 'brier', .*got 'loss'"),
        ({"epochs": 0}, "epochs must be an integer >= 1, got 0"),
        ({"patience": 0}, "patience must be an integer >= 1, got 0"),
        ({"lr": -1.0}, "lr must be >= 0 and finite, got -1.0"),
        ({"lr": float("nan")}, "lr must be >= 0 and finite, got nan"),
        ({"chaos_weight": -0.1}, "chaos_weight must be >= 0"),
        ({"clip": 0.0}, "clip must be positive or None, got 0.0"),
        ({"seed": -1}, "seed must be an integer >= 0, got -1"),
        ({"capture": True}, "capture must be one of 'auto', 'never', got True"),
    ],
)
def test_bad_settings(change, message):
    with pytest.raises(InputError, match=message):
        TrainingConfig(**change)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.x.__setitem__((3, 2), float("nan")), r"x\[3, 2\] is nan, expected finite features"),
        (lambda d: d.x.__setitem__((0, 0), float("inf")), r"x\[0, 0\] is inf, expected finite features"),
        (lambda d: d.train_mask.zero_(), "train_mask is empty, expected at least one node"),
        (lambda d: d.val_mask.copy_(d.train_mask), "in both train_mask and val_mask; masks must not overlap"),
        (lambda d: d.test_mask.copy_(d.val_mask), "in both val_mask and test_mask"),
        (lambda d: setattr(d, "val_mask", d.val_mask.long()), "val_mask must be a boolean tensor of shape"),
        (
            lambda d: setattr(d, "val_mask", d.val_mask[:5]),
            r"val_mask must be a boolean .*got torch.bool \[5\]",
        ),
        (lambda d: d.y.__setitem__(slice(None), -1), "is -1, expected 0.."),
        (lambda d: d.y.__setitem__(5, -2), "label of node 5 is -2, expected 0..1"),
        (lambda d: setattr(d, "y", d.y.float()), "y must hold int64 class numbers, got torch.float32"),
        (lambda d: d.edge_index.__setitem__((0, 0), 99), "edge_index names node 99, but there are 16 nodes"),
        (lambda d: d.edge_index.__setitem__((0, 0), -1), "edge_index holds the negative node -1"),
        (lambda d: setattr(d, "x", None), "data has no x"),
        (lambda d: setattr(d, "edge_weight", -torch.ones(d.num_edges)), "edge_weight of edge 0 is -1"),
    ],
)
def test_bad_tasks(change, message):
    data = minesweeper(4, 4)
    change(data)
    with pytest.raises(InputError, match=message):
        NodeTask.from_data(data, num_classes=2)


def test_features_that_do_not_match_the_model(task):
    with seeded(0):
        model = DSSGNN(9, 8, 2)
    with pytest.raises(InputError, match="x has 7 features, but the model was made for 9"):
        fit(model, task, CONFIG)


def test_a_checkpoint_knows_its_data(task, tmp_path):
    """Resuming on another split would train on its test nodes."""
    file = tmp_path / "run"
    fit(make_dss(), task, CONFIG, checkpoint=file)
    swapped = replace(task, train_mask=task.test_mask, test_mask=task.train_mask)
    with pytest.raises(InputError, match="another graph or split"):
        fit(make_dss(), swapped, CONFIG, checkpoint=file, resume=True)


def test_a_checkpoint_does_not_ask_for_the_layout_of_the_features(task, tmp_path):
    x = task.x.clone()
    x[x == 0] = torch.tensor([0.0, -0.0]).repeat(x.numel())[: int((x == 0).sum())]
    dense, sparse = replace(task, x=x), replace(task, x=SparseFeatures.from_dense(x))
    assert sparse.fingerprint() == dense.fingerprint() == task.fingerprint()
    assert sparse.x._dense is None
    older = hashlib.sha256(repr((2, sorted(task.graph.options.items()))).encode())
    labels = task.y[task.train_mask | task.val_mask]
    for value in (task.x, task.graph.edge_index, labels, task.train_mask, task.val_mask):
        older.update(value.numpy().tobytes())
    assert task.fingerprint() == older.hexdigest()
    fit(make_dss(), dense, replace(CONFIG, epochs=3), checkpoint=tmp_path / "run")
    assert len(fit(make_dss(), sparse, CONFIG, checkpoint=tmp_path / "run", resume=True).history) == 12


def test_a_new_run_forgets_the_old_checkpoint(task, tmp_path):
    file = tmp_path / "run"
    fit(make_dss(), task, CONFIG, checkpoint=file)
    with pytest.raises(KeyboardInterrupt):
        fit(make_dss(), task, CONFIG, checkpoint=file, on_epoch=_interrupt)
    assert not file.exists()


def _interrupt(row):
    raise KeyboardInterrupt


def test_a_finished_run_resumes_to_itself(task, tmp_path):
    file = tmp_path / "run"
    short = replace(CONFIG, epochs=3, checkpoint_every=10)
    first, again = make_dss(), make_dss()
    history = fit(first, task, short, checkpoint=file).history
    assert file.exists()
    assert fit(again, task, short, checkpoint=file, resume=True).history == history
    assert same_weights(first, again)
    with pytest.raises(InputError, match="has run 3 epochs already, more than epochs=2"):
        fit(make_dss(), task, replace(short, epochs=2), checkpoint=file, resume=True)


def test_a_file_of_another_kind_is_refused(task, tmp_path):
    save_tensors(tmp_path / "run", {"a": torch.zeros(1)}, {"schema": 1})
    with pytest.raises(InputError, match="expected a 'training run'"):
        fit(make_dss(), task, CONFIG, checkpoint=tmp_path / "run", resume=True)
    with pytest.raises(InputError, match="checkpoint must be a file in a folder that is there"):
        fit(make_dss(), task, CONFIG, checkpoint=tmp_path / "nowhere" / "run")


def test_shared_and_learned_activations_are_saved(task, tmp_path):
    model, again = (make_dss(activation=torch.nn.PReLU()) for _ in range(2))
    fit(model, task, replace(CONFIG, epochs=4), checkpoint=tmp_path / "run")
    fit(again, task, replace(CONFIG, epochs=4), checkpoint=tmp_path / "run", resume=True)
    slopes = [layer.activation.weight.item() for layer in model.layers]
    assert slopes[0] != slopes[1]
    assert same_weights(model, again)


class Unsure(torch.nn.Module):
    """A model whose first evaluations are not numbers."""

    def __init__(self, bad):
        super().__init__()
        self.inner, self.bad = make_dss(), bad

    def forward(self, x, graph):
        self.bad -= not self.training
        broken = not self.training and self.bad >= 0
        return self.inner(x, graph).map(lambda z: z * float("nan") if broken else z)


def test_a_monitor_that_is_not_finite_never_wins(task):
    model = Unsure(bad=1)
    result = fit(model, task, CONFIG)
    assert result.best_epoch > 0
    assert result.best_value < 1
    model = Unsure(bad=1000)
    start = model.inner.lift.weight.detach().clone()
    with pytest.raises(InputError, match="validation brier was never finite"):
        fit(model, task, CONFIG)
    assert torch.equal(model.inner.lift.weight, start)


def test_patience_waits_for_the_warm_up(task):
    model = make_hybrid(warmup_epochs=10)
    result = fit(model, task, replace(CONFIG, epochs=40, patience=2))
    assert len(result.history) > 10


def test_classes_of_model_and_task_must_agree(task):
    with seeded(0):
        wide = DSSGNN(7, 8, 5)
    with pytest.raises(InputError, match="the model has 5 classes, but the task has 2"):
        fit(wide, task, CONFIG)


@pytest.mark.parametrize(
    ("model", "config", "message"),
    [
        (torch.nn.Linear(7, 2), CONFIG, "fit needs a NodeTask, got a dict"),
        ("gcn", CONFIG, "fit needs a Module, got a str"),
        (torch.nn.Linear(7, 2), {"epochs": 3}, "fit needs a NodeTask, got a dict"),
    ],
)
def test_arguments_of_the_wrong_kind(model, config, message):
    with pytest.raises(InputError, match=message):
        fit(model, {}, config)


def test_a_model_that_returns_logits_is_told_what_to_do(task):
    class Plain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(7, 2)

        def forward(self, x, graph):
            return self.linear(x)

    with pytest.raises(InputError, match=r"expected a LogitDistribution \(see dssgnn\.nn\.Deterministic\)"):
        fit(Plain(), task, CONFIG)


class Plain(torch.nn.Module):
    """Says nothing of sparse features."""

    def __init__(self):
        super().__init__()
        self.inner = make_gcn()

    def forward(self, x, graph):
        return self.inner(x + 0, graph)


def test_sparse_features_for_a_model_that_does_not_take_them(task):
    sparse = replace(task, x=SparseFeatures.from_dense(task.x))
    with pytest.raises(InputError, match="x is SparseFeatures, but Plain has no attribute sparse_features"):
        fit(Plain(), sparse, CONFIG)
    for name in ("gcn", "sage"):  # takes them; is given them dense
        fit(Deterministic(make_encoder(name, 7, 8, 2)), sparse, replace(CONFIG, epochs=1))


def test_a_frozen_model(task):
    with pytest.raises(
        InputError, match="no parameter that requires a gradient, so there is nothing to train"
    ):
        fit(make_dss().requires_grad_(False), task, CONFIG)
