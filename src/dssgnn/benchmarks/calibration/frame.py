"""Train a system on all splits of a dataset at once, and read each split's test part once."""

import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from dssgnn.baselines.temperature import TemperatureScaled
from dssgnn.benchmarks.calibration.rows import CURVES
from dssgnn.benchmarks.calibration.setup import Setup
from dssgnn.benchmarks.records import Record, device_name, merge_records, read_records
from dssgnn.benchmarks.tasks import split_tasks
from dssgnn.expansion import LogitDistribution
from dssgnn.training import NodeTask, TrainingResult, fit_population, seeded
from dssgnn.training.loop import evaluate

__all__ = [
    "METRICS", "Trained", "config_of", "measure", "measure_together", "missing_splits", "place_of", "sweep", "train",
    "train_together",
]  # fmt: skip

METRICS = (
    "accuracy", "brier", "nll", "ece", "accuracy_mean", "brier_mean", "nll_mean", "ece_mean", "chaos_energy",
)  # fmt: skip

Trained = list[tuple[NodeTask, torch.nn.Module, list[TrainingResult]]]


def train(setup: Setup, tasks: Sequence[NodeTask], splits: Sequence[int]) -> Trained:
    """The system of every split: its task, the system, and how each member's training went."""
    return train_together([setup], tasks, splits)[0]


def train_together(
    setups: Sequence[Setup], tasks: Sequence[NodeTask], splits: Sequence[int], node_scores: bool = False
) -> list[Trained]:
    """`train` for setups that differ in nothing but the numbers they are trained with, as one population.

    ``node_scores`` are kept in the results where they are asked for (`fit_population`).
    """
    own = [
        (setup, task, split, member)
        for setup in setups
        for task, split in zip(tasks, splits, strict=True)
        for member in range(setup.members)
    ]
    models, configs = [], []
    for setup, task, split, member in own:
        seed = setup.seed(split, member)
        with seeded(seed):
            models.append(setup.make(task.x.size(1), task.num_classes).to(task.x.device))
        setup.before(models[-1], task)
        configs.append(replace(setup.training, seed=seed))
    x = tasks[0].suited_to(models[0]).x  # made once, and the same object for all
    suited = [replace(task, x=x) for task in tasks]
    members = [replace(task, x=x) for _, task, _, _ in own]
    results = fit_population(models, members, configs, node_scores=node_scores)
    everything: list[Trained] = []
    done = 0
    for setup in setups:
        size = setup.members
        parts = [slice(done + i * size, done + (i + 1) * size) for i in range(len(suited))]
        everything.append(
            [
                (task, setup.combine(models[part]), results[part])
                for task, part in zip(suited, parts, strict=True)
            ]
        )
        done += len(suited) * size
    return everything


def measure(setup: Setup, name: str, splits: Sequence[int], device: torch.device) -> list[dict[str, float]]:
    """Every metric of every split, the test part of each read once, at the end.

    ``*_scaled`` are of the system with its logits over a temperature, fitted on the validation nodes.
    """
    return measure_together([setup], name, splits, device)[0]


def measure_together(
    setups: Sequence[Setup], name: str, splits: Sequence[int], device: torch.device
) -> list[list[dict[str, float]]]:
    """`measure` for setups that differ in their seeds alone, as one population where the device has room for it."""
    tasks = split_tasks(name, splits, device, setups[0].preparation, **setups[0].operator)
    together = None
    if len(setups) > 1:
        with suppress(torch.OutOfMemoryError):
            together = train_together(setups, tasks, splits)
    if together is None:
        if device.type == "cuda":
            torch.cuda.empty_cache()
        together = [train(setup, tasks, splits) for setup in setups]
    return [[_metrics_of(*trained) for trained in each] for each in together]


def _metrics_of(task: NodeTask, system: torch.nn.Module, results: list[TrainingResult]) -> dict[str, float]:
    assert task.test_mask is not None  # published splits have one
    test = evaluate(system, task, task.test_mask)
    row = {key: test[key] for key in METRICS} | {"disagreement": _disagreement(system, task)}
    scaled = TemperatureScaled.fitted(system, task)
    after = evaluate(scaled, task, task.test_mask)
    row |= {f"{key}_scaled": after[key] for key in ("brier", "nll", "ece", "brier_mean", "ece_mean")}
    row["temperature"] = float(scaled.temperature)
    row["val_brier"] = evaluate(system, task, task.val_mask)["brier"]
    row["epochs"] = float(max(len(result.history) for result in results))
    row["best_epoch"] = float(results[0].best_epoch)
    return row


