"""How weights start."""

import math
from typing import Literal, get_args

from torch import Tensor, nn

from dssgnn.errors import InputError

__all__ = ["WeightInit", "check_choice", "init_weight"]

WeightInit = Literal["glorot", "published"]


def init_weight(weight: Tensor, kind: WeightInit) -> None:
    """Fill ``weight [..., in, out]``: zero-mean Glorot, or the authors' normal with mean ``-1/sqrt(in)``."""
    check_choice(kind, WeightInit, "weight_init")
    fan_in, fan_out = weight.shape[-2:]
    if kind == "published":
        scale = 1 / math.sqrt(fan_in)
        nn.init.normal_(weight, -scale, scale)
    else:
        bound = math.sqrt(6 / (fan_in + fan_out))
        nn.init.uniform_(weight, -bound, bound)


def check_choice(value: object, choices: object, name: str) -> None:
    """Check that ``value`` is one of a ``Literal``'s values."""
    allowed = get_args(choices)
    if not any(value is choice or (type(value) is type(choice) and value == choice) for choice in allowed):
        raise InputError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
