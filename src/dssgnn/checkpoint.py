"""Tensors in files: no pickle, whole or absent."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from dssgnn.errors import InputError
from dssgnn.files import atomic_path

__all__ = ["load_tensors", "save_tensors"]


def save_tensors(path: Path | str, tensors: Mapping[str, Tensor], meta: Mapping[str, Any]) -> None:
    """Write tensors and a JSON-able description into one safetensors file, atomically."""
    # Clones: two names of one storage (shared weights) are two tensors in a file.
    plain = {name: tensor.detach().cpu().clone().contiguous() for name, tensor in tensors.items()}
    with atomic_path(path) as temporary:
        save_file(plain, temporary, metadata={"meta": json.dumps(meta)})


def load_tensors(path: Path | str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what `save_tensors` wrote.

    Raises:
        InputError: if the file is missing, truncated or not of this kind.
    """
    try:
        with safe_open(str(path), framework="pt") as file:
            meta = json.loads((file.metadata() or {})["meta"])
            # Clones: what the file maps would vanish, and the process with it, were the file cut later.
            return {name: file.get_tensor(name).clone() for name in file.keys()}, meta  # noqa: SIM118
    except (OSError, SafetensorError, KeyError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: not a readable dssgnn file ({error})") from error
