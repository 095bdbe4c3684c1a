"""The declared space from which DSS-GNN's `best` is chosen, and how, on validation data alone."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from dssgnn.benchmarks.calibration.frame import train
from dssgnn.benchmarks.calibration.setup import Setup
from dssgnn.benchmarks.records import Record, device_name, merge_records, read_records
from dssgnn.benchmarks.tasks import split_tasks
from dssgnn.nn import DSSGNN
from dssgnn.training import NodeTask, ParameterGroup, TrainingConfig

__all__ = ["ARMS", "SPACE", "TWINS", "Budget", "chosen", "draw", "dss_setup", "search"]

# One value a parameter is drawn, each with equal chance. The chaos order is not drawn here: every arm is given the same
# draws with an order of its own, so that the arms cost the same effort.
SPACE: dict[str, tuple[Any, ...]] = {
    "propagation": ("every", "every", "first"),
    "num_layers": (2, 2, 3, 4, 6),
    "hidden_channels": (64, 128, 256),
    "filter_orders": ((4, 4), (2, 2), (6, 5)),
    "filter_init": ("lowpass", "flat", "published", "highpass"),
    "residual": (True, False),
    "norm": (None, "batch"),
    "dropout": (0.2, 0.5, 0.7),
    "input_dropout": (0.0, 0.5, 0.8),
    "lift_dropout": (0.0, 0.0, 0.5),
    "direction": ("both", "both", "in", "out"),
    "self_loops": (False, True),
    "objective": ("predictive", "brier", "mean"),
    "chaos_weight": (0.0, 0.001, 0.01, 0.1),
    "lr": (0.01, 0.005),
    "weight_decay": (0.0, 5e-4, 5e-3),
    "coefficient_lr": (None, None, 0.1),
}

# The chaos orders of an arm, which its draws share between them; ``best-p0-penalty`` has the regulariser's weight on
# the squared mean logits instead (where a draw has none, `_PENALTY`).
ARMS: dict[str, tuple[int, ...]] = {"best": (1, 2), "best-p0": (0,), "best-p0-penalty": (0,)}

# What is not searched: the winner of ``best`` with nothing but its order changed, and with the penalty as well.
TWINS = {"twin-p0": "best-p0", "twin-p0-penalty": "best-p0-penalty"}

_PENALTY = 0.01

_OPERATOR = ("direction", "self_loops")
_TRAINING = ("objective", "chaos_weight", "lr", "weight_decay")


@dataclass(frozen=True)
class Budget:
    """How long is searched.

    Attributes:
        draws: configurations.
        splits: of the first round, whose validation Brier decides who stays.
        epochs: of the first round.
        finalists: configurations that are trained on every split in the second round.
        final_epochs: of the second round.
        patience: of both.
    """

    draws: int = 48
    splits: tuple[int, ...] = (0, 1, 2)
    epochs: int = 300
    finalists: int = 8
    final_epochs: int = 1000
    patience: int = 100


def draw(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """Configurations from `SPACE`; the same for every dataset and arm.

    Example:
        >>> draw(2) == draw(3)[:2]
        True
    """
    rng = np.random.default_rng(seed)
    return [{name: values[rng.integers(len(values))] for name, values in SPACE.items()} for _ in range(count)]


def dss_setup(config: Mapping[str, Any], arm: str, epochs: int, patience: int) -> Setup:
    """A drawn configuration with a ``chaos_order``, as an arm trains it."""
    network = {k: v for k, v in config.items() if k not in (*_OPERATOR, *_TRAINING, "coefficient_lr")}
    width = network.pop("hidden_channels")
    rates = {name: config[name] for name in _TRAINING}
    if arm == "best-p0-penalty":
        rates["logit_weight"] = rates["chaos_weight"] or _PENALTY
        rates["chaos_weight"] = 0.0
    groups: tuple[ParameterGroup, ...] = ()
    if config["coefficient_lr"] is not None:
        groups = (ParameterGroup("*coefficients", config["coefficient_lr"], 0.05),)
    training = TrainingConfig(**rates, groups=groups, epochs=epochs, patience=patience, monitor="brier")

    def make(in_channels: int, classes: int) -> DSSGNN:
        return DSSGNN(in_channels, width, classes, **network)

    operator = {name: config[name] for name in _OPERATOR}
    return Setup(make, training, operator, config=dict(config))


def search(
    dataset: str,
    arm: str,
    out: Path,
    device: torch.device,
    budget: Budget | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Choose an arm's configuration for a dataset by the mean validation Brier over the splits.

    One configuration serves all splits, as in the paper; the validation nodes of one split are largely test nodes of
    others, so their labels are seen by the choice, if not by any training. Every trial is a record of ``out``
    (benchmark ``calibration-search``), and is not run again. The test parts are not read.
    """
    budget = budget or Budget()
    configs = draw(budget.draws)
    # An order an arm and draw: two orders in an arm share its draws between them.
    trials: list[dict[str, Any]] = [
        c | {"chaos_order": ARMS[arm][i % len(ARMS[arm])]} for i, c in enumerate(configs)
    ]
    scores = partial(_scores, dataset, arm, out=out, device=device, say=say)
    first = scores(trials, budget.splits, budget.epochs, budget.patience)
    ranked: list[dict[str, Any]] = [trials[i] for i in np.argsort(first, kind="stable")[: budget.finalists]]
    final = scores(ranked, tuple(range(10)), budget.final_epochs, budget.patience)
    return ranked[int(np.argmin(final))]


