"""Train a system on all splits of a graph at once, as one population."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from dssgnn.benchmarks.frame.setup import Setup
from dssgnn.errors import InputError
from dssgnn.training import NodeTask, TrainingResult, fit_population, seeded

__all__ = ["Trained", "train", "train_together"]

# Of every split its task, the system, and how each member's training went.
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
    if any(task.x is not tasks[0].x for task in tasks):
        raise InputError("the tasks of one population must share their features, one tensor for all")
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
