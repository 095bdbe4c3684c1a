"""Hermite polynomials of the standard normal variable, against numpy, chaospy and exact integers."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from numpy.polynomial import hermite_e

from dssgnn.spectral import gauss_hermite, hermite_basis, triple_product, triple_products

POINTS = torch.linspace(-4, 4, 33, dtype=torch.float64)


def he_coefficients(order: int) -> list[list[int]]:
    """Integer monomial coefficients of ``He_0..He_order`` by eq. hermite_recurrence."""
    rows = [[1], [0, 1]]
    for n in range(1, order):
        following = [0, *rows[n]]
        for k, value in enumerate(rows[n - 1]):
            following[k] -= n * value
        rows.append(following)
    return rows[: order + 1]


def exact_expectation(*polynomials: list[int]) -> int:
    """``E`` of a product of integer polynomials of a standard normal variable, without rounding."""
    product = [1]
    for factor in polynomials:
        following = [0] * (len(product) + len(factor) - 1)
        for i, a in enumerate(product):
            for j, b in enumerate(factor):
                following[i + j] += a * b
        product = following
    return sum(c * math.prod(range(k - 1, 0, -2)) for k, c in enumerate(product) if k % 2 == 0)


@pytest.mark.parametrize("order", [0, 1, 2, 7, 20])
def test_basis_is_numpys_he_over_root_factorial(order):
    """Eq. orthonormal_hermite, against numpy's probabilists' Vandermonde matrix."""
    reference = hermite_e.hermevander(POINTS.numpy(), order)
    reference = reference / np.sqrt([float(math.factorial(n)) for n in range(order + 1)])
    np.testing.assert_allclose(hermite_basis(POINTS, order).numpy(), reference, rtol=0, atol=1e-10)


def test_basis_is_not_the_physicists_one():
    """The negative twin of the convention: numpy's ``H_n`` differs already at order 1."""
    physicist = np.polynomial.hermite.hermvander(POINTS.numpy(), 1)[:, 1]
    assert np.abs(hermite_basis(POINTS, 1)[:, 1].numpy() - physicist).max() > 1


def test_first_polynomials():
    """The four polynomials written out below eq. rodrigues."""
    w = POINTS
    expected = torch.stack([w**0, w, (w**2 - 1) / math.sqrt(2), (w**3 - 3 * w) / math.sqrt(6)], dim=-1)
    torch.testing.assert_close(hermite_basis(w, 3), expected, rtol=0, atol=1e-13)


def test_basis_agrees_with_chaospy():
    """chaospy: ``physicist=False`` is the probabilists' convention, ``normed=True`` divides by sqrt(n!)."""
    chaospy = pytest.importorskip("chaospy")
    reference = chaospy.expansion.hermite(8, mu=0, sigma=1, physicist=False, normed=True)(POINTS.numpy())
    np.testing.assert_allclose(hermite_basis(POINTS, 8).numpy(), reference.T, rtol=1e-11, atol=1e-11)


def test_basis_keeps_the_shape_of_its_points_and_is_differentiable():
    """``Psi_n' = sqrt(n) Psi_{n-1}``, at points of any shape."""
    omega = POINTS[:32].reshape(2, 4, 4).clone().requires_grad_()
    values = hermite_basis(omega, 5)
    assert values.shape == (2, 4, 4, 6)
    (slope,) = torch.autograd.grad(values[..., 5].sum(), omega)
    torch.testing.assert_close(slope, math.sqrt(5) * values[..., 4].detach())


def test_eigenfunctions_of_ornstein_uhlenbeck():
    """Eq. ou_operator: ``Psi'' - w Psi' = -n Psi``."""
    psi = hermite_basis(POINTS, 9)
    for n in range(2, 10):
        left = math.sqrt(n * (n - 1)) * psi[:, n - 2] - POINTS * math.sqrt(n) * psi[:, n - 1]
        torch.testing.assert_close(left, -n * psi[:, n], rtol=1e-10, atol=1e-9)


def test_triple_products_against_exact_integers():
    """Lemma product_triple: the closed form is the exact integral, in rational arithmetic."""
    he = he_coefficients(8)
    for r in range(9):
        for n in range(9):
            for m in range(9):
                integral = exact_expectation(he[r], he[n], he[m])
                norm = math.factorial(r) * math.factorial(n) * math.factorial(m)
                expected = math.sqrt(Fraction(integral**2, norm))
                assert triple_product(r, n, m) == pytest.approx(expected, rel=1e-15, abs=0)


def test_triple_products_against_quadrature():
    """Lemma product_triple: a rule of 64 nodes integrates every product of three orders up to 12."""
    nodes, weights = gauss_hermite(64)
    psi = hermite_basis(nodes, 12)
    terms = torch.einsum("s,sr,sn,sm->rnms", weights, psi, psi, psi)
    # Terms in the thousands cancel; added exactly, what is left is their own rounding, whatever the machine.
    sums = [math.fsum(each) for each in terms.flatten(0, 2).tolist()]
    table = torch.tensor(sums, dtype=torch.float64).view(13, 13, 13)
    torch.testing.assert_close(table, triple_products(12, 12), rtol=1e-12, atol=1e-12)
    odd = sum(torch.meshgrid(*[torch.arange(13)] * 3, indexing="ij")) % 2 == 1
    assert not table[odd].any()  # nodes and orders are symmetric to the last bit


def test_quadrature_below_the_degree_misses_a_triple_product():
    """The negative twin: a rule of 6 nodes (degree 11) misses ``c_{444}`` of degree 12 only by its top term."""
    nodes, weights = gauss_hermite(6)
    psi = hermite_basis(nodes, 4)
    error = (weights * psi[:, 4] ** 3).sum().item() - triple_product(4, 4, 4)
    assert error == pytest.approx(-math.factorial(6) / math.factorial(4) ** 1.5, rel=1e-12)


def test_triple_products_are_sparse():
    """Lemma product_triple: zero unless ``|r-n| <= m <= r+n`` with ``r+n+m`` even, and positive there."""
    table = triple_products(7, 9)
    assert table.shape == (8, 10, 10)
    assert table.dtype == torch.float64
    r, n, m = torch.meshgrid(torch.arange(8), torch.arange(10), torch.arange(10), indexing="ij")
    inside = ((r - n).abs() <= m) & (m <= r + n) & ((r + n + m) % 2 == 0)
    assert (table[inside] > 0).all()
    assert (table[~inside] == 0).all()


def test_triple_products_with_order_zero_are_orthonormality():
    """``c_{0nm} = delta_nm``, and ``c`` is symmetric in its three arguments."""
    table = triple_products(6, 6)
    assert torch.equal(table[0], torch.eye(7, dtype=torch.float64))
    assert torch.equal(table, table.permute(1, 0, 2))
    assert torch.equal(table, table.permute(2, 1, 0))
