"""The frame of the calibration table: splits as a population, ensembles, resuming, what the test part is read for."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from dssgnn import DSSGNN
from dssgnn.baselines.deep_ensemble import DeepEnsemble
from dssgnn.benchmarks.calibration import Setup, measure, space, sweep
from dssgnn.benchmarks.calibration import frame as run_module
from dssgnn.benchmarks.calibration import plan as plan_module
from dssgnn.benchmarks.calibration import search as search_module
from dssgnn.benchmarks.calibration import trials as trials_module
from dssgnn.benchmarks.calibration.ablations import ABLATIONS, ablation
from dssgnn.benchmarks.calibration.plan import ablation_rows, asked_systems, known_systems
from dssgnn.benchmarks.calibration.search import Budget, chosen, search
from dssgnn.benchmarks.calibration.setup import seed_of_run
from dssgnn.benchmarks.calibration.systems import SYSTEMS, has_row
from dssgnn.benchmarks.calibration.trials import begin, breed, draw, shape_of, text_of
from dssgnn.benchmarks.commands import bench
from dssgnn.benchmarks.presets import preset
from dssgnn.benchmarks.records import read_records
from dssgnn.benchmarks.tasks import split_tasks
from dssgnn.errors import InputError
from dssgnn.metrics import calibration_metrics
from dssgnn.training import TrainingConfig, TrainingResult, fit, seeded
from dssgnn.training.loop import evaluate

CPU = torch.device("cpu")
CONFIG = TrainingConfig(epochs=8, patience=None, monitor="brier")


pytestmark = pytest.mark.usefixtures("boards")


def setup(**options):
    def make(features, classes):
        return DSSGNN(features, 8, classes, chaos_order=1, dropout=0.3).double()

    return Setup(make, CONFIG, **options)


def test_tasks_share_everything_but_their_masks():
    first, second = split_tasks("board", [0, 1], CPU, self_loops=True)
    assert first.x is second.x
    assert first.graph is second.graph
    assert first.y is second.y
    assert not torch.equal(first.train_mask, second.train_mask)
    assert first.graph.options["self_loops"] is True


def test_a_row_is_what_separate_runs_give():
    rows = measure(setup(), "board", [0, 3], CPU)
    for split, row in zip([0, 3], rows, strict=True):
        (task,) = split_tasks("board", [split], CPU)
        with seeded(seed_of_run(split, 0)):
            model = setup().make(7, 2)
        fit(model, task, replace(CONFIG, seed=seed_of_run(split, 0)))
        expected = evaluate(model, task, task.test_mask)
        assert row["brier"] == pytest.approx(expected["brier"], abs=1e-8)
        assert row["val_brier"] == pytest.approx(evaluate(model, task, task.val_mask)["brier"], abs=1e-8)
        assert row["epochs"] == 8


def test_ensembles_combine_the_members_of_their_split():
    seen = []

    def combine(models):
        seen.append(models)
        return DeepEnsemble(models)

    rows = measure(setup(members=3, combine=combine), "board", [0, 1], CPU)
    assert [len(models) for models in seen] == [3, 3]
    assert len(rows) == 2
    weights = [next(model.parameters()) for models in seen for model in models]
    assert all(not torch.equal(a, b) for i, a in enumerate(weights) for b in weights[:i])


def test_every_row_has_its_temperature_too():
    ((task, system, _),) = run_module.train(setup(), split_tasks("board", [0], CPU), [0])
    (row,) = measure(setup(), "board", [0], CPU)
    temperature = row["temperature"]
    logits = system(task.x, task.graph).map(lambda z: z / temperature)[task.test_mask]
    assert row["nll_scaled"] == pytest.approx(
        calibration_metrics(logits, task.y[task.test_mask])["nll"], abs=1e-8
    )
    assert temperature != 1


def test_a_sweep_goes_on_where_it_was(tmp_path, monkeypatch):
    out = tmp_path / "calibration.json"
    calls = []
    inner = run_module.measure_together

    def counted(given, name, splits, device):
        calls.append((name, tuple(splits)))
        return inner(given, name, splits, device)

    monkeypatch.setattr(run_module, "measure_together", counted)
    rows = [("board", "dss-gnn", "a", setup), ("board", "dss-gnn", "b", setup)]
    sweep(rows[:1], [0, 1], out, CPU)
    sweep(rows, [0, 1, 2], out, CPU)
    assert calls == [("board", (0, 1)), ("board", (2,)), ("board", (0, 1, 2))]
    records = read_records(out)
    assert {(r.variant, r.split) for r in records} == {(v, s) for v in "ab" for s in range(3)}
    assert all(r.selected_on == "validation brier" and 0 <= r.metrics["brier"] <= 2 for r in records)
    assert records[0].config["training"]["epochs"] == 8
    assert [r.config["seeds"] for r in records if r.variant == "a"] == [[42], [43], [44]]
    other = [("board", "dss-gnn", "a", lambda: replace(setup(), training=replace(CONFIG, lr=0.02)))]
    sweep(other, [0], out, CPU)  # another configuration is not the same row
    assert calls[-1] == ("board", (0,))


def test_a_row_that_does_not_fit_is_left_out(tmp_path):
    def too_large():
        raise torch.OutOfMemoryError("CUDA out of memory. Tried everything.")

    said = []
    rows = [("board", "dss-gnn", "a", lambda: replace(setup(), make=lambda f, c: too_large()))]
    sweep([*rows, ("board", "dss-gnn", "b", setup)], [0], tmp_path / "c.json", CPU, said.append)
    assert said[0] == "board dss-gnn a: left out, CUDA out of memory"
    assert [r.variant for r in read_records(tmp_path / "c.json")] == ["b"]


def texts(trials):
    return {json.dumps(shape_of(t), sort_keys=True) for t in trials}


def bred(arm, generations, children=4):
    """Trials of an arm under made-up scores, generation after generation."""
    scored = [(config, float(i)) for i, config in enumerate(draw(arm, 5, 2))]
    for seed in range(generations):
        trials = breed(arm, scored, children, 2, seed)
        scored += [(config, -float(len(scored) + i)) for i, config in enumerate(trials)]
    return [config for config, _ in scored]


@pytest.mark.parametrize("row", list(space.ARMS), ids=" ".join)
def test_every_trial_builds_and_trains(row):
    (task,) = split_tasks("board", [0], CPU)
    arm = space.ARMS[row]
    for config in [*draw(arm, 15, 1), *bred(arm, 2)]:
        made = arm.setup(config, 1, 1)
        with seeded(0):
            model = made.make(7, 2).double()
        fit(model, task, made.training)
        if row[0] == "dss-gnn":
            assert (config["chaos_order"] > 0) == (row[1] == "best")
            assert made.training.logit_weight == config["logit_weight"]
            assert made.training.chaos_weight == (config["chaos_weight"] if row[1] == "best" else 0)


def test_draws_cover_the_space_and_are_the_same_for_every_order():
    best, p0 = (draw(space.ARMS["dss-gnn", a], 600, 1) for a in ("best", "best-p0"))
    orders = {"chaos_order", "quadrature_size"}
    assert [{k: v for k, v in c.items() if k not in orders} for c in best] == [
        {k: v for k, v in c.items() if k not in orders} for c in p0
    ]
    for i, (family, values) in enumerate(space.DSS_FAMILIES.items()):
        drawn = [config for config in best if config["family"] == family]
        assert drawn[0] == best[i]
        assert all(drawn[0][name] == each[0] for name, each in values.items())
        for name, each in values.items():
            assert {config[name] for config in drawn} == set(each)
        met = {(c["chaos_order"], c["quadrature_size"], c["objective"]) for c in drawn}
        assert len(met) == 9  # every order with every objective


@pytest.mark.parametrize("row", list(space.ARMS), ids=" ".join)
def test_children_are_new_and_differ_from_a_parent_in_two_parameters(row):
    arm = space.ARMS[row]
    scored = [(config, float(i)) for i, config in enumerate(draw(arm, 5, 2))]
    trials = breed(arm, scored, 4, 2, seed=1)
    assert trials == breed(arm, scored, 4, 2, seed=1) != breed(arm, scored, 4, 2, seed=2)
    parents = [scored[2 * i][0] for i in (0, 0, 1, 2)]
    for i, parent in enumerate(parents):
        first, second = trials[2 * i : 2 * i + 2]
        changed = {k for k in shape_of(parent) if first[k] != parent[k]} - {"quadrature_size"}
        assert len(changed) == 2
        assert "family" not in changed
        assert all(first[name] == parent[name] for name in arm.rates)
        assert any(second[name] != parent[name] for name in arm.rates)
        assert shape_of(first) == shape_of(second)
    shapes = [json.dumps(shape_of(t), sort_keys=True) for t in bred(arm, 6)[::2]]
    assert len(set(shapes)) == len(shapes)


def test_an_order_that_is_not_there_has_no_objective_of_its_own():
    """At P=0 the quadrature's loss and the predictive one are the same: no child differs from its parent in that."""
    arm = space.ARMS["dss-gnn", "best-p0"]
    for seed, config in enumerate(draw(arm, 100, 1)):
        changed = trials_module._changed(np.random.default_rng(seed), arm, shape_of(config))
        assert {config["objective"], changed["objective"]} != {"predictive", "quadrature"}


