"""Proposition curvature: the averaged loss and energy to second order, and common shifts of the logits."""

import math

import pytest
import torch

from dssgnn import ChaosExpansion
from dssgnn.spectral import gauss_hermite
from theory.support import F64, gap, generator, normal

CASES = [(2, 3, 4), (2, 4, 2), (3, 4, 5), (5, 6, 3)]  # (P, S, C)
SCALES = torch.logspace(-0.5, -2, 7, dtype=F64)
# Third derivative of log-sum-exp along a unit vector: a third central moment of values within a range of
# sqrt(2), at most range^3 / (6 sqrt(3)).
THIRD = 2 * math.sqrt(2) / (6 * math.sqrt(3))


def expansions(order: int, size: int, classes: int, seed: int = 0) -> ChaosExpansion:
    """200 random expansions, scaled so that ``max_s ||delta^(s)|| = 1``."""
    z = ChaosExpansion(normal(200, order + 1, classes, seed=seed), size)
    reach = deviations(z).norm(dim=-1).max(dim=0).values
    z.coefficients[:, 1:] /= reach[:, None, None]
    return z


def scaled(z: ChaosExpansion, scale: float) -> ChaosExpansion:
    coefficients = z.coefficients.clone()
    coefficients[:, 1:] *= scale
    return ChaosExpansion(coefficients, z.quadrature_size)


def deviations(z: ChaosExpansion) -> torch.Tensor:
    """``delta^(s) = z^(s) - Z_0``, ``[S, N, C]``."""
    return z.at(gauss_hermite(z.quadrature_size)[0]) - z.mean


def labels(z: ChaosExpansion) -> torch.Tensor:
    return torch.randint(z.num_classes, (z.num_nodes,), generator=generator(1))