@torch.no_grad()
def _disagreement(system: torch.nn.Module, task: NodeTask) -> float:
    """The share of test nodes whose two readouts name different classes."""
    expansion: LogitDistribution = system(task.x, task.graph)
    test = expansion.map(lambda z: z[task.test_mask])
    return (test.predictive().argmax(dim=-1) != test.mean.argmax(dim=-1)).double().mean().item()


def sweep(
    rows: Iterable[tuple[str, str, str, Callable[[], Setup]]],
    splits: Sequence[int],
    out: Path,
    device: torch.device,
    say: Callable[[str], None] = lambda text: None,
    benchmark: str = "calibration",
    seeds: int = 1,
) -> None:
    """Measure rows ``(dataset, method, variant, setup)`` and add their records to ``out``, one row at a time.

    Splits that ``out`` holds already, of the same configuration, are not run again, so a sweep that was stopped goes on
    where it was. A row that does not fit the device is said, and the next one is run.

    ``seeds`` above 1 repeats every row with other weights and masks; the tables show the first, and compare means.
    """
    place = place_of(device)
    for dataset, method, variant, make in rows:
        made, row = make(), (benchmark, dataset, method, variant)
        setups = [replace(made, seed=partial(_moved, made.seed, number)) for number in range(seeds)]
        pending: dict[tuple[int, ...], list[int]] = {}
        for number, setup in enumerate(setups):
            if missing := missing_splits(setup, row, splits, out, place, number):
                pending.setdefault(tuple(missing), []).append(number)
        for missing_here, numbers in pending.items():
            start = time.perf_counter()
            try:
                measured = measure_together([setups[i] for i in numbers], dataset, missing_here, device)
            except torch.OutOfMemoryError as error:
                say(f"{dataset} {method} {variant}: left out, {str(error).partition('.')[0]}")
                break
            seconds = (time.perf_counter() - start) / len(missing_here)  # of all seeds together
            for number, own in zip(numbers, measured, strict=True):
                again = f", seed {number}" if number else ""
                if not all(math.isfinite(value) for metrics in own for value in metrics.values()):
                    say(f"{dataset} {method} {variant}{again}: left out, a metric is not finite")
                    continue
                merge_records(
                    out,
                    [
                        Record(
                            *row,
                            metrics=metrics | {"seconds": seconds},
                            config=config_of(setups[number], split),
                            device=place,
                            split=split,
                            seed=number,
                            selected_on=f"validation {made.training.monitor}",
                        )
                        for split, metrics in zip(missing_here, own, strict=True)
                    ],
                )
                mean = sum(metrics["brier"] for metrics in own) / len(own)
                say(f"{dataset} {method} {variant}{again}: Brier {mean:.4f} over {len(own)} splits")


def place_of(device: torch.device) -> str:
    """A device in words; a CPU's threads, which only the time depends on, do not make another of it."""
    return "cpu" if device.type == "cpu" else device_name(device)


def _moved(seed: Callable[[int, int], int], number: int, split: int, member: int) -> int:
    """The seeds of a repetition: apart from all that the first uses."""
    return seed(split, member) + 100_000 * number


def config_of(setup: Setup, split: int) -> dict[str, Any]:
    """What repeats a row on a split, as a results file gives it back."""
    training = asdict(setup.training)
    del training["seed"]
    config = {
        **setup.config,
        "operator": dict(setup.operator),
        "preparation": dict(setup.preparation),
        "training": training,
        "members": setup.members,
        "seeds": [setup.seed(split, member) for member in range(setup.members)],
    }
    plain: dict[str, Any] = json.loads(json.dumps(config))
    return plain


def missing_splits(
    setup: Setup, row: tuple[str, str, str, str], splits: Sequence[int], out: Path, place: str, seed: int = 0
) -> list[int]:
    """The splits of a row (benchmark, dataset, method, variant) that ``out`` does not hold in this configuration."""
    done = {record.key: record.config for record in read_records(out)} if out.exists() else {}
    missing = []
    for split in splits:
        found = done.get((*row, split, seed, place), {})
        if {k: v for k, v in found.items() if k not in CURVES} != config_of(setup, split):
            missing.append(split)
    return missing