def _scores(
    dataset: str,
    arm: str,
    trials: Sequence[dict[str, Any]],
    splits: tuple[int, ...],
    epochs: int,
    patience: int,
    *,
    out: Path,
    device: torch.device,
    say: Callable[[str], None],
) -> list[float]:
    """The mean validation Brier of every trial; one that fails is infinitely bad, and the reason is said."""
    place = device_name(device)
    done = {record.key: record for record in read_records(out)} if out.exists() else {}
    tasks: dict[tuple[Any, ...], list[NodeTask]] = {}
    scores = []
    for config in trials:
        run = {"arm": arm, "splits": splits, "epochs": epochs, "patience": patience}
        variant = json.dumps(run | config, sort_keys=True)
        key = ("calibration-search", dataset, "dss-gnn", variant, None, 0, place)
        if key not in done:
            setup = dss_setup(config, arm, epochs, patience)
            options = tuple(setup.operator.items())
            if options not in tasks:
                tasks[options] = split_tasks(dataset, splits, device, **setup.operator)
            try:
                trained = train(setup, tasks[options], splits)
                values = [result.best_value for _, _, (result,) in trained]
            except torch.OutOfMemoryError as error:
                say(f"{dataset} {arm}: left out, {str(error).partition('.')[0]}")
                scores.append(float("inf"))  # and tried again another time
                continue
            values = [value if np.isfinite(value) else 2.0 for value in values]
            metrics = {f"val_brier_{split}": value for split, value in zip(splits, values, strict=True)}
            mean = float(np.mean(values))
            record = Record(
                "calibration-search", dataset, "dss-gnn", variant, metrics | {"val_brier": mean}, dict(config), place,
                seed=0, selected_on="validation brier",
            )  # fmt: skip
            merge_records(out, [record])
            done[key] = record
            say(f"{dataset} {arm} {epochs} epochs: validation Brier {mean:.4f}")
        scores.append(done[key].metrics["val_brier"])
    return scores


def chosen(
    dataset: str,
    arm: str,
    out: Path,
    device: torch.device,
    budget: Budget | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Setup:
    """The setup that `search` chose for an arm, read from its records (what is missing is run), or a twin of `best`."""
    budget = budget or Budget()
    config = search(dataset, "best" if arm in TWINS else arm, out, device, budget, say)
    if arm in TWINS:
        config = config | {"chaos_order": 0}
    setup = dss_setup(config, TWINS.get(arm, arm), budget.final_epochs, budget.patience)
    return replace(setup, config={**setup.config, "arm": arm})