def test_direction_is_not_searched_where_there_is_none():
    arm = space.ARMS["dss-gnn", "best"]
    assert arm.on(True) is arm
    assert {c["direction"] for c in draw(arm.on(False), 50, 1)} == {"both"}
    assert {c["direction"] for c in draw(arm, 50, 1)} == {"both", "out"}
    for rival in (("gcn-res", "tuned"), ("tfe-gnn", "tuned")):  # what `direction` is to ours
        drawn = draw(space.ARMS[rival], 50, 1)
        assert {c["edges"] for c in drawn} == {None, "undirected"}
        assert not any("edges" in c for c in draw(space.ARMS[rival].on(False), 50, 1))
        undirected = next(c for c in drawn if c["edges"])
        assert space.ARMS[rival].setup(undirected, 1, 1).preparation == {"edges": "undirected"}


@pytest.mark.parametrize("row", list(space.ARMS), ids=" ".join)
def test_rates_of_a_shape_differ(row):
    arm = space.ARMS[row]
    trials = draw(arm, 16, 3)
    for shape in range(16):
        rates = [name for name in arm.rates if name != "chaos_weight"]  # of which P = 0 knows nothing
        own = [tuple(t[name] for name in rates) for t in trials[3 * shape : 3 * shape + 3]]
        assert len(set(own)) == 3
    with pytest.raises(InputError, match="there are not 999 settings of lr, weight_decay"):
        draw(arm, 1, 999)


