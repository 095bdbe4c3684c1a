"""Gauss-Hermite quadrature for the standard normal density (weights sum to 1)."""

import warnings
from functools import lru_cache

import numpy as np
import torch
from scipy.linalg import eigh_tridiagonal
from torch import Tensor

from dssgnn.errors import InputError
from dssgnn.spectral.hermite import hermite_basis
from dssgnn.validation import check_count

__all__ = ["exact_size", "gauss_hermite", "projection_tables", "resolve_size"]


@lru_cache
def _rule(size: int) -> tuple[np.ndarray, np.ndarray]:
    nodes = eigh_tridiagonal(np.zeros(size), np.sqrt(np.arange(1.0, size)), eigvals_only=True)
    # Exact symmetry first; then Newton steps on Psi_size, whose derivative is sqrt(size) Psi_{size-1}.
    nodes = (nodes - nodes[::-1]) / 2
    for _ in range(3):
        values = hermite_basis(torch.from_numpy(nodes), size).numpy()
        nodes = nodes - values[:, size] / (np.sqrt(size) * values[:, size - 1])
    nodes = (nodes - nodes[::-1]) / 2
    # Christoffel numbers: a sum of positive terms, accurate where the eigenvector formula is not.
    weights = 1.0 / (hermite_basis(torch.from_numpy(nodes), size - 1).numpy() ** 2).sum(axis=1)
    return nodes, weights / weights.sum()


def gauss_hermite(
    size: int, dtype: torch.dtype = torch.float64, device: torch.device | str | None = None
) -> tuple[Tensor, Tensor]:
    r"""The rule :math:`\{(\omega_s, \mu_s)\}` with :math:`\sum_s \mu_s f(\omega_s) \approx E[f(\omega)]`.

    Exact for polynomials of degree up to ``2 size - 1`` (eq. gauss_hermite), nodes ascending.

    Args:
        size: number of nodes ``S``, 1 to 128.
        dtype: of the result; the computation is float64.
        device: of the result.

    Returns:
        ``nodes [S]`` and ``weights [S]``.

    Raises:
        InputError: if ``size`` is out of range.

    Example:
        >>> nodes, weights = gauss_hermite(3)
        >>> nodes
        tensor([-1.7321,  0.0000,  1.7321], dtype=torch.float64)
        >>> weights
        tensor([0.1667, 0.6667, 0.1667], dtype=torch.float64)
    """
    nodes, weights = _rule(_check_size(size))
    return torch.tensor(nodes, dtype=dtype, device=device), torch.tensor(weights, dtype=dtype, device=device)


def exact_size(chaos_order: int, gate_order: int = 0) -> int:
    """The smallest ``S`` that integrates every product of a gate, a state and a test function exactly.

    ``S >= ceil((P_g + 2P + 1) / 2)`` (Theorem nonintrusive_equals_intrusive).

    Example:
        >>> exact_size(2), exact_size(2, gate_order=2)
        (3, 4)
    """
    return (gate_order + 2 * chaos_order + 2) // 2


def resolve_size(size: int | None, chaos_order: int, gate_order: int = 0, *, warn: bool = True) -> int:
    """The number of nodes to use: ``max(4, exact_size(...))`` where none is asked for; a smaller one warns.

    Raises:
        InputError: if ``size`` is out of range.
    """
    needed = exact_size(chaos_order, gate_order)
    if size is None:
        return max(4, needed)
    if _check_size(size) < needed and warn:
        warnings.warn(
            f"quadrature_size={size} is less than the {needed} nodes that integrate chaos_order={chaos_order} "
            f"and gate_order={gate_order} exactly: higher orders alias onto lower ones",
            stacklevel=3,
        )
    return size


def _check_size(size: int) -> int:
    if check_count(size, "quadrature_size", minimum=1) > 128:
        raise InputError(f"quadrature_size must be at most 128, got {size}")
    return size


@lru_cache(maxsize=256)
def projection_tables(
    chaos_order: int, size: int, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    r"""What a layer needs of the chaos axis, once for each type and device. Shared: do not write to them.

    Returns:
        ``evaluation [S, P+1]`` with entries :math:`\Psi_n(\omega_s)`, and ``projection [P+1, S]`` with
        entries :math:`\mu_s \Psi_m(\omega_s)`.
    """
    # Kept for the whole process: ordinary tensors, also when first asked for under inference_mode.
    with torch.inference_mode(False):
        nodes, weights = gauss_hermite(size)
        evaluation = hermite_basis(nodes, chaos_order)
        projection = (evaluation * weights[:, None]).T.contiguous()
        return evaluation.to(device, dtype), projection.to(device, dtype)
