"""Which norm lets a chaos order help: the search's first configuration under each, with an order and without."""

from collections.abc import Callable
from functools import partial
from typing import Any

from dssgnn.benchmarks.calibration.rows import ABSENT, by_row, same_but_for, spread_of
from dssgnn.benchmarks.calibration.setup import Setup
from dssgnn.benchmarks.calibration.space import DSS_FAMILIES, dss_setup
from dssgnn.benchmarks.markdown import markdown
from dssgnn.benchmarks.records import Record
from dssgnn.metrics import compare_paired, holm

__all__ = ["TABLES", "norm_rows"]

_EPOCHS, _PATIENCE = 300, 60
_RATES = {"lr": 0.01, "weight_decay": 5e-4, "chaos_weight": 0.0, "coefficient_lr": None}
# The norm, whether a channel's orders are dropped together, and the objective. Without an order the two objectives are
# one and the joint norm is batch norm, so that two controls serve all.
_KINDS: tuple[tuple[str | None, bool, str], ...] = (
    (None, True, "quadrature"),
    (None, True, "predictive"),
    ("batch", True, "quadrature"),
    ("batch", True, "predictive"),
    ("joint", True, "quadrature"),
    ("joint", True, "predictive"),
    ("joint", False, "predictive"),
)
_COMPARED = ("chaos_order", "quadrature_size", "norm", "joint_dropout", "objective", "training")


def _label(norm: str | None, joint_dropout: bool, objective: str) -> str:
    drop = "" if joint_dropout else ", dropout by order"
    return f"start, P=3, {norm or 'no'} norm{drop}, {objective}"


def _control(norm: str | None) -> str:
    return f"start, P=0, {'batch' if norm else 'no'} norm"


def norm_rows() -> dict[str, Callable[[str], Setup]]:
    """A setup for each dataset, by variant: P=3 in every kind, and P=0 without a norm and with batch norm."""
    zero = {"chaos_order": 0, "quadrature_size": 1, "objective": "predictive"}
    three = {"chaos_order": 3, "quadrature_size": 4}
    rows: dict[str, Callable[[str], Setup]] = {
        _control(norm): partial(_setup, {**zero, "norm": norm}) for norm in (None, "batch")
    }
    for norm, joint, objective in _KINDS:
        changed = {**three, "norm": norm, "joint_dropout": joint, "objective": objective}
        rows[_label(norm, joint, objective)] = partial(_setup, changed)
    return rows


def _setup(changed: dict[str, Any], dataset: str) -> Setup:
    start = {name: values[0] for name, values in DSS_FAMILIES["every"].items()}
    return dss_setup({**start, **_RATES, **changed}, _EPOCHS, _PATIENCE)


def _table(records: list[Record]) -> str:
    """Order 3 against order 0 under each norm, split by split; p-values are Holm's over a kind's datasets."""
    found = by_row(records, "calibration-ablation")
    rows = []
    for norm, joint, objective in _KINDS:
        compared = []
        for dataset in dict.fromkeys(dataset for dataset, _, _ in found):
            ours, theirs = (
                found.get((dataset, "dss-gnn", label), {})
                for label in (_label(norm, joint, objective), _control(norm))
            )
            if len(ours) > 1 and ours.keys() == theirs.keys() and same_but_for(ours, theirs, _COMPARED):
                scores = [[side[s].metrics["brier"] for s in sorted(ours)] for side in (ours, theirs)]
                compared.append((dataset, ours, theirs, compare_paired(*scores)))
        corrected = holm([c.p_value for *_, c in compared])
        for (dataset, ours, theirs, c), p in zip(compared, corrected, strict=True):
            scores_text = [spread_of(theirs, "brier"), spread_of(ours, "brier"), f"{c.difference:+.4f}"]
            interval = f"{c.low:+.4f} to {c.high:+.4f}"
            energy = spread_of(ours, "chaos_energy", digits=2)
            kind = (norm or "none") + ("" if joint else ", dropout by order")
            rows.append(
                [kind, objective, dataset, *scores_text, interval, f"{p:.3f}", f"{c.wins}/{c.count}", energy]
            )
    header = [
        "norm", "objective", "dataset", "P=0", "P=3", "difference", "95 % interval", "p (Holm)", "splits won",
        "chaos energy",
    ]  # fmt: skip
    return markdown(header, rows) if rows else ABSENT


TABLES: dict[str, tuple[str, Callable[[list[Record]], str]]] = {"chaos-norms": ("calibration.json", _table)}
