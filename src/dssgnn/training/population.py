"""Splits, seeds and configurations of one structure, trained as one block."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any, Literal

import torch
from torch import Tensor, nn

from dssgnn.errors import InputError
from dssgnn.training.config import TrainingConfig
from dssgnn.training.crew import Crew
from dssgnn.training.epoch import Epoch
from dssgnn.training.loop import TrainingResult, check_kinds, run
from dssgnn.training.members import Block, Single
from dssgnn.training.seeding import seeded
from dssgnn.training.state import RunState
from dssgnn.training.task import NodeTask
from dssgnn.validation import check_choice

__all__ = ["fit_population"]

Way = Literal["auto", "block", "threads"]

# The settings that may differ: none of them changes what is computed, only with which numbers.
_OWN = {"seed", "lr", "weight_decay", "groups", "chaos_weight", "logit_weight", "checkpoint_every"}


def fit_population(
    models: Sequence[nn.Module],
    tasks: Sequence[NodeTask],
    configs: Sequence[TrainingConfig],
    *,
    way: Way = "auto",
    node_scores: bool = False,
    on_epoch: Callable[[dict[str, float]], None] | None = None,
) -> list[TrainingResult]:
    """Train models of one structure on one graph together; each ends as `fit` alone would leave it.

    On a GPU they are one block: every operation on the graph is linear in the width, so ``B`` models are one state
    ``[N, B (P+1) d]`` (`torch.func.vmap` over stacked parameters), and small graphs fill the device. Gradients,
    clipping, early stopping and the choice of the epoch stay each member's own; one that has stopped is computed
    on until the last one has. On a CPU, where one member's state just fits the cache, every core trains members of
    its own instead.

    Masks of this package's models come from a generator of each member's seed, as in its separate run. In a block
    other random operations (dropout in PyG's layers) draw for all members from one stream: the same distribution,
    and the same bits twice, but not the bits of separate runs. Nor are they where only rounding moves a parameter
    (Adam on a bias that a batch norm takes off again).

    A member whose loss is no longer finite stops alone, with ``stopped="diverged"`` and the best weights it had
    by then; its start and ``best_epoch=-1``, ``best_value=nan`` where it never had a finite value.

    Args:
        models: of one class, structure and shape; trained in place.
        tasks: one a model. ``x``, ``graph`` and ``y`` are the same objects; masks may differ, also in size.
        configs: one a model. They may differ in ``seed``, ``lr``, ``weight_decay``, ``chaos_weight``,
            ``logit_weight`` and the numbers of ``groups``.
        way: ``"block"``, ``"threads"``, or the one for the device.
        node_scores: keep the Brier score of every validation node after every epoch in the results.
        on_epoch: called with the newest row of each member's history and its number, an integer, as ``member``.

    Raises:
        InputError: for members that cannot be one block.

    Example:
        >>> from dataclasses import replace
        >>> from dssgnn import DSSGNN
        >>> from dssgnn.data.synthetic import minesweeper
        >>> task = NodeTask.from_data(minesweeper(5, 5))
        >>> swapped = replace(task, train_mask=task.val_mask, val_mask=task.train_mask)
        >>> models = [DSSGNN(7, 8, 2) for _ in range(2)]
        >>> results = fit_population(models, [task, swapped], [TrainingConfig(epochs=3)] * 2)
        >>> [result.stopped for result in results]
        ['epochs', 'epochs']
    """
    models, tasks, configs = list(models), list(tasks), list(configs)
    check_choice(way, Way, "way")
    _check(models, tasks, configs)
    if way == "threads" and tasks[0].x.is_cuda:
        raise InputError(f"way='threads' is for a CPU, got a task on {tasks[0].x.device}")
    start = time.perf_counter()
    with seeded(configs[0].seed):
        if way == "auto":
            way = "block" if tasks[0].x.is_cuda else "threads"
        epoch: Epoch | Crew
        if way == "threads":
            epoch = Crew(models, tasks, configs, node_scores)
        elif len(models) > 1:
            epoch = Epoch(Block(models, configs), tasks, configs, node_scores=node_scores)
        else:  # a plain run: any model will do, vmap or not
            epoch = Epoch(Single(models[0], configs[0]), tasks, configs, node_scores=node_scores)
        states = [RunState() for _ in models]

        def after_epoch(member: int, row: dict[str, float]) -> None:
            if on_epoch is not None:
                on_epoch({**row, "member": member})

        try:
            epoch.follow(states)
            stopped = run(epoch, states, after_epoch)
        finally:
            epoch.release()
    seconds = time.perf_counter() - start
    return [
        TrainingResult(
            state.best_epoch,
            math.nan if state.best_value is None else state.best_value,
            state.history,
            seconds,
            reason,
            _without_padding(state, task) if node_scores else None,
        )
        for state, reason, task in zip(states, stopped, tasks, strict=True)
    ]


def _without_padding(state: RunState, task: NodeTask) -> Tensor:
    return torch.tensor(state.node_scores, dtype=torch.float64)[:, : int(task.val_mask.sum())]


def _check(models: list[nn.Module], tasks: list[NodeTask], configs: list[TrainingConfig]) -> None:
    counts = len(models), len(tasks), len(configs)
    if len(set(counts)) > 1:
        got = "{}, {} and {}".format(*counts)
        raise InputError(f"a population needs as many models as tasks and configurations, got {got}")
    if not models:
        raise InputError("a population needs at least one model")
    for member, each in enumerate(zip(models, tasks, configs, strict=True)):
        check_kinds("fit_population", *each)
        first = next(i for i, model in enumerate(models) if model is each[0])
        if first < member:
            raise InputError(f"members {first} and {member} are the same model; make one for each")
        _check_task(each[1], tasks[0], member)
        _check_config(each[2], configs[0], member)
        for message in _differences(each[0], models[0]):
            raise InputError(f"member {member} differs from member 0: {message}")


def _check_task(task: NodeTask, first: NodeTask, member: int) -> None:
    for name in ("x", "graph", "y"):
        if getattr(task, name) is not getattr(first, name):
            raise InputError(
                f"tasks of a population must share {name}: the same object, got another for member {member}"
            )
    if task.num_classes != first.num_classes:
        got = f"{task.num_classes} for member {member} and {first.num_classes} for member 0"
        raise InputError(f"tasks of a population must share num_classes, got {got}")


def _check_config(config: TrainingConfig, first: TrainingConfig, member: int) -> None:
    if config.margin is not None:
        raise InputError("a population has no energy-margin term; use fit")
    for name, ours in vars(config).items():
        theirs = getattr(first, name)
        if name not in _OWN and ours != theirs:
            raise InputError(
                f"configurations of a population must share {name}, got {ours!r} for member {member} and "
                f"{theirs!r} for member 0"
            )
    patterns = [[group.pattern for group in c.groups] for c in (config, first)]
    if patterns[0] != patterns[1]:
        raise InputError(
            f"configurations of a population must share the patterns of groups, got {patterns[0]} for member "
            f"{member} and {patterns[1]} for member 0"
        )


def _differences(model: nn.Module, first: nn.Module) -> Iterator[str]:
    """What keeps two models from being run by the same code, in words."""
    if type(model) is not type(first):
        yield f"it is a {type(model).__name__}, expected a {type(first).__name__}"
    for ours, theirs in zip(_tensors(model).items(), _tensors(first).items(), strict=False):
        if ours[0] != theirs[0]:
            break
        for got, expected in zip(ours[1], theirs[1], strict=True):
            if got != expected:
                yield f"{ours[0]} is {got}, expected {expected}"
    for name in sorted(_tensors(model).keys() ^ _tensors(first).keys()):
        yield f"{name} is in one of them alone"
    for ours, theirs in zip(_settings(model).items(), _settings(first).items(), strict=False):
        if ours != theirs:
            yield f"{ours[0]} is {ours[1]!r}, expected {theirs[1]!r}"


def _tensors(model: nn.Module) -> dict[str, tuple[Any, ...]]:
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return {
        name: (tuple(value.shape), value.dtype, value.device, value.requires_grad)
        for name, value in tensors.items()
    }


def _settings(model: nn.Module) -> dict[str, Any]:
    """Plain values that a module computes with: rates, orders, functions.

    Of what is private only flags: a number may be a count that goes on, a flag may say that a model is not ready.
    """
    plain = (int, float, str, tuple, FunctionType, BuiltinFunctionType, type(None))
    return {
        f"{path}.{name}".removeprefix("."): value
        for path, module in model.named_modules()
        for name, value in [("class", type(module)), *vars(module).items()]
        if isinstance(value, (*plain, type))
        and name != "training"
        and (not name.startswith("_") or isinstance(value, bool))
    }
