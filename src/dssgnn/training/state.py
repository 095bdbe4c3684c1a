"""Everything a run needs to go on where it was, in one file."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

import torch
from torch import Tensor, nn

from dssgnn.checkpoint import load_tensors, save_tensors
from dssgnn.errors import InputError
from dssgnn.training.config import TrainingConfig

__all__ = ["RunState", "settings_of"]

_SCHEMA = 2


@dataclass
class RunState:
    """Where a run stands after an epoch.

    Attributes:
        epoch: the next epoch to run.
        best_epoch: the epoch with the best monitored value so far.
        best_value: that value; ``None`` before the first epoch.
        best_weights: the model's state at that epoch, or at the start.
        history: one dict of numbers an epoch.
        node_scores: of a population that was asked for them, one list an epoch; no checkpoint holds them.
        task: the fingerprint of what it is trained on.
        settings: what the model computes besides its weights (`settings_of`), before the first epoch.
    """

    epoch: int = 0
    best_epoch: int = -1
    best_value: float | None = None
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)
    node_scores: list[list[float]] = field(default_factory=list)
    task: str = ""
    settings: dict[str, Any] = field(default_factory=dict)

    def save(
        self, path: Path | str, model: nn.Module, optimizer: torch.optim.Optimizer, config: TrainingConfig
    ) -> None:
        """Write the run, the model, the optimiser and the random state, atomically."""
        tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
        tensors |= {f"best.{name}": value for name, value in self.best_weights.items()}
        tensors["random.cpu"] = torch.get_rng_state()
        for i, value in enumerate(torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []):
            tensors[f"random.cuda{i}"] = value
        numbers: dict[str, float] = {}
        for index, entries in optimizer.state_dict()["state"].items():
            for name, value in entries.items():
                if isinstance(value, Tensor):
                    tensors[f"optimizer.{index}.{name}"] = value
                elif value is not None:
                    numbers[f"{index}.{name}"] = value
        meta = {
            "kind": "training run",
            "schema": _SCHEMA,
            "task": self.task,
            "model": self.settings,
            "config": asdict(config),
            "epoch": self.epoch,
            "best_epoch": self.best_epoch,
            "best_value": self.best_value,
            "history": self.history,
            "optimizer": numbers,
        }
        save_tensors(path, tensors, meta)

    @classmethod
    def load(
        cls,
        path: Path | str,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        config: TrainingConfig,
        task: str,
    ) -> "RunState":
        """Read a run back into ``model`` and ``optimizer``, and set torch's random state.

        Raises:
            InputError: if the file is unreadable, or belongs to another configuration or model.
        """
        tensors, meta = load_tensors(path)
        if meta.get("kind") != "training run" or meta.get("schema") != _SCHEMA:
            found = f"a {meta.get('kind')!r} of schema {meta.get('schema')!r}"
            raise InputError(f"{path}: holds {found}, expected a 'training run' of schema {_SCHEMA}")
        if meta["task"] != task:
            raise InputError(
                f"{path}: the checkpoint is of another graph or split; resume with the same data"
            )
        if meta["epoch"] > config.epochs:
            raise InputError(
                f"{path}: has run {meta['epoch']} epochs already, more than epochs={config.epochs}"
            )
        _check_same_config(path, meta["config"], config)
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "optimizer": {}, "random": {}}
        for name, value in tensors.items():
            kind, _, rest = name.partition(".")
            parts[kind][rest] = value
        expected = {name: tuple(value.shape) for name, value in model.state_dict().items()}
        got = {name: tuple(value.shape) for name, value in parts["model"].items()}
        if expected != got:
            odd = next(name for name in sorted({*expected, *got}) if expected.get(name) != got.get(name))
            raise InputError(
                f"{path}: made for another model: {odd} is {got.get(odd)}, expected {expected.get(odd)}"
            )
        settings = settings_of(model)
        for name in sorted({*settings, *meta["model"]}):
            if settings.get(name) != meta["model"].get(name):
                found = f"{meta['model'].get(name)!r}, expected {settings.get(name)!r}"
                raise InputError(f"{path}: made for another model: {name or 'it'} is {found}")
        model.load_state_dict(parts["model"])
        state: dict[int, dict[str, Any]] = {}
        for key, value in [*parts["optimizer"].items(), *meta["optimizer"].items()]:
            index, _, name = key.partition(".")
            state.setdefault(int(index), {})[name] = value
        optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
        torch.set_rng_state(parts["random"]["cpu"])
        for i in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
            if f"cuda{i}" in parts["random"]:
                torch.cuda.set_rng_state(parts["random"][f"cuda{i}"], i)
        device = next(iter(model.state_dict().values())).device
        best = {name: value.to(device) for name, value in parts["best"].items()}
        return cls(
            meta["epoch"],
            meta["best_epoch"],
            meta["best_value"],
            best,
            meta["history"],
            task=task,
            settings=settings,
        )


def settings_of(model: nn.Module) -> dict[str, Any]:
    """What a model computes besides its weights: the kind and the plain attributes of every module, as JSON has them.

    Example:
        >>> settings_of(nn.Sequential(nn.Dropout(0.3)))
        {'': 'Sequential', '0': 'Dropout', '0.p': 0.3, '0.inplace': False}
    """
    told: dict[str, Any] = {}
    for name, module in model.named_modules():
        told[name] = type(module).__name__
        for key, value in vars(module).items():
            if key != "training" and not key.startswith("_") and _is_plain(value):
                told[f"{name}.{key}".removeprefix(".")] = _plain(value)
    return told


def _plain(value: Any) -> Any:
    """A function by its name, a tuple as a list."""
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    return getattr(value, "__qualname__", value)


def _is_plain(value: object) -> bool:
    if isinstance(value, (tuple, list)):
        return all(_is_plain(each) for each in value)
    return value is None or isinstance(value, (bool, int, float, str, FunctionType, BuiltinFunctionType))


def _check_same_config(path: Path | str, stored: dict[str, Any], config: TrainingConfig) -> None:
    # More epochs or more patience continue the same run, however launched; anything else would make it another.
    free = {"epochs", "patience", "checkpoint_every", "capture"}
    for name, value in asdict(config).items():
        value = [*value] if isinstance(value, tuple) else value
        if name not in free and stored.get(name) != value:
            raise InputError(
                f"{path}: the checkpoint was trained with {name}={stored.get(name)!r}, not {value!r}; "
                "resume with the same settings"
            )
