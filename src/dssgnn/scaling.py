"""Columns on comparable scales, remembered with the model."""

import sys
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from dssgnn.errors import InputError

__all__ = ["Scaling", "fit_scaling"]


@dataclass(frozen=True)
class Scaling:
    """``x -> (x - mean) / scale`` column by column; nothing where both are ``None``."""

    mean: tuple[float, ...] | None = None
    scale: tuple[float, ...] | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """Scale features ``[N, F]``."""
        if self.mean is None or self.scale is None:
            return x
        return (x - torch.tensor(self.mean, dtype=x.dtype, device=x.device)) / torch.tensor(
            self.scale, dtype=x.dtype, device=x.device
        )

    def to_json(self) -> dict[str, Any] | None:
        """As JSON values; ``None`` where nothing is scaled."""
        return None if self.mean is None else {"mean": list(self.mean), "scale": list(self.scale or ())}

    @classmethod
    def from_json(cls, content: object, features: int) -> "Scaling":
        """Read back what `to_json` gave.

        Raises:
            InputError: if it is not that, or not for this many features.
        """
        if content is None:
            return cls()
        columns = [content.get(key) for key in ("mean", "scale")] if isinstance(content, dict) else []
        if len(columns) != 2 or not all(
            isinstance(c, list) and len(c) == features and all(map(_is_finite, c)) for c in columns
        ):
            raise InputError(f"scaling must hold a finite mean and scale for each of {features} features")
        mean, scale = (tuple(map(float, column or ())) for column in columns)
        if min(scale) <= 0:
            raise InputError(f"scaling holds a scale of {min(scale):g}, expected positive ones")
        return cls(mean, scale)


def _is_finite(value: object) -> bool:
    return (
        isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
    )


def fit_scaling(x: Tensor, kind: Literal["auto", "standard"] | None) -> Scaling:
    """Learn a scaling: all columns to mean 0 and deviation 1, or (``"auto"``) those not within 0..1 already.

    Example:
        >>> fit_scaling(torch.tensor([[0.0, 10.0], [1.0, 30.0]]), "auto")
        Scaling(mean=(0.0, 20.0), scale=(1.0, 10.0))
    """
    if kind not in ("auto", "standard", None):
        raise InputError(f"scaling must be 'auto', 'standard' or None, got {kind!r}")
    if kind is None:
        return Scaling()
    values = x.double()
    mean, scale = values.mean(dim=0), values.std(dim=0, correction=0)
    if kind == "auto":
        fine = (values.amin(dim=0) >= 0) & (values.amax(dim=0) <= 1)
        if bool(fine.all()):
            return Scaling()
        mean, scale = torch.where(fine, 0.0, mean), torch.where(fine, 1.0, scale)
    scale = torch.where(scale > 0, scale, 1.0)  # a constant column carries nothing; keep it finite
    return Scaling(tuple(mean.tolist()), tuple(scale.tolist()))
