"""Training losses as functions of an expansion."""

from collections.abc import Callable, Mapping

from torch import Tensor

from dssgnn.expansion import LogitDistribution
from dssgnn.metrics.calibration import brier_by_node, nll_by_node
from dssgnn.training.config import Objective, TrainingConfig
from dssgnn.training.part import Part

__all__ = ["OBJECTIVES", "energy_margin", "training_loss"]


def mean_loss(expansion: LogitDistribution, y: Tensor) -> Tensor:
    """Cross-entropy of the mean logit, ``[N]``: the data term of eq. loss_base."""
    return nll_by_node(expansion.mean.log_softmax(dim=-1), y)


def quadrature_loss(expansion: LogitDistribution, y: Tensor) -> Tensor:
    r"""Cross-entropy averaged over the quadrature nodes, ``[N]``: :math:`\bar\ell_i` of eq. loss_quad."""
    log_p, log_weights = expansion.log_softmax()
    picked = log_p.gather(-1, y.expand(len(log_p), -1)[..., None])[..., 0]  # [S, N]
    return -(log_weights.exp() @ picked)


def predictive_loss(expansion: LogitDistribution, y: Tensor) -> Tensor:
    r"""Negative log of the quadrature-averaged probability, :math:`-\log \bar p_{i, y_i}`, ``[N]``."""
    return nll_by_node(expansion.log_predictive(), y)


def brier_loss(expansion: LogitDistribution, y: Tensor) -> Tensor:
    """Brier score of the quadrature-averaged probabilities, ``[N]``."""
    return brier_by_node(expansion.predictive(), y)


# Each takes the expansion and the labels of the same N nodes and gives a loss a node.
OBJECTIVES: dict[Objective, Callable[[LogitDistribution, Tensor], Tensor]] = {
    "mean": mean_loss,
    "quadrature": quadrature_loss,
    "predictive": predictive_loss,
    "brier": brier_loss,
}


def training_loss(
    expansion: LogitDistribution,
    y: Tensor,
    part: Part,
    config: TrainingConfig,
    weights: Mapping[str, Tensor] | None = None,
) -> Tensor:
    """The objective on the training nodes plus the regularisers of the chaos energy and of the mean logits.

    Args:
        expansion: of all ``N`` nodes.
        y: labels ``[N]``.
        part: the training nodes.
        config: which objective, and the regularisers' weights and nodes.
        weights: ``chaos_weight`` and ``logit_weight`` instead of the configuration's, where the members of a
            population have their own; one that is left out is nobody's.
    """
    if weights is None:
        weights = {name: w for name in ("chaos_weight", "logit_weight") if (w := getattr(config, name))}
    train = expansion.map(lambda z: z.index_select(0, part.nodes))
    loss = part.mean(OBJECTIVES[config.objective](train, y.index_select(0, part.nodes)))
    everywhere = config.chaos_nodes == "all"
    if expansion.chaos_order and "chaos_weight" in weights:
        energy = expansion.penalized_energy.mean() if everywhere else part.mean(train.penalized_energy)
        loss = loss + weights["chaos_weight"] * energy
    if "logit_weight" in weights:
        squares = (expansion if everywhere else train).mean.square().sum(dim=-1)
        loss = loss + weights["logit_weight"] * (squares.mean() if everywhere else part.mean(squares))
    return loss


def energy_margin(inside: Tensor, outside: Tensor, margin_in: float, margin_out: float) -> Tensor:
    r"""GNNSafe++: :math:`\mathrm{mean}[\,(E_{in} - m_{in})_+^2 + (m_{out} - E_{out})_+^2\,]`.

    The longer vector is cut to the shorter one's length, first entries kept.

    Example:
        >>> import torch
        >>> energy_margin(torch.tensor([-3.0, -9.0]), torch.tensor([-2.0, 0.0]), -5.0, -1.0)
        tensor(2.5000)
    """
    size = min(inside.numel(), outside.numel())
    above = (inside[:size] - margin_in).relu().square()
    below = (margin_out - outside[:size]).relu().square()
    return (above + below).mean()
