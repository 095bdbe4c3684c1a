"""Theorem universal_approx, its rate: coefficients and tails of entire targets fall exponentially."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from theory.construction import coefficients, truncation_errors
from theory.support import F64, gap


@dataclass(frozen=True)
class Entire:
    """A centred entire target with its growth ``|g(z)| <= A exp(a |z|^2)`` and its chaos coefficients."""

    a: float
    bound: float
    coefficient: Callable[[int], float]
    value: Callable[[np.ndarray], np.ndarray]


def exponential(c: float, a: float) -> Entire:
    """``exp(c w)``: ``c|z| <= a|z|^2 + c^2/(4a)``, coefficients ``exp(c^2/2) c^n / sqrt(n!)``."""
    mean = math.exp(c * c / 2)
    bound = math.exp(c * c / (4 * a)) + mean
    return Entire(
        a,
        bound,
        lambda n: mean * math.exp(n * math.log(c) - math.lgamma(n + 1) / 2),
        lambda w: np.exp(c * w) - mean,
    )


def gaussian(a: float) -> Entire:
    """``exp(a w^2)``: its growth is its own; its squared coefficients are ``alpha^n`` up to a power of ``n``."""
    mean = 1 / math.sqrt(1 - 2 * a)

    def coefficient(n: int) -> float:
        if n % 2:
            return 0.0
        log = n / 2 * math.log(a / (1 - 2 * a)) + math.lgamma(n + 1) / 2 - math.lgamma(n // 2 + 1)
        return mean * math.exp(log)

    return Entire(a, 1 + mean, coefficient, lambda w: np.exp(a * w**2) - mean)


TARGETS = {
    "exp(w/2)": exponential(0.5, 0.1),
    "exp(w)": exponential(1.0, 0.2),
    "exp(0.05w^2)": gaussian(0.05),
    "exp(0.15w^2)": gaussian(0.15),
    "exp(0.24w^2)": gaussian(0.24),
}
ORDERS = 400


def coefficient_bound(a: float, bound: float, n: np.ndarray) -> np.ndarray:
    """The right side of eq. coeff_bound."""
    alpha = 2 * a / (1 - 2 * a)
    return bound**2 * math.e * np.sqrt(2 * math.pi * n) / (1 - 2 * a) * alpha**n


def tail_constant(a: float, bound: float, beta: float) -> float:
    """``C_tr`` of eq. approx_truncation_claims, from step 4 of its proof with ``eta = beta^2``."""
    alpha, eta = 2 * a / (1 - 2 * a), beta**2
    n = np.arange(1, 100_000)
    supremum = (np.sqrt(n) * (alpha / eta) ** n).max()
    return math.sqrt(bound**2 * math.e * math.sqrt(2 * math.pi) * supremum / (1 - 2 * a) * eta / (1 - eta))


def squares(target: Entire) -> np.ndarray:
    """``c_n^2`` for ``n = 1..ORDERS``."""
    return np.array([target.coefficient(n) ** 2 for n in range(1, ORDERS + 1)])


@pytest.mark.parametrize("name", ["exp(w/2)", "exp(w)", "exp(0.05w^2)", "exp(0.15w^2)"])
def test_closed_form_coefficients(name):
    """The closed forms that the two tests below stand on, against integration (eq. hermite_generating)."""
    target = TARGETS[name]
    measured = coefficients(target.value, 20)
    assert abs(measured[0].item()) < 1e-12
    expected = torch.tensor([target.coefficient(n) for n in range(1, 21)], dtype=F64)
    assert gap(measured[1:], expected) < 1e-10


@pytest.mark.parametrize("name", TARGETS)
def test_coefficient_bound(name):
    """Eq. coeff_bound for every ``n`` up to 400."""
    target = TARGETS[name]
    assert (squares(target) <= coefficient_bound(target.a, target.bound, np.arange(1, ORDERS + 1))).all()


def test_coefficient_bound_needs_the_growth_it_assumes():
    """Negative twin: ``exp(0.15 w^2)`` breaks the bound of any smaller ``a``; the rate ``alpha`` is sharp."""
    target, n = TARGETS["exp(0.15w^2)"], np.arange(1, ORDERS + 1)
    assert (squares(target) > coefficient_bound(0.14, target.bound, n)).any()
    ratio = squares(target)[1::2] / (0.3 / 0.7) ** n[1::2]
    np.testing.assert_allclose(ratio[-1], 1 / 0.7 / np.sqrt(math.pi * ORDERS / 2), rtol=1e-2)


@pytest.mark.parametrize("name", TARGETS)
def test_truncation_bound(name):
    """Eq. approx_truncation_claims: ``||Y - Y_P|| <= C_tr beta^P`` for several ``beta > sqrt(alpha)``."""
    target = TARGETS[name]
    root = math.sqrt(2 * target.a / (1 - 2 * target.a))
    tails = np.sqrt(np.cumsum(squares(target)[::-1])[::-1])  # tails[P] = error at order P
    orders = np.arange(ORDERS)
    for fraction in (0.1, 0.5, 0.9):
        beta = root + fraction * (1 - root)
        assert (tails <= tail_constant(target.a, target.bound, beta) * beta**orders).all()


def test_truncation_bound_of_the_network():
    """Eq. approx_truncation_claims for the built network itself, integrated over ``w``."""
    target, orders = TARGETS["exp(0.15w^2)"], [1, 2, 4, 8, 12]
    errors = truncation_errors(target.value, orders)
    beta = 0.5 * (1 + math.sqrt(0.3 / 0.7))
    assert (errors <= tail_constant(0.15, target.bound, beta) * beta ** np.array(orders)).all()
    tails = [math.sqrt(squares(target)[order:].sum()) for order in orders]
    np.testing.assert_allclose(errors, tails, rtol=1e-6)


def test_exponential_rate_needs_an_entire_target():
    """Negative twin: no ``C beta^P`` that holds for ``|w|`` up to order 10 holds to order 120."""
    c = coefficients(np.abs, 120).numpy()
    tails = np.sqrt(1 - np.cumsum(c**2))  # E|w|^2 = 1
    orders = np.arange(121)
    for beta in (0.5, 0.7, 0.9):
        constant = (tails[:11] / beta ** orders[:11]).max()
        assert (tails[11:] > constant * beta ** orders[11:]).any()
    entire = TARGETS["exp(0.15w^2)"]
    tails = np.sqrt(np.cumsum(squares(entire)[::-1])[::-1])[:121]
    assert (tails[11:] <= (tails[:11] / 0.7 ** orders[:11]).max() * 0.7 ** orders[11:]).all()
