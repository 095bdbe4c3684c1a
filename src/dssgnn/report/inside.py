"""What the model learned and how it was trained, figure by figure."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from dssgnn.errors import InputError
from dssgnn.report.folder import ModelFolder, number, section
from dssgnn.spectral import frequency_response

__all__ = ["filters", "history", "orders"]

EPOCHS = 400  # drawn at most

Content = dict[str, Any]


def filters(model: ModelFolder) -> Content:
    """The low-pass and high-pass responses of every layer."""
    stored = section(model.metrics, "model")
    coefficients, bound = stored.get("filters"), number(stored.get("lambda_max")) or 2.0
    if not coefficients:
        return {"absent": f"The method {model.config.get('method')} has no low-pass and high-pass filters."}
    frequencies = torch.linspace(0, bound, 81, dtype=torch.float64)
    mixed = section(model.config, "parameters").get("branches", "sum") == "sum"

    def layer(k: int, entry: Mapping[str, Any]) -> Content:
        low, high = (
            frequency_response(torch.tensor(entry[name], dtype=torch.float64), frequencies, bound).numpy()
            for name in ("low", "high")
        )
        content = {"layer": number(entry.get("layer", k)), "low": low, "high": high}
        if mixed and entry.get("low_gates") and entry.get("high_gates"):
            content["together"] = entry["low_gates"][0][0] * low + entry["high_gates"][0][0] * high
        return content

    try:
        layers = [layer(k, entry) for k, entry in enumerate(coefficients)]
    except (KeyError, TypeError, ValueError, IndexError, RuntimeError, AttributeError):
        raise InputError(
            "metrics.json must list the coefficients `low` and `high` of each layer under `model.filters`"
        ) from None
    if not all(np.isfinite(layer[name]).all() for layer in layers for name in ("low", "high")):
        return {"absent": "The coefficients of the filters are not finite: the training has diverged."}
    return {"frequencies": frequencies.numpy(), "layers": layers}


def orders(model: ModelFolder) -> Content:
    """How the chaos energy divides among the orders."""
    energies = section(model.metrics, "model").get("chaos_energy_by_order")
    listed = energies if isinstance(energies, list) else []
    values = np.array([math.nan if number(e) is None else e for e in listed], dtype=np.float64)
    if not len(values):
        return {"absent": "The model has chaos order 0: it carries no uncertainty of its own in its logits."}
    if not np.isfinite(values).all() or values.sum() <= 0:
        return {"absent": "The chaos energy is zero or not finite, so it has no shares."}
    return {"energy": values, "share": values / values.sum()}


def history(model: ModelFolder) -> Content:
    """Every numeric column of the history, thinned."""
    known = np.isfinite(model.history.get("epoch", np.empty(0)))
    epochs = model.history.get("epoch", np.empty(0))[known]
    if len(epochs) < 2:
        return {"absent": "The history has fewer than two epochs."}
    keep = np.unique(np.linspace(0, len(epochs) - 1, EPOCHS).round().astype(int))
    series = {
        name: values[known][keep]
        for name, values in model.history.items()
        if name != "epoch" and np.isfinite(values).any()
    }
    best = number(section(model.metrics, "training").get("best_epoch"))
    return {"epoch": epochs[keep], "series": series, "best_epoch": best}
