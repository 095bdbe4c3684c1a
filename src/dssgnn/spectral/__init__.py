"""The two spectral axes as pure functions: Hermite chaos and Chebyshev graph frequency."""

from dssgnn.spectral.chebyshev import (
    bernstein_to_chebyshev,
    chebyshev_basis,
    chebyshev_to_monomial,
    frequency_response,
    initial_filters,
    monomial_to_chebyshev,
)
from dssgnn.spectral.hermite import hermite_basis, triple_product, triple_products
from dssgnn.spectral.quadrature import exact_size, gauss_hermite, projection_tables, resolve_size

__all__ = [
    "bernstein_to_chebyshev",
    "chebyshev_basis",
    "chebyshev_to_monomial",
    "exact_size",
    "frequency_response",
    "gauss_hermite",
    "hermite_basis",
    "initial_filters",
    "monomial_to_chebyshev",
    "projection_tables",
    "resolve_size",
    "triple_product",
    "triple_products",
]