def cross_entropy(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    index = y.expand(logits.shape[:-1])[..., None]
    return -logits.log_softmax(dim=-1).gather(-1, index)[..., 0]


def curvature(z: ChaosExpansion) -> torch.Tensor:
    """``1/2 tr(H Sigma)`` with ``H = diag(p) - p p^T`` at the mean logit."""
    p = z.mean.softmax(dim=-1)
    hessian = torch.diag_embed(p) - p[:, :, None] * p[:, None]
    return torch.einsum("icd,idc->i", hessian, z.covariance) / 2


def remainder(z: ChaosExpansion, kind: str, second_order: bool = True) -> torch.Tensor:
    """What is left of the quadrature average after its value at the mean and its curvature term."""
    nodes, weights = gauss_hermite(z.quadrature_size)
    if kind == "loss":
        at_nodes, at_mean = cross_entropy(z.at(nodes), labels(z)), cross_entropy(z.mean, labels(z))
        term = curvature(z)
    else:
        at_nodes, at_mean = -torch.logsumexp(z.at(nodes), dim=-1), z.energy()
        term = -curvature(z)
    return weights @ at_nodes - at_mean - (term if second_order else 0)


def median_slope(z: ChaosExpansion, kind: str, second_order: bool = True) -> float:
    """Median over expansions of the log-log slope of the remainder against ``max_s ||delta^(s)||``."""
    rests = torch.stack([remainder(scaled(z, s.item()), kind, second_order).abs() for s in SCALES])
    x = SCALES.log() - SCALES.log().mean()
    return ((x[:, None] * rests.log()).sum(dim=0) / x.square().sum()).median().item()


@pytest.mark.parametrize("kind", ["loss", "energy"])
@pytest.mark.parametrize(("order", "size", "classes"), CASES)
def test_remainder_falls_as_the_third_power(order, size, classes, kind):
    """Eqs. curvature_prop and energy_second_order: median slope at least 2.9 over 200 expansions."""
    slope = median_slope(expansions(order, size, classes), kind)
    assert 2.9 <= slope < 3.2


@pytest.mark.parametrize("kind", ["loss", "energy"])
@pytest.mark.parametrize(("order", "size", "classes"), CASES)
def test_without_the_curvature_term_it_falls_as_the_second(order, size, classes, kind):
    """Negative twin: drop ``1/2 tr(H Sigma)``."""
    slope = median_slope(expansions(order, size, classes), kind, second_order=False)
    assert slope == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize("kind", ["loss", "energy"])
@pytest.mark.parametrize("order", [2, 3])
def test_a_rule_of_p_nodes_misses_the_curvature(order, kind):
    """Negative twin of Lemma readout_conditions: at ``S = P`` order P is invisible and the slope is 2."""
    z = ChaosExpansion(expansions(order, order + 1, 4).coefficients, order)
    assert median_slope(z, kind) == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("kind", ["loss", "energy"])
def test_first_order_expansions_do_better(kind):
    """At P = 1 the deviations are symmetric, so the third power vanishes and the fourth is left."""
    assert median_slope(expansions(1, 4, 4), kind) == pytest.approx(4, abs=0.05)


@pytest.mark.parametrize(("order", "size", "classes"), [(1, 2, 2), *CASES])
def test_remainder_has_an_explicit_constant(order, size, classes):
    """The ``O(max ||delta||^3)`` of eq. curvature_prop with its constant, at every scale, no exception."""
    z = expansions(order, size, classes, seed=3)
    weights = gauss_hermite(size)[1]
    for scale in (0.01, 0.1, 1.0, 10.0):
        part = scaled(z, scale)
        bound = THIRD / 6 * weights @ deviations(part).norm(dim=-1) ** 3
        for kind in ("loss", "energy"):
            assert (remainder(part, kind).abs() <= bound + 1e-14).all()
            if scale == 0.01:  # negative twin
                assert (remainder(part, kind, second_order=False).abs() > bound).double().mean() > 0.9


@pytest.mark.parametrize(("order", "size", "classes"), CASES)
def test_quadrature_moments_of_the_deviations(order, size, classes):
    """Lemma readout_conditions: mean zero and covariance ``Sigma``; the second not at ``S = P``."""
    z = expansions(order, size, classes)
    delta, weights = deviations(z), gauss_hermite(size)[1]
    assert gap(torch.einsum("s,sic->ic", weights, delta), torch.zeros_like(z.mean)) < 1e-14
    assert gap(torch.einsum("s,sic,sid->icd", weights, delta, delta), z.covariance) < 1e-14
    small = ChaosExpansion(z.coefficients, order)
    delta, weights = deviations(small), gauss_hermite(order)[1]
    assert gap(torch.einsum("s,sic,sid->icd", weights, delta, delta), z.covariance) > 1e-3


@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("spread", [0.1, 1.0, 10.0])
def test_curvature_is_between_zero_and_a_quarter_of_the_energy(classes, spread):
    """Step 5 and section theory: ``0 <= 1/2 tr(H Sigma) <= E/4``."""
    z = ChaosExpansion(normal(1000, 4, classes, seed=classes))
    z.coefficients[:, 0] *= spread
    assert (curvature(z) >= -1e-15 * z.chaos_energy).all()  # p - p^2 rounds where the softmax is saturated
    assert (curvature(z) <= z.chaos_energy / 4).all()


def test_hessian_is_that_of_the_loss():
    """Lemma readout_conditions: ``diag(p) - p p^T`` is the loss's Hessian, whatever the label."""
    z = ChaosExpansion(normal(5, 3, 4, seed=8))
    for y in range(4):
        label = torch.tensor(y)
        for i in range(5):
            hessian = torch.autograd.functional.hessian(lambda v, y=label: cross_entropy(v, y), z.mean[i])
            assert gap((hessian * z.covariance[i]).sum() / 2, curvature(z)[i]) < 1e-13


def test_a_quarter_is_attained():
    """Negative twin: at ``p = (1/2, 1/2)`` and ``Z_1`` along ``(1, -1)`` it is an equality."""
    z = ChaosExpansion(torch.tensor([[[3.0, 3.0], [1.0, -1.0]]], dtype=F64))
    assert curvature(z).item() == z.chaos_energy.item() / 4 == 0.5
    assert curvature(z).item() > 0.99 * z.chaos_energy.item() / 4


def test_common_offsets_are_the_null_space():
    """Step 5: variation along ``1`` alone adds nothing; any other direction does."""
    mean = normal(50, 1, 4, seed=0)
    common = ChaosExpansion(torch.cat([mean, normal(50, 3, 1, seed=1).expand(50, 3, 4)], dim=1))
    assert curvature(common).abs().max() < 1e-14
    other = ChaosExpansion(torch.cat([mean, normal(50, 3, 4, seed=1)], dim=1))
    assert curvature(other).min() > 1e-4


def summaries(z: ChaosExpansion) -> dict[str, torch.Tensor]:
    return {
        "predictive": z.predictive(),
        "log_predictive": z.log_predictive(),
        "entropy": z.entropy(),
        "mutual_information": z.mutual_information(),
    }


def moved(z: ChaosExpansion, shift: torch.Tensor) -> ChaosExpansion:
    coefficients = z.coefficients.clone()
    coefficients[:, 0] += shift
    return ChaosExpansion(coefficients, z.quadrature_size)


@pytest.mark.parametrize("shift", [-50.0, -0.75, 3.0, 1000.0])
def test_energy_reads_a_common_shift_and_softmax_summaries_do_not(shift):
    """Eq. energy_common_shift: the energy falls by exactly the shift, and only it moves."""
    z = ChaosExpansion(normal(100, 4, 5, seed=2))
    after = moved(z, torch.tensor(shift, dtype=F64))
    tolerance = 1e-14 * max(10.0, abs(shift))  # one rounding of a logit of that size
    assert gap(after.energy(), z.energy() - shift) <= tolerance
    before = summaries(z)
    for name, value in summaries(after).items():
        assert gap(value, before[name]) <= 10 * tolerance, name


def test_a_shift_of_one_class_is_seen_by_all():
    """Negative twin: moving one class's logit moves the summaries, and the energy by less than the shift."""
    z = ChaosExpansion(normal(100, 4, 5, seed=2))
    after = moved(z, torch.tensor([1.0, 0, 0, 0, 0], dtype=F64))
    change = z.energy() - after.energy()
    assert (change > 0).all()
    assert (change < 1).all()
    before = summaries(z)
    for name, value in summaries(after).items():
        assert gap(value, before[name]) > 1e-3, name


def test_stochastic_common_shifts_move_nothing():
    """After eq. energy_second_order: a random common shift moves neither summaries nor energy."""
    z = ChaosExpansion(normal(100, 4, 5, seed=2))
    coefficients = z.coefficients.clone()
    coefficients[:, 1:] += normal(100, 3, 1, seed=4)
    after = ChaosExpansion(coefficients)
    assert torch.equal(after.energy(), z.energy())
    before = summaries(z)
    for name, value in summaries(after).items():
        assert gap(value, before[name]) < 1e-12, name
    assert gap(after.chaos_energy, z.chaos_energy) > 1
