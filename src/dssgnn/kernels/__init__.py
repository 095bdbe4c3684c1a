"""Triton kernels of the two hot loops: the Chebyshev recurrence, and evaluate-activate-project.

They compute what the torch code beside them computes (`dssgnn.graph.filter`, `dssgnn.nn.projection`), and are used
where the tensors are on a GPU and Triton is installed, unless the environment says ``DSSGNN_KERNELS=off``. No atomics:
the same input gives the same bits.
"""

import importlib.util
import os

from torch import Tensor

__all__ = ["usable"]

_INSTALLED = importlib.util.find_spec("triton") is not None and os.environ.get("DSSGNN_KERNELS") != "off"


def usable(tensor: Tensor) -> bool:
    """Whether the kernels can run on this tensor."""
    return _INSTALLED and tensor.is_cuda
