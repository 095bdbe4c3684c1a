"""Searches: what is tried, what decides, and what is not run again."""

import json
from dataclasses import replace

import pytest
import torch

import dssgnn.benchmarks.calibration.search.choosing as search_module
from dssgnn.benchmarks.calibration import measuring as measure_module
from dssgnn.benchmarks.calibration.search import Budget, chosen, chosen_alone, search, space
from dssgnn.benchmarks.calibration.search.trials import begin, breed, draw, shape_of, text_of
from dssgnn.benchmarks.frame import split_tasks
from dssgnn.benchmarks.records import merge_records, read_records
from dssgnn.errors import InputError
from dssgnn.training import TrainingResult, fit, seeded
from small_rows import CPU

pytestmark = pytest.mark.usefixtures("boards")


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
    for config in [*draw(arm, 15, 1), *(begin(arm, 12, 1) if arm.starts else bred(arm, 2))]:
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


@pytest.mark.parametrize("row", [row for row, arm in space.ARMS.items() if not arm.starts], ids=" ".join)
def test_children_are_new_and_differ_from_a_parent_in_two_parameters(row):
    arm = space.ARMS[row]
    scored = [(config, float(i)) for i, config in enumerate(draw(arm, 5, 2))]
    trials = breed(arm, scored, 4, 2, seed=1)
    assert trials == breed(arm, scored, 4, 2, seed=1) != breed(arm, scored, 4, 2, seed=2)
    parents = [scored[2 * i][0] for i in (0, 0, 1, 2)]
    for i, parent in enumerate(parents):
        first, second = trials[2 * i : 2 * i + 2]
        changed = {k for k in shape_of(parent) if first[k] != parent[k]}
        assert len(changed) == 2
        assert "family" not in changed
        assert all(first[name] == parent[name] for name in arm.rates)
        assert any(second[name] != parent[name] for name in arm.rates)
        assert shape_of(first) == shape_of(second)
    shapes = [json.dumps(shape_of(t), sort_keys=True) for t in bred(arm, 6)[::2]]
    assert len(set(shapes)) == len(shapes)


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
    ("change", "rounds"),
    [
        ({"splits": (1,)}, ["first"]),
        ({"splits": (0, 1)}, ["first"]),
        ({"halvings": 3}, ["first", "final"]),
        ({"patience": 7}, ["first"]),
        ({"final_splits": (2,)}, ["final"]),
        ({"final_epochs": 9}, ["final"]),
        ({"final_patience": 9}, ["final"]),
    ],
    ids=str,
)
def test_a_trial_that_was_run_otherwise_is_run_again(tmp_path, monkeypatch, change, rounds):
    ran = []

    def told(setups, tasks, splits, node_scores):
        ran.append(setups[0].training.epochs)
        scores = torch.full((2, 4), 0.2) if node_scores else None
        own = [TrainingResult(0, 0.2, [], 0.0, "epochs", scores)]
        return [[(task, None, own) for task in tasks] for _ in setups]

    monkeypatch.setattr(search_module, "train_together", told)
    out, row = tmp_path / "s.json", ("gcn-res", "tuned")
    budget = Budget(
        shapes=1, rates=1, generations=0, splits=(0,), epochs=5, patience=5, finalists=1, final_splits=(0,),
        final_epochs=8, final_patience=8,
    )  # fmt: skip
    for changed, expected in ((budget, ["first", "final"]), (replace(budget, **change), rounds)):
        ran.clear()
        search("board", row, out, CPU, changed)
        lengths = {"first": changed.epochs, "final": changed.final_epochs}
        assert ran == [lengths[name] for name in expected]


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


def test_a_split_chooses_alone(tmp_path, monkeypatch):
    """Among the same trials, by its own score: also what the mean over all splits would not choose."""

    def told(setups, tasks, splits, node_scores):
        found = []
        for made in setups:
            slow = made.training.lr == 0.005
            values = [
                0.1 if slow else 0.5,
                0.9 if slow else 0.2,
            ]  # a split each; the mean prefers the fast one
            found.append(
                [
                    (task, None, [TrainingResult(0, v, [], 0.0, "epochs")])
                    for task, v in zip(tasks, values, strict=True)
                ]
            )
        return found

    monkeypatch.setattr(search_module, "train_together", told)
    out, row = tmp_path / "s.json", ("dss-gnn", "best")
    budget = Budget(shapes=1, rates=6, generations=1, children=1, splits=(0, 1), finalists=0)
    made = [chosen_alone("board", row, split, out, CPU, budget) for split in (0, 1)]
    assert [own.training.lr for own in made] == [0.005, 0.01]
    assert chosen("board", row, out, CPU, budget).training.lr == 0.01
    assert made[0].config["arm"] == "best"
    assert made[0].training.epochs == budget.final_epochs
    small = "whose trials are judged on every split, got board"
    for other, split, why in ((replace(budget, finalists=1), 0, small), (budget, 2, "got split 2")):
        with pytest.raises(InputError, match=why):
            chosen_alone("board", row, split, out, CPU, other)

    def too_large(*given, **options):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried.")

    monkeypatch.setattr(search_module, "train_together", too_large)
    with pytest.raises(InputError, match="board dss-gnn best: no trial of its search fitted the device"):
        chosen_alone("board", row, 0, tmp_path / "t.json", CPU, budget)


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


def test_the_choice_of_this_device_comes_first(tmp_path, monkeypatch):
    """Of two devices' scores, also where the other one has tried as much."""
    scores = iter([0.1, 0.5, 0.5, 0.1])

    def told(setups, tasks, splits, node_scores):
        results = [[TrainingResult(0, next(scores), [], 0.0, "epochs")] for _ in setups]
        return [[(tasks[0], None, own)] for own in results]

    monkeypatch.setattr(search_module, "train_together", told)
    row, budget = ("gcn-res", "tuned"), Budget(shapes=1, rates=2, generations=0, splits=(0,), finalists=0)
    found = {}
    for place in ("a GPU", "cpu"):
        monkeypatch.setattr(search_module, "place_of", lambda device, place=place: place)
        found[place] = search("board", row, tmp_path / f"{place}.json", CPU, budget)
    assert found["a GPU"] != found["cpu"]
    for order in (("a GPU", "cpu"), ("cpu", "a GPU")):
        both = tmp_path / f"{order[0]}-first.json"
        for place in order:
            merge_records(both, read_records(tmp_path / f"{place}.json"))
        assert search("board", row, both, CPU, budget) == found["cpu"]


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
    monkeypatch.setattr(measure_module, "evaluate", None)  # nobody may look at a test part
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
