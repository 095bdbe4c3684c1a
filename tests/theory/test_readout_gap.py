r"""Corollary readout_gap: predictive and mean-logit softmax differ by at most ``B/2 tr(Sigma)``.

The supremum is :math:`B = 1/(3\sqrt 3) = 0.19245` for every number of classes. For a unit vector ``v`` and
``p = f_c``, with ``D = v_c - m`` and ``m, s^2`` the mean and variance of ``v`` under the other classes, the
Hessian's form is ``p(1-p)[(1-2p) D^2 - s^2]``. Where it is positive it is at most
``2 p(1-p)(1-2p) <= 1/(3 sqrt 3)``. Where it is negative, put ``t = 2p-1``; the form is
``(1-t^2)/4 (t D^2 + s^2)``, and ``s^2 <= min((1-v_c^2)/2, 1-v_c^2-m^2)`` gives ``t D^2 + s^2 <= 2t`` for
``t >= 1/2`` and less than ``3/16`` in all below. Both suprema are those of two classes.
"""

import math

import pytest
import torch

from dssgnn import ChaosExpansion
from theory.support import F64, generator, normal

CRUDE, SHARP = 0.5, 1 / (3 * math.sqrt(3))
CASES = [(p, c) for p in (1, 2, 3, 5) for c in (2, 3, 5, 10, 40)]
PER_CASE = 500  # 20 cases: 10,000 expansions


def hessian_norms(p: torch.Tensor) -> torch.Tensor:
    """``max_c ||hess softmax_c||_op`` at probability vectors ``p [N, C]``."""
    centred = torch.eye(p.size(1), dtype=F64) - p[:, None]  # [N, c, :] = e_c - p
    covariance = torch.diag_embed(p) - p[:, :, None] * p[:, None]
    hessians = p[:, :, None, None] * (centred[..., None] * centred[:, :, None] - covariance[:, None])
    return torch.linalg.eigvalsh(hessians).abs().amax(dim=(1, 2))


def random_expansion(order: int, classes: int) -> ChaosExpansion:
    """Mean logits and deviations of independent log-uniform scales, from invisible to saturated."""
    rng = generator(1000 * order + classes)
    z = torch.randn(PER_CASE, order + 1, classes, generator=rng, dtype=F64)
    scales = 10 ** (torch.rand(PER_CASE, 2, 1, 1, generator=rng, dtype=F64) * 4 - 2.5)
    z[:, :1] *= scales[:, 0]
    z[:, 1:] *= scales[:, 1] / math.sqrt(order * classes)
    return ChaosExpansion(z, order + 1 if classes % 2 else None)


def deviation(z: ChaosExpansion) -> torch.Tensor:
    return (z.predictive() - z.mean.softmax(dim=-1)).abs().amax(dim=-1)


def margin(z: ChaosExpansion) -> torch.Tensor:
    top = z.mean.softmax(dim=-1).topk(2).values
    return top[:, 0] - top[:, 1]


def agrees(z: ChaosExpansion) -> torch.Tensor:
    return z.predictive().argmax(dim=-1) == z.mean.argmax(dim=-1)


def near_sharp(classes: int, scale: float = 0.1) -> ChaosExpansion:
    """An expansion near equality: two classes at the inflection ``p(1-p)(1-2p) = max``, the rest far away."""
    z = torch.zeros(1, 2, classes, dtype=F64)
    z[0, 0, 2:] = -60
    z[0, 0, 0] = math.log(2 + math.sqrt(3))
    z[0, 1, :2] = torch.tensor([1.0, -1.0]) * scale / math.sqrt(2)
    return ChaosExpansion(z)


def flipped() -> ChaosExpansion:
    """Order 2 skews the deviations, so that the predictive prefers the other class."""
    difference = torch.tensor([0.157, 0.0, 1.1], dtype=F64)
    return ChaosExpansion(torch.stack([difference / 2, -difference / 2], dim=-1)[None])


