"""The tables of the ablations, beside the paper's."""

import statistics
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

from dssgnn.benchmarks.calibration.ablations import ABLATIONS
from dssgnn.benchmarks.calibration.presets import Variant
from dssgnn.benchmarks.calibration.printed import printed_text, published_ablations
from dssgnn.benchmarks.calibration.search import TWINS
from dssgnn.benchmarks.frame import by_row, mean_of, mean_run, runs_by_row, spread_of
from dssgnn.benchmarks.markdown import ABSENT, markdown
from dssgnn.benchmarks.records import Record

__all__ = ["TABLES"]

# The tables of the paper that print an ablation, by the names in ``published.json``.
_ABLATED = {
    "order": ("p_brier", "p_acc"),
    "regulariser": ("lreg_ablation",),
    "quadrature": ("S_ablation",),
    "norm": ("bn_calibration",),
}


def _ablation(name: str, records: list[Record]) -> str:
    """Every setting of an ablation, in the paper's readout beside what it prints, and in the predictive one."""
    found = by_row(records, "calibration-ablation")
    rows = []
    for dataset, base in dict.fromkeys((d, v.partition(", ")[0]) for d, _, v in found):
        for label in ABLATIONS[name]:
            splits = found.get((dataset, "dss-gnn", f"{base}, {label}"))
            if splits is None:
                continue
            printed: dict[str, Any] = {}
            for table in _ABLATED.get(name, ()):
                printed |= published_ablations()[table].get(dataset, {}).get(label, {})
            rows.append(
                [
                    dataset,
                    base,
                    label,
                    str(len(splits)),
                    spread_of(splits, "brier_mean"),
                    printed_text(printed, "brier"),
                    spread_of(splits, "accuracy_mean", 100, 2),
                    printed_text(printed, "accuracy", 100, 2),
                    spread_of(splits, "brier"),
                    spread_of(splits, "chaos_energy"),
                ]
            )
    header = [
        "dataset", "presets", "setting", "splits", "Brier, mean logit", "paper", "accuracy, mean logit, %", "paper",
        "Brier, predictive", "chaos energy",
    ]  # fmt: skip
    return _without_empty(header, rows) if rows else ABSENT


def _decomposition(records: list[Record]) -> str:
    """The single-branch control, order 0, and the order above 0 that has the lowest validation Brier score.

    The paper takes the order with the lowest test score; Brier scores are of the mean logit, as it prints them.
    """
    found, controls = by_row(records, "calibration-ablation"), by_row(records, "calibration")
    rows = []
    for dataset, base in dict.fromkeys((d, v.partition(", ")[0]) for d, _, v in found):
        rows_of = {
            label: found.get((dataset, "dss-gnn", f"{base}, {label}"), {}) for label in ABLATIONS["order"]
        }
        zero = rows_of.pop("P=0")
        orders = {
            label: splits for label, splits in rows_of.items() if splits and splits.keys() == zero.keys()
        }
        if not orders:
            continue
        best = min(orders, key=lambda label: mean_of(orders[label], "val_brier"))
        control = controls.get((dataset, "chebnet", "paper"), {})
        control = control if control.keys() == zero.keys() else {}
        printed = published_ablations()["decompose"].get(dataset, {})
        cells = [dataset, base, str(len(zero))]
        for label, splits in (("ChebNet", control), ("P=0", zero), ("best P>0", orders[best])):
            cells += [
                spread_of(splits, "brier_mean") if splits else "–",
                printed_text(printed.get(label, {}), "brier"),
            ]
        change = mean_of(orders[best], "brier_mean") / mean_of(zero, "brier_mean") - 1
        theirs = (
            f"{100 * (printed['best P>0']['brier'] / printed['P=0']['brier'] - 1):+.1f}" if printed else "–"
        )
        rows.append([*cells, best, f"{100 * change:+.1f}", theirs])
    header = [
        "dataset", "presets", "splits", "ChebNet", "paper", "P=0", "paper", "P>0, best on validation",
        "paper, best on test", "which", "change from P=0, %", "paper",
    ]  # fmt: skip
    return markdown(header, rows) if rows else ABSENT


# Of these there is one readout.
_WITHOUT_ORDER = (("dss-gnn", "best-p0"), *TWINS)


def _readouts(records: list[Record]) -> str:
    """How far the predictive readout is from the mean logit's, at the same weights."""
    rows = []
    for (dataset, method, variant), runs in runs_by_row(records, "calibration").items():
        if method not in ("dss-gnn", "dss-hybrid") or (method, variant) in _WITHOUT_ORDER:
            continue
        gaps = [
            abs(r.metrics["brier"] - r.metrics["brier_mean"]) for own in runs.values() for r in own.values()
        ]
        splits = mean_run(list(runs.values()))
        known = all("disagreement" in r.metrics for r in splits.values())
        rerun = method == "dss-gnn" and variant in get_args(Variant)
        printed = published_ablations()["readout_coincidence"].get(dataset, {}) if rerun else {}
        rows.append(
            [
                dataset,
                method,
                variant,
                str(len(splits)),
                f"{statistics.fmean(gaps):.4f}",
                printed_text(printed, "brier_difference", 1, 4),
                f"{100 * mean_of(splits, 'disagreement'):.2f}" if known else "–",
                printed_text(printed, "disagreement", 100, 2),
                spread_of(splits, "chaos_energy"),
            ]
        )
    header = [
        "dataset", "system", "variant", "splits", "difference in Brier", "paper", "other class, %", "paper",
        "chaos energy",
    ]  # fmt: skip
    return markdown(header, rows) if rows else ABSENT


def _without_empty(header: list[str], rows: list[list[str]]) -> str:
    """A table less the columns that hold nothing."""
    kept = [i for i in range(len(header)) if any(row[i] != "–" for row in rows)]
    return markdown([header[i] for i in kept], [[row[i] for i in kept] for row in rows])


TABLES: dict[str, tuple[str, Callable[[list[Record]], str]]] = {
    **{f"ablation-{name}": ("calibration.json", partial(_ablation, name)) for name in ABLATIONS},
    "ablation-decomposition": ("calibration.json", _decomposition),
    "ablation-readouts": ("calibration.json", _readouts),
}
