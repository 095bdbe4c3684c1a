"""`SparseFeatures`: a bag of words is mostly zeros, and a product with it need not read them."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from dssgnn.errors import InputError
from dssgnn.graph.product import Pattern

__all__ = ["SparseFeatures", "sparse_linear", "sparse_where_faster"]

# Below it the sparse product and its gradient are faster than the dense ones: on one thread of a CPU 1.9 to 3.9 times
# at this density (183 x 1703 to 4583 x 6805, widths 64 and 192), on an H200 1.3 times (2708 x 1433, width 192).
_DENSITY = {"cpu": 0.15, "cuda": 0.1}


class SparseFeatures:
    """A feature matrix ``[N, F]`` as CSR, with its transpose; immutable, and a constant to autograd.

    Make one with `from_dense`. The structure is kept apart from the values, so that dropout replaces the values
    alone (`with_values`) and the transpose follows.

    Attributes:
        pattern: where the entries stand.
        transposed: where those of the transpose stand.
        permutation: the entry that stands at each place of the transpose ``[E]``.
        values: of the entries ``[E]``.
        shape: ``[N, F]``.

    Example:
        >>> x = SparseFeatures.from_dense(torch.tensor([[0.0, 2.0], [0.0, 0.0]]))
        >>> x
        SparseFeatures(2 x 2, 1 entries, torch.float32)
        >>> sparse_linear(x, torch.tensor([[1.0], [3.0]]))
        tensor([[6.],
                [0.]])
    """

    def __init__(
        self,
        pattern: Pattern,
        transposed: Pattern,
        permutation: Tensor,
        values: Tensor,
        shape: torch.Size,
    ) -> None:
        self.pattern, self.transposed = pattern, transposed
        self.permutation = permutation
        self.values = values
        self.shape = shape
        self._dense: Tensor | None = None

    @classmethod
    def from_dense(cls, x: Tensor) -> "SparseFeatures":
        """Take the entries of ``x [N, F]`` that are not zero."""
        if not isinstance(x, Tensor) or x.dim() != 2 or not x.is_floating_point():
            got = f"{x.dtype} {list(x.shape)}" if isinstance(x, Tensor) else type(x).__name__
            raise InputError(
                f"sparse features are made from a floating-point tensor [N, features], got {got}"
            )
        x = x.detach()
        row, col = x.nonzero(as_tuple=True)
        if row.numel() >= 2**31:
            raise InputError(f"x has {row.numel()} entries, more than the 2^31 - 1 that int32 indices hold")
        permutation = torch.argsort(col, stable=True)
        return cls(
            Pattern(_starts(row, x.size(0)), col.int()),
            Pattern(_starts(col, x.size(1)), row[permutation].int()),
            permutation.int(),
            x[row, col],
            x.shape,
        )

    def with_values(self, values: Tensor) -> "SparseFeatures":
        """Other values at the same places; constants, as all features are to autograd."""
        if values.shape != self.values.shape:
            raise InputError(f"the features have values {list(self.values.shape)}, got {list(values.shape)}")
        if values.requires_grad:
            raise InputError("sparse features are constants: give values.detach(), or a dense x to learn x")
        return SparseFeatures(self.pattern, self.transposed, self.permutation, values, self.shape)

    def to(self, target: torch.device | torch.dtype | str) -> "SparseFeatures":
        """The same on another device or in another precision."""
        if isinstance(target, torch.dtype):
            return self if target == self.dtype else self.with_values(self.values.to(target))
        if torch.device(target) == self.device:
            return self
        return SparseFeatures(
            self.pattern.to(target),
            self.transposed.to(target),
            self.permutation.to(target),
            self.values.to(target),
            self.shape,
        )

    def dense(self) -> Tensor:
        """The matrix ``[N, F]`` with its zeros, made once."""
        if self._dense is None:
            with torch.inference_mode(False):  # it is kept, and a later training step may read it
                dense = self.values.new_zeros(self.shape)
                dense[self.rows(), self.pattern.col.long()] = self.values
            self._dense = dense
        return self._dense

    def rows(self) -> Tensor:
        """The row of every entry ``[E]``."""
        numbers = torch.arange(self.size(0), device=self.device)
        return numbers.repeat_interleave(self.pattern.crow.diff(), output_size=self.values.numel())

    def size(self, dim: int) -> int:
        """``shape[dim]``."""
        return self.shape[dim]

    @property
    def dtype(self) -> torch.dtype:
        """The type of the values."""
        return self.values.dtype

    @property
    def device(self) -> torch.device:
        """Where the entries lie."""
        return self.values.device

    @property
    def is_cuda(self) -> bool:
        """Whether the entries lie on a GPU."""
        return self.values.is_cuda

    @property
    def density(self) -> float:
        """The share of entries that are kept."""
        return self.values.numel() / max(1, self.shape.numel())

    def __repr__(self) -> str:
        n, f = self.shape
        return f"{type(self).__name__}({n} x {f}, {self.values.numel()} entries, {self.dtype})"


def sparse_where_faster(x: Tensor) -> "Tensor | SparseFeatures":
    """``x`` itself, or as `SparseFeatures` where so much of it is zero that a product with it is faster."""
    limit = _DENSITY.get(x.device.type, 0.0)
    if x.dim() != 2 or int(x.count_nonzero()) > limit * x.numel():
        return x
    return SparseFeatures.from_dense(x)


def sparse_linear(x: SparseFeatures, weight: Tensor) -> Tensor:
    """``X @ weight`` for ``weight [F, d]``, differentiable in ``weight``.

    Under `torch.vmap` the members' weights stand side by side in one product; where the values differ from member to
    member (dropout), there is a product for each.
    """
    if weight.dim() != 2 or weight.size(0) != x.size(1):
        raise InputError(f"the weight must have shape [{x.size(1)}, d], got {list(weight.shape)}")
    out: Tensor = _SparseLinear.apply(  # type: ignore[no-untyped-call]
        x.pattern, x.transposed, x.permutation, x.values, weight.to(x.dtype)
    )
    return out


class _SparseLinear(torch.autograd.Function):
    @staticmethod
    def forward(
        pattern: Pattern, transposed: Pattern, permutation: Tensor, values: Tensor, weight: Tensor
    ) -> Tensor:
        return pattern.product(values, weight)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *inputs: Any) -> tuple[Tensor, int]:
        *structure, values, weight = inputs
        values_dim, weight_dim = in_dims[3:]
        if values_dim is None:
            weight = weight.movedim(weight_dim, 1)  # [F, B, d]
            wide: Tensor = _SparseLinear.apply(  # type: ignore[no-untyped-call]
                *structure, values, weight.flatten(1)
            )
            return wide.view(-1, *weight.shape[1:]), 1
        members = [
            _SparseLinear.apply(  # type: ignore[no-untyped-call]
                *structure, own, weight if weight_dim is None else weight.select(weight_dim, i)
            )
            for i, own in enumerate(values.unbind(values_dim))
        ]
        return torch.stack(members, dim=1), 1

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.transposed = inputs[1]
        ctx.save_for_backward(*inputs[2:4])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        permutation, values = ctx.saved_tensors
        grad_weight = ctx.transposed.product(values.index_select(0, permutation), grad)
        return None, None, None, None, grad_weight


def _starts(sorted_or_not: Tensor, count: int) -> Tensor:
    """Where each of ``count`` groups starts, once the entries are sorted by group: ``[count + 1]``, int32."""
    sizes = torch.bincount(sorted_or_not, minlength=count)
    return torch.nn.functional.pad(sizes.cumsum(0), (1, 0)).int()
