"""The one training loop: full graph, early stopping on validation data, best weights restored."""

import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dssgnn.errors import InputError
from dssgnn.expansion import ChaosExpansion
from dssgnn.metrics import calibration_metrics
from dssgnn.scores import propagate, propagation_operator
from dssgnn.training.config import MONITORS, MarginTerm, TrainingConfig
from dssgnn.training.objectives import energy_margin, training_loss
from dssgnn.training.seeding import seeded
from dssgnn.training.state import RunState
from dssgnn.training.task import NodeTask, Outliers

__all__ = ["TrainingResult", "fit"]


@dataclass(frozen=True)
class TrainingResult:
    """How a run went.

    Attributes:
        best_epoch: the epoch whose weights the model now has.
        best_value: its monitored value.
        history: one dict an epoch: ``epoch``, ``loss`` and every validation metric as ``val_...``.
        seconds: wall time of this call.
        stopped: ``"patience"`` or ``"epochs"``.
    """

    best_epoch: int
    best_value: float
    history: list[dict[str, float]] = field(repr=False)
    seconds: float
    stopped: str


def fit(
    model: nn.Module,
    task: NodeTask,
    config: TrainingConfig | None = None,
    *,
    outliers: Outliers | None = None,
    checkpoint: Path | str | None = None,
    resume: bool = False,
    on_epoch: Callable[[dict[str, float]], None] | None = None,
) -> TrainingResult:
    """Train ``model`` in place and leave it, in eval mode, with the weights of its best epoch.

    The same seed gives the same bits twice on a CPU, also across an interruption and ``resume``. The weights
    the model starts from are the caller's: make it inside `seeded` to repeat those too.

    Args:
        model: ``model(x, graph) -> ChaosExpansion``. A method ``start_epoch(epoch)`` is called if it has one.
        task: what to train on.
        config: how.
        outliers: for the energy-margin term.
        checkpoint: a file to keep the run in.
        resume: go on from ``checkpoint`` if it exists.
        on_epoch: called with the newest row of the history.

    Raises:
        InputError: for settings that do not go together, or a loss that is no longer finite.
    """
    config = config or TrainingConfig()
    _check_arguments(model, task, config, checkpoint)
    if (config.margin is None) != (outliers is None):
        raise InputError("the energy-margin term needs both config.margin and outliers")
    if resume and checkpoint is None:
        raise InputError("resume=True needs the checkpoint file to resume from")
    optimizer = make_optimizer(model, config)
    margin = _Margin(task, outliers, config.margin) if outliers is not None and config.margin else None
    start = time.perf_counter()
    with seeded(config.seed):
        state = RunState(task=task.fingerprint() if checkpoint is not None else "")
        if checkpoint is not None and Path(checkpoint).exists():
            if resume:
                state = RunState.load(checkpoint, model, optimizer, config, state.task)
            else:
                Path(checkpoint).unlink()  # an older run's, which must not be resumed for this one's
        try:
            stopped = _run(model, optimizer, task, margin, config, state, checkpoint, on_epoch)
            if checkpoint is not None:
                state.save(checkpoint, model, optimizer, config)
        finally:
            # Also when the user interrupts: what is left behind is the best model so far.
            if state.best_weights:
                model.load_state_dict(state.best_weights)
            model.eval()
    if state.best_value is None:
        raise InputError(
            f"the validation {config.monitor} was never finite; try a smaller learning rate or clip"
        )
    return TrainingResult(
        state.best_epoch, state.best_value, state.history, time.perf_counter() - start, stopped
    )


def _run(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    task: NodeTask,
    margin: "_Margin | None",
    config: TrainingConfig,
    state: RunState,
    checkpoint: Path | str | None,
    on_epoch: Callable[[dict[str, float]], None] | None,
) -> str:
    lower = MONITORS[config.monitor]
    warmup = getattr(model, "warmup_epochs", 0)
    while True:
        # While a hybrid's base warms up, nothing is lost by waiting.
        waited = state.epoch - 1 - max(state.best_epoch, warmup - 1)
        if config.patience is not None and waited >= config.patience:
            return "patience"
        if state.epoch >= config.epochs:
            return "epochs"
        epoch = state.epoch
        if hasattr(model, "start_epoch"):
            model.start_epoch(epoch)  # type: ignore[operator]
        loss = _step(model, optimizer, task, margin, config)
        metrics = evaluate(model, task, task.val_mask)
        row = {"epoch": float(epoch), "loss": loss} | {f"val_{k}": v for k, v in metrics.items()}
        value = metrics[config.monitor]
        best = state.best_value
        if math.isfinite(value) and (best is None or (value < best if lower else value > best)):
            state.best_epoch, state.best_value = epoch, value
            state.best_weights = {k: v.detach().clone() for k, v in model.state_dict().items()}
        state.history.append(row)
        state.epoch += 1
        if checkpoint is not None and state.epoch % config.checkpoint_every == 0:
            state.save(checkpoint, model, optimizer, config)
        if on_epoch is not None:
            on_epoch(row)


