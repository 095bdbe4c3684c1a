"""The one sparse-dense product of the package: CSR with int32 indices times a dense matrix."""

import warnings
from functools import cached_property
from typing import Any

import scipy.sparse as sp
import torch
from torch import Tensor

from dssgnn.kernels import usable

__all__ = ["Pattern", "csr_tensor", "matrix_product"]


class Pattern:
    """Where the entries of a CSR matrix ``[N, M]`` stand: ``crow [N+1]`` and ``col [E]``, int32."""

    def __init__(self, crow: Tensor, col: Tensor) -> None:
        self.crow, self.col = crow, col

    @cached_property
    def _plan(self) -> Any:
        from dssgnn.kernels.plan import make_plan

        return make_plan(self.crow, self.col)

    def product(self, values: Tensor, dense: Tensor) -> Tensor:
        """The matrix with entries ``values [E]``, times ``dense [M, W]``; not differentiable."""
        values, dense = values.detach(), dense.detach().contiguous()
        if _has_bags(dense):
            return _bags(self.crow, self.col, values, dense)
        if usable(dense):
            from dssgnn.kernels.filtering import product

            return product(self._plan, values, dense)
        shape = (self.crow.numel() - 1, dense.size(0))
        matrix = torch.sparse_csr_tensor(self.crow, self.col, values, size=shape, check_invariants=False)
        return matrix @ dense

    def to(self, device: torch.device | str) -> "Pattern":
        """The same on another device."""
        return Pattern(self.crow.to(device), self.col.to(device))


def matrix_product(matrix: Tensor, dense: Tensor) -> Tensor:
    """``matrix @ dense`` of a CSR tensor ``[N, M]`` and ``dense [M, W]``; not differentiable."""
    if _has_bags(dense):
        return _bags(matrix.crow_indices(), matrix.col_indices(), matrix.values(), dense)
    if usable(dense):
        from dssgnn.kernels.filtering import product
        from dssgnn.kernels.plan import plan_of

        return product(plan_of(matrix), matrix.values(), dense.detach().contiguous())
    return matrix @ dense


def csr_tensor(csr: sp.csr_array, dtype: torch.dtype, device: torch.device) -> Tensor:
    """A scipy matrix as a CSR tensor with int32 indices."""
    return torch.sparse_csr_tensor(
        torch.tensor(csr.indptr, dtype=torch.int32),
        torch.tensor(csr.indices, dtype=torch.int32),
        torch.tensor(csr.data, dtype=dtype),
        size=csr.shape,
        check_invariants=False,  # scipy keeps them, and torch 2.11 refuses an empty matrix
    ).to(device)


def _has_bags(dense: Tensor) -> bool:
    return dense.dtype == torch.float32 and not dense.is_cuda


def _bags(crow: Tensor, col: Tensor, values: Tensor, dense: Tensor) -> Tensor:
    # A row of the product is a weighted bag of rows of ``dense``. Torch's kernel for bags takes half to a third of
    # the time of its CSR product (MKL) on a CPU, and uses both cores where that uses one.
    bags = torch.embedding_bag(
        dense.detach().contiguous(),
        col,
        crow,
        mode=0,  # sum
        per_sample_weights=values.detach(),
        include_last_offset=True,
    )
    return bags[0]


# Torch says once a process that CSR is in beta. It says so here, unheard: filters belong to the process, and changing
# them around each product would leave them in disorder where several threads train.
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", message="(?i)sparse (csr tensor support|invariant checks)")
    torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), check_invariants=False)
