"""Which norm lets a chaos order help: the search's first configuration under each, with an order and without."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from dssgnn.baselines import DeepEnsemble
from dssgnn.benchmarks.calibration.search.space import DSS_FAMILIES, PENALTY, dss_setup
from dssgnn.benchmarks.frame import Setup

__all__ = ["JOINT", "KINDS", "Control", "Kind", "control_of", "label_of", "norm_rows", "size_rows"]

# The norm, whether a channel's orders are dropped together, and the objective.
Kind = tuple[str | None, bool, str]
# What order 3 is compared with: order 0, that with a penalty on its logits, that with as many channels as all orders
# have together, or as many such networks as there are nodes.
Control = Literal["plain", "penalty", "wide", "ensemble"]

_EPOCHS, _PATIENCE = 300, 60
_ZERO = {"chaos_order": 0, "quadrature_size": 1, "objective": "predictive"}
_NORMED = {**_ZERO, "norm": "batch"}
_THREE = {"chaos_order": 3, "quadrature_size": 4}
_MEMBERS = 4
_WIDTH = DSS_FAMILIES["every"]["hidden_channels"][0]
_RATES = {"lr": 0.01, "weight_decay": 5e-4, "chaos_weight": 0.0, "coefficient_lr": None}
# Without an order the two objectives are one and the joint norm is batch norm, so that a control serves several kinds.
KINDS: tuple[Kind, ...] = (
    (None, True, "quadrature"),
    (None, True, "predictive"),
    ("batch", True, "quadrature"),
    ("batch", True, "predictive"),
    ("joint", True, "quadrature"),
    ("joint", True, "predictive"),
    ("joint", False, "predictive"),
)
JOINT = KINDS[4:6]  # what the pages claim anything for


def label_of(norm: str | None, joint_dropout: bool, objective: str) -> str:
    """The variant of a kind at order 3."""
    drop = "" if joint_dropout else ", dropout by order"
    return f"start, P=3, {norm or 'no'} norm{drop}, {objective}"


def control_of(norm: str | None, control: Control = "plain") -> str:
    """The variant without an order that a kind of this norm is compared with."""
    extra = {
        "plain": "",
        "penalty": ", penalty",
        "wide": f", width {_MEMBERS * _WIDTH}",
        "ensemble": f", {_MEMBERS} members",
    }
    return f"start, P=0, {'batch' if norm else 'no'} norm{extra[control]}"


def norm_rows(kinds: Sequence[Kind] = KINDS) -> dict[str, Callable[[str], Setup]]:
    """A setup for each dataset, by variant: P=3 in every kind, and P=0 under the norms of these kinds.

    P=0 comes twice, the second time with `PENALTY` on its squared logits.
    """
    rows: dict[str, Callable[[str], Setup]] = {}
    for norm in dict.fromkeys("batch" if norm else None for norm, _, _ in kinds):
        rows[control_of(norm)] = partial(_setup, {**_ZERO, "norm": norm})
        rows[control_of(norm, "penalty")] = partial(_setup, {**_ZERO, "norm": norm, "logit_weight": PENALTY})
    for norm, joint, objective in kinds:
        changed = {**_THREE, "norm": norm, "joint_dropout": joint, "objective": objective}
        rows[label_of(norm, joint, objective)] = partial(_setup, changed)
    return rows


def size_rows() -> dict[str, Callable[[str], Setup]]:
    """Order 0 with as much network as order 3 has.

    Its state has ``P + 1`` channels for each of order 0, and at ``S = P + 1`` nodes it is ``S`` networks that share
    weights and are averaged: so one network of that width, and an average of so many that share nothing.
    """
    return {
        control_of("joint", "wide"): partial(_setup, {**_NORMED, "hidden_channels": _MEMBERS * _WIDTH}),
        control_of("joint", "ensemble"): _ensemble,
    }


def _ensemble(dataset: str) -> Setup:
    return replace(_setup(_NORMED, dataset), members=_MEMBERS, combine=DeepEnsemble)


def _setup(changed: dict[str, Any], dataset: str) -> Setup:
    start = {name: values[0] for name, values in DSS_FAMILIES["every"].items()}
    return dss_setup({**start, **_RATES, **changed}, _EPOCHS, _PATIENCE)
