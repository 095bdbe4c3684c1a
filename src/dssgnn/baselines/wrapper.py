"""A system around a system."""

from typing import Any

from torch import nn

__all__ = ["Wrapper"]


class Wrapper(nn.Module):
    """Holds ``model``, and answers for it: what a wrapper does not have itself, the model is asked for.

    So a hybrid is still told its epochs, and sparse features still reach a model that takes them.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "model":
                raise
            return getattr(self.model, name)