def _step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    task: NodeTask,
    margin: "_Margin | None",
    config: TrainingConfig,
) -> float:
    model.train()
    optimizer.zero_grad(set_to_none=True)
    with _autocast(task.x.device, config):
        expansion: ChaosExpansion = model(task.x, task.graph)
        _check_expansion(expansion, task)
        outside: ChaosExpansion | None = model(margin.outliers.x, margin.outliers.graph) if margin else None
    loss = training_loss(expansion, task.y, task.train_mask, config)
    if margin is not None and outside is not None:
        loss = loss + margin(expansion, outside)
    value = float(loss.detach())
    if not torch.isfinite(loss.detach()):
        raise InputError(
            f"the training loss became {value}; try a smaller learning rate than {config.lr:g} or clip"
        )
    loss.backward()  # type: ignore[no-untyped-call]
    if config.clip is not None:
        nn.utils.clip_grad_norm_(model.parameters(), config.clip)
    optimizer.step()
    return value


@torch.no_grad()
def evaluate(model: nn.Module, task: NodeTask, mask: Tensor) -> dict[str, float]:
    """Every calibration metric of the nodes in ``mask``, in eval mode and full precision."""
    model.eval()
    expansion: ChaosExpansion = model(task.x, task.graph)
    return calibration_metrics(expansion[mask], task.y[mask])


class _Margin:
    """The energy-margin term with its two propagation operators, built once."""

    def __init__(self, task: NodeTask, outliers: Outliers, term: MarginTerm) -> None:
        self.term, self.task, self.outliers = term, task, outliers
        self.inside = propagation_operator(task.graph)
        self.outside = propagation_operator(outliers.graph)

    def __call__(self, inside: ChaosExpansion, outside: ChaosExpansion) -> Tensor:
        term = self.term
        energy_in = propagate(inside.energy(), self.inside, term.steps, term.alpha)[self.task.train_mask]
        energy_out = propagate(outside.energy(), self.outside, term.steps, term.alpha)[self.outliers.mask]
        return term.weight * energy_margin(energy_in, energy_out, term.inside, term.outside)


def _check_arguments(
    model: nn.Module, task: NodeTask, config: TrainingConfig, checkpoint: Path | str | None
) -> None:
    for value, kind in ((model, nn.Module), (task, NodeTask), (config, TrainingConfig)):
        if not isinstance(value, kind):
            raise InputError(f"fit needs a {kind.__name__}, got a {type(value).__name__}")
    if checkpoint is not None and (Path(checkpoint).is_dir() or not Path(checkpoint).parent.is_dir()):
        raise InputError(f"checkpoint must be a file in a folder that is there, got {checkpoint}")
    warmup = getattr(model, "warmup_epochs", 0)
    if warmup and config.epochs <= warmup:
        warnings.warn(
            f"epochs={config.epochs} ends within the warm-up of {warmup} epochs: the branch will not be trained",
            stacklevel=3,
        )


def _check_expansion(expansion: object, task: NodeTask) -> None:
    if not isinstance(expansion, ChaosExpansion):
        got = type(expansion).__name__
        raise InputError(
            f"the model returned a {got}, expected a ChaosExpansion (see dssgnn.nn.Deterministic)"
        )
    if expansion.num_classes != task.num_classes:
        raise InputError(
            f"the model has {expansion.num_classes} classes, but the task has {task.num_classes}"
        )


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """The optimiser of ``config`` over every parameter that learns, in its groups."""
    groups = [{"params": [], "lr": g.lr, "weight_decay": g.weight_decay} for g in config.groups]
    groups.append({"params": [], "lr": config.lr, "weight_decay": config.weight_decay})
    matched = [False] * len(config.groups)
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        for i in _matches(name, config):
            groups[i]["params"].append(parameter)  # type: ignore[attr-defined]
            if i < len(matched):
                matched[i] = True
            break
    for group, used in zip(config.groups, matched, strict=True):
        if not used:
            raise InputError(f"no parameter is left for the group {group.pattern!r}")
    kinds: dict[str, type[torch.optim.Optimizer]] = {
        "adam": torch.optim.Adam,
        "adamw": torch.optim.AdamW,
        "rmsprop": torch.optim.RMSprop,
        "sgd": torch.optim.SGD,
    }
    kind: Any = kinds[config.optimizer]
    optimizer: torch.optim.Optimizer = kind([g for g in groups if g["params"]], lr=config.lr)
    return optimizer


def _matches(name: str, config: TrainingConfig) -> Iterator[int]:
    yield from (i for i, group in enumerate(config.groups) if fnmatchcase(name, group.pattern))
    yield len(config.groups)


def _autocast(device: torch.device, config: TrainingConfig) -> torch.autocast:
    wanted = config.precision == "bf16"
    able = device.type == "cuda" and torch.cuda.is_bf16_supported()
    if wanted and not able:
        warnings.warn(f"precision='bf16' needs a GPU that has it; training on {device} in fp32", stacklevel=5)
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=wanted and able)
