"""Orthonormal Hermite polynomials of a standard normal variable (probabilists' convention)."""

import math

import torch
from torch import Tensor

from dssgnn.validation import check_count

__all__ = ["hermite_basis", "triple_product", "triple_products"]


def hermite_basis(omega: Tensor, order: int) -> Tensor:
    r"""Evaluate :math:`\Psi_n = \mathrm{He}_n / \sqrt{n!}` (eq. orthonormal_hermite) for ``n = 0..order``.

    The recurrence is that of eq. hermite_recurrence, normalised, so that it neither overflows nor cancels:
    :math:`\sqrt{n+1}\,\Psi_{n+1} = \omega\,\Psi_n - \sqrt{n}\,\Psi_{n-1}`.

    Args:
        omega: points of any shape ``[...]``.
        order: the chaos order ``P``.

    Returns:
        Values ``[..., P+1]``.

    Example:
        >>> hermite_basis(torch.tensor([0.0, 2.0]), 2)
        tensor([[ 1.0000,  0.0000, -0.7071],
                [ 1.0000,  2.0000,  2.1213]])
    """
    check_count(order, "order")
    values = [torch.ones_like(omega)]
    for n in range(order):
        following = omega * values[n]
        if n > 0:
            following = following - math.sqrt(n) * values[n - 1]
        values.append(following / math.sqrt(n + 1))
    return torch.stack(values, dim=-1)


def triple_product(r: int, n: int, m: int) -> float:
    r"""The constant :math:`c_{rnm} = E[\Psi_r \Psi_n \Psi_m]` in closed form (Lemma product_triple).

    With :math:`g = (r+n+m)/2` it is :math:`\sqrt{r!\,n!\,m!} / ((g-r)!\,(g-n)!\,(g-m)!)`, and zero where
    ``r+n+m`` is odd or the triangle inequality fails.

    Example:
        >>> triple_product(1, 1, 2) == math.sqrt(2)
        True
        >>> triple_product(1, 1, 1)
        0.0
    """
    half, odd = divmod(r + n + m, 2)
    if odd or half < max(r, n, m):
        return 0.0
    f = math.factorial
    return math.sqrt(f(r) * f(n) * f(m) / (f(half - r) * f(half - n) * f(half - m)) ** 2)


def triple_products(gate_order: int, chaos_order: int) -> Tensor:
    r"""All :math:`c_{rnm}` with ``r <= P_g`` and ``n, m <= P`` as a float64 tensor ``[P_g+1, P+1, P+1]``."""
    orders = range(chaos_order + 1)
    table = [[[triple_product(r, n, m) for m in orders] for n in orders] for r in range(gate_order + 1)]
    return torch.tensor(table, dtype=torch.float64)
