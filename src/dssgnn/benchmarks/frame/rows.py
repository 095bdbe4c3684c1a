"""Records as rows of tables."""

import json
import statistics
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from dssgnn.benchmarks.records import Record

__all__ = [
    "LISTS", "Key", "Rows", "Runs", "all_runs", "by_row", "config_of_row", "mean_of", "mean_run", "runs_by_row",
    "seeds_of", "shared_seeds", "spread", "spread_of",
]  # fmt: skip

LISTS = "lists"  # of a record's configuration, what metrics cannot hold

Key = tuple[str, str, str]  # setting, method and variant
Rows = dict[Key, dict[int, Record]]
Runs = dict[tuple[str, int], dict[int, Record]]  # by device and seed, then split


def runs_by_row(records: Iterable[Record], benchmark: str) -> dict[Key, Runs]:
    """The runs of every row, by device and seed, then split.

    A row is of one configuration: of those that were run, the one whose first run has the most splits, then the one
    with the most runs. Its splits are those of its first run; other runs of it that lack one are left out.
    (``default`` variants are no rows of this frame.)
    """
    found: dict[Key, dict[str, Runs]] = {}
    for record in records:
        of_it = record.benchmark == benchmark and record.variant != "default"
        if of_it and record.split is not None and record.seed is not None:
            config = json.dumps(config_of_row(record), sort_keys=True)
            runs = found.setdefault((record.setting, record.method, record.variant), {}).setdefault(
                config, {}
            )
            runs.setdefault((record.device, record.seed), {})[record.split] = record
    return {
        key: max((_whole(runs) for _, runs in sorted(configs.items())), key=_rank)
        for key, configs in sorted(found.items())
    }


def _whole(runs: Runs) -> Runs:
    ordered = sorted(runs.items())
    first = [own for (_, seed), own in ordered if seed == 0] or [own for _, own in ordered]
    splits = max(first, key=len).keys()
    return {key: {s: own[s] for s in sorted(splits)} for key, own in ordered if own.keys() >= splits}


def _rank(runs: Runs) -> tuple[int, int]:
    return max((len(own) for (_, seed), own in runs.items() if seed == 0), default=0), len(runs)


def all_runs(key: Key, runs: Runs) -> list[dict[int, Record]]:
    """What a table shows where nothing speaks against a run."""
    return list(runs.values())


def by_row(
    records: Iterable[Record],
    benchmark: str,
    counted: Callable[[Key, Runs], list[dict[int, Record]]] = all_runs,
) -> Rows:
    """Every row's splits, with metrics that are means over its runs; ``runs`` says how many.

    ``counted(row, runs)`` chooses the runs; a row of which none counts is not there.
    """
    found = ((key, counted(key, runs)) for key, runs in runs_by_row(records, benchmark).items())
    return {key: mean_run(own) for key, own in found if own}


def seeds_of(runs: Iterable[dict[int, Record]]) -> set[int | None]:
    """The seeds of some runs; one that was run on several devices is one."""
    return {record.seed for run in runs for record in run.values()}


def shared_seeds(ours: Runs, theirs: Runs) -> tuple[Runs, Runs]:
    """The runs of two rows whose seed the other has too."""
    seeds = {seed for _, seed in ours} & {seed for _, seed in theirs}
    mine, other = ({key: own for key, own in side.items() if key[1] in seeds} for side in (ours, theirs))
    return mine, other


def mean_run(runs: list[dict[int, Record]]) -> dict[int, Record]:
    """Runs of the same splits as one: the first's records with means of the metrics that all have.

    A seed that was run on several devices counts once.
    """
    return {split: _mean_record([run[split] for run in runs]) for split in runs[0]}


def _mean_record(runs: list[Record]) -> Record:
    names = [name for name in runs[0].metrics if all(name in run.metrics for run in runs)]
    seeds: dict[int | None, list[Record]] = {}
    for run in runs:
        seeds.setdefault(run.seed, []).append(run)
    means = {
        name: statistics.fmean(statistics.fmean(run.metrics[name] for run in own) for own in seeds.values())
        for name in names
    }
    return replace(runs[0], metrics={**means, "runs": float(len(seeds))})


def config_of_row(record: Record, but: Iterable[str] = ()) -> dict[str, Any]:
    """What a record's configuration shares with the other splits and runs of its row.

    ``but`` leaves more out; ``"training.lr"`` is the rate within the training.
    """
    left_out = {*but, "seeds", LISTS}

    def without(config: dict[str, Any], inside: str) -> dict[str, Any]:
        return {
            name: without(value, f"{inside}{name}.") if isinstance(value, dict) else value
            for name, value in config.items()
            if f"{inside}{name}" not in left_out
        }

    return without(record.config, "")


def mean_of(splits: dict[int, Record], key: str) -> float:
    """The mean of a metric over a row's splits."""
    return statistics.fmean(record.metrics[key] for record in splits.values())


def spread_of(splits: dict[int, Record], key: str, scale: float = 1, digits: int = 4) -> str:
    """`spread` of a metric of a row."""
    return spread([record.metrics[key] for record in splits.values()], scale, digits)


def spread(values: list[float], scale: float = 1, digits: int = 4) -> str:
    """Mean and population deviation, as the paper prints them."""
    return f"{scale * statistics.fmean(values):.{digits}f} ± {scale * statistics.pstdev(values):.{digits}f}"
