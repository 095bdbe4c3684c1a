"""Ten splits of a real graph, one after another and as one population."""

import dataclasses
import math
import statistics
import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from dssgnn.benchmarks.frame import split_tasks
from dssgnn.benchmarks.records import Record, device_name
from dssgnn.benchmarks.speed.measure import Say, attempt
from dssgnn.graph import sparse_where_faster
from dssgnn.nn import DSSGNN
from dssgnn.training import NodeTask, TrainingConfig, TrainingResult, fit, fit_population, seeded

__all__ = ["population_records", "population_tasks"]

_TURNS = 3  # of both ways; the median counts
_OPTIONS: dict[str, Any] = {"chaos_order": 2, "filter_orders": (4, 4), "readout": "filtered", "dropout": 0.5}


def population_records(
    names: Iterable[str], device: torch.device, epochs: int, say: Say, splits: int = 10
) -> Iterator[list[Record]]:
    """Train the splits of every graph both ways, for a fixed number of epochs from the same weights."""
    for name in names:
        made = attempt(name, partial(_record, name, device, epochs, splits), say)
        if made is not None:
            text = ", ".join(f"{key} {value:.4g}" for key, value in made.metrics.items())
            say(f"{made.setting}: {text}")
            yield [made]


def population_tasks(name: str, splits: int, device: torch.device) -> list[NodeTask]:
    """One task a split, with sparse features where they are faster."""
    tasks = split_tasks(name, range(splits), device)
    x = sparse_where_faster(cast(Tensor, tasks[0].x))
    return [dataclasses.replace(task, x=x) for task in tasks]


def _record(name: str, device: torch.device, epochs: int, splits: int) -> Record:
    tasks = population_tasks(name, splits, device)
    ways = (False, True)
    for way in ways:  # compiles what is compiled, and fills the allocator
        _train(tasks, 2, together=way)
    runs = [[_train(tasks, epochs, together=way) for way in ways] for _ in range(_TURNS)]
    alone_s, together_s = (statistics.median(run[way][0] for run in runs) for way in ways)
    last = [[result.history[-1]["val_brier"] for result in results] for _, results in runs[-1]]
    difference = max(abs(a - b) for a, b in zip(*last, strict=True))
    if not math.isfinite(difference):
        raise RuntimeError("a run did not stay finite, so the two ways cannot be compared")
    metrics = {
        "sequential_s": alone_s,
        "population_s": together_s,
        "ratio": alone_s / together_s,
        "brier_difference": difference,
    }
    config = {
        "part": "population",
        "dataset": name,
        "splits": splits,
        "epochs": epochs,
        "turns": _TURNS,
        "hidden": 64,
    }
    return Record(
        benchmark="speed",
        setting=f"population, {name}, {splits} splits, {epochs} epochs",
        method="dss-gnn",
        variant="population",
        metrics=metrics,
        config=config | {key: list(v) if isinstance(v, tuple) else v for key, v in _OPTIONS.items()},
        device=device_name(device),
        seed=0,
    )


def _train(tasks: list[NodeTask], epochs: int, *, together: bool) -> tuple[float, list[TrainingResult]]:
    models, configs = [], []
    for split, task in enumerate(tasks):
        with seeded(split):
            model = DSSGNN(task.x.size(1), 64, task.num_classes, **_OPTIONS)
        models.append(model.to(task.x.device))
        configs.append(TrainingConfig(epochs=epochs, patience=None, seed=split))
    start = time.perf_counter()
    if together:
        results = fit_population(models, tasks, configs)
    else:
        results = [fit(*triple) for triple in zip(models, tasks, configs, strict=True)]
    if tasks[0].x.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - start, results
