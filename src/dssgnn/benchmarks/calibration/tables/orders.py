"""The sweep over the chaos order, from the ablations' records and as the paper printed it."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from dssgnn.benchmarks.calibration.printed import published_ablations
from dssgnn.benchmarks.records import Record

__all__ = ["Order", "Sweep", "measured_sweeps", "printed_sweep"]


class Order(NamedTuple):
    """A chaos order's Brier score over that of order 0.

    Attributes:
        test: on the test part, means over the splits that both have.
        validation: on the validation part, where it is known.
    """

    test: float
    validation: float | None = None


Sweep = dict[str, dict[int, Order]]  # by dataset and order
_Scores = dict[int, tuple[float, float]]  # by split: on the test part, on the validation part

_VARIANT = re.compile(r"(?P<base>published|paper), P=(?P<order>\d+)(, (?P<kind>S(?==)|predictive)(=\d+)?)?")
_NAMES = {None: "", "S": ", S > P", "predictive": ", predictive loss"}


def measured_sweeps(records: Iterable[Record]) -> dict[str, Sweep]:
    """The sweeps in the ablations' records, by what was held.

    The test scores are of the readout that was trained: the mean logit's, which is also what the paper prints, or the
    predictive distribution's.
    """
    found: dict[str, dict[str, dict[int, _Scores]]] = {}
    for record in records:
        match = _VARIANT.fullmatch(record.variant)
        if match and record.split is not None:
            held = match["base"] + _NAMES[match["kind"]]
            score = record.metrics["brier" if match["kind"] == "predictive" else "brier_mean"]
            orders = found.setdefault(held, {}).setdefault(record.setting, {})
            orders.setdefault(int(match["order"]), {})[record.split] = score, record.metrics["val_brier"]
    for base in ("published", "paper"):
        # The four nodes that are published are enough below order 4; only the others were run with more.
        for dataset, orders in found.get(base + _NAMES["S"], {}).items():
            same = found.get(base, {}).get(dataset, {})
            orders |= {p: scores for p, scores in same.items() if p < 4 and p not in orders}
    sweeps: dict[str, Sweep] = {}
    for held, datasets in sorted(found.items()):
        for dataset, orders in datasets.items():
            zero = orders.get(0, {})
            common = {p: sorted(scores.keys() & zero.keys()) for p, scores in sorted(orders.items())}
            relative = {p: _relative(orders[p], zero, splits) for p, splits in common.items() if splits}
            if len(relative) > 1:
                sweeps.setdefault(held, {})[dataset] = relative
    return sweeps


def _relative(scores: _Scores, zero: _Scores, splits: list[int]) -> Order:
    return Order(*(sum(scores[s][i] for s in splits) / sum(zero[s][i] for s in splits) for i in (0, 1)))


def printed_sweep() -> Sweep:
    """The paper's tab:p_brier, as far as ``published.json`` has it."""
    sweep = {}
    for dataset, row in published_ablations()["p_brier"].items():
        scores = {int(label.removeprefix("P=")): cell["brier"] for label, cell in row.items()}
        if 0 in scores and len(scores) > 1:
            sweep[dataset] = {p: Order(score / scores[0]) for p, score in sorted(scores.items())}
    return sweep
