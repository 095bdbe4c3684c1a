"""`GraphOperator`: a graph turned once into the sparse operator that filters use."""

import math
from functools import cached_property, partial
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from dssgnn.errors import InputError
from dssgnn.graph.features import SparseFeatures
from dssgnn.graph.filter import multiply, polynomial_filter
from dssgnn.graph.laplacian import (
    Direction,
    Normalization,
    Symmetrize,
    adjacency,
    largest_eigenvalue,
    normalize,
    rescale,
)
from dssgnn.graph.product import csr_tensor
from dssgnn.spectral.chebyshev import Basis
from dssgnn.validation import check_choice, check_count, check_edge_index, check_edge_weight

__all__ = ["GraphOperator", "OperatorCache"]


class GraphOperator:
    r"""The rescaled Laplacian :math:`\tilde L = (2/\lambda_{\max}) L - I` of a graph, as a CSR matrix.

    Make one with `from_edge_index`; it is immutable and can be shared by every model on the graph.

    Attributes:
        matrix: :math:`\tilde L`, a sparse CSR tensor ``[N, N]`` with int32 indices.
        lambda_max: the bound that the Laplacian was rescaled with.
        num_nodes: ``N``.
        edge_index: the edges as they were given, ``[2, E]``, for encoders that want them.
        edge_weight: the weights as they were given, ``[E]``, or ``None``.
        symmetric: whether :math:`\tilde L^T = \tilde L` by construction.

    Example:
        >>> op = GraphOperator.from_edge_index(torch.tensor([[0, 1], [1, 0]]))
        >>> op @ torch.tensor([[1.0], [2.0]])
        tensor([[-2.],
                [-1.]])
        >>> op
        GraphOperator(num_nodes=2, entries=2, normalization='sym', direction='both', lambda_max=2)
    """

    def __init__(
        self,
        matrix: Tensor,
        lambda_max: float,
        edge_index: Tensor,
        edge_weight: Tensor | None,
        options: dict[str, Any],
    ) -> None:
        self.matrix = matrix
        self.lambda_max = lambda_max
        self.edge_index = edge_index
        self.edge_weight = edge_weight
        self.num_nodes = matrix.size(0)
        self.symmetric = options["direction"] == "both" and options["normalization"] == "sym"
        self._options = options

    @classmethod
    def from_edge_index(
        cls,
        edge_index: Tensor,
        num_nodes: int | None = None,
        edge_weight: Tensor | None = None,
        *,
        normalization: Normalization = "sym",
        direction: Direction = "both",
        self_loops: bool | Literal["keep"] = False,
        symmetrize: Symmetrize = "max",
        lambda_max: float | Literal["estimate"] = 2.0,
        dtype: torch.dtype | None = None,
    ) -> "GraphOperator":
        r"""Build the operator from PyG edges: row 0 the source ``j``, row 1 the target ``i``.

        Args:
            edge_index: ``[2, E]``, integer. Duplicate edges add up.
            num_nodes: ``N``; the largest node named plus one where it is not given.
            edge_weight: ``[E]``, non-negative; 1 where it is not given.
            normalization: ``"sym"`` :math:`R^{-1/2} A C^{-1/2}`, ``"rw"`` :math:`R^{-1} A` or ``"col"``
                :math:`A C^{-1}`, with row sums ``R`` and column sums ``C``.
            direction: ``"both"`` makes the graph undirected, ``"in"`` gathers from in-neighbours, ``"out"``
                from out-neighbours.
            self_loops: ``False`` drops them, ``True`` puts one of weight 1 on every node, ``"keep"`` leaves
                them as they are. (``True`` with the defaults is the operator of GCN.)
            symmetrize: how ``"both"`` joins the two directions, entrywise ``"max"`` or ``"mean"``.
            lambda_max: the bound on the spectrum, or ``"estimate"`` (Lanczos; ``"both"`` with ``"sym"`` only).
            dtype: of the operator; the weights' or torch's default where it is not given.

        Raises:
            InputError: for edges, weights or options that cannot be used.
        """
        for name, value, allowed in (
            ("normalization", normalization, get_args(Normalization)),
            ("direction", direction, get_args(Direction)),
            ("symmetrize", symmetrize, get_args(Symmetrize)),
            ("self_loops", self_loops, (True, False, "keep")),
        ):
            check_choice(value, allowed, name)
        if lambda_max != "estimate" and not (
            isinstance(lambda_max, (int, float)) and 0 < lambda_max < math.inf
        ):
            raise InputError(f"lambda_max must be positive or 'estimate', got {lambda_max!r}")
        if lambda_max == "estimate" and (direction, normalization) != ("both", "sym"):
            raise InputError(
                "lambda_max='estimate' needs direction='both' and normalization='sym' (a symmetric operator), "
                f"got direction={direction!r} and normalization={normalization!r}"
            )
        if dtype is not None and not dtype.is_floating_point:
            raise InputError(f"dtype must be a floating point type, got {dtype}")
        if num_nodes is not None:
            check_count(num_nodes, "num_nodes", minimum=1)
        check_edge_index(edge_index, num_nodes)
        if num_nodes is None:
            if edge_index.numel() == 0:
                raise InputError(
                    "edge_index is empty and num_nodes is not given; say how many nodes there are"
                )
            num_nodes = int(edge_index.max()) + 1
        if edge_weight is not None:
            check_edge_weight(edge_weight, edge_index.size(1))
            dtype = dtype or edge_weight.dtype
            weight = edge_weight.detach().double().cpu().numpy()
        else:
            weight = np.ones(edge_index.size(1))

        source, target = edge_index.detach().cpu().numpy()
        a = adjacency(source, target, weight, num_nodes, direction, symmetrize, self_loops)
        ahat = normalize(a, normalization)
        if lambda_max == "estimate":
            bound = largest_eigenvalue(sp.eye_array(num_nodes, format="csr") - ahat)
            if bound <= 1e-12:
                raise InputError(
                    f"lambda_max='estimate' found {bound:g} (a graph of loops alone has L = 0), expected a "
                    "positive eigenvalue; give lambda_max=2.0"
                )
        else:
            bound = float(lambda_max)
        matrix = csr_tensor(rescale(ahat, bound), dtype or torch.get_default_dtype(), edge_index.device)
        options = {
            "normalization": normalization,
            "direction": direction,
            "self_loops": self_loops,
            "symmetrize": symmetrize,
            "lambda_max": lambda_max,
        }
        return cls(matrix, bound, edge_index, edge_weight, options)

    @property
    def dtype(self) -> torch.dtype:
        """The type of the operator's entries."""
        return self.matrix.dtype

    @property
    def device(self) -> torch.device:
        """Where the operator lies."""
        return self.matrix.device

    @property
    def options(self) -> dict[str, Any]:
        """The keyword arguments of `from_edge_index` that this operator was made with."""
        return dict(self._options)

    @cached_property
    def transposed(self) -> Tensor:
        r""":math:`\tilde L^T` as CSR; the matrix itself where it is symmetric."""
        if self.symmetric:
            return self.matrix
        m = self.matrix
        values, columns, rows = (t.cpu().numpy() for t in (m.values(), m.col_indices(), m.crow_indices()))
        csr = sp.csr_array((values, columns, rows), shape=(self.num_nodes, self.num_nodes))
        return csr_tensor(csr.T.tocsr(), self.dtype, self.device)

    def __matmul__(self, h: Tensor) -> Tensor:
        r"""Multiply by :math:`\tilde L` along the first dimension of ``h [N, ...]``; differentiable in ``h``."""
        self._check(h)
        return multiply(self.matrix, self.transposed, h)

    def filter(self, h: Tensor, theta: Tensor, basis: Basis = "chebyshev") -> Tensor:
        r"""Apply one polynomial of the operator for each branch and chaos order.

        Args:
            h: ``[N, Q, d]``.
            theta: coefficients ``[R, Q, K+1]`` of ``R`` branches.
            basis: ``"chebyshev"`` for :math:`T_k(\tilde L)`, ``"monomial"`` for :math:`\hat A^k`.

        Returns:
            ``[N, R, Q, d]``.
        """
        self._check(h)
        return polynomial_filter(self.matrix, self.transposed, h, theta, basis, self.lambda_max)

    def to(self, target: torch.device | torch.dtype | str) -> "GraphOperator":
        """Return the operator on another device or in another precision.

        A wider type is built again from the edges, so that it is exact and not a rounded one widened; one of
        `published_operators` cannot be, and is made again from a graph of that type.
        """
        if isinstance(target, torch.dtype):
            if target == self.dtype:
                return self
            if torch.finfo(target).bits > torch.finfo(self.dtype).bits:
                return self.made_again(self.edge_index, target, f"graph.to({target})")
            device, dtype = self.device, target
        else:
            device, dtype = torch.device(target), self.dtype
        if device == self.device and dtype == self.dtype:
            return self
        weight = self.edge_weight.to(device) if self.edge_weight is not None else None
        matrix = self.matrix.to(device=device, dtype=dtype)
        return GraphOperator(matrix, self.lambda_max, self.edge_index.to(device), weight, self._options)

    def made_again(self, edge_index: Tensor, dtype: torch.dtype, instead: str) -> "GraphOperator":
        """The operator of other edges between as many nodes, all else being the same.

        Raises:
            InputError: of one of `published_operators`, which the options do not make; both are made from ``instead``.
        """
        if "eta" in self._options:
            raise InputError(
                f"one of published_operators cannot be made from its edges; make both from {instead}"
            )
        return self.from_edge_index(
            edge_index, self.num_nodes, self.edge_weight, dtype=dtype, **self._options
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> "GraphOperator":
        return self  # immutable; torch cannot deep-copy a CSR tensor

    def _check(self, h: Tensor) -> None:
        if h.size(0) != self.num_nodes:
            raise InputError(f"the state has {h.size(0)} rows, but the graph has {self.num_nodes} nodes")
        if h.device != self.device:
            raise InputError(
                f"the graph operator is on {self.device}, the state on {h.device}; use op.to(device)"
            )
        if h.dtype == torch.float64 and self.dtype != torch.float64:
            raise InputError("the graph operator is float32, the state float64; use op.to(torch.float64)")

    def __repr__(self) -> str:
        options = ", ".join(f"{key}={self._options[key]!r}" for key in ("normalization", "direction"))
        entries = self.matrix.values().numel()
        return (
            f"{type(self).__name__}(num_nodes={self.num_nodes}, entries={entries}, {options}, "
            f"lambda_max={self.lambda_max:g})"
        )


class OperatorCache:
    """Turns what a module is given as its graph into an operator, and remembers the last edge list.

    An ``edge_index`` is converted once and reused as long as it is the same, unmodified tensor.
    """

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._key: tuple[Any, ...] = ()
        self._tensors: tuple[Tensor | None, ...] = ()
        self._operator: GraphOperator | None = None

    def __call__(
        self,
        graph: GraphOperator | Tensor,
        like: Tensor | SparseFeatures,
        edge_weight: Tensor | None = None,
    ) -> GraphOperator:
        """Return the operator of ``graph`` for a state ``like [N, ...]``."""
        if isinstance(graph, GraphOperator):
            if edge_weight is not None:
                raise InputError(
                    "edge_weight goes with an edge_index; a GraphOperator has its weights already"
                )
            return graph
        if not isinstance(graph, Tensor):
            raise InputError(f"graph must be a GraphOperator or an edge_index, got {type(graph).__name__}")
        dtype = torch.float64 if like.dtype == torch.float64 else torch.float32
        tensors = (graph, edge_weight)
        # A tensor made under inference_mode counts no versions, so it is never known to be unmodified.
        tracked = all(t is None or not t.is_inference() for t in tensors)
        key = (like.size(0), dtype, *(t._version for t in tensors if t is not None)) if tracked else ()
        same = (
            tracked
            and len(self._tensors) == 2
            and all(a is b for a, b in zip(tensors, self._tensors, strict=True))
        )
        if self._operator is None or not same or key != self._key:
            self._operator = GraphOperator.from_edge_index(
                graph, like.size(0), edge_weight, dtype=dtype, **self._options
            )
            self._tensors, self._key = tensors, key
        return self._operator

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(OperatorCache, **self._options), ()  # a copy starts empty
