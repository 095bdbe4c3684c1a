"""Training losses as functions of an expansion."""

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional as F

from dssgnn.expansion import ChaosExpansion
from dssgnn.metrics import brier
from dssgnn.training.config import Objective, TrainingConfig

__all__ = ["OBJECTIVES", "energy_margin", "training_loss"]


def mean_loss(expansion: ChaosExpansion, y: Tensor) -> Tensor:
    """Cross-entropy of the mean logit: the data term of eq. loss_base."""
    return F.cross_entropy(expansion.mean, y)


def quadrature_loss(expansion: ChaosExpansion, y: Tensor) -> Tensor:
    r"""Cross-entropy averaged over the quadrature nodes: :math:`\bar\ell_i` of eq. loss_quad."""
    log_p, log_weights = expansion.log_softmax()
    picked = log_p.gather(-1, y.expand(len(log_p), -1)[..., None])[..., 0]  # [S, N]
    return -(log_weights.exp() @ picked).mean()


def predictive_loss(expansion: ChaosExpansion, y: Tensor) -> Tensor:
    r"""Negative log of the quadrature-averaged probability, :math:`-\log \bar p_{i, y_i}`."""
    return F.nll_loss(expansion.log_predictive(), y)


def brier_loss(expansion: ChaosExpansion, y: Tensor) -> Tensor:
    """Brier score of the quadrature-averaged probabilities."""
    return brier(expansion.predictive(), y)


OBJECTIVES: dict[Objective, Callable[[ChaosExpansion, Tensor], Tensor]] = {
    "mean": mean_loss,
    "quadrature": quadrature_loss,
    "predictive": predictive_loss,
    "brier": brier_loss,
}


def training_loss(expansion: ChaosExpansion, y: Tensor, train_mask: Tensor, config: TrainingConfig) -> Tensor:
    """The objective on the training nodes plus the chaos-energy regulariser.

    Args:
        expansion: of all ``N`` nodes.
        y: labels ``[N]``.
        train_mask: ``[N]``.
        config: which objective, and the regulariser's weight and nodes.
    """
    train = expansion[train_mask]
    loss = OBJECTIVES[config.objective](train, y[train_mask])
    if config.chaos_weight and expansion.chaos_order:
        penalized = train if config.chaos_nodes == "train" else expansion
        loss = loss + config.chaos_weight * penalized.penalized_energy.mean()
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
