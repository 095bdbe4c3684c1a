"""Which norm lets a chaos order help: the search's first configuration under each, with an order and without."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from dssgnn.benchmarks.calibration.search.space import DSS_FAMILIES, PENALTY, dss_setup
from dssgnn.benchmarks.frame import Setup

__all__ = ["JOINT", "KINDS", "Kind", "control_of", "label_of", "norm_rows"]

Kind = tuple[
    str | None, bool, str
]  # the norm, whether a channel's orders are dropped together, the objective

_EPOCHS, _PATIENCE = 300, 60
_RATES = {"lr": 0.01, "weight_decay": 5e-4, "chaos_weight": 0.0, "coefficient_lr": None}
# Without an order the two objectives are one and the joint norm is batch norm, so that two controls serve all, each
# without a penalty and with one.
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


def control_of(norm: str | None, penalised: bool = False) -> str:
    """The variant without an order that a kind of this norm is compared with."""
    return f"start, P=0, {'batch' if norm else 'no'} norm{', penalty' if penalised else ''}"


def norm_rows(kinds: Sequence[Kind] = KINDS) -> dict[str, Callable[[str], Setup]]:
    """A setup for each dataset, by variant: P=3 in every kind, and P=0 under the norms of these kinds.

    P=0 comes twice, the second time with `PENALTY` on its squared logits.
    """
    zero = {"chaos_order": 0, "quadrature_size": 1, "objective": "predictive"}
    three = {"chaos_order": 3, "quadrature_size": 4}
    rows: dict[str, Callable[[str], Setup]] = {
        control_of(norm, weight > 0): partial(
            _setup, {**zero, "norm": norm, **({"logit_weight": weight} if weight else {})}
        )
        for norm in dict.fromkeys("batch" if norm else None for norm, _, _ in kinds)
        for weight in (0.0, PENALTY)
    }
    for norm, joint, objective in kinds:
        changed = {**three, "norm": norm, "joint_dropout": joint, "objective": objective}
        rows[label_of(norm, joint, objective)] = partial(_setup, changed)
    return rows


def _setup(changed: dict[str, Any], dataset: str) -> Setup:
    start = {name: values[0] for name, values in DSS_FAMILIES["every"].items()}
    return dss_setup({**start, **_RATES, **changed}, _EPOCHS, _PATIENCE)
