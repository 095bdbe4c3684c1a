"""The table of what the searches chose, with its score on the nodes that chose it and on those that did not."""

from collections.abc import Callable, Mapping
from typing import Any

from dssgnn.benchmarks.calibration.measuring import ALONE
from dssgnn.benchmarks.calibration.plan import ALONE_WORDS
from dssgnn.benchmarks.calibration.search.space import ARMS
from dssgnn.benchmarks.calibration.tables.pairs import fresh_runs
from dssgnn.benchmarks.frame import (
    Key,
    Runs,
    by_row,
    config_of_row,
    mean_of,
    mean_run,
    runs_by_row,
    seeds_of,
    shared_seeds,
    spread_of,
)
from dssgnn.benchmarks.markdown import ABSENT, markdown
from dssgnn.benchmarks.records import Record

__all__ = ["TABLES"]

_WORDS = (
    ("family", "{}"), ("num_layers", "layers {}"), ("hidden_channels", "width {}"), ("filter_orders", "K {}"),
    ("norm", "{} norm"), ("chaos_order", "P = {}"), ("objective", "{} loss"), ("logit_weight", "penalty {}"),
    ("eta", "eta {}"), ("direction", "edges {}"), ("edges", "edges {}"),
)  # fmt: skip
_PLAIN = (("logit_weight", 0.0), ("direction", "both"))  # not worth a word


def _words(config: Mapping[str, Any]) -> str:
    told = [(name, text, config.get(name)) for name, text in _WORDS]
    return ", ".join(
        text.format(value) for name, text, value in told if value is not None and (name, value) not in _PLAIN
    )


def _chosen(records: list[Record]) -> str:
    rows = []
    for (dataset, method, variant), splits in by_row(records, "calibration").items():
        if (method, variant) in ARMS:
            validation, test = mean_of(splits, "val_brier"), mean_of(splits, "brier")
            config = next(iter(splits.values())).config
            rows.append(
                [
                    dataset,
                    method,
                    variant,
                    _words(config),
                    f"{validation:.4f}",
                    f"{test:.4f}",
                    f"{test - validation:+.4f}",
                ]
            )
    header = ["dataset", "system", "variant", "chosen", "Brier, validation", "test", "difference"]
    return markdown(header, rows) if rows else ABSENT


def _alone(records: list[Record]) -> str:
    """Searched rows beside what they score where every split chooses by its own validation nodes, over the same seeds.

    The first seed is left out where there are others, as it is the one that was looked at when choosing.
    """
    rows = runs_by_row(records, "calibration")
    alone: dict[Key, Runs] = {}
    for (dataset, method, label), runs in runs_by_row(records, ALONE.name).items():
        variant, _, _ = label.partition(ALONE_WORDS)
        for run, splits in runs.items():
            alone.setdefault((dataset, method, variant), {}).setdefault(run, {}).update(splits)
    lines = []
    for key, found in sorted(alone.items()):
        whole = {run: own for run, own in found.items() if len(own) == max(map(len, found.values()))}
        sides = [fresh_runs(key, side) for side in shared_seeds(rows.get(key, {}), whole)]
        if not all(sides) or not sides[0][0].keys() >= sides[1][0].keys():
            continue
        ours, theirs = (mean_run([{s: own[s] for s in sides[1][0]} for own in side]) for side in sides)
        same = sum(config_of_row(ours[s]) == config_of_row(theirs[s]) for s in ours)
        gap = mean_of(theirs, "brier") - mean_of(ours, "brier")
        texts = [spread_of(splits, "brier") for splits in (ours, theirs)]
        lines.append([*key, str(len(seeds_of(sides[1]))), *texts, f"{gap:+.4f}", f"{same}/{len(ours)}"])
    header = [
        "dataset",
        "system",
        "variant",
        "runs a split",
        "one choice for all",
        "each split alone",
        "difference",
        "the same choice",
    ]
    return markdown(header, lines) if lines else ABSENT


TABLES: dict[str, tuple[str, Callable[[list[Record]], str]]] = {
    "calibration-chosen": ("calibration.json", _chosen),
    "calibration-alone": ("calibration.json", _alone),
}
