"""From an edge list to the rescaled Laplacian, in float64 on the CPU, once a graph."""

from typing import Literal

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from dssgnn.errors import InputError

__all__ = [
    "Direction",
    "Normalization",
    "Symmetrize",
    "adjacency",
    "largest_eigenvalue",
    "normalize",
    "power",
    "rescale",
]

Normalization = Literal["sym", "rw", "col"]
Direction = Literal["both", "in", "out"]
Symmetrize = Literal["max", "mean"]
SelfLoops = bool | Literal["keep"]


def adjacency(
    source: np.ndarray,
    target: np.ndarray,
    weight: np.ndarray,
    num_nodes: int,
    direction: Direction,
    symmetrize: Symmetrize,
    self_loops: SelfLoops,
) -> sp.csr_array:
    """``A_ij`` = weight of the edge ``j -> i``; duplicates add up, then direction, then self-loops."""
    a = sp.coo_array((weight, (target, source)), shape=(num_nodes, num_nodes)).tocsr()
    if direction == "out":
        a = a.T.tocsr()
    elif direction == "both":
        a = a.maximum(a.T.tocsr()) if symmetrize == "max" else (a + a.T) / 2
    if self_loops != "keep":
        a = a - sp.diags_array(a.diagonal(), format="csr")
        if self_loops:
            a = a + sp.eye_array(num_nodes, format="csr")
    a = a.tocsr()
    a.eliminate_zeros()
    a.sort_indices()
    return a


def normalize(a: sp.csr_array, normalization: Normalization) -> sp.csr_array:
    """``Ahat`` by rows and columns (``"sym"``), rows (``"rw"``) or columns (``"col"``); 1/0 counts as 0."""
    exponent = -0.5 if normalization == "sym" else -1.0
    rows, columns = a.sum(axis=1), a.sum(axis=0)
    if normalization != "col":
        a = sp.diags_array(power(rows, exponent)) @ a
    if normalization != "rw":
        a = a @ sp.diags_array(power(columns, exponent))
    return a.tocsr()


def power(degree: np.ndarray, exponent: float) -> np.ndarray:
    """Of degrees; that of zero is zero."""
    result = np.zeros_like(degree)
    np.power(degree, exponent, where=degree > 0, out=result)
    return result


def largest_eigenvalue(laplacian: sp.csr_array) -> float:
    """A tight bound on a symmetric Laplacian's spectrum, by Lanczos; 2, which always bounds it, where that fails."""
    size = laplacian.shape[0]
    if abs(laplacian).sum() == 0:
        return 0.0  # Lanczos has no vector to start from
    if size <= 32:
        return float(np.linalg.eigvalsh(laplacian.toarray())[-1])
    start = np.random.default_rng(0).standard_normal(size)
    # The top of a long path's spectrum is so dense that Lanczos would take minutes: then the bound will do.
    try:
        found = eigsh(laplacian, k=1, which="LA", v0=start, tol=1e-8, maxiter=100, return_eigenvectors=False)
    except ArpackNoConvergence:
        return 2.0
    return min(float(found[0]) * (1 + 1e-7), 2.0)


def rescale(ahat: sp.csr_array, lambda_max: float) -> sp.csr_array:
    """``L~ = (2 / lambda_max) (I - Ahat) - I``; at ``lambda_max = 2`` this is ``-Ahat``, without a diagonal."""
    scaled = ahat * (-2.0 / lambda_max)
    if lambda_max != 2.0:
        scaled = scaled + sp.eye_array(ahat.shape[0], format="csr") * (2.0 / lambda_max - 1.0)
    scaled = scaled.tocsr()
    scaled.sort_indices()
    if scaled.nnz >= 2**31:
        raise InputError(
            f"the graph has {scaled.nnz} entries, more than the 2^31 - 1 that int32 indices hold"
        )
    return scaled
