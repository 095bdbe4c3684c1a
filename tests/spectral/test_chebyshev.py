"""Chebyshev polynomials, the frequency response and initial filters, and coefficient conversions."""

import math

import numpy as np
import pytest
import torch
from numpy.polynomial import chebyshev as numpy_chebyshev

from dssgnn.errors import InputError
from dssgnn.spectral import (
    bernstein_to_chebyshev,
    chebyshev_basis,
    frequency_response,
    initial_filters,
    monomial_to_chebyshev,
)

FREQUENCIES = torch.linspace(0, 2, 401, dtype=torch.float64)


def coefficients(size: int, seed: int) -> torch.Tensor:
    return torch.randn(size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("degree", [0, 1, 2, 9])
def test_basis_agrees_with_numpy(degree):
    """``T_0..T_K`` of eq. cheby_filters, against numpy and against ``cos(k arccos x)``."""
    x = FREQUENCIES - 1
    basis = chebyshev_basis(x, degree)
    assert basis.shape == (401, degree + 1)
    np.testing.assert_allclose(basis, numpy_chebyshev.chebvander(x.numpy(), degree), atol=1e-13)
    angle = torch.arange(degree + 1) * torch.arccos(x)[:, None]
    torch.testing.assert_close(basis, torch.cos(angle), rtol=0, atol=1e-12)


@pytest.mark.parametrize("lambda_max", [2.0, 1.3])
def test_frequency_response(lambda_max):
    """``g(lambda) = sum_k c_k T_k(2 lambda / lambda_max - 1)``, for a batch of filters."""
    c = coefficients(10, 0).view(2, 5)
    frequencies = FREQUENCIES * lambda_max / 2
    expected = numpy_chebyshev.chebval(2 * frequencies.numpy() / lambda_max - 1, c.T.numpy())
    np.testing.assert_allclose(frequency_response(c, frequencies, lambda_max), expected, atol=1e-13)


def test_frequency_response_depends_on_the_bound():
    """The negative twin: the wrong ``lambda_max`` gives another response."""
    c = coefficients(5, 0)
    assert (
        frequency_response(c, FREQUENCIES, 2.0) - frequency_response(c, FREQUENCIES, 1.9)
    ).abs().max() > 0.1


@pytest.mark.parametrize("degree", range(1, 13))
def test_lowpass_falls_from_one(degree):
    """``filter_init="lowpass"``: 1 at frequency 0, the only maximum, falling to about a third at 2."""
    low, _ = initial_filters("lowpass", (degree, degree))
    response = frequency_response(low, FREQUENCIES)
    assert response[0].item() == pytest.approx(1, abs=1e-14)
    assert (response[1:] < 1).all()
    assert (response[:201].diff() < 0).all()  # up to frequency 1; later a truncated series may ripple
    assert response[-1].item() == pytest.approx(1 / 3, abs=0.1)
    assert response.min() > 0.3


@pytest.mark.parametrize("degree", [1, 2, 4, 7])
def test_highpass_is_the_mirror_image(degree):
    """``filter_init="highpass"``: the low-pass response at ``2 - lambda``; it rises to 1 at frequency 2."""
    low, _ = initial_filters("lowpass", (degree, degree))
    high, _ = initial_filters("highpass", (degree, degree))
    mirrored = frequency_response(low, 2 - FREQUENCIES)
    torch.testing.assert_close(frequency_response(high, FREQUENCIES), mirrored, rtol=0, atol=1e-13)
    assert (frequency_response(high, FREQUENCIES)[-200:].diff() > 0).all()


def test_flat_starts_with_the_identity():
    low, high = initial_filters("flat", (4, 3))
    assert torch.equal(frequency_response(low, FREQUENCIES), torch.ones_like(FREQUENCIES))
    assert torch.equal(high, torch.zeros(4, dtype=torch.float64))


def test_published_numbers():
    """protocols.md 6 (g): at K=4 the branch called low-pass gives 0.69 at frequency 0 and 1.94 at 2."""
    low, high = initial_filters("published", (4, 4))
    ends = torch.tensor([0.0, 2.0], dtype=torch.float64)
    assert low.tolist() == [1, 0.5, 0.25, 0.125, 0.0625]
    assert high.tolist() == [0, -0.5, -0.25, -0.125, -0.0625]
    assert frequency_response(low, ends).tolist() == [0.6875, 1.9375]
    assert frequency_response(high, ends).tolist() == [0.3125, -0.9375]


@pytest.mark.parametrize("kind", ["lowpass", "highpass", "flat", "published"])
def test_branches_of_equal_degree_sum_to_the_identity(kind):
    """``G_lp + G_hp = I`` where the degrees agree."""
    for degree in (0, 1, 4, 6):
        low, high = initial_filters(kind, (degree, degree))
        assert low.dtype == high.dtype == torch.float64
        torch.testing.assert_close(
            frequency_response(low + high, FREQUENCIES), torch.ones_like(FREQUENCIES), rtol=0, atol=1e-14
        )


@pytest.mark.parametrize(("kind", "degrees"), [("lowpass", (4, 2)), ("published", (1, 3))])
def test_branches_of_unequal_degree_do_not(kind, degrees):
    """The negative twin: only the terms that both branches have cancel."""
    low, high = initial_filters(kind, degrees)
    assert (low.numel(), high.numel()) == (degrees[0] + 1, degrees[1] + 1)
    total = frequency_response(low, FREQUENCIES) + frequency_response(high, FREQUENCIES)
    assert (total - 1).abs().max() > 0.05


def test_refuses_an_unknown_start():
    with pytest.raises(InputError, match=r"filter_init must be one of 'lowpass', .*, got 'bandpass'"):
        initial_filters("bandpass", (4, 4))


@pytest.mark.parametrize("degree", [0, 1, 2, 5, 10, 20])
def test_monomial_conversion(degree):
    """baselines.md 5.5: ``sum_k gamma_k ahat^k`` at ``ahat = 1 - lambda``."""
    gamma = coefficients(degree + 1, degree)
    direct = sum(gamma[k] * (1 - FREQUENCIES) ** k for k in range(degree + 1))
    converted = monomial_to_chebyshev(gamma)
    assert converted.shape == gamma.shape
    torch.testing.assert_close(frequency_response(converted, FREQUENCIES), direct, rtol=0, atol=1e-12)


def test_monomial_conversion_by_the_binomial_identity():
    """``x^k = 2^(1-k) sum' C(k, (k-j)/2) T_j(x)``, the prime halving ``j = 0``; odd terms change sign."""
    gamma = coefficients(11, 3)
    expected = torch.zeros(11, dtype=torch.float64)
    for k in range(11):
        for j in range(k % 2, k + 1, 2):
            factor = 2.0 ** (1 - k) * math.comb(k, (k - j) // 2) * (0.5 if j == 0 else 1)
            expected[j] += gamma[k] * factor * (-1) ** j
    torch.testing.assert_close(monomial_to_chebyshev(gamma), expected, rtol=0, atol=1e-13)


def test_a_start_in_powers_is_the_same_response_or_refused():
    """Their terms cancel: in float32 a response of degree 100 would be off by 3."""
    x = torch.linspace(-1, 1, 201)
    for kind in ("lowpass", "highpass", "published", "flat"):
        for term, power in zip(
            initial_filters(kind, (30, 7)), initial_filters(kind, (30, 7), "monomial"), strict=True
        ):
            want = frequency_response(term, 1 + x.double()).float()
            got = sum(c * (-x) ** k for k, c in enumerate(power.float()))
            torch.testing.assert_close(got, want, rtol=0, atol=5e-6)
    for kind in ("lowpass", "highpass", "published"):
        with pytest.raises(InputError, match=f"filter_init='{kind}' in powers .* above degree 30, got 31"):
            initial_filters(kind, (4, 31), "monomial")
    assert initial_filters("flat", (200, 4), "monomial")[0].sum() == 1
    assert initial_filters("halves", (200, 4), "monomial")[0].sum() == 101


def test_monomial_conversion_keeps_trailing_zeros():
    gamma = torch.tensor([0.3, 0.0, 0.0], dtype=torch.float64)
    assert monomial_to_chebyshev(gamma).tolist() == [0.3, 0.0, 0.0]


def test_monomial_conversion_needs_the_sign_flip():
    """The negative twin: numpy's ``poly2cheb`` alone is the filter at ``2 - lambda``."""
    gamma = coefficients(4, 1)
    unflipped = torch.from_numpy(numpy_chebyshev.poly2cheb(gamma.numpy()))
    direct = sum(gamma[k] * (1 - FREQUENCIES) ** k for k in range(4))
    assert (frequency_response(unflipped, FREQUENCIES) - direct).abs().max() > 0.1


@pytest.mark.parametrize("degree", [0, 1, 2, 5, 10, 20])
def test_bernstein_conversion(degree):
    """baselines.md 5.4: ``sum_k theta_k 2^-K C(K,k) (2 - lambda)^(K-k) lambda^k``."""
    theta = coefficients(degree + 1, degree)
    direct = sum(
        theta[k] * 2.0**-degree * math.comb(degree, k) * (2 - FREQUENCIES) ** (degree - k) * FREQUENCIES**k
        for k in range(degree + 1)
    )
    converted = bernstein_to_chebyshev(theta)
    assert converted.shape == theta.shape
    torch.testing.assert_close(frequency_response(converted, FREQUENCIES), direct, rtol=0, atol=1e-12)


def test_bernstein_conversion_keeps_the_order_of_its_weights():
    """The negative twin: reversed weights are the mirrored filter, not the same one."""
    theta = coefficients(6, 2)
    forward = frequency_response(bernstein_to_chebyshev(theta), FREQUENCIES)
    reverse = frequency_response(bernstein_to_chebyshev(theta.flip(0)), FREQUENCIES)
    assert (forward - reverse).abs().max() > 0.1
    torch.testing.assert_close(reverse, forward.flip(0), rtol=0, atol=1e-12)
