"""The Gauss-Hermite rule for the standard normal density."""

import math

import numpy as np
import pytest
import torch
from numpy.polynomial import hermite_e

from dssgnn.errors import InputError
from dssgnn.nn import DSSConv
from dssgnn.spectral import exact_size, gauss_hermite, hermite_basis, projection_tables

SIZES = [1, 2, 3, 4, 7, 16, 33, 64, 128]


def gram(size: int, order: int) -> torch.Tensor:
    """``sum_s mu_s Psi_m(w_s) Psi_n(w_s)`` for ``m, n <= order``."""
    nodes, weights = gauss_hermite(size)
    basis = hermite_basis(nodes, order)
    return (basis * weights[:, None]).T @ basis


def test_orthonormality_within_the_degree():
    """Appendix chaos_background: ``|E[Psi_m Psi_n] - delta| < 1e-12`` for ``m+n <= 2S-1``, S = 1..64."""
    for size in range(1, 65):
        order = 2 * size - 1
        sums = torch.arange(order + 1)[:, None] + torch.arange(order + 1)
        error = (gram(size, order) - torch.eye(order + 1, dtype=torch.float64)).abs()
        assert error[sums <= 2 * size - 1].max() < 1e-12, size


def test_orthonormality_stops_at_the_degree():
    """The negative twin: at ``m = n = S`` the rule sees ``Psi_S = 0`` where the integral is 1."""
    for size in range(1, 65):
        assert abs(gram(size, size)[size, size].item()) < 1e-12, size


@pytest.mark.parametrize("size", SIZES)
def test_nodes_and_weights(size):
    """Eq. gauss_hermite: ascending symmetric roots of ``He_S``, positive weights that sum to 1."""
    nodes, weights = gauss_hermite(size)
    assert nodes.shape == weights.shape == (size,)
    assert (nodes.diff() > 0).all()
    assert torch.equal(nodes, -nodes.flip(0))
    assert (weights > 0).all()
    assert abs(weights.sum().item() - 1) < 1e-14
    basis = hermite_basis(nodes, size)
    newton = basis[:, size] / (math.sqrt(size) * basis[:, size - 1])
    assert newton.abs().max() < 1e-14 * max(1.0, nodes.abs().max().item())


@pytest.mark.parametrize("size", SIZES)
def test_agrees_with_numpy(size):
    """numpy's ``hermegauss`` has the probabilists' nodes; its weights sum to sqrt(2 pi)."""
    nodes, weights = gauss_hermite(size)
    reference_nodes, reference_weights = hermite_e.hermegauss(size)
    np.testing.assert_allclose(nodes.numpy(), reference_nodes, rtol=1e-13, atol=1e-14)
    # numpy's outermost weights of a large rule are the less accurate ones.
    np.testing.assert_allclose(weights.numpy(), reference_weights / math.sqrt(2 * math.pi), rtol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 4, 12])
