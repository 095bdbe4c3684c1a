"""The paper's ablations: one setting of a preset changed at a time, everything else held."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from dssgnn.benchmarks.calibration.defaults import DATASETS
from dssgnn.benchmarks.calibration.presets import PRESETS, Preset, Variant, preset
from dssgnn.benchmarks.calibration.systems import preset_setup
from dssgnn.benchmarks.frame import Setup
from dssgnn.training import ParameterGroup

__all__ = ["ABLATIONS", "ablation", "datasets_of"]

_ORDERS = (0, 1, 2, 3, 4, 5, 6, 8)

# What each changes, by the name that its variant gets: options of the model, then of the training.
Change = tuple[dict[str, Any], dict[str, Any]]
ABLATIONS: dict[str, dict[str, Change]] = {
    # As published S stays at 4, where orders from 4 on alias; "order-exact" gives those their nodes.
    "order": {f"P={p}": ({"chaos_order": p}, {}) for p in _ORDERS},
    "order-exact": {
        f"P={p}, S={p + 1}": ({"chaos_order": p, "quadrature_size": p + 1}, {}) for p in _ORDERS if p >= 4
    },
    "order-predictive": {
        f"P={p}, predictive": (
            {"chaos_order": p, "quadrature_size": max(4, p + 1)},
            {"objective": "predictive", "monitor": "nll"},
        )
        for p in _ORDERS
    },
    # Both at P = 2, whatever the preset's order, as in tab:lreg_ablation and tab:S_ablation.
    "regulariser": {
        f"lambda={w:g}": ({"chaos_order": 2}, {"chaos_weight": w}) for w in (0.0, 1e-3, 1e-2, 1e-1)
    },
    "quadrature": {f"S={s}": ({"chaos_order": 2, "quadrature_size": s}, {}) for s in (2, 3, 4, 6, 8)},
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


def datasets_of(name: str, base: Variant) -> tuple[str, ...]:
    """Where an ablation of the presets ``base`` is run: where the paper ran it, less those where it changes nothing.

    Example:
        >>> datasets_of("norm", "published")
        ('cora', 'citeseer', 'wisconsin', 'roman-empire')
    """
    given = (PRESETS[dataset, base] for dataset in DATASETS if (dataset, base) in PRESETS)
    return tuple(each.dataset for each in given if _is_run(name, each))


def _is_run(name: str, given: Preset) -> bool:
    if name == "norm":
        return given.dataset in ("cora", "citeseer", "wisconsin", "roman-empire")  # tab:bn_calibration
    if name == "order-exact":
        # Without quadrature in the layers S enters the readout alone; the paper sweeps over S there all the same.
        return given.model == "DSSGNN"
    return name != "penalty" or given.training.chaos_weight > 0


def ablation(name: str, base: Variant) -> dict[str, Callable[[str], Setup]]:
    """The rows of an ablation of the presets ``base``: a setup for each dataset, by variant."""
    return {f"{base}, {label}": partial(_setup, base, *change) for label, change in ABLATIONS[name].items()}


def _setup(base: Variant, model: dict[str, Any], training: dict[str, Any], dataset: str) -> Setup:
    given = preset(dataset, base)
    if "logit_weight" in training:
        training = {"logit_weight": given.training.chaos_weight, "chaos_weight": 0.0}
    first = given.model == "PublishedDSS" and given.architecture["propagation"] == "first"
    if first and model.get("norm"):
        # In the authors' Prop-first code a norm's parameters are in no group of the optimiser (protocols 1.6).
        training = {"groups": (ParameterGroup("norms*", 0.0), *given.training.groups)}
    return preset_setup(
        replace(
            given,
            architecture={**given.architecture, **model},
            training=replace(given.training, **training),
        )
    )
