"""Proposition projection_error: truncation plus quadrature error bounds the error of the discrete projection."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.polynomial import hermite_e

from dssgnn import DSSConv
from dssgnn.spectral import gauss_hermite, hermite_basis
from theory.support import F64, gap, normal, set_parameters
from theory.support_integrals import gaussian_grid

NO_EDGES = torch.empty(2, 0, dtype=torch.long)
ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh, "abs": torch.abs}
CASES = [(order, size) for order in (1, 2, 4) for size in (order + 1, order + 4)]


@torch.no_grad()
def discrete(h: torch.Tensor, size: int, activation: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """The coefficients ``Pi_{P,S} sigma(H)`` of states ``h [N, P+1]``, by a layer that does nothing else."""
    conv = DSSConv(
        1, 1, h.size(1) - 1, filter_orders=(0, 0), quadrature_size=size, activation=activation
    ).double()
    set_parameters(conv, low_coefficients=1, low_gates=1, high_gates=0, weight=1)
    return conv(h[:, :, None], NO_EDGES)[:, :, 0]


class Terms:
    """Every term of the proposition for one polynomial state, integrated piecewise between its real roots."""

    def __init__(self, h: torch.Tensor, projected: torch.Tensor, activation) -> None:
        factorials = np.cumprod([1.0, *range(1, len(h))])
        roots = hermite_e.hermeroots(h.numpy() / np.sqrt(factorials))
        points, weights = (
            torch.from_numpy(part) for part in gaussian_grid(roots[np.abs(roots.imag) < 1e-9].real)
        )
        basis = hermite_basis(points, len(h) - 1)
        values = activation(basis @ h)
        exact = (weights * values) @ basis

        def norm(x: torch.Tensor) -> float:
            return (weights @ x.square()).sqrt().item()

        self.exact = exact
        self.total = norm(values - basis @ projected)
        self.truncation = norm(values - basis @ exact)
        self.quadrature = (exact - projected).norm().item()
        self.size = norm(values)


def terms(order: int, size: int, name: str) -> list[Terms]:
    h = normal(20, order + 1, seed=order)
    projected = discrete(h, size, ACTIVATIONS[name])
    return [Terms(a, b, ACTIVATIONS[name]) for a, b in zip(h, projected, strict=True)]


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize(("order", "size"), CASES)
def test_total_is_bounded_by_both_terms(order, size, name):
    """Proposition projection_error, every term computed."""
    for t in terms(order, size, name):
        assert t.total <= t.truncation + t.quadrature + 1e-12
        # The two errors are orthogonal, which the triangle inequality does not use.
        assert t.total**2 == pytest.approx(t.truncation**2 + t.quadrature**2, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize(("order", "size"), CASES)
def test_neither_term_alone_bounds_it(order, size, name):
    """Negative twin: without its quadrature term, or without its truncation term, the bound fails."""
    every = terms(order, size, name)
    assert any(t.total > t.truncation * (1 + 1e-6) for t in every)
    assert any(t.total > t.quadrature * (1 + 1e-6) for t in every)


def test_truncation_is_the_tail_of_the_coefficients():
    """Proof: ``||Q - Pi_P Q||^2 = sum_{n>P} Q_n^2``; the reference integrals agree with closed forms of ``|w|``."""
    h = torch.tensor([0.0, 1.0, 0.0], dtype=F64)
    t = Terms(h, torch.zeros(3, dtype=F64), torch.abs)
    root = (2 / torch.pi) ** 0.5
    assert gap(t.exact, torch.tensor([root, 0, root / 2**0.5], dtype=F64)) < 1e-13
    assert t.total == pytest.approx(1, abs=1e-13)
    assert t.truncation**2 == pytest.approx(1 - 3 / torch.pi, abs=1e-13)


@pytest.mark.parametrize(("order", "power"), [(1, 2), (2, 2), (3, 2), (1, 3), (2, 3), (4, 1)])
def test_low_degree_polynomials_have_no_quadrature_error(order, power):
    """Proposition projection_error, last sentence: exact where ``deg(Q) + P <= 2S - 1``; the twin is one node less."""

    def activation(x: torch.Tensor) -> torch.Tensor:
        return x**power

    size = ((power + 1) * order) // 2 + 1
    assert 2 * size - 1 >= (power + 1) * order > 2 * (size - 1) - 1
    h = normal(20, order + 1, seed=order)
    projected = discrete(h, size, activation)
    for a, b in zip(h, projected, strict=True):
        t = Terms(a, b, activation)
        assert t.quadrature < 1e-10 * max(1, t.size)
    if size - 1 > order:  # the layer itself needs P+1 nodes
        fewer = discrete(h, size - 1, activation)
    else:
        with pytest.warns(UserWarning, match="higher orders alias"):
            fewer = discrete(h, size - 1, activation)
    assert max(Terms(a, b, activation).quadrature for a, b in zip(h, fewer, strict=True)) > 0.1


def test_more_nodes_shrink_the_quadrature_error_and_leave_the_truncation():
    """Proof: the truncation does not depend on S; the quadrature term goes with the rule."""
    few, many = terms(2, 4, "tanh"), terms(2, 48, "tanh")
    for a, b in zip(few, many, strict=True):
        assert b.truncation == pytest.approx(a.truncation, rel=1e-12)
        assert b.quadrature < 0.1 * a.quadrature


def test_layer_is_the_discrete_projection():
    """The layer used above is eq. dss_projection_update, written out."""
    h = normal(20, 3, seed=9)
    nodes, weights = gauss_hermite(5)
    basis = hermite_basis(nodes, 2)
    expected = (weights * torch.relu(h @ basis.T)) @ basis
    assert gap(discrete(h, 5, torch.relu), expected) < 1e-14
