"""Where things run."""

import torch

from dssgnn.errors import InputError

__all__ = ["resolve_device"]


def resolve_device(name: str) -> torch.device:
    """``"auto"`` is a GPU where there is one; anything else as torch names it."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise InputError(f"device must be 'auto', 'cpu' or 'cuda', got {name!r}") from error
    try:
        torch.zeros(1, device=device).item()  # "meta" holds no values, others may not be in this machine
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(f"device {name!r} was asked for, but torch cannot use it here") from error
    return device
