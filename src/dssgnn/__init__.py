"""Uncertainty for graph neural networks from one doubly-spectral stochastic expansion."""

import importlib
from typing import TYPE_CHECKING, Any

from dssgnn._version import __version__

if TYPE_CHECKING:
    from dssgnn.errors import InputError
    from dssgnn.estimator import DSSClassifier
    from dssgnn.expansion import ChaosExpansion
    from dssgnn.graph import GraphOperator
    from dssgnn.nn import DSSGNN, DSSConv, DSSHybrid

__all__ = [
    "DSSGNN",
    "ChaosExpansion",
    "DSSClassifier",
    "DSSConv",
    "DSSHybrid",
    "GraphOperator",
    "InputError",
    "__version__",
]

# Imported on first use: `import dssgnn` and `dssgnn --help` do not wait for torch.
_HOMES = {
    "ChaosExpansion": "dssgnn.expansion",
    "DSSClassifier": "dssgnn.estimator",
    "DSSConv": "dssgnn.nn",
    "DSSGNN": "dssgnn.nn",
    "DSSHybrid": "dssgnn.nn",
    "GraphOperator": "dssgnn.graph",
    "InputError": "dssgnn.errors",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'dssgnn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