def test_starts_may_have_options_that_nobody_draws():
    trials = begin(space.ARMS["dss-gnn", "best"], 12, 2)
    own, drawn = (t for t in trials if t.get("eta") == -0.3)
    assert (own["filter_basis"], own["filter_init"], own["num_layers"]) == ("monomial", "halves", 2)
    assert (own["coefficient_lr"], own["logit_weight"], own["chaos_order"]) == (0.1, 0.003, 5)
    assert drawn["logit_weight"] in space.DSS_RATES["logit_weight"]
    slow = next(t for t in trials if t.get("coefficient_decay") is not None)
    (group,) = space.dss_setup(slow, 5, 5).training.groups
    assert (group.lr, group.weight_decay) == (0.001, 0.0)
    (group,) = space.dss_setup(own, 5, 5).training.groups
    assert (group.lr, group.weight_decay) == (0.1, 0.05)
    for trial in trials:  # each of them is a network
        space.dss_setup(trial, 5, 5).make(7, 2)


def test_bred_trials_have_other_rates_too(tmp_path, monkeypatch):
    """With one setting of the training a child would have its parent's for ever."""
    tried = []

    def told(setups, tasks, splits, node_scores):
        tried.extend((made.config["lr"], made.config["weight_decay"]) for made in setups)
        own = [TrainingResult(0, 0.3, [], 0.0, "epochs")]
        return [[(task, None, own) for task in tasks] for _ in setups]

    monkeypatch.setattr(search_module, "train_together", told)
    budget = Budget(shapes=1, rates=1, generations=2, children=3, splits=(0,), finalists=0)
    search("board", ("gcn-res", "tuned"), tmp_path / "s.json", CPU, budget)
    assert len(tried) == 1 + 2 * 3 * 2
    assert len(set(tried)) > 2


