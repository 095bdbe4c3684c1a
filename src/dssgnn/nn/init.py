"""How weights start."""

import math
from typing import Literal

from torch import Tensor, nn

from dssgnn.validation import check_choice

__all__ = ["WeightInit", "init_weight"]

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
