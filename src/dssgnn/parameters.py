"""The part of scikit-learn's contract that is about parameters."""

import inspect
from typing import Any

from typing_extensions import Self

from dssgnn.errors import InputError

__all__ = ["Parameters"]


class Parameters:
    """Parameters are what ``__init__`` takes, kept untouched under their names.

    Example:
        >>> class Model(Parameters):
        ...     def __init__(self, *, width: int = 64, depth: int = 2) -> None:
        ...         self.width, self.depth = width, depth
        >>> Model(depth=3)
        Model(depth=3)
        >>> Model().set_params(width=8).get_params()
        {'width': 8, 'depth': 2}
    """

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        signature = inspect.signature(cls.__init__)
        return {name: p.default for name, p in signature.parameters.items() if name != "self"}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, by name."""
        return {name: getattr(self, name) for name in self._defaults()}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters; what was learned stays until the next `fit`."""
        known = self._defaults()
        for name, value in parameters.items():
            if name not in known:
                raise InputError(f"unknown parameter {name!r}, expected one of {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = self._defaults()
        changed = (f"{n}={v!r}" for n, v in self.get_params().items() if v != defaults[n])
        return f"{type(self).__name__}({', '.join(changed)})"
