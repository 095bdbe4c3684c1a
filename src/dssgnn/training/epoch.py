"""One epoch: a step, its evaluation, and the choice of the best weights, all left on the device."""

import warnings
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from dssgnn.errors import InputError
from dssgnn.expansion import LogitDistribution
from dssgnn.metrics.calibration import METRICS, brier_by_node, metric_values
from dssgnn.scores import propagate, propagation_operator
from dssgnn.training.config import MONITORS, MarginTerm, TrainingConfig
from dssgnn.training.members import Block, Single
from dssgnn.training.objectives import energy_margin, training_loss
from dssgnn.training.part import Part
from dssgnn.training.state import RunState
from dssgnn.training.task import NodeTask, Outliers

__all__ = ["Epoch", "Margin"]


class Epoch:
    """Train every member by one step; give the loss and the validation metrics, ``[B, 1 + len(METRICS)]``.

    Nothing here reads a value back, so it can be recorded as a CUDA graph. With ``node_scores`` the Brier score of
    every validation node follows in each row, padded as `Part.stack` pads.

    Attributes:
        columns: numbers in a row.
        best: the weights of every member's best epoch so far, ``[B, ...]`` each.
        best_value: their monitored values ``[B]``, infinite before the first.
        active: ``[B]``; the best weights of a member that is not stay as they are.
    """

    def __init__(
        self,
        members: Single | Block,
        tasks: Sequence[NodeTask],
        configs: Sequence[TrainingConfig],
        margin: "Margin | None" = None,
        node_scores: bool = False,
    ) -> None:
        task, config = tasks[0], configs[0]
        self.members, self.task, self.config, self.margin = members, task, config, margin
        self.autocast = _use_bf16(config, task.x.device)
        self.train = Part.stack([task.train_mask for task in tasks])
        self.val = Part.stack([task.val_mask for task in tasks])
        self.node_scores = node_scores
        self.columns = 1 + len(METRICS) + (self.val.nodes.size(1) if node_scores else 0)
        # Left out where nobody has it: 0 times an energy that overflows would not be 0.
        self.weights = {
            name: torch.tensor(weights, dtype=task.x.dtype, device=task.x.device)
            for name in ("chaos_weight", "logit_weight")
            if any(weights := [getattr(config, name) for config in configs])
        }
        self.lower = MONITORS[config.monitor]
        self.column = 1 + METRICS.index(config.monitor)
        self.best = {name: value.clone() for name, value in members.state().items()}
        self.device = device = task.x.device
        worst = float("inf") if self.lower else float("-inf")
        self.best_value = torch.full((len(tasks),), worst, dtype=torch.float64, device=device)
        self.active = torch.ones(len(tasks), dtype=torch.bool, device=device)

    @property
    def models(self) -> list[nn.Module]:
        """Every member's."""
        return self.members.models

    @property
    def generators(self) -> Sequence[torch.Generator]:
        """What is drawn from, apart from torch's own."""
        return self.members.generators

    def stop(self, member: int) -> None:
        """Leave a member's best weights as they are from now on."""
        self.active[member].fill_(False)

    def release(self) -> None:
        """Leave every model in eval mode with its best weights."""
        self.members.release(self.best)

    def follow(self, states: Sequence[RunState]) -> None:
        """Begin where ``states`` are, and let their best weights be those chosen here; `release` must follow."""
        self.members.bind()
        for i, state in enumerate(states):
            for name, value in state.best_weights.items():
                self.best[name][i].copy_(value)
            state.best_weights = {name: value[i] for name, value in self.best.items()}
            if state.best_value is not None:
                self.best_value[i] = state.best_value

    def __call__(self) -> Tensor:
        """Run it."""
        members = self.members
        members.models[0].train()
        losses = members.each(self._loss, self.train, self.weights)
        members.backward(losses)
        if self.config.clip is not None:
            members.clip(self.config.clip)
        members.optimizer.step()
        members.models[0].eval()
        with torch.no_grad():
            metrics = members.each(self._metrics, self.val)
            rows = torch.cat([losses.detach().double()[:, None], metrics], dim=1)
            self._choose(rows)
        return rows

    def _loss(self, model: Any, part: Part, weights: Mapping[str, Tensor]) -> Tensor:
        task, margin = self.task, self.margin
        with self._precision():
            expansion: LogitDistribution = model(task.x, task.graph)
            _check_expansion(expansion, task)
            outside: LogitDistribution | None = (
                model(margin.outliers.x, margin.outliers.graph) if margin else None
            )
        loss = training_loss(expansion, task.y, part, self.config, weights)
        if margin is not None and outside is not None:
            loss = loss + margin(expansion, outside, part)
        return loss

    def _precision(self) -> AbstractContextManager[Any]:
        return torch.autocast(self.task.x.device.type, dtype=torch.bfloat16, enabled=self.autocast)

    def _metrics(self, model: Any, part: Part) -> Tensor:
        expansion: LogitDistribution = model(self.task.x, self.task.graph)
        chosen = expansion.map(lambda z: z.index_select(0, part.nodes))
        y = self.task.y.index_select(0, part.nodes)
        values = metric_values(chosen, y, part.weight)
        if not self.node_scores:
            return values
        return torch.cat([values, brier_by_node(chosen.predictive().double(), y)])

    def _choose(self, rows: Tensor) -> None:
        loss, value = rows[:, 0], rows[:, self.column]
        better = value < self.best_value if self.lower else value > self.best_value
        improved = better & value.isfinite() & loss.isfinite() & self.active
        torch.where(improved, value, self.best_value, out=self.best_value)
        for name, current in self.members.state().items():
            best = self.best[name]
            torch.where(improved.view(-1, *[1] * (best.dim() - 1)), current, best, out=best)


class Margin:
    """The energy-margin term with its two propagation operators, built once."""

    def __init__(self, task: NodeTask, outliers: Outliers, term: MarginTerm) -> None:
        self.term, self.outliers = term, outliers
        self.inside = propagation_operator(task.graph)
        self.outside = propagation_operator(outliers.graph)
        self.nodes = Part.of(outliers.mask).nodes

    def __call__(self, inside: LogitDistribution, outside: LogitDistribution, part: Part) -> Tensor:
        """The term of the training nodes ``part`` and of the outliers."""
        term = self.term
        energy_in = propagate(inside.energy(), self.inside, term.steps, term.alpha)[part.nodes]
        energy_out = propagate(outside.energy(), self.outside, term.steps, term.alpha)[self.nodes]
        return term.weight * energy_margin(energy_in, energy_out, term.inside, term.outside)


def _use_bf16(config: TrainingConfig, device: torch.device) -> bool:
    wanted = config.precision == "bf16"
    able = device.type == "cuda" and torch.cuda.is_bf16_supported()
    if wanted and not able:
        warnings.warn(f"precision='bf16' needs a GPU that has it; training on {device} in fp32", stacklevel=4)
    return wanted and able


def _check_expansion(expansion: object, task: NodeTask) -> None:
    if not isinstance(expansion, LogitDistribution):
        got = type(expansion).__name__
        raise InputError(
            f"the model returned a {got}, expected a LogitDistribution (see dssgnn.nn.Deterministic)"
        )
    if expansion.num_classes != task.num_classes:
        raise InputError(
            f"the model has {expansion.num_classes} classes, but the task has {task.num_classes}"
        )
