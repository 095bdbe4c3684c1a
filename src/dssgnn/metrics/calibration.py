"""Accuracy, proper scores and calibration error; the paper's conventions (10 bins, Brier in 0..2)."""

from typing import NamedTuple

import torch
from torch import Tensor

from dssgnn.errors import InputError
from dssgnn.expansion import LogitDistribution
from dssgnn.validation import check_count, check_labels

__all__ = [
    "ReliabilityCurve",
    "accuracy",
    "brier",
    "calibration_metrics",
    "expected_calibration_error",
    "nll",
    "reliability_curve",
]


class ReliabilityCurve(NamedTuple):
    """What a reliability diagram draws; every field is ``[bins]``, empty bins hold zeros."""

    confidence: Tensor
    accuracy: Tensor
    support: Tensor


def _check(probabilities: Tensor, y: Tensor) -> None:
    if probabilities.dim() != 2 or probabilities.size(0) == 0:
        raise InputError(f"probabilities must have shape [N, C] with N >= 1, got {list(probabilities.shape)}")
    check_labels(y, *probabilities.shape)


def accuracy(probabilities: Tensor, y: Tensor) -> Tensor:
    """The share of nodes whose most probable class (the first of equals) is the label.

    Args:
        probabilities: ``[N, C]``.
        y: labels ``[N]``.

    Returns:
        A scalar in 0..1.
    """
    _check(probabilities, y)
    return _mean(_correct(probabilities, y))


def _correct(probabilities: Tensor, y: Tensor) -> Tensor:
    return (probabilities.argmax(dim=-1) == y).to(probabilities.dtype)


def _mean(values: Tensor, weight: Tensor | None = None) -> Tensor:
    # Weights are 0 and 1. A share, whose sum is exact, is to the bit that of the nodes that count, so that ties stay
    # ties; other means are so up to rounding, as padding changes the order in which torch adds.
    if weight is None:
        return values.sum(dim=-1) / values.size(-1)
    return (values * weight).sum(dim=-1) / weight.sum()


def brier(probabilities: Tensor, y: Tensor) -> Tensor:
    r"""The multi-class Brier score :math:`\frac1N \sum_i \sum_c (p_{ic} - 1[y_i = c])^2`, in 0..2.

    Example:
        >>> brier(torch.tensor([[0.8, 0.2], [0.5, 0.5]]), torch.tensor([0, 1]))
        tensor(0.2900)
    """
    _check(probabilities, y)
    return _mean(brier_by_node(probabilities, y))


def brier_by_node(probabilities: Tensor, y: Tensor) -> Tensor:
    """The Brier score ``[..., N]`` of each node, from ``[..., N, C]``, unchecked."""
    # Not torch's one_hot, which reads the labels and lets a GPU wait.
    target = y[:, None] == torch.arange(probabilities.size(-1), device=y.device)
    return (probabilities - target.to(probabilities.dtype)).square().sum(dim=-1)


def nll(log_probabilities: Tensor, y: Tensor) -> Tensor:
    """The mean negative log-probability of the label, from log-probabilities ``[N, C]``."""
    _check(log_probabilities, y)
    return _mean(nll_by_node(log_probabilities, y))


def nll_by_node(log_probabilities: Tensor, y: Tensor) -> Tensor:
    """The negative log-probability ``[..., N]`` of each node's label, from ``[..., N, C]``, unchecked."""
    index = y.expand(log_probabilities.shape[:-1])[..., None]
    return -log_probabilities.gather(-1, index)[..., 0]


def reliability_curve(probabilities: Tensor, y: Tensor, bins: int = 10) -> ReliabilityCurve:
    """Accuracy against confidence in equal-width bins, closed on the left (the last one on both sides)."""
    _check(probabilities, y)
    return _reliability(probabilities, y, check_count(bins, "bins", minimum=1))


def _reliability(
    probabilities: Tensor, y: Tensor, bins: int, weight: Tensor | None = None
) -> ReliabilityCurve:
    """Of ``[..., N, C]``; every field is ``[..., bins]``."""
    confidence = probabilities.amax(dim=-1)
    edges = torch.linspace(0, 1, bins + 1, dtype=probabilities.dtype, device=probabilities.device)
    index = (confidence[..., None] >= edges[1:-1]).sum(dim=-1)
    # A table of members instead of bincount, which a GPU waits for and a population cannot batch.
    inside = (index[..., None] == torch.arange(bins, device=index.device)).to(probabilities.dtype)
    if weight is not None:
        inside = inside * weight[:, None]
    count = inside.sum(dim=-2)
    sums = torch.stack([confidence, _correct(probabilities, y)], dim=-2) @ inside  # [..., 2, bins]
    means = sums / count[..., None, :].clamp_min(1)
    return ReliabilityCurve(means[..., 0, :], means[..., 1, :], count)


def expected_calibration_error(probabilities: Tensor, y: Tensor, bins: int = 10) -> Tensor:
    """The mean over nodes of ``|accuracy - confidence|`` in their bin of the most probable class.

    Example:
        >>> expected_calibration_error(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 1]))
        tensor(0.4000)
    """
    return _calibration_error(reliability_curve(probabilities, y, bins))


def _calibration_error(curve: ReliabilityCurve) -> Tensor:
    gaps = (curve.accuracy - curve.confidence).abs() * curve.support
    return gaps.sum(dim=-1) / curve.support.sum(dim=-1)


METRICS = (
    "accuracy", "brier", "nll", "ece", "accuracy_mean", "brier_mean", "nll_mean", "ece_mean", "chaos_energy",
)  # fmt: skip


def calibration_metrics(expansion: LogitDistribution, y: Tensor) -> dict[str, float]:
    """Every calibration metric of a results record, by its name there.

    Plain names (``accuracy``, ``brier``, ``nll``, ``ece``) are of the predictive distribution, which is what
    users see; ``*_mean`` are of the mean logit, the paper's other readout.
    """
    _check(expansion.mean, y)
    # One transfer for all of them: a GPU would wait for each.
    return dict(zip(METRICS, metric_values(expansion, y).tolist(), strict=True))


@torch.no_grad()
def metric_values(expansion: LogitDistribution, y: Tensor, weight: Tensor | None = None) -> Tensor:
    """The metrics named in ``METRICS`` as one float64 tensor, unchecked and without waiting for the device.

    Args:
        expansion: of ``N`` nodes.
        y: labels ``[N]``.
        weight: ``[N]``, 1 for nodes that count and 0 for others; all count where it is not given.
    """
    expansion = expansion.map(lambda z: z.detach().double())
    weight = None if weight is None else weight.double()
    # Both readouts at once: on a small graph every operation costs a GPU as much as any other.
    log_p = torch.stack([expansion.log_predictive(), expansion.mean.log_softmax(dim=-1)])  # [2, N, C]
    p = log_p.exp()
    by_node = [_correct(p, y), brier_by_node(p, y), nll_by_node(log_p, y), expansion.chaos_energy[None]]
    means = _mean(torch.cat(by_node), weight)  # [7]
    ece = _calibration_error(_reliability(p, y, 10, weight))  # [2]
    scores = torch.cat([means[:6].view(3, 2), ece[None]])  # of both readouts
    return torch.cat([scores.T.flatten(), means[6:]])
