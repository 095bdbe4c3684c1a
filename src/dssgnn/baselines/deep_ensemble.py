"""Deep ensembles: the spread of a network over its starts."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from dssgnn.errors import InputError
from dssgnn.expansion import LogitSamples
from dssgnn.graph import GraphOperator, SparseFeatures
from dssgnn.training.config import TrainingConfig
from dssgnn.training.loop import TrainingResult
from dssgnn.training.population import Way, fit_population
from dssgnn.training.seeding import seeded
from dssgnn.training.task import NodeTask
from dssgnn.validation import check_count

__all__ = ["DeepEnsemble", "ensemble_seeds", "fit_ensemble"]


class DeepEnsemble(nn.Module):
    r"""Models of one task that were trained apart (Lakshminarayanan et al., 2017).

    .. math:: \bar p = \frac1M \sum_m \mathrm{softmax}(z^{(m)})

    Args:
        models: the members, each ``model(x, graph) -> LogitDistribution``; their mean logits are kept.

    Example:
        >>> from dssgnn import DSSGNN
        >>> ensemble = DeepEnsemble([DSSGNN(5, 16, 3) for _ in range(2)])
        >>> ensemble(torch.randn(2, 5), torch.tensor([[0, 1], [1, 0]]))
        LogitSamples(num_nodes=2, num_samples=2, num_classes=3)
    """

    def __init__(self, models: Sequence[nn.Module]) -> None:
        super().__init__()
        if not models:
            raise InputError("an ensemble needs at least one model")
        self.models = nn.ModuleList(models)
        self.sparse_features = all(getattr(model, "sparse_features", False) for model in models)

    def forward(self, x: Tensor | SparseFeatures, graph: GraphOperator | Tensor) -> LogitSamples:
        """The members' mean logits."""
        return LogitSamples(torch.stack([model(x, graph).mean for model in self.models], dim=1))


def ensemble_seeds(run: int, members: int = 5) -> tuple[int, ...]:
    """The seeds of the published comparison: ``42 + run``, then ``1000 (run + 1) + m`` for member ``m``.

    Example:
        >>> ensemble_seeds(1, members=3)
        (43, 2001, 2002)
    """
    check_count(run, "run")
    check_count(members, "members", minimum=1)
    return (42 + run, *(1000 * (run + 1) + m for m in range(1, members)))


def fit_ensemble(
    make: Callable[[], nn.Module],
    task: NodeTask,
    config: TrainingConfig | None = None,
    *,
    members: int = 5,
    seeds: Sequence[int] | None = None,
    way: Way = "auto",
) -> tuple[DeepEnsemble, list[TrainingResult]]:
    """Train an ensemble as one population, each member with its own early stopping.

    Args:
        make: makes an untrained member; called once a seed, with torch seeded by it.
        task: what to train on.
        config: how; its ``seed`` is replaced by each member's.
        members: ``M``, where no seeds are given.
        seeds: one a member; `ensemble_seeds` of run 0 where they are not given.
        way: see `fit_population`.

    Returns:
        The ensemble in eval mode, and how the run of each member went.

    Raises:
        InputError: if a member's loss or monitored value was never finite.
    """
    seeds = ensemble_seeds(0, members) if seeds is None else tuple(seeds)
    models = []
    for seed in seeds:
        with seeded(seed):
            models.append(make())
    configs = [replace(config or TrainingConfig(), seed=seed) for seed in seeds]
    results = fit_population(models, [task] * len(models), configs, way=way)
    for seed, result in zip(seeds, results, strict=True):
        if result.best_epoch < 0:
            raise InputError(
                f"the member of seed {seed} was never finite; try a smaller learning rate or clip"
            )
    ensemble = DeepEnsemble(models)
    ensemble.eval()
    return ensemble, results
