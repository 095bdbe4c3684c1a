"""The tables of ``docs/chaos_axis.md``: the same configurations with a chaos order and without, on validation data."""

import json
import statistics
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from dssgnn.benchmarks.calibration.rows import ABSENT
from dssgnn.benchmarks.markdown import markdown
from dssgnn.benchmarks.records import Record

__all__ = ["TABLES", "Pair", "paired_trials"]


class Pair(NamedTuple):
    """A configuration that was trained with an order above 0 and without one.

    Attributes:
        dataset: which graph.
        config: the one with the order.
        ours: its mean validation Brier score.
        control: that of the same configuration at order 0.
    """

    dataset: str
    config: dict[str, Any]
    ours: float
    control: float

    @property
    def penalised(self) -> bool:
        """Whether both had a penalty on their squared logits."""
        return bool(self.config["logit_weight"] > 0)


def paired_trials(records: Iterable[Record]) -> list[Pair]:
    """Every trial of the first round of ``best`` beside the trial of ``best-p0`` that differs in the order alone."""
    trials: dict[tuple[str, str, str, str], dict[str, tuple[dict[str, Any], float]]] = {}
    for record in records:
        name, _, round_of = record.variant.partition(", ")
        if record.method == "dss-gnn" and round_of == "first round":
            length = json.dumps([record.config["budget"], record.config["splits"]])
            trials[record.setting, record.device, length, name] = {
                _without_order(trial["config"]): (trial["config"], statistics.fmean(trial["val_brier"]))
                for trial in record.config["trials"]
                if trial["val_brier"]
            }
    return [
        Pair(dataset, config, ours, others[key][1])
        for (dataset, device, length, name), found in sorted(trials.items())
        if name == "best" and (others := trials.get((dataset, device, length, "best-p0")))
        for key, (config, ours) in found.items()
        if key in others
    ]


def _without_order(config: dict[str, Any]) -> str:
    return json.dumps(
        {k: v for k, v in config.items() if k not in ("chaos_order", "quadrature_size")}, sort_keys=True
    )


def _table(records: list[Record], heads: list[str], key: Callable[[Pair], tuple[str, ...]]) -> str:
    """Pairs by a key: how often the order wins, and by how much, without a penalty on the logits and with it."""
    groups: dict[tuple[str, ...], tuple[list[float], list[float]]] = {}
    for pair in paired_trials(records):
        groups.setdefault(key(pair), ([], []))[pair.penalised].append(pair.ours - pair.control)
    rows = []
    for name, differences in sorted(groups.items()):
        cells = []
        for d in differences:
            won = f"{sum(x < 0 for x in d)}/{len(d)}"
            cells += [won, f"{statistics.median(d):+.4f}"] if d else ["–", "–"]
        rows.append([*name, *cells])
    header = [
        *heads,
        "wins over P=0",
        "median difference",
        "wins, both penalised",
        "median difference",
    ]
    return markdown(header, rows) if rows else ABSENT


def _by_dataset(records: list[Record]) -> str:
    return _table(records, ["dataset"], lambda pair: (pair.dataset,))


def _by_objective(records: list[Record]) -> str:
    return _table(
        records,
        ["objective", "P", "S"],
        lambda pair: (
            pair.config["objective"],
            str(pair.config["chaos_order"]),
            str(pair.config["quadrature_size"]),
        ),
    )


def _by_family(records: list[Record]) -> str:
    return _table(
        records, ["family", "norm"], lambda pair: (pair.config["family"], str(pair.config.get("norm")))
    )


TABLES: dict[str, tuple[str, Callable[[list[Record]], str]]] = {
    "chaos-datasets": ("calibration_search.json", _by_dataset),
    "chaos-objectives": ("calibration_search.json", _by_objective),
    "chaos-families": ("calibration_search.json", _by_family),
}
