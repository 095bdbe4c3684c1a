"""What a row is: how its models are made, trained and read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from dssgnn.baselines import ensemble_seeds
from dssgnn.training import NodeTask, TrainingConfig
from dssgnn.validation import check_count

__all__ = ["Setup", "first_member", "seed_of_run"]


def seed_of_run(split: int, member: int) -> int:
    """The seeds of the paper's GCN, GAT and ensembles."""
    return ensemble_seeds(split, member + 1)[member]


def first_member(models: list[nn.Module]) -> nn.Module:
    """A system of one model is that model."""
    return models[0]


@dataclass(frozen=True)
class Setup:
    """A system on a dataset.

    Attributes:
        make: ``make(in_channels, classes)``, one model.
        training: how it is trained; its seed is replaced by `seed`.
        operator: options of the graph's operator.
        preparation: of features and edges, other than the catalog's.
        before: what a model takes from its task's training nodes before it is trained.
        members: models a split, each trained with a seed of its own.
        combine: the trained members of a split to one system that is read.
        seed: of a split's member; weights are drawn and trained with it.
        config: what a record needs to repeat all this.
    """

    make: Callable[[int, int], nn.Module]
    training: TrainingConfig
    operator: Mapping[str, Any] = field(default_factory=dict)
    preparation: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[nn.Module, NodeTask], None] = lambda model, task: None
    members: int = 1
    combine: Callable[[list[nn.Module]], nn.Module] = first_member
    seed: Callable[[int, int], int] = seed_of_run
    config: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_count(self.members, "members", minimum=1)
