"""Records as rows of tables."""

import json
import statistics
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from dssgnn.benchmarks.records import Record

__all__ = [
    "CURVES", "Rows", "by_row", "config_without_seeds", "mean_of", "same_but_for", "spread", "spread_of",
]  # fmt: skip

CURVES = ("reliability", "reliability_scaled", "curvature")  # what `curves` adds to a row's configuration

Rows = dict[tuple[str, str, str], dict[int, Record]]


def by_row(records: Iterable[Record], benchmark: str = "calibration", seed: int | None = None) -> Rows:
    """Records by setting, method and variant, then split.

    A row is of one device and one configuration: those with the most splits, then with the most runs, and of equals a
    GPU's. With a ``seed`` it is that run; without, every metric is the mean over the runs that have all its splits, and
    ``runs`` says how many.
    """
    found: dict[tuple[str, str, str], dict[tuple[str, str], dict[int, dict[int, Record]]]] = {}
    for record in records:
        of_it = record.benchmark == benchmark and record.variant != "default"
        if of_it and record.split is not None and record.seed is not None and seed in (None, record.seed):
            key = record.setting, record.method, record.variant
            config = {k: v for k, v in record.config.items() if k not in ("seeds", *CURVES)}
            run = record.device, json.dumps(config, sort_keys=True)
            found.setdefault(key, {}).setdefault(run, {}).setdefault(record.seed, {})[record.split] = record
    return {key: _mean_run(kinds) for key, kinds in sorted(found.items())}


def _mean_run(kinds: dict[tuple[str, str], dict[int, dict[int, Record]]]) -> dict[int, Record]:
    """The mean over the runs of the one device and configuration that stands for a row."""

    def whole(runs: dict[int, dict[int, Record]]) -> list[dict[int, Record]]:
        longest = max(runs.values(), key=len).keys()
        return [own for _, own in sorted(runs.items()) if own.keys() == longest]

    candidates = [(device, whole(runs)) for (device, _), runs in sorted(kinds.items())]
    _, runs = max(candidates, key=lambda kind: (len(kind[1][0]), len(kind[1]), not kind[0].startswith("cpu")))
    return {split: _mean_record([run[split] for run in runs]) for split in runs[0]}


def _mean_record(runs: list[Record]) -> Record:
    """The first of a split's runs with the means of the metrics that all have."""
    names = [name for name in runs[0].metrics if all(name in run.metrics for run in runs)]
    means = {name: statistics.fmean(run.metrics[name] for run in runs) for name in names}
    return replace(runs[0], metrics={**means, "runs": float(len(runs))})


def same_but_for(one: dict[int, Record], other: dict[int, Record], names: Iterable[str] = ()) -> bool:
    """Whether two rows are of one device and one configuration, but for what ``names`` and the seeds say."""
    first, second = (next(iter(side.values())) for side in (one, other))
    return first.device == second.device and config_without_seeds(first, names) == config_without_seeds(
        second, names
    )


def config_without_seeds(record: Record, names: Iterable[str] = ()) -> dict[str, Any]:
    """A record's configuration but for its seeds and ``names``."""
    left_out = {*names, "seeds"}
    return {k: v for k, v in record.config.items() if k not in left_out}


def mean_of(splits: dict[int, Record], key: str) -> float:
    """The mean of a metric over a row's splits."""
    return statistics.fmean(record.metrics[key] for record in splits.values())


def spread_of(splits: dict[int, Record], key: str, scale: float = 1, digits: int = 4) -> str:
    """`spread` of a metric of a row."""
    return spread([record.metrics[key] for record in splits.values()], scale, digits)


def spread(values: list[float], scale: float = 1, digits: int = 4) -> str:
    """Mean and population deviation, as the paper prints them."""
    return f"{scale * statistics.fmean(values):.{digits}f} ± {scale * statistics.pstdev(values):.{digits}f}"