def test_what_was_chosen_earlier_is_a_row_of_its_own():
    assert has_row("gcn-res", "earlier", "texas")
    assert not has_row("gcn-res", "earlier", "cora")
    made = SYSTEMS["gcn-res", "earlier"]("cornell")
    assert (made.config["hidden_channels"], made.config["dropout"], made.training.objective) == (
        128,
        0.2,
        "mean",
    )


def test_trials_of_a_smaller_space_are_not_run_again(tmp_path, monkeypatch):
    """What a trial's score depends on is its configuration and how it was run, not what else was declared."""
    ran = []

    def told(setups, tasks, splits, node_scores):
        ran.extend(made.config for made in setups)
        own = [TrainingResult(0, 0.2, [], 0.0, "epochs")]
        return [[(task, None, own) for task in tasks] for _ in setups]

    monkeypatch.setattr(search_module, "train_together", told)
    out, row = tmp_path / "s.json", ("dss-gnn", "best")
    budget = Budget(shapes=1, rates=1, generations=1, children=2, splits=(0,), finalists=0)
    search("board", row, out, CPU, budget)
    assert len(ran) == 3
    search("board", row, out, CPU, replace(budget, children=3))
    assert len(ran) == 4
    search("board", row, out, CPU, replace(budget, children=3, epochs=7))
    assert len(ran) == 8  # another length is another run


@pytest.mark.parametrize(
    ("nodes", "rounds", "final"), [(200, 10, 10), (3000, 2, 10), (20_000, 1, 3)], ids=["few", "some", "many"]
)
def test_small_graphs_are_judged_on_more_splits(nodes, rounds, final):
    budget = Budget.of(nodes)
    assert (len(budget.splits), len(budget.final_splits)) == (rounds, final)


def test_declared_starts_stand_in_for_breeding(tmp_path, monkeypatch):
    tried = []

    def told(setups, tasks, splits, node_scores):
        """The lucky ones have a better epoch, that only half of the nodes like."""
        assert node_scores
        tried.append([made.config for made in setups])
        best = setups[0].config["filter_orders"] == (4, 0) and setups[0].training.lr == 0.01
        scores = (
            [[0.3] * 40]
            if best
            else [[0.8 * (i % 2) for i in range(40)], [0.8 - 0.8 * (i % 2) for i in range(40)]]
        )
        own = [TrainingResult(0, 0.3 if best else 0.1, [], 0.0, "epochs", torch.tensor(scores))]
        return [[(task, None, own) for task in tasks] for _ in setups]

    monkeypatch.setattr(search_module, "train_together", told)
    for row in (("dss-gnn", "best"), ("dss-gnn", "best-p0")):
        arm = space.ARMS[row].on(directed=False)
        budget = replace(Budget.of(100), splits=(0,))
        starts = begin(arm, budget.starts, budget.rates)
        assert len(arm.starts) == budget.starts == budget.generations * budget.children
        assert len({text_of(t) for t in starts}) == len(starts) == budget.rates * len(arm.starts)
        assert {t["direction"] for t in starts} == {"both"}
        assert {t["chaos_order"] for t in starts} == ({1, 3, 5} if row[1] == "best" else {0})
        tried.clear()
        found = search("board", row, tmp_path / "s.json", CPU, budget)
        assert texts(c for block in tried for c in block) == texts(
            [*draw(arm, budget.shapes, budget.rates), *starts]
        )
        assert (found["family"], tuple(found["filter_orders"])) == ("filtered", (4, 0))  # no last round
    orders = ("chaos_order", "quadrature_size")
    best, p0 = (begin(space.ARMS["dss-gnn", name], 12, 3) for name in ("best", "best-p0"))
    assert [begin(space.ARMS["dss-gnn", "best"], n, 3) for n in (8, 9)] == [best[:24], best[:27]]
    assert [{k: v for k, v in t.items() if k not in orders} for t in best] == [
        {k: v for k, v in t.items() if k not in orders} for t in p0
    ]


