"""What every encoder checks of its arguments and of the features it is given."""

from torch import Tensor

from dssgnn.errors import InputError
from dssgnn.graph import SparseFeatures
from dssgnn.validation import check_count

__all__ = ["check_inputs", "check_sizes"]


def check_sizes(**sizes: object) -> None:
    """Check that every size is an integer of at least 1."""
    for name, value in sizes.items():
        check_count(value, name, minimum=1)


def check_inputs(x: Tensor | SparseFeatures, channels: int) -> None:
    """Check the shape of ``x [N, channels]``; its values are not read, so that nothing waits for a GPU."""
    if len(x.shape) != 2:
        raise InputError(f"x must have shape [N, features], got {list(x.shape)}")
    if x.size(1) != channels:
        raise InputError(f"x has {x.size(1)} features, but the model was made for {channels}")