def test_supremum_of_the_hessian():
    """Corollary readout_gap: ``B <= 1/2``; its value is ``1/(3 sqrt 3)``, attained with two classes."""
    assert pytest.approx(0.1925, abs=1e-4) == SHARP
    grid = torch.linspace(0, 1, 20_001, dtype=F64)
    two = hessian_norms(torch.stack([grid, 1 - grid], dim=1))
    assert two.max().item() == pytest.approx(SHARP, rel=1e-7)
    assert grid[two.argmax()].item() in (
        pytest.approx((3 - math.sqrt(3)) / 6, abs=1e-4),
        pytest.approx((3 + math.sqrt(3)) / 6, abs=1e-4),
    )
    steps = torch.linspace(0, 1, 101, dtype=F64)
    a, b = torch.meshgrid(steps, steps, indexing="ij")
    three = torch.stack([a, b, 1 - a - b], dim=-1)[a + b <= 1]
    assert SHARP * 0.999 < hessian_norms(three).max() <= SHARP + 1e-15


@pytest.mark.parametrize("classes", [3, 4, 8])
def test_supremum_is_not_beaten_by_ascent(classes):
    """Gradient ascent from 60 starts: more classes reach the same supremum and do not pass it."""
    z = (3 * normal(60, classes, seed=classes)).requires_grad_()
    optimizer = torch.optim.Adam([z], lr=0.1)
    best = 0.0
    for _ in range(150):
        norms = hessian_norms(z.softmax(dim=-1))
        best = max(best, norms.max().item())
        optimizer.zero_grad()
        (-norms.sum()).backward()
        optimizer.step()
    assert SHARP * 0.995 < best <= SHARP + 1e-12


def test_two_bounds_of_the_proof():
    """Proof of the supremum above: both elementary maxima, on a grid."""
    p = torch.linspace(0, 1, 100_001, dtype=F64)
    assert (2 * p * (1 - p) * (1 - 2 * p)).max().item() == pytest.approx(SHARP, rel=1e-8)
    t = torch.linspace(0, 0.5, 10_001, dtype=F64)
    half = (1 + 3 * t) / 2
    below = (1 - t**2) / 4 * (half + (half**2 - 2 * t).sqrt()) / 2
    assert below.max().item() == pytest.approx(3 / 16, rel=1e-12)
    assert SHARP > 3 / 16


@pytest.mark.parametrize(("order", "classes"), CASES)
def test_bound_without_exception(order, classes):
    """Corollary readout_gap: 10,000 expansions, with ``B = 1/2`` and with the supremum."""
    z = random_expansion(order, classes)
    assert (deviation(z) <= CRUDE / 2 * z.chaos_energy + 1e-14).all()
    assert (deviation(z) <= SHARP / 2 * z.chaos_energy + 1e-14).all()


@pytest.mark.parametrize(("order", "classes"), CASES)
def test_argmax_without_exception(order, classes):
    """Corollary readout_gap: the same class wherever the top-two gap exceeds ``B tr(Sigma)``."""
    z = random_expansion(order, classes)
    for constant in (CRUDE, SHARP):
        safe = margin(z) > constant * z.chaos_energy
        assert safe.sum() > 50
        assert agrees(z)[safe].all()


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_bound_is_nearly_attained(classes):
    """Negative twin: this expansion is within 5 % of the supremum's bound, so 0.95 of it would be wrong."""
    z = near_sharp(classes)
    bound = SHARP / 2 * z.chaos_energy
    assert (deviation(z) <= bound).all()
    assert (deviation(z) > 0.95 * bound).all()
    assert (deviation(z) > 0.99 * bound).all()


def test_bound_needs_a_rule_of_p_plus_one_nodes():
    """Negative twin: at ``S = P`` a mean-zero order gets a mean, and the bound is broken."""
    z = torch.zeros(1, 3, 2, dtype=F64)
    z[0, 2, 0] = 0.1
    assert (deviation(ChaosExpansion(z, 3)) <= SHARP / 2 * 0.01).all()
    assert (deviation(ChaosExpansion(z, 1)) > SHARP / 2 * 0.01).all()


def test_argmax_can_flip():
    """Negative twin: a flip at a gap of 0.67 ``B tr(Sigma)``; with 0.6 ``B`` the condition would be wrong."""
    z = flipped()
    assert not agrees(z).any()
    assert (margin(z) <= SHARP * z.chaos_energy).all()
    assert (margin(z) > 0.6 * SHARP * z.chaos_energy).all()


def test_random_expansions_do_flip():
    """Negative twin: the condition is not vacuous; among the 10,000 are some that change their class."""
    flips = sum((~agrees(random_expansion(*case))).sum().item() for case in CASES)
    assert flips > 100
