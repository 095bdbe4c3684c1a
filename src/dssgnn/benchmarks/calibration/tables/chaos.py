"""The tables of ``docs/chaos_axis.md``: the same configurations with a chaos order and without, on validation data."""

import json
import statistics
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from dssgnn.benchmarks.markdown import ABSENT, markdown
from dssgnn.benchmarks.records import Record

__all__ = ["TABLES", "Pair", "paired_trials"]


class Pair(NamedTuple):
    """A configuration that was trained with an order above 0 and without one.

    Attributes:
        dataset: which graph.
        config: the one with the order.
        ours: its mean validation Brier score.
        control: that of the same configuration at order 0.
        declared: whether somebody had found it good before, and it was not drawn.
    """

    dataset: str
    config: dict[str, Any]
    ours: float
    control: float
    declared: bool = False

    @property
    def origin(self) -> str:
        """Where the configuration came from, in a word."""
        return "declared" if self.declared else "drawn"

    @property
    def penalised(self) -> bool:
        """Whether both had a penalty on their squared logits."""
        return bool(self.config["logit_weight"] > 0)


def paired_trials(records: Iterable[Record]) -> list[Pair]:
    """Every drawn or declared trial of ``best`` beside the trial of ``best-p0`` that differs in the order alone.

    Both of one device, where it has both arms.
    """
    trials: dict[tuple[str, str, str, str, str], dict[str, tuple[dict[str, Any], float]]] = {}
    for record in records:
        name, _, round_of = record.variant.partition(", ")
        if record.method == "dss-gnn" and round_of in ("first round", "starts round"):
            length = json.dumps(record.config["run"], sort_keys=True)
            trials[record.setting, record.device, length, round_of, name] = {
                _without_order(trial["config"]): (trial["config"], statistics.fmean(trial["val_brier"]))
                for trial in record.config["trials"]
                if trial["val_brier"]
            }
    pairs = []
    for (dataset, device, *same, name), found in sorted(trials.items()):
        controls = {key[1]: own for key, own in trials.items() if key == (dataset, key[1], *same, "best-p0")}
        others = controls.get(device) or next(iter(controls.values()), {})
        if name == "best":
            pairs += [
                Pair(dataset, config, ours, others[key][1], same[-1] == "starts round")
                for key, (config, ours) in found.items()
                if key in others
            ]
    return pairs


def _without_order(config: dict[str, Any]) -> str:
    return json.dumps(
        {k: v for k, v in config.items() if k not in ("chaos_order", "quadrature_size")}, sort_keys=True
    )


def _table(pairs: Iterable[Pair], heads: list[str], key: Callable[[Pair], tuple[str, ...]]) -> str:
    """Pairs by a key: how often the order wins, and by how much, without a penalty on the logits and with it."""
    groups: dict[tuple[str, ...], tuple[list[float], list[float]]] = {}
    for pair in pairs:
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
    return _table(paired_trials(records), ["dataset"], lambda pair: (pair.dataset,))


def _by_objective(records: list[Record]) -> str:
    def key(pair: Pair) -> tuple[str, ...]:
        own = tuple(str(pair.config[name]) for name in ("objective", "chaos_order", "quadrature_size"))
        return (pair.origin, *own)

    return _table(paired_trials(records), ["trials", "objective", "P", "S"], key)


def _by_family(records: list[Record]) -> str:
    def key(pair: Pair) -> tuple[str, ...]:
        return pair.origin, pair.config["family"], str(pair.config.get("norm"))

    return _table(paired_trials(records), ["trials", "family", "norm"], key)


TABLES: dict[str, tuple[str, Callable[[list[Record]], str]]] = {
    "chaos-datasets": ("calibration_search.json", _by_dataset),
    "chaos-objectives": ("calibration_search.json", _by_objective),
    "chaos-families": ("calibration_search.json", _by_family),
}