def test_agrees_with_chaospy(size):
    """chaospy counts the rule by its order ``S - 1``; nodes ``[1, S]``, weights of the density itself."""
    chaospy = pytest.importorskip("chaospy")
    nodes, weights = gauss_hermite(size)
    reference_nodes, reference_weights = chaospy.quadrature.gaussian(size - 1, chaospy.Normal(0, 1))
    np.testing.assert_allclose(nodes.numpy(), reference_nodes[0], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(weights.numpy(), reference_weights, rtol=1e-9)


@pytest.mark.parametrize("size", [1, 2, 4, 16, 64])
def test_moments(size):
    """``E[w^k] = (k-1)!!`` for even ``k`` and 0 for odd, up to degree ``2S-1``; the next one is missed."""
    nodes, weights = gauss_hermite(size)
    for k in range(0, min(2 * size, 60), 2):
        moment = float(math.prod(range(k - 1, 0, -2)))
        assert (weights * nodes**k).sum().item() == pytest.approx(moment, rel=1e-12)
        scale = (weights * nodes.abs() ** (k + 1)).sum().item()
        assert abs((weights * nodes ** (k + 1)).sum().item()) <= 1e-14 * scale
    if size <= 16:  # the error at degree 2S is S!, here relative to (2S-1)!!
        missed = float(math.prod(range(2 * size - 1, 0, -2))) - (weights * nodes ** (2 * size)).sum().item()
        assert missed == pytest.approx(math.factorial(size), rel=1e-9)


def test_published_rule_aliases_orders_above_three():
    """At the roots of ``He_4``: ``Psi_4 = 0``, ``Psi_5 = -0.894 Psi_3``, ``Psi_6 = -0.632 Psi_2``."""
    psi = hermite_basis(gauss_hermite(4)[0], 6)
    assert psi[:, 4].abs().max() < 1e-14
    torch.testing.assert_close(psi[:, 5], -math.sqrt(4 / 5) * psi[:, 3], rtol=0, atol=1e-13)
    torch.testing.assert_close(psi[:, 6], -math.sqrt(2 / 5) * psi[:, 2], rtol=0, atol=1e-13)
    assert (math.sqrt(4 / 5), math.sqrt(2 / 5)) == pytest.approx((0.894, 0.632), abs=5e-4)


def test_five_nodes_do_not_alias_order_four():
    """The negative twin: one node more and ``Psi_4`` is alive."""
    assert hermite_basis(gauss_hermite(5)[0], 4)[:, 4].abs().max() > 0.5


def test_the_alias_reaches_the_layer():
    """A linear layer of order 6 on 4 nodes warns, kills order 4 and reads order 6 as order 2."""
    with pytest.warns(UserWarning, match="quadrature_size=4 is less than the 7 nodes"):
        conv = DSSConv(1, 1, 6, filter_orders=(0, 0), quadrature_size=4, activation=None).double()
    with torch.no_grad():
        conv.low_coefficients.fill_(1)
        conv.low_gates.fill_(1)
        conv.high_gates.zero_()
        conv.weight.fill_(1)
    out = conv(torch.eye(7, dtype=torch.float64)[:, :, None], torch.empty(2, 0, dtype=torch.long))[:, :, 0]
    assert out[4].abs().max() < 1e-14
    torch.testing.assert_close(out[6], -math.sqrt(2 / 5) * out[2], rtol=0, atol=1e-13)
    assert abs(out[2, 2].item() - 1) < 1e-13


def test_exact_size_is_the_papers_threshold():
    """``S >= ceil((P_g + 2P + 1)/2)``: the smallest with ``2S - 1 >= P_g + 2P``."""
    for order in range(9):
        for gate_order in range(5):
            size = exact_size(order, gate_order)
            assert size == math.ceil((gate_order + 2 * order + 1) / 2)
            assert 2 * size - 1 >= gate_order + 2 * order > 2 * (size - 1) - 1


def test_projection_tables():
    """Evaluation ``Psi_n(w_s)`` and projection ``mu_s Psi_m(w_s)``: a left inverse where the rule is exact."""
    nodes, weights = gauss_hermite(5)
    evaluation, projection = projection_tables(3, 5, torch.float64, torch.device("cpu"))
    torch.testing.assert_close(evaluation, hermite_basis(nodes, 3), rtol=0, atol=0)
    torch.testing.assert_close(projection, (evaluation * weights[:, None]).T, rtol=0, atol=0)
    torch.testing.assert_close(projection @ evaluation, torch.eye(4, dtype=torch.float64))


def test_asks_for_a_type_and_refuses_sizes_out_of_range():
    nodes, weights = gauss_hermite(6, dtype=torch.float32)
    assert nodes.dtype == weights.dtype == torch.float32
    for size in (0, -1, 129, 2.0):
        with pytest.raises(InputError, match=f"quadrature_size must be .*, got {size}"):
            gauss_hermite(size)
