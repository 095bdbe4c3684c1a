"""Chebyshev polynomials of the first kind and the filters written in them."""

import math
from typing import Literal

import numpy as np
import torch
from numpy.polynomial import chebyshev as numpy_chebyshev
from torch import Tensor

from dssgnn.errors import InputError
from dssgnn.validation import check_choice, check_count

__all__ = [
    "Basis",
    "FilterInit",
    "bernstein_to_chebyshev",
    "chebyshev_basis",
    "chebyshev_to_monomial",
    "frequency_response",
    "initial_filters",
    "monomial_to_chebyshev",
]

Basis = Literal["chebyshev", "monomial"]
FilterInit = Literal["lowpass", "highpass", "flat", "published", "halves"]


def chebyshev_basis(x: Tensor, degree: int) -> Tensor:
    """Evaluate ``T_0..T_degree`` at ``x [...]``; returns ``[..., degree+1]``.

    Example:
        >>> chebyshev_basis(torch.tensor([0.5]), 3)
        tensor([[ 1.0000,  0.5000, -0.5000, -1.0000]])
    """
    check_count(degree, "degree")
    values = [torch.ones_like(x), x]
    for _ in range(degree - 1):
        values.append(2 * x * values[-1] - values[-2])
    return torch.stack(values[: degree + 1], dim=-1)


def frequency_response(coefficients: Tensor, frequencies: Tensor, lambda_max: float = 2.0) -> Tensor:
    r"""The response :math:`g(\lambda) = \sum_k c_k T_k(2\lambda/\lambda_{\max} - 1)` (eq. cheby_filters).

    Args:
        coefficients: ``[..., K+1]``.
        frequencies: graph frequencies ``[F]`` in ``[0, lambda_max]``.
        lambda_max: the bound that the operator was rescaled with.

    Returns:
        ``[..., F]``.

    Example:
        >>> frequency_response(torch.tensor([0.5, -0.5]), torch.tensor([0.0, 1.0, 2.0]))
        tensor([1.0000, 0.5000, 0.0000])
    """
    basis = chebyshev_basis(2 * frequencies / lambda_max - 1, coefficients.size(-1) - 1)
    return coefficients @ basis.T


def initial_filters(
    kind: FilterInit, degrees: tuple[int, int], basis: Basis = "chebyshev"
) -> tuple[Tensor, Tensor]:
    r"""Coefficients that the low-pass and high-pass branches start from.

    The first four satisfy :math:`G_{lp} + G_{hp} = I` where the degrees agree. ``"lowpass"`` falls from 1 at
    frequency 0, ``"highpass"`` is its mirror image, ``"flat"`` starts with the identity and an empty second
    branch, ``"published"`` is the authors' start, :math:`c_k = 2^{-k}`, which *rises* with frequency on
    :math:`\tilde L`. These are responses, the same in either basis (at
    ``lambda_max = 2``). ``"halves"`` is the start of the authors' other two
    variants: :math:`c_0 = 1, c_k = 1/2` in both branches, whatever the basis.

    Args:
        kind: the name of the response.
        degrees: ``(K_lp, K_hp)``; at most 30 for a response in powers.
        basis: that the coefficients are of: :math:`T_k(\tilde L)`, or powers of :math:`\hat A = -\tilde L`.

    Returns:
        float64 tensors ``[K_lp+1]`` and ``[K_hp+1]``.

    Example:
        >>> initial_filters("published", (2, 1))
        (tensor([1.0000, 0.5000, 0.2500], dtype=torch.float64), tensor([ 0.0000, -0.5000], dtype=torch.float64))
    """
    check_choice(kind, FilterInit, "filter_init")
    low_degree, high_degree = degrees
    powers = torch.arange(max(degrees) + 1, dtype=torch.float64)
    if kind == "halves":
        start = (1 + (powers == 0).double()) / 2
        return start[: low_degree + 1].clone(), start[: high_degree + 1].clone()
    if basis == "monomial" and kind != "flat" and max(degrees) > 30:
        # Coefficients of powers that cancel each other: float32 has no digit left at degree 100.
        raise InputError(
            f"filter_init={kind!r} in powers of the operator is inexact above degree 30, got {max(degrees)}; "
            "start with 'halves' or 'flat', or use Chebyshev terms"
        )
    if kind == "flat":
        low = (powers == 0).double()
    else:
        low = (-0.5 if kind == "lowpass" else 0.5) ** powers
        if kind != "published":
            low = low / low[: low_degree + 1].abs().sum()
    high = (powers == 0).double() - low
    low, high = low[: low_degree + 1].clone(), high[: high_degree + 1].clone()
    return (low, high) if basis == "chebyshev" else (chebyshev_to_monomial(low), chebyshev_to_monomial(high))


def monomial_to_chebyshev(gamma: Tensor) -> Tensor:
    r"""Rewrite :math:`\sum_k \gamma_k \hat A^k` as Chebyshev coefficients on :math:`\tilde L = -\hat A`.

    ``gamma [K+1]`` are a GPR-GNN's weights; the result ``[K+1]`` gives the same filter at
    ``lambda_max = 2``.

    Example:
        >>> monomial_to_chebyshev(torch.tensor([0.0, 1.0], dtype=torch.float64))
        tensor([ 0., -1.], dtype=torch.float64)
    """
    coefficients = numpy_chebyshev.poly2cheb(gamma.detach().double().cpu().numpy())
    padded = np.zeros(gamma.numel())  # numpy trims trailing zeros
    padded[: len(coefficients)] = coefficients
    padded[1::2] *= -1  # T_k(-x) = (-1)^k T_k(x)
    return torch.from_numpy(padded)


def chebyshev_to_monomial(coefficients: Tensor) -> Tensor:
    r"""Rewrite a filter on :math:`\tilde L = -\hat A` in powers of :math:`\hat A`: `monomial_to_chebyshev` undone.

    Example:
        >>> chebyshev_to_monomial(torch.tensor([0.0, -1.0], dtype=torch.float64))
        tensor([0., 1.], dtype=torch.float64)
    """
    mirrored = coefficients.detach().double().cpu().numpy().copy()
    mirrored[1::2] *= -1  # T_k(-x) = (-1)^k T_k(x)
    powers = numpy_chebyshev.cheb2poly(mirrored)
    return torch.from_numpy(np.pad(powers, (0, len(mirrored) - len(powers))))


def bernstein_to_chebyshev(theta: Tensor) -> Tensor:
    r"""Rewrite BernNet's :math:`\sum_k \theta_k 2^{-K} \binom{K}{k} (2I-L)^{K-k} L^k` on :math:`\tilde L`.

    Example:
        >>> bernstein_to_chebyshev(torch.ones(3, dtype=torch.float64)).abs().round(decimals=9)
        tensor([1., 0., 0.], dtype=torch.float64)
    """
    values = theta.detach().double().cpu().numpy()
    degree = len(values) - 1

    def response(x: np.ndarray) -> np.ndarray:
        high = (x + 1) / 2  # L / 2 at L~ = x
        terms = [math.comb(degree, k) * (1 - high) ** (degree - k) * high**k for k in range(degree + 1)]
        return values @ np.stack(terms)

    nodes = numpy_chebyshev.chebpts1(degree + 1)
    return torch.from_numpy(np.linalg.solve(numpy_chebyshev.chebvander(nodes, degree), response(nodes)))
