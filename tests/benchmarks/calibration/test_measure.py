"""What a row's metrics are: splits as a population, ensembles, temperatures, every system of the table."""

from dataclasses import replace

import pytest
import torch

from dssgnn.baselines.deep_ensemble import DeepEnsemble
from dssgnn.benchmarks.calibration.measuring import measure
from dssgnn.benchmarks.calibration.systems import SYSTEMS, has_row
from dssgnn.benchmarks.frame import seed_of_run, split_tasks, train
from dssgnn.metrics import calibration_metrics
from dssgnn.training import fit, seeded
from dssgnn.training.loop import evaluate
from small_rows import CONFIG, CPU, setup

pytestmark = pytest.mark.usefixtures("boards")


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
    ((task, system, _),) = train(setup(), split_tasks("board", [0], CPU), [0])
    (row,) = measure(setup(), "board", [0], CPU)
    temperature = row["temperature"]
    logits = system(task.x, task.graph).map(lambda z: z / temperature)[task.test_mask]
    assert row["nll_scaled"] == pytest.approx(
        calibration_metrics(logits, task.y[task.test_mask])["nll"], abs=1e-8
    )
    assert temperature != 1


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


def test_what_was_chosen_earlier_is_a_row_of_its_own():
    assert has_row("gcn-res", "earlier", "texas")
    assert not has_row("gcn-res", "earlier", "cora")
    made = SYSTEMS["gcn-res", "earlier"]("cornell")
    assert (made.config["hidden_channels"], made.config["dropout"], made.training.objective) == (
        128,
        0.2,
        "mean",
    )
