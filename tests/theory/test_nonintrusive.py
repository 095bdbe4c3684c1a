"""Theorem nonintrusive_equals_intrusive: quadrature recovers product coefficients, from one size on."""

import pytest
import torch

from dssgnn.spectral import exact_size, gauss_hermite, hermite_basis, projection_tables, triple_products
from theory.support import F64, gap, normal

ORDERS = [(p, g) for p in range(6) for g in range(5)]


def intrusive(a: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
    """Lemma product_triple: ``(alpha H)_m = sum_rn a_r H_n c_rnm``."""
    return torch.einsum("r,n...,rnm->m...", a, h, triple_products(len(a) - 1, len(h) - 1))


def nonintrusive(a: torch.Tensor, h: torch.Tensor, size: int) -> torch.Tensor:
    """``sum_s mu_s alpha(w_s) H(w_s) Psi_m(w_s)`` with the tables that a layer uses."""
    evaluation, projection = projection_tables(len(h) - 1, size, F64, torch.device("cpu"))
    alpha = hermite_basis(gauss_hermite(size)[0], len(a) - 1) @ a
    return torch.tensordot(projection * alpha, torch.tensordot(evaluation, h, 1), 1)


@pytest.mark.parametrize(("order", "gate_order"), ORDERS)
def test_exact_from_the_threshold_and_not_below(order, gate_order):
    """Theorem nonintrusive_equals_intrusive, ``S >= ceil((P_g+2P+1)/2)``; the twin is every smaller ``S``."""
    a, h = normal(gate_order + 1, seed=order), normal(order + 1, 4, seed=100 + gate_order)
    expected = intrusive(a, h)
    threshold = exact_size(order, gate_order)
    for size in range(threshold, threshold + 4):
        assert gap(nonintrusive(a, h, size), expected) < 1e-12
    for size in range(1, threshold):
        assert gap(nonintrusive(a, h, size), expected) > 1e-3


@pytest.mark.parametrize(("order", "gate_order"), [c for c in ORDERS if exact_size(*c) > 1])
def test_the_first_missed_coefficients_are_the_top_ones(order, gate_order):
    """One node below, only coefficients with a product of degree ``2S`` or more are wrong."""
    size = exact_size(order, gate_order) - 1
    a, h = normal(gate_order + 1, seed=order), normal(order + 1, seed=100 + gate_order)
    error = (nonintrusive(a, h, size) - intrusive(a, h)).abs()
    touched = gate_order + order + torch.arange(order + 1) >= 2 * size
    assert (error[touched] > 1e-6).all()
    assert (error[~touched] < 1e-12).all()


def test_threshold_is_for_generic_coefficients():
    """The condition is sufficient: a gate and a state of lower true degree need fewer nodes."""
    a, h = torch.tensor([0.7, 0.0, 0.0], dtype=F64), normal(4, seed=0)
    assert exact_size(3, 2) == 5
    assert gap(nonintrusive(a, h, 4), intrusive(a, h)) < 1e-12
    assert gap(nonintrusive(a, h, 3), intrusive(a, h)) > 1e-2