def test_a_choice_holds_on_other_devices(tmp_path, monkeypatch):
    def told(setups, tasks, splits, node_scores):
        own = [TrainingResult(0, 0.2, [], 0.0, "epochs")]
        return [[(task, None, own) for task in tasks] for _ in setups]

    out, row = tmp_path / "s.json", ("gcn-res", "tuned")
    budget = Budget(shapes=2, rates=2, generations=0, splits=(0,), finalists=1, final_splits=(0,))
    with monkeypatch.context() as patch:
        patch.setattr(search_module, "train_together", told)
        patch.setattr(search_module, "place_of", lambda device: "a GPU")
        found = search("board", row, out, CPU, budget)
    monkeypatch.setattr(search_module, "train_together", None)  # everything is on record
    assert search("board", row, out, CPU, budget) == found


def test_a_block_that_does_not_fit_is_halved(tmp_path, monkeypatch):
    sizes = []

    def small(setups, tasks, splits, node_scores):
        sizes.append(len(setups))
        if len(setups) > 1 or setups[0].training.lr == 0.005:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried.")
        return [[(task, None, [TrainingResult(0, 0.3, [], 0.0, "epochs")]) for task in tasks]]

    monkeypatch.setattr(search_module, "train_together", small)
    said = []
    budget = Budget(shapes=1, rates=5, generations=0, splits=(0,), finalists=1, final_splits=(0,))
    row = ("gcn-res", "tuned")
    found = search("board", row, tmp_path / "s.json", CPU, budget, said.append)
    assert sizes[0] == 5
    assert found["lr"] == 0.01
    assert any("left out" in text for text in said)
    monkeypatch.setattr(search_module, "train_together", None)  # also what failed is on record
    assert search("board", row, tmp_path / "s.json", CPU, budget) == found


def test_search_chooses_on_validation_and_goes_on_where_it_was(tmp_path, monkeypatch):
    out = tmp_path / "search.json"
    family = {name: values[:2] for name, values in space.DSS_FAMILIES["every"].items()}

    def double(*arguments):
        made = space.dss_setup(*arguments)
        return replace(made, make=lambda f, c: made.make(f, c).double())

    row = ("dss-gnn", "best")
    small = replace(
        space.ARMS[row],
        families={"every": {**family, "hidden_channels": (8,)}},
        rates={**space.DSS_RATES, "lr": (0.01, 1e-6)},
        setup=double,
        starts=(),
    )
    monkeypatch.setitem(space.ARMS, row, small)
    monkeypatch.setattr(run_module, "evaluate", None)  # nobody may look at a test part
    budget = Budget(
        shapes=2, rates=3, generations=2, children=1, splits=(0,), epochs=15, finalists=2, final_epochs=20,
        final_patience=20,
    )  # fmt: skip
    populations = []
    inner = search_module.train_together

    def counted(setups, tasks, splits, node_scores):
        populations.append(len(setups) * len(splits))
        return inner(setups, tasks, splits, node_scores)

    monkeypatch.setattr(search_module, "train_together", counted)
    found = search("board", row, out, CPU, budget)
    assert populations == [3, 3, 3, 3, 10, 10]
    records = {r.variant: r for r in read_records(out)}
    assert set(records) == {f"best, {name} round" for name in ("first", "bred 1", "bred 2", "final")}
    finals = records["best, final round"].config["trials"]
    best = min(finals, key=lambda trial: sum(trial["val_brier"]))
    assert len(best["val_brier"]) == 10
    assert best["config"]["lr"] == found["lr"] == 0.01
    earlier = [t for r in records.values() if "final" not in r.variant for t in r.config["trials"]]
    assert texts(t["config"] for t in finals) < texts(t["config"] for t in earlier)
    monkeypatch.setattr(search_module, "train_together", None)  # everything is on record
    assert search("board", row, out, CPU, budget) == found
    won = chosen("board", row, out, CPU, budget)
    plain, penalised = (chosen("board", twin, out, CPU, budget) for twin in space.TWINS)
    for twin in (plain, penalised):
        changed = {k for k in won.config if won.config[k] != twin.config[k]}
        assert changed - {"logit_weight"} == {"chaos_order", "quadrature_size", "arm"}
    assert plain.training.logit_weight == won.training.logit_weight < penalised.training.logit_weight
    assert plain.training == replace(won.training, chaos_weight=0.0)
    changed = replace(plain.training, logit_weight=penalised.training.logit_weight)
    assert changed == penalised.training


