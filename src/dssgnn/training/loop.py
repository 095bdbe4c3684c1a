"""The one training loop: full graph, early stopping on validation data, best weights restored."""

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from dssgnn.errors import InputError
from dssgnn.expansion import LogitDistribution
from dssgnn.graph import SparseFeatures
from dssgnn.metrics import calibration_metrics
from dssgnn.metrics.calibration import METRICS
from dssgnn.training.capture import Captured
from dssgnn.training.config import MONITORS, TrainingConfig
from dssgnn.training.crew import Crew
from dssgnn.training.epoch import Epoch, Margin
from dssgnn.training.members import Single
from dssgnn.training.seeding import seeded
from dssgnn.training.state import RunState, settings_of
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
        stopped: ``"patience"`` or ``"epochs"``; a member of a population may also have ``"diverged"``.
        node_scores: the Brier score of every validation node after every epoch, ``[epochs, n]``, where
            `fit_population` was asked for it.
    """

    best_epoch: int
    best_value: float
    history: list[dict[str, float]] = field(repr=False)
    seconds: float
    stopped: str
    node_scores: Tensor | None = field(default=None, repr=False)


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
        model: ``model(x, graph) -> LogitDistribution``. A method ``start_epoch(epoch)`` is called if it has one;
            where that changes what it computes, a property ``warming_up`` must change with it.
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
    check_kinds("fit", model, task, config)
    if checkpoint is not None and (Path(checkpoint).is_dir() or not Path(checkpoint).parent.is_dir()):
        raise InputError(f"checkpoint must be a file in a folder that is there, got {checkpoint}")
    if (config.margin is None) != (outliers is None):
        raise InputError("the energy-margin term needs both config.margin and outliers")
    if resume and checkpoint is None:
        raise InputError("resume=True needs the checkpoint file to resume from")
    members = Single(model, config)
    margin = Margin(task, outliers, config.margin) if outliers is not None and config.margin else None
    start = time.perf_counter()
    with seeded(config.seed):
        state = RunState()
        if checkpoint is not None:
            state = RunState(task=task.fingerprint(), settings=settings_of(model))
        if checkpoint is not None and Path(checkpoint).exists():
            if resume:
                state = RunState.load(checkpoint, model, members.optimizer, config, state.task)
            else:
                Path(checkpoint).unlink()  # an older run's, which must not be resumed for this one's
        epoch = Epoch(members, [task], [config], margin)
        epoch.follow([state])

        def after_epoch(_: int, row: dict[str, float]) -> None:
            if not math.isfinite(row["loss"]):
                advice = f"try a smaller learning rate than {config.lr:g} or clip"
                raise InputError(f"the training loss became {row['loss']}; {advice}")
            if checkpoint is not None and state.epoch % config.checkpoint_every == 0:
                state.save(checkpoint, model, members.optimizer, config)
            if on_epoch is not None:
                on_epoch(row)

        try:
            (stopped,) = run(epoch, [state], after_epoch)
            if checkpoint is not None:
                state.save(checkpoint, model, members.optimizer, config)
        finally:
            # Also when the user interrupts: what is left behind is the best model so far.
            epoch.release()
    if state.best_value is None:
        raise InputError(
            f"the validation {config.monitor} was never finite; try a smaller learning rate or clip"
        )
    return TrainingResult(
        state.best_epoch, state.best_value, state.history, time.perf_counter() - start, stopped
    )


def run(
    epoch: Epoch | Crew, states: Sequence[RunState], after_epoch: Callable[[int, dict[str, float]], None]
) -> list[str]:
    """Run epochs until every member has stopped; give the reasons.

    A member of a block that has stopped is computed on, but neither its state nor its best weights change.
    """
    models, config = epoch.models, epoch.config
    warmup = getattr(models[0], "warmup_epochs", 0)
    step: Callable[[], Tensor] = epoch
    if epoch.device.type == "cuda" and config.capture == "auto":
        step = Captured(epoch, generators=epoch.generators, device=epoch.device)
    phase = None
    stopped = [""] * len(states)
    while True:
        for i, state in enumerate(states):
            stopped[i] = stopped[i] or _reason_to_stop(state, config, warmup)
            if stopped[i]:
                epoch.stop(i)
        if all(stopped):
            return stopped
        number = next(state.epoch for state, reason in zip(states, stopped, strict=True) if not reason)
        for model in models:
            if hasattr(model, "start_epoch"):
                model.start_epoch(number)  # type: ignore[operator]
        before, phase = phase, getattr(models[0], "warming_up", None)
        if isinstance(step, Captured) and phase != before:
            step.reset()
        for i, (loss, *values) in enumerate(step().tolist()):  # the only transfer of an epoch
            if not stopped[i]:
                metrics, scores = values[: len(METRICS)], values[len(METRICS) :]
                row = {"epoch": float(number), "loss": loss}
                row |= {f"val_{name}": value for name, value in zip(METRICS, metrics, strict=True)}
                if scores:
                    states[i].node_scores.append(scores)
                stopped[i] = "" if math.isfinite(loss) else "diverged"
                _record(states[i], row, config)
                after_epoch(i, row)


def _reason_to_stop(state: RunState, config: TrainingConfig, warmup: int) -> str:
    # While a hybrid's base warms up, nothing is lost by waiting.
    waited = state.epoch - 1 - max(state.best_epoch, warmup - 1)
    if config.patience is not None and waited >= config.patience:
        return "patience"
    return "epochs" if state.epoch >= config.epochs else ""


def _record(state: RunState, row: dict[str, float], config: TrainingConfig) -> None:
    """Add an epoch; the comparison is the one that `Epoch` makes for the weights."""
    value, best = row[f"val_{config.monitor}"], state.best_value
    better = best is None or (value < best if MONITORS[config.monitor] else value > best)
    if better and math.isfinite(value) and math.isfinite(row["loss"]):
        state.best_epoch, state.best_value = state.epoch, value
    state.history.append(row)
    state.epoch += 1


@torch.no_grad()
def evaluate(model: nn.Module, task: NodeTask, mask: Tensor) -> dict[str, float]:
    """Every calibration metric of the nodes in ``mask``, in eval mode and full precision."""
    model.eval()
    expansion: LogitDistribution = model(task.x, task.graph)
    return calibration_metrics(expansion[mask], task.y[mask])


def check_kinds(caller: str, model: nn.Module, task: NodeTask, config: TrainingConfig) -> None:
    """Check what a run is made of, and warn of one that ends before it began."""
    for value, kind in ((model, nn.Module), (task, NodeTask), (config, TrainingConfig)):
        if not isinstance(value, kind):
            raise InputError(f"{caller} needs a {kind.__name__}, got a {type(value).__name__}")
    if isinstance(task.x, SparseFeatures) and not hasattr(model, "sparse_features"):
        raise InputError(
            f"the task's x is SparseFeatures, but {type(model).__name__} has no attribute sparse_features, which "
            "says that a model takes them; give the task x.dense()"
        )
    warmup = getattr(model, "warmup_epochs", 0)
    if warmup and config.epochs <= warmup:
        warnings.warn(
            f"epochs={config.epochs} ends within the warm-up of {warmup} epochs: the branch will not be trained",
            stacklevel=3,
        )
