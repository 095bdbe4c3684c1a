"""Triton kernels of the two hot loops: the Chebyshev recurrence, and evaluate-activate-project.

They compute what the torch code beside them computes (`dssgnn.graph.filter`, `dssgnn.nn.projection`), and are used
where the tensors are on a GPU and Triton is installed. No atomics: the same input gives the same bits.
"""

import importlib.util

from torch import Tensor

__all__ = ["usable"]

_INSTALLED = importlib.util.find_spec("triton") is not None


def usable(tensor: Tensor) -> bool:
    """Whether the kernels can run on this tensor."""
    return _INSTALLED and tensor.is_cuda
