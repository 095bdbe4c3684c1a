"""Accuracy, proper scores and calibration error; the paper's conventions (10 bins, Brier in 0..2)."""

from typing import NamedTuple

import torch
from torch import Tensor

from dssgnn.errors import InputError
from dssgnn.expansion import ChaosExpansion
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
    return _accuracy(probabilities, y)


def _accuracy(probabilities: Tensor, y: Tensor) -> Tensor:
    return (probabilities.argmax(dim=-1) == y).to(probabilities.dtype).mean()


def brier(probabilities: Tensor, y: Tensor) -> Tensor:
    r"""The multi-class Brier score :math:`\frac1N \sum_i \sum_c (p_{ic} - 1[y_i = c])^2`, in 0..2.

    Example:
        >>> brier(torch.tensor([[0.8, 0.2], [0.5, 0.5]]), torch.tensor([0, 1]))
        tensor(0.2900)
    """
    _check(probabilities, y)
    return _brier(probabilities, y)


def _brier(probabilities: Tensor, y: Tensor) -> Tensor:
    target = torch.nn.functional.one_hot(y, probabilities.size(1)).to(probabilities.dtype)
    return (probabilities - target).square().sum(dim=-1).mean()


def nll(log_probabilities: Tensor, y: Tensor) -> Tensor:
    """The mean negative log-probability of the label, from log-probabilities ``[N, C]``."""
    _check(log_probabilities, y)
    return torch.nn.functional.nll_loss(log_probabilities, y)


def reliability_curve(probabilities: Tensor, y: Tensor, bins: int = 10) -> ReliabilityCurve:
    """Accuracy against confidence in equal-width bins, closed on the left (the last one on both sides)."""
    _check(probabilities, y)
    return _reliability(probabilities, y, check_count(bins, "bins", minimum=1))


def _reliability(probabilities: Tensor, y: Tensor, bins: int) -> ReliabilityCurve:
    confidence, prediction = probabilities.max(dim=-1)
    edges = torch.linspace(0, 1, bins + 1, dtype=probabilities.dtype, device=probabilities.device)
    index = torch.bucketize(confidence, edges[1:-1], right=True)
    count = torch.bincount(index, minlength=bins).to(probabilities.dtype)
    safe = count.clamp_min(1)
    correct = (prediction == y).to(probabilities.dtype)
    return ReliabilityCurve(
        torch.bincount(index, confidence, minlength=bins) / safe,
        torch.bincount(index, correct, minlength=bins) / safe,
        count,
    )


def expected_calibration_error(probabilities: Tensor, y: Tensor, bins: int = 10) -> Tensor:
    """The mean over nodes of ``|accuracy - confidence|`` in their bin of the most probable class.

    Example:
        >>> expected_calibration_error(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 1]))
        tensor(0.4000)
    """
    return _calibration_error(reliability_curve(probabilities, y, bins))


def _calibration_error(curve: ReliabilityCurve) -> Tensor:
    return ((curve.accuracy - curve.confidence).abs() * curve.support).sum() / curve.support.sum()


def calibration_metrics(expansion: ChaosExpansion, y: Tensor) -> dict[str, float]:
    """Every calibration metric of a results record, by its name there.

    Plain names (``accuracy``, ``brier``, ``nll``, ``ece``) are of the predictive distribution, which is what
    users see; ``*_mean`` are of the mean logit, the paper's other readout.
    """
    expansion = expansion.map(lambda z: z.detach().double())
    log_p, log_mean = expansion.log_predictive(), expansion.mean.log_softmax(dim=-1)
    _check(log_p, y)
    p, mean = expansion.predictive(), log_mean.exp()
    values = {
        "accuracy": _accuracy(p, y),
        "brier": _brier(p, y),
        "nll": torch.nn.functional.nll_loss(log_p, y),
        "ece": _calibration_error(_reliability(p, y, 10)),
        "accuracy_mean": _accuracy(mean, y),
        "brier_mean": _brier(mean, y),
        "nll_mean": torch.nn.functional.nll_loss(log_mean, y),
        "chaos_energy": expansion.chaos_energy.mean(),
    }
    # One transfer for all of them: every epoch asks, and a GPU would wait for each.
    return dict(zip(values, torch.stack(list(values.values())).tolist(), strict=True))