def test_seeds_of_a_row_are_one_population(tmp_path, monkeypatch):
    sizes = []
    inner = run_module.train_together

    def counted(setups, tasks, splits):
        sizes.append(len(setups) * len(splits))
        return inner(setups, tasks, splits)

    monkeypatch.setattr(run_module, "train_together", counted)
    out = tmp_path / "c.json"
    rows = [("board", "dss-gnn", "a", setup)]
    sweep(rows, [0, 1], out, CPU)
    sweep(rows, [0, 1], out, CPU, seeds=3)
    assert sizes == [2, 4]
    records = read_records(out)
    assert {len(r.config["seeds"]) for r in records} == {1}
    assert {(r.split, r.seed) for r in records} == {(s, n) for s in (0, 1) for n in range(3)}
    assert len({r.metrics["brier"] for r in records}) == 6

    def narrow(setups, tasks, splits):
        if len(setups) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried.")
        return inner(setups, tasks, splits)

    monkeypatch.setattr(run_module, "train_together", narrow)
    sweep(
        rows, [0, 1], tmp_path / "d.json", CPU, seeds=3
    )  # one after the other, where they do not fit together
    again = {(r.split, r.seed): r.metrics["brier"] for r in read_records(tmp_path / "d.json")}
    assert again == pytest.approx({(r.split, r.seed): r.metrics["brier"] for r in records}, abs=1e-8)


@pytest.mark.filterwarnings("ignore:epochs=2 ends within the warm-up")
@pytest.mark.parametrize("row", list(SYSTEMS), ids=" ".join)
def test_every_row_trains_as_a_population(row):
    """Two splits, two epochs, on a small board with the setup of a real dataset."""
    name = "texas" if has_row(*row, "texas") else "tolokers"
    made = SYSTEMS[row](name)
    made = replace(
        made,
        training=replace(made.training, epochs=2, patience=None),
        make=lambda f, c: SYSTEMS[row](name).make(f, c).double(),
    )
    rows = measure(made, name, [0, 1], CPU)
    assert all(0 <= r["brier"] <= 2 and 0 <= r["accuracy"] <= 1 for r in rows)
    assert made.config


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--methods", "magic"], "--methods knows bernnet, .* got 'magic'"),
        (
            ["--methods", "gcn", "--variants", "best"],
            "--variants knows batch-norm, default, paper of these",
        ),
        (["--datasets", "atlantis"], "--datasets knows .* got 'atlantis'"),
        (["--splits", "many"], "--splits takes a number"),
        (["--splits", "9-5"], "--splits takes a number"),
        (["--datasets", "cora", "--ablations", "all,"], "--ablations knows order, .* got 'all'"),
        (
            ["--datasets", "cora", "--ablations", "order", "--base", "best"],
            "--base must be published or paper, got 'best'",
        ),
        (
            ["--datasets", "minesweeper-demo", "--ablations", "order"],
            "the paper has no such ablation of mine",
        ),
        (["--datasets", "cora", "--curves", "lines"], "--curves knows reliability and curvature"),
        (["--datasets", "cora", "--curves", "reliability"], "there is no such row of these graphs"),
        (
            ["--datasets", "cora", "--methods", "dss-gnn", "--variants", "published-other"],
            "there is no such row of these graphs",
        ),
        (["--datasets", "cora", "--curves", "reliability", "--workers", "2"], "--curves does not go with"),
        (["--datasets", "cora", "--timed"], "--timed is of one system with a variant"),
        (["--datasets", "cora", "--ablations", "order", "--timed"], "--timed does not go with --ablations"),
        (["--datasets", "cora", "--splits", "0", "--timed"], "--timed is of one run of each split"),
    ],
)
def test_command_refuses(words, message):
    with pytest.raises(InputError, match=message):
        CliRunner().invoke(bench, ["calibration", *words], catch_exceptions=False)


