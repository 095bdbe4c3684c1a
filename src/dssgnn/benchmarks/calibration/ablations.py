"""The paper's ablations: one setting of a preset changed at a time, everything else held."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from dssgnn.benchmarks.calibration.setup import Setup
from dssgnn.benchmarks.calibration.systems import preset_setup
from dssgnn.benchmarks.presets import Variant, preset

__all__ = ["ABLATIONS", "ablation"]

_ORDERS = (0, 1, 2, 3, 4, 5, 6, 8)

# What each changes, by the name that its variant gets: options of the model, then of the training.
Change = tuple[dict[str, Any], dict[str, Any]]
ABLATIONS: dict[str, dict[str, Change]] = {
    # As published S stays at 4, where orders from 4 on alias; "order-exact" gives every order its nodes.
    "order": {f"P={p}": ({"chaos_order": p}, {}) for p in _ORDERS},
    "order-exact": {
        f"P={p}, S={max(4, p + 1)}": ({"chaos_order": p, "quadrature_size": max(4, p + 1)}, {})
        for p in _ORDERS
    },
    "order-predictive": {
        f"P={p}, predictive": (
            {"chaos_order": p, "quadrature_size": max(4, p + 1)},
            {"objective": "predictive", "monitor": "nll"},
        )
        for p in _ORDERS
    },
    "regulariser": {f"lambda={w:g}": ({}, {"chaos_weight": w}) for w in (0.0, 1e-3, 1e-2, 1e-1)},
    "quadrature": {f"S={s}": ({"quadrature_size": s}, {}) for s in (2, 3, 4, 6, 8)},
    "norm": {"norm off": ({"norm": None}, {}), "norm on": ({"norm": "batch"}, {})},
    "objective": {
        name: ({}, {"objective": name, "monitor": monitor})
        for name, monitor in (
            ("mean", "nll_mean"),
            ("quadrature", "nll"),
            ("predictive", "nll"),
            ("brier", "brier"),
        )
    },
    # The control of every claim about the order: none, and the regulariser's weight on the squared logits.
    "penalty": {"P=0, penalty": ({"chaos_order": 0}, {"logit_weight": None})},
}


def ablation(name: str, base: Variant) -> dict[str, Callable[[str], Setup]]:
    """The rows of an ablation of the presets ``base``: a setup for each dataset, by variant."""
    return {f"{base}, {label}": partial(_setup, base, *change) for label, change in ABLATIONS[name].items()}


def _setup(base: Variant, model: dict[str, Any], training: dict[str, Any], dataset: str) -> Setup:
    given = preset(dataset, base)
    if "logit_weight" in training:
        training = {"logit_weight": given.training.chaos_weight, "chaos_weight": 0.0}
    return preset_setup(
        replace(
            given,
            architecture={**given.architecture, **model},
            training=replace(given.training, **training),
        )
    )
