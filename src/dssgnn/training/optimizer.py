"""Optimisers over the parameters of a model, or of all members of a population."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch
from torch import Tensor, nn

from dssgnn.errors import InputError
from dssgnn.training.config import ParameterGroup, TrainingConfig

__all__ = ["make_optimizer", "make_population_optimizer"]

_KINDS: dict[str, type[torch.optim.Optimizer]] = {
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "rmsprop": torch.optim.RMSprop,
    "sgd": torch.optim.SGD,
}


def make_optimizer(model: nn.Module, config: TrainingConfig) -> torch.optim.Optimizer:
    """The optimiser of ``config`` over every parameter that learns, in its groups."""
    return _make(_groups(model.named_parameters(), config), config)


def make_population_optimizer(
    stacked: dict[str, nn.Parameter], models: Sequence[nn.Module], configs: Sequence[TrainingConfig]
) -> torch.optim.Optimizer:
    """One optimiser for all members.

    All kinds act entry by entry, so members of equal rates are one parameter ``[B, ...]``; otherwise every
    member has groups of its own.
    """
    if len({(c.lr, c.weight_decay, c.groups) for c in configs}) == 1:
        return _make(_groups(stacked.items(), configs[0]), configs[0])
    pairs = zip(models, configs, strict=True)
    return _make(
        [g for model, config in pairs for g in _groups(model.named_parameters(), config)], configs[0]
    )


def _groups(named: Iterable[tuple[str, Tensor]], config: TrainingConfig) -> list[dict[str, Any]]:
    rates: list[ParameterGroup | TrainingConfig] = [*config.groups, config]
    groups: list[dict[str, Any]] = [{"params": [], "lr": r.lr, "weight_decay": r.weight_decay} for r in rates]
    for name, parameter in named:
        if parameter.requires_grad:
            matching = (i for i, group in enumerate(config.groups) if fnmatchcase(name, group.pattern))
            groups[next(matching, -1)]["params"].append(parameter)
    for group, made in zip(config.groups, groups[:-1], strict=True):
        if not made["params"]:
            raise InputError(f"no parameter is left for the group {group.pattern!r}")
    return [group for group in groups if group["params"]]


def _make(groups: list[dict[str, Any]], config: TrainingConfig) -> torch.optim.Optimizer:
    if not groups:
        raise InputError("the model has no parameter that requires a gradient, so there is nothing to train")
    kind: Any = _KINDS[config.optimizer]
    options: dict[str, Any] = {} if config.optimizer == "rmsprop" else {"fused": True}
    if groups[0]["params"][0].is_cuda and config.optimizer != "sgd":
        options["capturable"] = True  # sgd keeps no count of steps, and needs no leave
    optimizer: torch.optim.Optimizer = kind(groups, lr=config.lr, **options)
    return optimizer