def test_command_runs_a_row(tmp_path, monkeypatch):
    whole = SYSTEMS["gpr-gnn", "paper"]("texas")
    short = replace(whole, training=CONFIG, make=lambda f, c: whole.make(f, c).double())
    monkeypatch.setitem(SYSTEMS, ("gpr-gnn", "paper"), lambda dataset: short)
    out = tmp_path / "calibration.json"
    words = ["--methods", "gpr-gnn", "--variants", "paper", "--datasets", "texas", "--splits", "0-1"]
    result = CliRunner().invoke(
        bench, ["calibration", *words, "--device", "cpu", "--out", str(out)], catch_exceptions=False
    )
    assert "texas gpr-gnn paper: Brier" in result.output
    assert {(r.method, r.variant, r.split) for r in read_records(out)} == {
        ("gpr-gnn", "paper", s) for s in (0, 1)
    }
    timed = ["calibration", *words, "--device", "cpu", "--out", str(out), "--timed"]
    result = CliRunner().invoke(bench, timed, catch_exceptions=False)
    assert "gpr-gnn paper on 1 graphs: " in result.output
    kinds = [r.benchmark for r in read_records(out)]
    assert sorted(kinds) == ["calibration"] * 2 + ["calibration-repeated"] * 2 + ["calibration-time"]
    (record,) = (r for r in read_records(out) if r.benchmark == "calibration-time")
    assert (record.config["datasets"], record.config["splits"]) == (["texas"], [0, 1])
    assert 0 < record.metrics["seconds"] < 100
    with pytest.raises(InputError, match="has a timed run of gpr-gnn paper"):
        CliRunner().invoke(bench, timed, catch_exceptions=False)


def test_no_splits_are_a_choice_without_a_test(tmp_path, monkeypatch):
    asked = []

    def choose(graph, system, *others, **options):
        asked.append((graph, *system))
        return setup()

    monkeypatch.setattr(plan_module, "chosen", choose)
    monkeypatch.setattr(run_module, "evaluate", None)  # nobody may look at a test part
    out = tmp_path / "calibration.json"
    words = ["--methods", "gcn-res", "--variants", "tuned", "--datasets", "texas", "--splits", "0"]
    CliRunner().invoke(
        bench, ["calibration", *words, "--device", "cpu", "--out", str(out)], catch_exceptions=False
    )
    assert asked == [("texas", "gcn-res", "tuned")]
    assert not out.exists()


def test_command_says_that_there_are_no_graphs(tmp_path, monkeypatch):
    monkeypatch.setenv("DSSGNN_DATA", str(tmp_path))
    with pytest.raises(InputError, match="none of the paper's graphs is here"):
        CliRunner().invoke(bench, ["calibration", "--methods", "gcn"], catch_exceptions=False)


def test_all_systems_are_all_but_the_defaults():
    systems = asked_systems("all", "all")
    assert set(systems) == {row for row in known_systems() if row[1] != "default"}
    assert ("gcn", "default") in asked_systems("gcn,gat", "default")


def test_command_lists_its_rows():
    lines = CliRunner().invoke(bench, ["calibration", "--rows"], catch_exceptions=False).output.splitlines()
    assert {"dss-gnn twin-p0-penalty", "gcn default", "deep-ensemble paper"} <= set(lines)
    assert len(lines) == len(set(lines))


def test_norms_are_compared_on_every_graph():
    rows = ablation_rows("start-norms", "published", ["cora", "texas"])
    assert len(rows) == 22
    assert len(ablation_rows("start-joint", "published", ["cora"])) == 4
    (task,) = split_tasks("board", [0], CPU)
    for _, _, _, make in rows[:9]:
        made = make()
        with seeded(0):
            fit(made.make(7, 2).double(), task, replace(made.training, epochs=1))
    assert {row[2] for row in ablation_rows("all", "published", ["cora"])} >= {row[2] for row in rows}


@pytest.mark.parametrize("name", list(ABLATIONS))
@pytest.mark.parametrize("base", ["published", "paper"])
def test_an_ablation_changes_one_thing(name, base):
    for variant, make in ablation(name, base).items():
        made, given = make("cora"), preset("cora", base)
        model, training = ABLATIONS[name][variant.removeprefix(f"{base}, ")]
        assert made.config["architecture"] == {**given.architecture, **model}
        same = set(asdict(given.training)) - set(training) - {"chaos_weight"}
        assert all(
            getattr(made.training, key) == getattr(given.training, key) for key in same - {"logit_weight"}
        )
        made.make(7, 2)
    if name == "penalty":
        assert (made.training.logit_weight, made.training.chaos_weight) == (given.training.chaos_weight, 0)
        assert given.training.chaos_weight > 0
