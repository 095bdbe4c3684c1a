"""Theorem universal_approx: the constructive proof as code, the rank remark, and density."""

import numpy as np
import pytest
import torch

from dssgnn.spectral import gauss_hermite, hermite_basis
from theory.construction import build, output, positive_and_negative, shifted_by_a_constant, truncation_errors
from theory.support import F64, gap, normal


@pytest.mark.parametrize("order", [0, 1, 5, 31])
def test_the_two_inverses_of_the_proof(order):
    """Step 2: at ``S = P+1`` the matrices ``Phi`` and ``Theta`` are inverse to each other; not at ``S = P``."""
    for size, expected in ((order + 1, True), (order, False)):
        if size == 0:
            continue
        nodes, weights = gauss_hermite(size)
        theta = hermite_basis(nodes, order)
        error = gap((theta.T * weights) @ theta, torch.eye(order + 1, dtype=F64))
        assert (error < 1e-12) is expected


@pytest.mark.parametrize("order", range(6))
def test_full_rank_features_match_any_coefficients(order):
    """Theorem universal_approx, steps 2 and 3: ``S = P+1``, width ``2d(P+1)``, to 1e-8."""
    x, target = normal(8, 11, seed=order), normal(8, order + 1, 3, seed=50 + order)
    model = build(x, target)
    assert model.layers[0].in_channels == 2 * 3 * (order + 1)
    assert model.quadrature_size == order + 1
    assert gap(output(model, x), target) < 1e-8


@pytest.mark.parametrize("order", range(1, 6))
def test_other_features_or_another_activation_miss_them(order):
    """Negative twins: features that the network was not built for, and tanh in place of ReLU."""
    x, target = normal(8, 11, seed=order), normal(8, order + 1, 3, seed=50 + order)
    assert gap(output(build(x, target), normal(8, 11, seed=99)), target) > 0.1
    assert gap(output(build(x, target, activation="tanh"), x), target) > 0.1


@pytest.mark.parametrize("order", [0, 2, 5])
def test_rank_deficient_features_with_a_constant_column(order):
    """Remark rank_deficient: every target with columns in ``range([X, 1])``, to 1e-8."""
    x = torch.cat([normal(12, 3, seed=order), torch.ones(12, 1, dtype=F64)], dim=1)
    target = torch.einsum("ik,knd->ind", x, normal(4, order + 1, 2, seed=60 + order))
    assert torch.linalg.matrix_rank(x) == 4
    assert gap(output(build(x, target, shifted_by_a_constant), x), target) < 1e-8
    # Twin: the parts of Step 3 leave the range.
    assert gap(output(build(x, target, positive_and_negative), x), target) > 0.1


@pytest.mark.parametrize("order", [0, 2, 5])
def test_rank_deficient_features_without_it(order):
    """Negative twins: no constant column, and a target outside the range."""
    x = normal(12, 3, seed=order)
    inside = torch.einsum("ik,knd->ind", x, normal(3, order + 1, 2, seed=60 + order))
    for parts in (positive_and_negative, shifted_by_a_constant):
        assert gap(output(build(x, inside, parts), x), inside) > 0.1
    with_ones = torch.cat([x, torch.ones(12, 1, dtype=F64)], dim=1)
    outside = normal(12, order + 1, 2, seed=70 + order)
    assert gap(output(build(with_ones, outside, shifted_by_a_constant), with_ones), outside) > 0.1


def test_any_positive_column_does_as_well_as_the_constant_one():
    """Beyond Remark rank_deficient: a positive combination ``u`` of the features, ``V_s + c u``, suffices."""
    x = normal(12, 3, seed=3).abs()
    target = torch.einsum("ik,knd->ind", x, normal(3, 4, 2, seed=4))
    u = x.sum(dim=1)[:, None]

    def shifted(values: torch.Tensor) -> torch.Tensor:
        c = (values.abs() / u).max()
        return torch.cat([values + c * u, (c * u).expand_as(values)], dim=2)

    assert gap(output(build(x, target, shifted), x), target) < 1e-8


@pytest.mark.parametrize(("function", "last", "rate"), [(np.abs, 0.02, -0.75), (np.sign, 0.3, -0.25)])
def test_density(function, last, rate):
    """Theorem universal_approx, step 4: the error falls to 0 with P for targets that are not even smooth.

    Algebraically: ``P^-3/4`` for ``|w|`` and ``P^-1/4`` for ``sign``. The twin is the error at a fixed order,
    which does not fall.
    """
    orders = [2, 6, 14, 30, 62]
    errors = truncation_errors(function, orders)
    assert (np.diff(errors) < 0).all()
    assert errors[-1] < last
    slope = np.polyfit(np.log(np.array(orders[1:]) + 1), np.log(errors[1:]), 1)[0]
    assert slope == pytest.approx(rate, abs=0.05)
    assert truncation_errors(function, [2]).item() == errors[0] > 0.05
